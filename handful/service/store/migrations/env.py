"""Alembic's entry: the connection is given by the store."""

from __future__ import annotations

from alembic import context

from handful.service.store.tables import METADATA

context.configure(connection=context.config.attributes["connection"], target_metadata=METADATA)
with context.begin_transaction():
    context.run_migrations()
