"""Pauses that somebody asks for."""

from typing import Protocol


class Gate(Protocol):
    """Whether somebody asked a part of the system to pause. What is in hand is finished; nothing new is taken."""

    @property
    def closed(self) -> bool:
        """Whether a pause is wanted now."""
        ...

    async def opened(self) -> None:
        """Returns once no pause is wanted."""
        ...

    async def closing(self) -> None:
        """Returns once a pause is wanted."""
        ...
