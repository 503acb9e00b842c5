"""What the monitor shows: devices, times, baselines, what people say of episodes, and how far a run has come.

Revision 0005, after 0004.
"""

from __future__ import annotations

from collections.abc import Mapping

import sqlalchemy as sa
from alembic import op
from sqlalchemy import Connection, Double
from sqlalchemy.dialects.postgresql import JSONB

revision = "0005"
down_revision = "0004"
branch_labels = None
depends_on = None

_TEXT = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")
_JSON = sa.JSON().with_variant(JSONB(), "postgresql")


def _columns() -> list[tuple[str, sa.Column[object]]]:
    return [
        ("episodes", sa.Column("backend", _TEXT, nullable=False, server_default="")),
        ("episodes", sa.Column("device", _TEXT, nullable=False, server_default="")),
        ("episodes", sa.Column("ready_s", Double(), nullable=True)),
        ("episodes", sa.Column("check_at", Double(), nullable=True)),
        ("episodes", sa.Column("check_s", Double(), nullable=True)),
        ("turns", sa.Column("started_at", Double(), nullable=False, server_default="0")),
        ("evaluations", sa.Column("baselines", _JSON, nullable=False, server_default="{}")),
    ]


def upgrade() -> None:
    for table, column in _columns():
        op.add_column(table, column)
    op.create_table(
        "human_verdicts",
        sa.Column("id", _TEXT, nullable=False), sa.Column("episode_id", _TEXT, nullable=False),
        sa.Column("success", sa.Boolean(), nullable=True), sa.Column("reason", _TEXT, nullable=False),
        sa.Column("actor", _TEXT, nullable=False), sa.Column("at", Double(), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_human_verdicts"),
        sa.ForeignKeyConstraint(
            ["episode_id"], ["episodes.id"], ondelete="CASCADE", name="fk_human_verdicts_episode_id_episodes"
        ),
    )  # fmt: skip
    op.create_index("ix_human_verdicts_episode_id_at", "human_verdicts", ["episode_id", "at"])
    op.create_table(
        "live",
        sa.Column("run_id", _TEXT, nullable=False),
        sa.Column("episode_id", _TEXT, nullable=False),
        sa.Column("phase", _TEXT, nullable=False),
        sa.Column("at", Double(), nullable=False),
        sa.Column("data", _JSON, nullable=False),
        sa.PrimaryKeyConstraint("run_id", "episode_id", name="pk_live"),
    )


def downgrade() -> None:
    op.drop_table("live")
    op.drop_table("human_verdicts")
    for table, column in reversed(_columns()):
        op.drop_column(table, column.name)


def losses(connection: Connection) -> Mapping[str, int]:
    """What a downgrade would lose; how far a run has come is no loss."""
    counted = {
        "verdicts of people": "SELECT count(*) FROM human_verdicts",
        "devices and times of episodes": "SELECT count(*) FROM episodes WHERE backend <> '' OR ready_s IS NOT NULL",
        "baselines of evaluations": "SELECT count(*) FROM evaluations WHERE CAST(baselines AS TEXT) <> '{}'",
    }
    return {what: connection.scalar(sa.text(query)) or 0 for what, query in counted.items()}
