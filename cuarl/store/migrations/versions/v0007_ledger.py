"""Of each episode whether its task was done, and an index of all that the ledger and the orders of a large run read.

Revision 0007, after 0006.
"""

from __future__ import annotations

from collections.abc import Mapping

import sqlalchemy as sa
from alembic import op
from sqlalchemy import Connection

revision = "0007"
down_revision = "0006"
branch_labels = None
depends_on = None

INDEX = "ix_episodes_ledger"
COLUMNS = (
    "run_id", "reward", "id", "status", "purpose", "backend", "env", "success", "wall_s", "prompt_tokens",
    "sampled_tokens", "turn_count",
)  # fmt: skip


def upgrade() -> None:
    op.add_column("episodes", sa.Column("success", sa.Boolean(), nullable=True))
    mine = "FROM verdicts WHERE verdicts.episode_id = episodes.id"
    op.execute(f"UPDATE episodes SET success = (SELECT verdicts.success {mine}) WHERE EXISTS (SELECT 1 {mine})")
    op.create_index(INDEX, "episodes", list(COLUMNS))


def downgrade() -> None:
    op.drop_index(INDEX, "episodes")
    op.drop_column("episodes", "success")


def losses(connection: Connection) -> Mapping[str, int]:
    """What a downgrade would lose: nothing, for verdicts are there still."""
    return {}
