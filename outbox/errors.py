"""The exceptions of Outbox, grouped by what the caller can do about them.

OutboxError
├── ConfigurationError (ValueError)      an argument or a setting is invalid: change it
│   ├── DurationError                    a duration that `parse_duration` does not accept
│   ├── IdentifierError                  an invalid table or schema name
│   └── UrlError                         a database or broker URL of an unknown kind
├── EncodingError (ValueError)           a body or a header cannot be serialised: nothing was written
├── UnsupportedHandleError (TypeError)   an object that a Publisher cannot write through
├── SignatureError (TypeError)           a consumer callback that cannot be called with a message
├── TransactionRequiredError             the handle has no open transaction, but the Publisher requires one
├── MissingExtraError (ImportError)      an optional dependency is not installed: install the named extra
├── SchemaError                          a table is missing, or has a version that this release does not support
├── TopologyError                        a broker resource or a permission is missing: provision it
├── BrokerUnavailableError               the broker is unavailable, blocked or too slow; the message is not at fault
├── DatabaseUnavailableError             the database is unavailable or refuses; try again later
│   └── StatementTimeoutError            it is available, but a statement or transaction exceeded its time limit
├── MarkHeldError                        another transaction is handling the same message; try again later
├── StaleStatementError                  a table changed after a handler's statement was prepared; run it again
├── CommitFailedError                    a handler's commit failed, or its result is unknown: the inbox shows it
├── RefusedError                         the request does not fit the current state; nothing was changed
│   └── CountDriftedError                the dead letters are no longer those that were confirmed
├── StaleDeliveryError                   the delivery is lost: its lease expired or its channel closed
├── MalformedMessageError (ValueError)   headers or body that cannot be read; retrying would not help
│   ├── DecryptionError                  an encrypted body that was changed, or belongs to another message
│   └── StoredBodyError                  a body that its store does not have, or that was changed there
├── BodyStoreUnavailableError            the store of large bodies is unavailable, or this process has none; try again later
├── KeysUnavailableError                 the key provider fails, so that no body can be encrypted; try again later
├── UnknownKeyError                      an encrypted body whose key this process does not have: add the key
├── UnsupportedVersionError              a message of a newer version than its consumer knows: deploy the consumer
├── HandlerTimeoutError (TimeoutError)   a handler ran for longer than its consumer's `timeout`, and was cancelled
├── HandlersAbandonedError               a worker has ended, but handlers that ignored their cancellation still run
├── EmbeddedPostgresError                (outbox.embedded) the embedded server did not start or stop
│   └── DataFolderInUseError             another process uses its data
└── HandlerSignal                        raised by handlers to choose the outcome
    ├── Reject                           dead-letter the message at once
    │   └── TransactionEndedError        raised by the worker: a handler with an inbox ended its transaction itself
    └── RetryAfter                       retry after the given delay
"""

from collections.abc import Sequence
from datetime import timedelta


class OutboxError(Exception):
    """Base class of all errors raised by Outbox."""


class ConfigurationError(OutboxError, ValueError):
    """An argument or a setting is invalid. The message names it and the accepted values."""


class DurationError(ConfigurationError):
    """An invalid duration."""


class IdentifierError(ConfigurationError):
    """An invalid table or schema name."""


class UrlError(ConfigurationError):
    """A URL with an unknown scheme or form. The message never contains a password."""


class EncodingError(OutboxError, ValueError):
    """A body or header cannot be serialised. Nothing was written, and the transaction is still usable."""


class UnsupportedHandleError(OutboxError, TypeError):
    """An object that a Publisher cannot write through. The message names the accepted types."""


class SignatureError(OutboxError, TypeError):
    """A consumer callback whose parameters cannot be supplied: raised when the consumer is created. Or one whose call starts
    nothing, because it returns a coroutine or a generator: then its attempt has failed."""


class TransactionRequiredError(OutboxError):
    """The handle has no open transaction, or the transaction of a BoundPublisher has ended."""


class MissingExtraError(OutboxError, ImportError):
    """An optional dependency is missing."""

    def __init__(self, *, purpose: str, extra: str) -> None:
        super().__init__(f'{purpose} needs an extra that is not installed: pip install "fastapi-outbox[{extra}]"')
        self.extra = extra


class SchemaError(OutboxError):
    """A table is missing or has an unknown structure. The message says how to create or upgrade it."""


class TopologyError(OutboxError):
    """An exchange, queue or permission is missing. The message names it."""


class BrokerUnavailableError(OutboxError):
    """The broker is unavailable, blocked or too slow. The message is not at fault; try again later."""


class DatabaseUnavailableError(OutboxError):
    """The database is unavailable, or refuses the request for now. Try again later."""


class StatementTimeoutError(DatabaseUnavailableError):
    """A statement, its wait for a lock, or an idle transaction exceeded its time limit, which the message names."""


class MarkHeldError(OutboxError):
    """Another transaction is handling the same message and has not ended in time. Its mark will show how it ended."""


class StaleStatementError(OutboxError):
    """A table changed after a handler's statement was prepared. The transaction was rolled back; the next prepares again."""


class CommitFailedError(OutboxError):
    """The commit of a handler's transaction failed, or its answer was lost. The cause is the driver's error."""


class RefusedError(OutboxError):
    """The request does not fit the current state, which the message describes. Nothing was changed."""


class CountDriftedError(RefusedError):
    """The dead letters have changed since they were confirmed: `found` instead of `expected`. Nothing was changed."""

    def __init__(self, *, expected: int, found: int) -> None:
        now = f"there are {found:,} dead letters now, but {expected:,} were confirmed"
        if found == expected:
            now = f"some of the {found:,} dead letters are not those that were confirmed, or have changed"
        super().__init__(f"{now}: review them again")
        self.expected = expected
        self.found = found


class StaleDeliveryError(OutboxError):
    """The delivery was lost before it was settled. The message will be redelivered."""


class MalformedMessageError(OutboxError, ValueError):
    """A message whose headers or body cannot be read. Retrying does not help."""


class DecryptionError(MalformedMessageError):
    """An encrypted body, or its header, was changed or belongs to another message. Retrying does not help."""


class StoredBodyError(MalformedMessageError):
    """The store of large bodies does not have the body of a message, or has another one. Retrying does not help."""


class BodyStoreUnavailableError(OutboxError):
    """The store of large bodies is unavailable, or this process was given none. The message is not at fault."""


class KeysUnavailableError(OutboxError):
    """The key provider fails, so that the body of an operator's message cannot be encrypted. Nothing was changed."""


class UnknownKeyError(OutboxError):
    """A body is encrypted, and this process has no keys, or not this one. Retrying helps once a process has the key."""


class UnsupportedVersionError(OutboxError):
    """A message has a newer version of its event than its consumer knows. Retrying helps once a newer consumer runs."""


class HandlerTimeoutError(OutboxError, TimeoutError):
    """A handler exceeded its consumer's `timeout`. It was cancelled, and its transaction rolled back."""


class HandlersAbandonedError(OutboxError):
    """A worker has ended, but `count` of its handlers still run: they ignored their cancellation, or run in threads.

    Their messages are redelivered. End the process; nothing else stops such handlers.
    """

    def __init__(self, *, count: int, handlers: Sequence[str]) -> None:
        super().__init__(f"{count} handlers were still running when the worker ended: {', '.join(handlers)}; end the process")
        self.count = count


class HandlerSignal(OutboxError):
    """Base class of the exceptions that a handler raises to choose the outcome."""


class Reject(HandlerSignal):
    """Raised by a handler to dead-letter the message at once, even if attempts are left."""

    def __init__(self, reason: str = "") -> None:
        super().__init__(reason)
        self.reason = reason


class TransactionEndedError(Reject):
    """A handler with an inbox has committed or rolled back by itself. Another attempt could find its mark, and do nothing."""


class RetryAfter(HandlerSignal):
    """Raised by a handler to retry the message after `delay`. Counts as a failed attempt."""

    def __init__(self, delay: timedelta) -> None:
        if not isinstance(delay, timedelta) or delay < timedelta(0):
            raise ConfigurationError(f"RetryAfter needs a timedelta that is not negative, not {delay!r}")
        super().__init__(f"retry after {delay}")
        self.delay = delay
