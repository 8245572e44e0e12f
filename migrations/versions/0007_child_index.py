"""A smaller index of the chains in the history."""

from alembic import op

from outbox.postgres.schema.hosts import apply_version, revert_version

revision = "0007"
down_revision = "0006"
branch_labels = None
depends_on = None


def upgrade() -> None:
    apply_version(op, revision, since=down_revision)


def downgrade() -> None:
    revert_version(op, revision, to=down_revision)
