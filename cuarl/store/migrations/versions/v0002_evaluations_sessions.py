"""Evaluations with their episodes, sessions of external devices, and where a run's checkpoint came from.

Revision 0002, after 0001.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import sqlalchemy as sa
from alembic import op
from sqlalchemy import Connection
from sqlalchemy.dialects.postgresql import JSONB

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None

TEXT = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")
JSON = sa.JSON().with_variant(JSONB(), "postgresql")
PARENT = "fk_runs_parent_id_runs"


def text(name: str, *, nullable: bool = False) -> sa.Column[Any]:
    return sa.Column(name, TEXT, nullable=nullable)


def integer(name: str) -> sa.Column[Any]:
    return sa.Column(name, sa.BigInteger(), nullable=False, autoincrement=False)


def real(name: str, *, nullable: bool = False) -> sa.Column[Any]:
    return sa.Column(name, sa.Double(), nullable=nullable)


def json(name: str) -> sa.Column[Any]:
    return sa.Column(name, JSON, nullable=False)


def runs(*more: Any) -> sa.Table:
    """The table as 0001 made it, and ``more``: SQLite adds and drops a foreign key by copying it."""
    return sa.Table(
        "runs", sa.MetaData(),
        text("id"), text("name"), text("command"), text("status"), text("message"), text("directory"), text("model"),
        text("seed", nullable=True), json("config"), integer("step"),
        sa.Column("total_steps", sa.BigInteger(), nullable=True),
        real("started_at"), real("finished_at", nullable=True), real("heartbeat_at", nullable=True), json("info"),
        *more, sa.PrimaryKeyConstraint("id", name="pk_runs"),
    )  # fmt: skip


def upgrade() -> None:
    with op.batch_alter_table("runs", copy_from=runs()) as batch:
        batch.add_column(text("parent_id", nullable=True))
        batch.create_foreign_key(PARENT, "runs", ["parent_id"], ["id"])
    op.create_table(
        "evaluations",
        text("id"), text("run_id", nullable=True), text("suite"), integer("step"), text("policy"),
        integer("policy_version"), text("status"), text("message"), real("started_at"),
        real("finished_at", nullable=True), json("metrics"), json("info"),
        sa.PrimaryKeyConstraint("id", name="pk_evaluations"),
        sa.ForeignKeyConstraint(["run_id"], ["runs.id"], name="fk_evaluations_run_id_runs"),
    )  # fmt: skip
    op.create_index("ix_evaluations_run_id", "evaluations", ["run_id"])
    op.create_table(
        "evaluation_episodes",
        text("evaluation_id"),
        text("episode_id"),
        integer("position"),
        sa.PrimaryKeyConstraint("evaluation_id", "episode_id", name="pk_evaluation_episodes"),
        sa.ForeignKeyConstraint(
            ["evaluation_id"],
            ["evaluations.id"],
            ondelete="CASCADE",
            name="fk_evaluation_episodes_evaluation_id_evaluations",
        ),
        sa.ForeignKeyConstraint(
            ["episode_id"], ["episodes.id"], ondelete="CASCADE", name="fk_evaluation_episodes_episode_id_episodes"
        ),
    )
    op.create_index("ix_evaluation_episodes_episode_id", "evaluation_episodes", ["episode_id"])
    op.create_table(
        "sessions",
        text("id"), text("backend"), text("external_id"), text("run_id", nullable=True),
        text("episode_id", nullable=True), text("owner"), text("status"), text("message"), real("created_at"),
        real("seen_at"), real("closed_at", nullable=True), json("info"),
        sa.PrimaryKeyConstraint("id", name="pk_sessions"),
        sa.ForeignKeyConstraint(["run_id"], ["runs.id"], name="fk_sessions_run_id_runs"),
    )  # fmt: skip
    op.create_index("ix_sessions_run_id", "sessions", ["run_id"])
    op.create_index("ix_sessions_status", "sessions", ["status"])


def downgrade() -> None:
    for table in ("sessions", "evaluation_episodes", "evaluations"):
        op.drop_table(table)
    parent = sa.ForeignKeyConstraint(["parent_id"], ["runs.id"], name=PARENT)
    with op.batch_alter_table("runs", copy_from=runs(text("parent_id", nullable=True), parent)) as batch:
        batch.drop_constraint(PARENT, type_="foreignkey")
        batch.drop_column("parent_id")


def losses(connection: Connection) -> Mapping[str, int]:
    """What a downgrade would lose."""

    def count(table: sa.TableClause, *where: sa.ColumnElement[bool]) -> int:
        return connection.scalar(sa.select(sa.func.count()).select_from(table).where(*where)) or 0

    linked = sa.table("runs", sa.column("parent_id"))
    return {
        "evaluations": count(sa.table("evaluations")),
        "sessions": count(sa.table("sessions")),
        "links from runs to their parents": count(linked, linked.c.parent_id.is_not(None)),
    }
