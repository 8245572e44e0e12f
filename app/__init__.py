"""The service: `uvicorn app:main` serves the ASGI instance `main` of this package.

Importing the package is cheap and reads no environment. The instance is created on first access, and reads its settings when it
starts.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from app.service import main

__all__ = ["main"]


def __getattr__(name: str) -> object:
    if name != "main":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from app.service import main

    return main
