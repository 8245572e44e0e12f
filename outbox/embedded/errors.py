"""What can go wrong with the embedded server.

EmbeddedPostgresError           it cannot be run here, or did not start; the message says what to do
└── DataFolderInUseError        another process runs a server on this folder
"""

from outbox.errors import OutboxError


class EmbeddedPostgresError(OutboxError):
    """The embedded PostgreSQL cannot be run; the message says why, and what to do instead."""


class DataFolderInUseError(EmbeddedPostgresError):
    """Another living process runs a server on the same data folder; that server is left alone."""
