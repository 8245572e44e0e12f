"""Errors out of task groups, as the one error that they are about."""

from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def ungrouped() -> Iterator[None]:
    """Raises the first error inside of an exception group instead of the group, with the group as its cause."""
    try:
        yield
    except BaseExceptionGroup as group:
        raise _first(group) from group


def _first(error: BaseException) -> BaseException:
    return _first(error.exceptions[0]) if isinstance(error, BaseExceptionGroup) else error
