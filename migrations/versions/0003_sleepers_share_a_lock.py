"""A doorbell whose sleepers share a lock, stalled routes, errors as they may be shown, pauses that notify, a chained audit."""

from alembic import op

from outbox.postgres.schema.hosts import apply_version, revert_version

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None


def upgrade() -> None:
    apply_version(op, revision, since=down_revision)


def downgrade() -> None:
    revert_version(op, revision, to=down_revision)
