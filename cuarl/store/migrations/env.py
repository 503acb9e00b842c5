"""Run by alembic: hands it the connection, or the dialect for ``--sql``, that ``migrate`` has prepared."""

from __future__ import annotations

from typing import Any

from alembic import context

from cuarl.store.schema import VERSION_TABLE
from cuarl.store.tables import Base

connection = context.config.attributes.get("connection")
options: dict[str, Any] = {"target_metadata": Base.metadata, "version_table": VERSION_TABLE, "render_as_batch": True}
if connection is not None:
    context.configure(connection=connection, **options)
else:
    context.configure(dialect_name=context.config.attributes["dialect"], literal_binds=True, **options)
with context.begin_transaction():
    context.run_migrations()
