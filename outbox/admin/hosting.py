"""Whose errors they are: what the host raises while it finds out who asks is answered as the host answers."""

from fastapi import Request

_KEY = "outbox_at_the_host"


async def goes_to_the_host(request: Request) -> None:
    """A dependency right before one of the host's."""
    setattr(request.state, _KEY, True)


def came_back(request: Request) -> None:
    """The host's dependency has returned."""
    setattr(request.state, _KEY, False)


def is_at_the_host(request: Request) -> bool:
    """Whether the host is still finding out who asks."""
    found: bool = getattr(request.state, _KEY, False)
    return found
