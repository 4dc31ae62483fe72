"""The tables of the first version."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision, down_revision = "0001", None


def upgrade() -> None:
    """Create the tables."""
    _keys()
    _projects()
    _actions()
    _classes()
    _dismissals()
    _jobs()
    _labels()
    _members()
    _texts()
    _changes()


def _keys() -> None:
    op.create_table(
        "keys",
        sa.Column("id", sa.String(length=32), nullable=False),
        sa.Column("account", sa.String(length=200), nullable=False),
        sa.Column("role", sa.String(length=10), nullable=False),
        sa.Column("digest", sa.String(length=64), nullable=False),
        sa.Column("created", sa.Float(), nullable=False),
        sa.Column("revoked", sa.Float(), nullable=True),
        sa.PrimaryKeyConstraint("id"),
    )


def _projects() -> None:
    op.create_table(
        "projects",
        sa.Column("id", sa.String(length=32), nullable=False),
        sa.Column("owner", sa.String(length=200), nullable=False),
        sa.Column("name", sa.String(length=200), nullable=False),
        sa.Column("encoder", sa.String(length=100), nullable=False),
        sa.Column("language", sa.String(length=10), nullable=False),
        sa.Column("use_class_names", sa.Boolean(), nullable=False),
        sa.Column("created", sa.Float(), nullable=False),
        sa.Column("ready", sa.Boolean(), nullable=False),
        sa.Column("version", sa.Integer(), nullable=False),
        sa.Column("visible", sa.Integer(), nullable=False),
        sa.Column("import_job", sa.String(length=32), nullable=True),
        sa.PrimaryKeyConstraint("id"),
    )
    op.create_index(op.f("ix_projects_owner"), "projects", ["owner"], unique=False)


def _actions() -> None:
    op.create_table(
        "actions",
        sa.Column("id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), autoincrement=True, nullable=False),
        sa.Column("project", sa.String(length=32), nullable=False),
        sa.Column("client", sa.String(length=100), nullable=False),
        sa.Column("annotator", sa.String(length=200), nullable=False),
        sa.Column("kind", sa.String(length=20), nullable=False),
        sa.Column("detail", sa.Text(), nullable=False),
        sa.Column("made", sa.Float(), nullable=False),
        sa.Column("state", sa.String(length=10), nullable=False),
        sa.ForeignKeyConstraint(["project"], ["projects.id"], ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("id"),
        sa.UniqueConstraint("project", "client"),
    )
    op.create_index("actions_by_annotator", "actions", ["project", "annotator", "id"], unique=False)


def _classes() -> None:
    op.create_table(
        "classes",
        sa.Column("project", sa.String(length=32), nullable=False),
        sa.Column("number", sa.Integer(), nullable=False),
        sa.Column("name", sa.String(length=200), nullable=False),
        sa.Column("note", sa.Text(), nullable=False),
        sa.Column("words", sa.Text(), nullable=False),
        sa.Column("position", sa.Integer(), nullable=False),
        sa.Column("state", sa.String(length=10), nullable=False),
        sa.ForeignKeyConstraint(["project"], ["projects.id"], ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("project", "number"),
    )


def _dismissals() -> None:
    op.create_table(
        "dismissals",
        sa.Column("project", sa.String(length=32), nullable=False),
        sa.Column("kind", sa.String(length=20), nullable=False),
        sa.Column("item", sa.String(length=100), nullable=False),
        sa.Column("annotator", sa.String(length=200), nullable=False),
        sa.Column("made", sa.Float(), nullable=False),
        sa.ForeignKeyConstraint(["project"], ["projects.id"], ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("project", "kind", "item"),
    )


def _jobs() -> None:
    op.create_table(
        "jobs",
        sa.Column("id", sa.String(length=32), nullable=False),
        sa.Column("project", sa.String(length=32), nullable=True),
        sa.Column("account", sa.String(length=200), nullable=False),
        sa.Column("kind", sa.String(length=20), nullable=False),
        sa.Column("state", sa.String(length=10), nullable=False),
        sa.Column("done", sa.BigInteger(), nullable=False),
        sa.Column("total", sa.BigInteger(), nullable=True),
        sa.Column("message", sa.Text(), nullable=False),
        sa.Column("result", sa.Text(), nullable=False),
        sa.Column("cancel", sa.Boolean(), nullable=False),
        sa.Column("server", sa.String(length=32), nullable=False),
        sa.Column("seen", sa.Float(), nullable=False),
        sa.Column("created", sa.Float(), nullable=False),
        sa.ForeignKeyConstraint(["project"], ["projects.id"], ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("id"),
    )
    op.create_index(op.f("ix_jobs_project"), "jobs", ["project"], unique=False)


def _labels() -> None:
    op.create_table(
        "labels",
        sa.Column("project", sa.String(length=32), nullable=False),
        sa.Column("text", sa.Integer(), nullable=False),
        sa.Column("annotator", sa.String(length=200), nullable=False),
        sa.Column("mark", sa.String(length=10), nullable=False),
        sa.Column("label", sa.Integer(), nullable=True),
        sa.Column("final", sa.Boolean(), nullable=False),
        sa.Column("made", sa.Float(), nullable=False),
        sa.ForeignKeyConstraint(["project"], ["projects.id"], ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("project", "text", "annotator"),
    )
    op.create_index("labels_by_class", "labels", ["project", "label"], unique=False)
    op.create_index("labels_by_time", "labels", ["project", "made"], unique=False)


def _members() -> None:
    op.create_table(
        "members",
        sa.Column("project", sa.String(length=32), nullable=False),
        sa.Column("account", sa.String(length=200), nullable=False),
        sa.Column("role", sa.String(length=10), nullable=False),
        sa.ForeignKeyConstraint(["project"], ["projects.id"], ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("project", "account"),
    )


def _texts() -> None:
    op.create_table(
        "texts",
        sa.Column("project", sa.String(length=32), nullable=False),
        sa.Column("number", sa.Integer(), nullable=False),
        sa.Column("text", sa.Text(), nullable=False),
        sa.Column("folded", sa.Text(), nullable=False),
        sa.Column("digest", sa.BigInteger(), nullable=False),
        sa.Column("extra", sa.Text(), nullable=True),
        sa.Column("state", sa.String(length=10), nullable=False),
        sa.Column("label", sa.Integer(), nullable=True),
        sa.Column("test", sa.Boolean(), nullable=False),
        sa.ForeignKeyConstraint(["project"], ["projects.id"], ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("project", "number"),
    )
    op.create_index("texts_by_digest", "texts", ["project", "digest"], unique=False)
    op.create_index("texts_by_state", "texts", ["project", "state", "label", "number"], unique=False)
    op.create_index("texts_by_test", "texts", ["project", "test", "state", "number"], unique=False)


def _changes() -> None:
    op.create_table(
        "changes",
        sa.Column("action", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("text", sa.Integer(), nullable=False),
        sa.Column("annotator", sa.String(length=200), nullable=False),
        sa.Column("mark_before", sa.String(length=10), nullable=True),
        sa.Column("label_before", sa.Integer(), nullable=True),
        sa.Column("final_before", sa.Boolean(), nullable=True),
        sa.Column("mark_after", sa.String(length=10), nullable=True),
        sa.Column("label_after", sa.Integer(), nullable=True),
        sa.Column("final_after", sa.Boolean(), nullable=True),
        sa.ForeignKeyConstraint(["action"], ["actions.id"], ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("action", "text", "annotator"),
    )
