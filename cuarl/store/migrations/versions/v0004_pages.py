"""Indexes that give a page of episodes, or one metric, in its order, whatever else the store holds.

Revision 0004, after 0003.
"""

from __future__ import annotations

from collections.abc import Mapping

from alembic import op
from sqlalchemy import Connection

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None

OLD: tuple[tuple[str, tuple[str, ...]], ...] = (("episodes", ("run_id", "purpose", "step")), ("episodes", ("task_id",)))
NEW: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("episodes", ("step", "id")),
    ("episodes", ("run_id", "step", "id")),
    ("episodes", ("run_id", "purpose", "step", "id")),
    ("episodes", ("task_id", "step", "id")),
    ("episodes", ("policy", "step", "id")),
    ("episodes", ("policy", "policy_version", "step", "id")),
    ("episodes", ("status", "step", "id")),
    ("metrics", ("run_id", "name", "step")),
)


def name(table: str, columns: tuple[str, ...]) -> str:
    return f"ix_{table}_{'_'.join(columns)}"


def upgrade() -> None:
    for table, columns in OLD:
        op.drop_index(name(table, columns), table)
    for table, columns in NEW:
        op.create_index(name(table, columns), table, list(columns))


def downgrade() -> None:
    for table, columns in NEW:
        op.drop_index(name(table, columns), table)
    for table, columns in OLD:
        op.create_index(name(table, columns), table, list(columns))


def losses(connection: Connection) -> Mapping[str, int]:
    """What a downgrade would lose: nothing."""
    return {}
