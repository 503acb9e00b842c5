"""The size at which the model saw the screenshot of a turn, which decides what its coordinates mean.

Revision 0003, after 0002.
"""

from __future__ import annotations

from collections.abc import Mapping

import sqlalchemy as sa
from alembic import op
from sqlalchemy import Connection

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None

COLUMNS = ("seen_width", "seen_height")


def upgrade() -> None:
    for name in COLUMNS:
        op.add_column("turns", sa.Column(name, sa.BigInteger(), nullable=True))


def downgrade() -> None:
    for name in COLUMNS:
        op.drop_column("turns", name)


def losses(connection: Connection) -> Mapping[str, int]:
    """What a downgrade would lose."""
    turns = sa.table("turns", sa.column("seen_width"))
    known = sa.select(sa.func.count()).select_from(turns).where(turns.c.seen_width.is_not(None))
    return {"sizes at which screenshots were seen": connection.scalar(known) or 0}
