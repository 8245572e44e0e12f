"""Causation tracking: the chain of ids that events published by a handler inherit automatically."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from os import urandom
from uuid import uuid4

from outbox.errors import ConfigurationError

CHAIN_LIMIT = 256
"""Most ids that a message carries. Longer chains lose ids in the middle, and keep the root and the nearest ancestors."""

_KEPT_IN_FRONT = CHAIN_LIMIT // 2

_current: ContextVar[tuple[str, ...]] = ContextVar("outbox_tracking_ids", default=())
_handled: ContextVar[tuple[str | None, str] | None] = ContextVar("outbox_handled", default=None)


def get_tracking_ids() -> tuple[str, ...]:
    """Returns the ids of the calling task's chain, root first; empty outside of a chain."""
    return _current.get()


@contextmanager
def tracking(tracking_ids: Sequence[str] | None = None) -> Iterator[tuple[str, ...]]:
    """Makes events published in the block effects of the last of `tracking_ids`, or of a new root if there are none.

    Workers do this for every handler. A service can do it for a request or a job whose events belong together. Raises
    `ConfigurationError` unless `tracking_ids` is a sequence of strings.
    """
    given = (new_id(),) if tracking_ids is None else tracking_ids
    # A single string is also a sequence of strings, its letters.
    if isinstance(given, str) or not all(isinstance(id_, str) for id_ in given):
        raise ConfigurationError(f"tracking ids must be a sequence of strings, root first, not {tracking_ids!r}")
    chain = shorten(tuple(given))
    token = _current.set(chain)
    try:
        yield chain
    finally:
        _current.reset(token)


def follow(chain: tuple[str, ...], handled: tuple[str | None, str] | None = None) -> None:
    """Makes all events that the calling task publishes from now on effects of the last of `chain`.

    `handled` is what `get_handled` returns from then on. For a task with no other purpose, such as the task of a delivery.
    Otherwise use `tracking`.
    """
    _current.set(shorten(chain))
    _handled.set(handled)


def get_handled() -> tuple[str | None, str] | None:
    """Returns the id and the queue of the message that the calling task handles, without an id for a batch; otherwise None."""
    return _handled.get()


def extend_chain(message_id: str | None = None) -> tuple[str, ...]:
    """Returns the current chain plus one id: the tracking ids of a message that is published now."""
    return shorten((*_current.get(), message_id or new_id()))


def new_id() -> str:
    """Returns a new message id."""
    return str(uuid4())


_VARIANT = {digit: "89ab"[int(digit, 16) % 4] for digit in "0123456789abcdef"}


def new_ids(count: int) -> list[str]:
    """Returns `count` new message ids, random UUIDs like those of `new_id`, at a quarter of the cost."""
    digits = urandom(16 * count).hex()
    return [
        f"{digits[at : at + 8]}-{digits[at + 8 : at + 12]}-4{digits[at + 13 : at + 16]}-"
        f"{_VARIANT[digits[at + 16]]}{digits[at + 17 : at + 20]}-{digits[at + 20 : at + 32]}"
        for at in range(0, 32 * count, 32)
    ]


def shorten(chain: tuple[str, ...]) -> tuple[str, ...]:
    """Shortens `chain` to `CHAIN_LIMIT` ids, by removing ids from its middle."""
    if len(chain) <= CHAIN_LIMIT:
        return chain
    return chain[:_KEPT_IN_FRONT] + chain[-(CHAIN_LIMIT - _KEPT_IN_FRONT) :]
