"""${message}

Revision ${up_revision}, after ${down_revision}.
"""

from __future__ import annotations

from collections.abc import Mapping

import sqlalchemy as sa
from alembic import op
from sqlalchemy import Connection
${imports if imports else ""}
revision = ${repr(up_revision)}
down_revision = ${repr(down_revision)}
branch_labels = None
depends_on = None


def upgrade() -> None:
    ${upgrades if upgrades else "pass"}


def downgrade() -> None:
    ${downgrades if downgrades else "pass"}


def losses(connection: Connection) -> Mapping[str, int]:
    """What a downgrade would lose: how many rows of what."""
    return {}
