"""What other trainers report: their rows as they sent them, and the tokens by which they may.

Revision 0006, after 0005.
"""

from __future__ import annotations

from collections.abc import Mapping

import sqlalchemy as sa
from alembic import op
from sqlalchemy import BigInteger, Connection, Double
from sqlalchemy.dialects.postgresql import JSONB

revision = "0006"
down_revision = "0005"
branch_labels = None
depends_on = None

_TEXT = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")
_JSON = sa.JSON().with_variant(JSONB(), "postgresql")


def upgrade() -> None:
    op.create_table(
        "project_tokens",
        sa.Column("id", _TEXT, nullable=False),
        sa.Column("project", _TEXT, nullable=False),
        sa.Column("digest", _TEXT, nullable=False),
        sa.Column("created_at", Double(), nullable=False),
        sa.Column("revoked_at", Double(), nullable=True),
        sa.PrimaryKeyConstraint("id", name="pk_project_tokens"),
    )
    op.create_index("ix_project_tokens_digest", "project_tokens", ["digest"])
    op.create_table(
        "ingested",
        sa.Column("kind", _TEXT, nullable=False),
        sa.Column("id", BigInteger(), nullable=False, autoincrement=False),
        sa.Column("project", _TEXT, nullable=False),
        sa.Column("client_id", _TEXT, nullable=False),
        sa.Column("parent", BigInteger(), nullable=True),
        sa.Column("data", _JSON, nullable=False),
        sa.Column("at", Double(), nullable=False),
        sa.PrimaryKeyConstraint("kind", "id", name="pk_ingested"),
    )
    op.create_index("ix_ingested_project_kind_client_id", "ingested", ["project", "kind", "client_id"], unique=True)
    op.create_index("ix_ingested_kind_parent", "ingested", ["kind", "parent"])


def downgrade() -> None:
    op.drop_table("ingested")
    op.drop_table("project_tokens")


def losses(connection: Connection) -> Mapping[str, int]:
    """What a downgrade would lose; the runs and episodes that were made of it stay."""
    counted = {
        "rows that other trainers have reported": "SELECT count(*) FROM ingested",
        "tokens of projects": "SELECT count(*) FROM project_tokens",
    }
    return {what: connection.scalar(sa.text(query)) or 0 for what, query in counted.items()}
