"""Core tables: runs, policies, tasks, groups, episodes with their turns, metrics, events, status history.

Revision 0001, the first.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import sqlalchemy as sa
from alembic import op
from sqlalchemy import Connection
from sqlalchemy.dialects.postgresql import JSONB

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None

TEXT = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")
JSON = sa.JSON().with_variant(JSONB(), "postgresql")


def text(name: str, *, nullable: bool = False) -> sa.Column[Any]:
    return sa.Column(name, TEXT, nullable=nullable)


def integer(name: str, *, nullable: bool = False) -> sa.Column[Any]:
    return sa.Column(name, sa.BigInteger(), nullable=nullable, autoincrement=False)


def real(name: str, *, nullable: bool = False) -> sa.Column[Any]:
    return sa.Column(name, sa.Double(), nullable=nullable)


def boolean(name: str, *, nullable: bool = False) -> sa.Column[Any]:
    return sa.Column(name, sa.Boolean(), nullable=nullable)


def json(name: str, *, nullable: bool = False) -> sa.Column[Any]:
    return sa.Column(name, JSON, nullable=nullable)


def key(table: str, *columns: str) -> sa.PrimaryKeyConstraint:
    return sa.PrimaryKeyConstraint(*columns, name=f"pk_{table}")


def belongs(table: str, columns: list[str], other: str, others: list[str], **options: Any) -> sa.ForeignKeyConstraint:
    name = f"fk_{table}_{'_'.join(columns)}_{other}"
    return sa.ForeignKeyConstraint(columns, [f"{other}.{c}" for c in others], name=name, **options)


def upgrade() -> None:
    _runs()
    _episodes()
    _turns()
    _records()


def _runs() -> None:
    op.create_table(
        "runs",
        text("id"), text("name"), text("command"), text("status"), text("message"), text("directory"), text("model"),
        text("seed", nullable=True), json("config"), integer("step"), integer("total_steps", nullable=True),
        real("started_at"), real("finished_at", nullable=True), real("heartbeat_at", nullable=True), json("info"),
        key("runs", "id"),
    )  # fmt: skip
    op.create_table(
        "policies",
        text("name"), integer("version"), text("run_id", nullable=True), integer("step"), text("base_model"),
        text("path"), text("digest"), real("created_at"), json("info"),
        key("policies", "name", "version"), belongs("policies", ["run_id"], "runs", ["id"]),
    )  # fmt: skip
    op.create_index("ix_policies_run_id", "policies", ["run_id"])
    op.create_table(
        "tasks",
        text("id"), text("digest"), text("suite"), text("category"), text("difficulty"), real("seen_at"),
        json("data"), key("tasks", "id", "digest"),
    )  # fmt: skip


def _episodes() -> None:
    op.create_table(
        "groups",
        text("id"), text("run_id", nullable=True), text("task_id"), text("seed"), integer("step"), text("purpose"),
        key("groups", "id"), belongs("groups", ["run_id"], "runs", ["id"]),
    )  # fmt: skip
    op.create_index("ix_groups_run_id_purpose_step", "groups", ["run_id", "purpose", "step"])
    op.create_table(
        "episodes",
        text("id"), integer("schema_version"), text("run_id", nullable=True), text("group_id", nullable=True),
        integer("attempt"), integer("step"), text("purpose"), text("task_id"), text("goal"), text("category"),
        text("difficulty"), text("env"), text("agent"), text("policy"), integer("policy_version"), text("seed"),
        text("status"), text("stop", nullable=True), json("failure", nullable=True), text("answer", nullable=True),
        real("reward", nullable=True), json("reward_parts"), text("final_digest", nullable=True),
        integer("final_width", nullable=True), integer("final_height", nullable=True), integer("turn_count"),
        integer("prompt_tokens"), integer("sampled_tokens"), real("started_at"), real("wall_s"), real("saved_at"),
        json("info"),
        key("episodes", "id"), belongs("episodes", ["run_id"], "runs", ["id"]),
        belongs("episodes", ["group_id"], "groups", ["id"]),
    )  # fmt: skip
    op.create_index("ix_episodes_run_id_purpose_step", "episodes", ["run_id", "purpose", "step"])
    op.create_index("ix_episodes_group_id", "episodes", ["group_id"])
    op.create_index("ix_episodes_task_id", "episodes", ["task_id"])
    op.create_index("ix_episodes_saved_at", "episodes", ["saved_at"])


def _turns() -> None:
    op.create_table(
        "turns",
        text("episode_id"), integer("turn"), text("digest"), integer("width"), integer("height"),
        json("action", nullable=True), json("parse_error", nullable=True), json("warnings"),
        text("rejected", nullable=True), json("text"), real("reward", nullable=True), real("model_s"), real("env_s"),
        real("settle_ms", nullable=True), boolean("settled", nullable=True), boolean("changed", nullable=True),
        key("turns", "episode_id", "turn"),
        belongs("turns", ["episode_id"], "episodes", ["id"], ondelete="CASCADE"),
    )  # fmt: skip
    op.create_table(
        "samples",
        text("episode_id"), integer("turn"), text("text"), text("stop"), real("temperature"), text("policy"),
        integer("policy_version"), boolean("exact"), json("images"),
        sa.Column("prompt_ids", sa.LargeBinary(), nullable=False),
        sa.Column("token_ids", sa.LargeBinary(), nullable=False), sa.Column("logprobs", sa.LargeBinary()),
        key("samples", "episode_id", "turn"),
        belongs("samples", ["episode_id", "turn"], "turns", ["episode_id", "turn"], ondelete="CASCADE"),
    )  # fmt: skip
    op.create_table(
        "verdicts",
        text("episode_id"), boolean("success"), real("score"), boolean("claimed", nullable=True), json("checks"),
        json("side_effects"), key("verdicts", "episode_id"),
        belongs("verdicts", ["episode_id"], "episodes", ["id"], ondelete="CASCADE"),
    )  # fmt: skip


def _records() -> None:
    op.create_table(
        "metrics",
        text("run_id"), integer("step"), text("name"), real("value", nullable=True), real("at"),
        key("metrics", "run_id", "step", "name"), belongs("metrics", ["run_id"], "runs", ["id"]),
    )  # fmt: skip
    op.create_table(
        "events",
        text("id"), text("run_id", nullable=True), real("at"), text("kind"), json("data"),
        key("events", "id"), belongs("events", ["run_id"], "runs", ["id"]),
    )  # fmt: skip
    op.create_index("ix_events_run_id_at", "events", ["run_id", "at"])
    op.create_table(
        "status_history",
        text("entity"), text("entity_id"), integer("seq"), text("old", nullable=True), text("new"), text("message"),
        real("at"), key("status_history", "entity", "entity_id", "seq"),
    )  # fmt: skip


def downgrade() -> None:
    for table in (
        "status_history",
        "events",
        "metrics",
        "verdicts",
        "samples",
        "turns",
        "episodes",
        "groups",
        "tasks",
        "policies",
        "runs",
    ):
        op.drop_table(table)


def losses(connection: Connection) -> Mapping[str, int]:
    tables = ("runs", "policies", "tasks", "episodes", "metrics", "events")
    return {t: connection.scalar(sa.select(sa.func.count()).select_from(sa.table(t))) or 0 for t in tables}
