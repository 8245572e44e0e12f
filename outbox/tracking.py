"""Which event caused which: the chain of ids that handlers pass on to the events they publish, without doing anything."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from uuid import uuid4

CHAIN_LIMIT = 256
"""Most ids a message carries. Longer chains lose ids in the middle: the root and the nearest ancestors stay."""

_KEPT_IN_FRONT = CHAIN_LIMIT // 2

_current: ContextVar[tuple[str, ...]] = ContextVar("outbox_tracking_ids", default=())


def get_tracking_ids() -> tuple[str, ...]:
    """The ids of the chain that the calling task is in, root first; empty outside of any."""
    return _current.get()


@contextmanager
def tracking(tracking_ids: Sequence[str] | None = None) -> Iterator[tuple[str, ...]]:
    """Whatever is published inside is a consequence of the last of `tracking_ids`, or of a fresh root without any.

    Workers do this around every handler; a service does it around a request or a job whose events belong together.
    """
    chain = tuple(tracking_ids) if tracking_ids is not None else (new_id(),)
    token = _current.set(bounded(chain))
    try:
        yield chain
    finally:
        _current.reset(token)


def extended_chain(message_id: str | None = None) -> tuple[str, ...]:
    """The current chain with one id more: the tracking ids of a message that is published now."""
    return bounded((*_current.get(), message_id or new_id()))


def new_id() -> str:
    """A fresh message id."""
    return str(uuid4())


def bounded(chain: tuple[str, ...]) -> tuple[str, ...]:
    """`chain`, at most `CHAIN_LIMIT` ids long, without its middle if need be."""
    if len(chain) <= CHAIN_LIMIT:
        return chain
    return chain[:_KEPT_IN_FRONT] + chain[-(CHAIN_LIMIT - _KEPT_IN_FRONT) :]
