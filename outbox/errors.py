"""Every error that Outbox raises, in one tree, split by what the catcher can do.

OutboxError
├── ConfigurationError (ValueError)      an argument or a setting makes no sense: change it
│   ├── DurationError                    a duration that `parse_duration` does not accept
│   ├── IdentifierError                  a table or schema name that cannot be one
│   └── UrlError                         a database or broker URL of an unknown kind
├── EncodingError (ValueError)           a body or a header that cannot be serialised: nothing was written
├── UnsupportedHandleError (TypeError)   an object that a Publisher cannot write through
├── SignatureError (TypeError)           a consumer callback that cannot be called with a message
├── TransactionRequiredError             the handle has no open transaction, and the Publisher insists on one
├── MissingExtraError (ImportError)      an optional dependency is not installed: install the extra that it names
├── SchemaError                          a table is missing, or is not of a version that this release knows
├── TopologyError                        a broker resource or a permission is missing: provision what it names
├── BrokerUnavailableError               the broker is away, blocked or too slow; the message is not to blame
├── DatabaseUnavailableError             the database is away or refuses; try again later
│   └── StatementTimeoutError            it is there, and a statement or a transaction took longer than its limit
├── MarkHeldError                        the same message is being handled elsewhere; look again later
├── StaleStatementError                  a table changed after a handler's statement was prepared; run it again
├── CommitFailedError                    a handler's transaction was not committed, or that is unknown: the inbox says
├── RefusedError                         what was asked for is not done, as things stand, and nothing was changed
│   └── CountDriftedError                other dead letters are meant than were agreed to
├── StaleDeliveryError                   the delivery is no longer ours: its lease ran out or its channel closed
├── MalformedMessageError (ValueError)   headers or body that cannot be read; retrying would not help
├── HandlerTimeoutError (TimeoutError)   a handler ran for longer than its consumer's `timeout`, and was cancelled
├── HandlersAbandonedError               a worker has ended, and handlers that ignored their cancellation still run
├── EmbeddedPostgresError                (outbox.embedded) the embedded server did not start or stop
│   └── DataFolderInUseError             another process uses its data
└── HandlerSignal                        raised by handlers to choose the outcome themselves
    ├── Reject                           dead letter at once
    └── RetryAfter                       again after a delay of the handler's choice
"""

from collections.abc import Sequence
from datetime import timedelta


class OutboxError(Exception):
    """The base of every error raised by Outbox."""


class ConfigurationError(OutboxError, ValueError):
    """An argument or a setting makes no sense; the message says which and what is accepted."""


class DurationError(ConfigurationError):
    """A duration that is not of the accepted form."""


class IdentifierError(ConfigurationError):
    """A name that cannot be a PostgreSQL identifier of ours."""


class UrlError(ConfigurationError):
    """A URL whose scheme or shape is not known. Its message never contains a password."""


class EncodingError(OutboxError, ValueError):
    """A body or header that cannot be serialised. Nothing was written; the transaction is still usable."""


class UnsupportedHandleError(OutboxError, TypeError):
    """An object that a Publisher cannot write through; the message names what it accepts."""


class SignatureError(OutboxError, TypeError):
    """A consumer callback whose parameters cannot be supplied. Raised when the consumer is built."""


class TransactionRequiredError(OutboxError):
    """The handle has no open transaction, so the event would be committed by itself; or a publisher's transaction has ended."""


class MissingExtraError(OutboxError, ImportError):
    """An optional dependency is missing."""

    def __init__(self, *, purpose: str, extra: str) -> None:
        super().__init__(f'{purpose} needs an extra that is not installed: pip install "fastapi-outbox[{extra}]"')
        self.extra = extra


class SchemaError(OutboxError):
    """A table is missing or of an unknown shape; the message says how to create or upgrade it."""


class TopologyError(OutboxError):
    """An exchange, queue or permission is missing; the message names it."""


class BrokerUnavailableError(OutboxError):
    """The broker is away, blocked or too slow. Nothing is wrong with the message; try again later."""


class DatabaseUnavailableError(OutboxError):
    """The database is away, or refuses what was asked of it now. Try again later."""


class StatementTimeoutError(DatabaseUnavailableError):
    """A statement, its wait for a lock, or an idle transaction took longer than its limit, which the message names."""


class MarkHeldError(OutboxError):
    """Another transaction is handling the same message, and has not ended in time. Its mark will say how it ended."""


class StaleStatementError(OutboxError):
    """A table changed after a handler's statement was prepared. The transaction is rolled back; the next one prepares again."""


class CommitFailedError(OutboxError):
    """The commit of a handler's transaction failed, or its answer was lost; the cause is what the driver raised."""


class RefusedError(OutboxError):
    """What was asked for does not fit how things stand; the message says how they do. Nothing was changed."""


class CountDriftedError(RefusedError):
    """Other dead letters are meant now than were agreed to; `found` of them, where `expected` were. Nothing was changed."""

    def __init__(self, *, expected: int, found: int) -> None:
        now = f"it would be {found:,} dead letters now, and {expected:,} were agreed to"
        if found == expected:
            now = f"some of the {found:,} dead letters are others than those that were agreed to, or have changed"
        super().__init__(f"{now}: look at them again")
        self.expected = expected
        self.found = found


class StaleDeliveryError(OutboxError):
    """The delivery is no longer ours to settle; it will be received again."""


class MalformedMessageError(OutboxError, ValueError):
    """A message whose headers or body cannot be read, now or ever."""


class HandlerTimeoutError(OutboxError, TimeoutError):
    """A handler ran for longer than its consumer allows. It was cancelled, and its transaction rolled back."""


class HandlersAbandonedError(OutboxError):
    """A worker has ended, and `count` of its handlers still run: they did not end when they were cancelled, or run in threads.

    Their messages are delivered again. End the process; nothing else ends such handlers.
    """

    def __init__(self, *, count: int, handlers: Sequence[str]) -> None:
        super().__init__(f"{count} handlers were still running when the worker ended: {', '.join(handlers)}; end the process")
        self.count = count


class HandlerSignal(OutboxError):
    """What a handler raises to choose the outcome itself."""


class Reject(HandlerSignal):
    """Raised by a handler: the message becomes a dead letter at once, whatever attempts are left."""

    def __init__(self, reason: str = "") -> None:
        super().__init__(reason)
        self.reason = reason


class RetryAfter(HandlerSignal):
    """Raised by a handler: the message comes back after `delay`, at the cost of one attempt of its own."""

    def __init__(self, delay: timedelta) -> None:
        if not isinstance(delay, timedelta) or delay < timedelta(0):
            raise ConfigurationError(f"RetryAfter takes a timedelta that is not negative, not {delay!r}")
        super().__init__(f"retry after {delay}")
        self.delay = delay
