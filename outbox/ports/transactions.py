"""Transactions for handlers that write to the database."""

from collections.abc import Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from datetime import timedelta
from typing import Protocol


@dataclass(frozen=True, slots=True, kw_only=True)
class Marks:
    """Messages of one queue that a transaction marks as processed before anything else is done in it.

    Another transaction that marked one of them, and has not ended, is waited for, up to `patience`.
    """

    queue: str
    message_ids: Sequence[str]
    patience: timedelta


@dataclass(frozen=True, slots=True, kw_only=True)
class Unit:
    """A transaction that has begun: what of it was wanted, by name, and which messages it marked that had no mark before."""

    resources: Mapping[str, object]
    marked: frozenset[str] = frozenset()


class UnitsOfWork(Protocol):
    """Transactions for handlers that write to the database."""

    def begin(self, wanted: frozenset[str], marks: Marks | None = None) -> AbstractAsyncContextManager[Unit]:
        """A transaction, and those of `session`, `connection` and `publisher` that are wanted, all of them in it.

        Left normally it commits, left by an exception it rolls back; a commit that fails raises, with marks always
        `CommitFailedError`. With marks it commits only together with them: a handler that committed by itself is refused.
        Entering raises `DatabaseUnavailableError` while the database is away, and `MarkHeldError` when another transaction
        holds one of the marks for too long. The latter is also raised at the end, and everything rolled back, if the handler
        had rolled back and somebody else took the marks before they were made again.
        """
        ...
