"""Which event caused which: the chain of ids that handlers pass on to the events they publish, without doing anything."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from os import urandom
from uuid import uuid4

from outbox.errors import ConfigurationError

CHAIN_LIMIT = 256
"""Most ids a message carries. Longer chains lose ids in the middle: the root and the nearest ancestors stay."""

_KEPT_IN_FRONT = CHAIN_LIMIT // 2

_current: ContextVar[tuple[str, ...]] = ContextVar("outbox_tracking_ids", default=())


def get_tracking_ids() -> tuple[str, ...]:
    """The ids of the chain that the calling task is in, root first; empty outside of any."""
    return _current.get()


@contextmanager
def tracking(tracking_ids: Sequence[str] | None = None) -> Iterator[tuple[str, ...]]:
    """Events published inside are effects of the last of `tracking_ids`, or of a new root without any.

    Workers do this around every handler; a service does it around a request or a job whose events belong together.
    Raises `ConfigurationError` for anything but a sequence of strings.
    """
    given = (new_id(),) if tracking_ids is None else tracking_ids
    # A text by itself is a sequence too, of letters, and hardly what its caller meant.
    if isinstance(given, str) or not all(isinstance(id_, str) for id_ in given):
        raise ConfigurationError(f"tracking ids are a sequence of strings, root first, not {tracking_ids!r}")
    chain = bounded(tuple(given))
    token = _current.set(chain)
    try:
        yield chain
    finally:
        _current.reset(token)


def follow(chain: tuple[str, ...]) -> None:
    """Events that the calling task publishes from now on, until it ends, are effects of the last of `chain`.

    For a task that does nothing else, such as a delivery's; otherwise `tracking` is the way.
    """
    _current.set(bounded(chain))


def extended_chain(message_id: str | None = None) -> tuple[str, ...]:
    """The current chain with one id more: the tracking ids of a message that is published now."""
    return bounded((*_current.get(), message_id or new_id()))


def new_id() -> str:
    """A fresh message id."""
    return str(uuid4())


_VARIANT = {digit: "89ab"[int(digit, 16) % 4] for digit in "0123456789abcdef"}


def new_ids(count: int) -> list[str]:
    """`count` fresh message ids, each a random UUID as `new_id` makes it, at a quarter of the cost."""
    digits = urandom(16 * count).hex()
    return [
        f"{digits[at : at + 8]}-{digits[at + 8 : at + 12]}-4{digits[at + 13 : at + 16]}-"
        f"{_VARIANT[digits[at + 16]]}{digits[at + 17 : at + 20]}-{digits[at + 20 : at + 32]}"
        for at in range(0, 32 * count, 32)
    ]


def bounded(chain: tuple[str, ...]) -> tuple[str, ...]:
    """`chain`, at most `CHAIN_LIMIT` ids long, without its middle if need be."""
    if len(chain) <= CHAIN_LIMIT:
        return chain
    return chain[:_KEPT_IN_FRONT] + chain[-(CHAIN_LIMIT - _KEPT_IN_FRONT) :]
