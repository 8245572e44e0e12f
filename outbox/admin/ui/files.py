"""The dashboard's files, as the build left them beside this module."""

import mimetypes
from dataclasses import dataclass
from pathlib import Path

STATIC = Path(__file__).parent / "static"
_ASSETS = "assets"
_BASE = '<base href="./" />'
# The registry of the machine may lack or redefine these.
_TYPES = {".js": "text/javascript", ".css": "text/css", ".svg": "image/svg+xml", ".html": "text/html", ".woff2": "font/woff2"}


@dataclass(frozen=True, slots=True)
class File:
    """A file as it is sent."""

    path: Path
    media_type: str
    immutable: bool
    """Whether its name changes with its content."""


def is_built(static: Path = STATIC) -> bool:
    """Whether the dashboard was built."""
    return (static / "index.html").is_file()


def found(name: str, static: Path = STATIC) -> File | None:
    """The file of that name, `assets/index-BUVCs1di.js`; None where there is none, or it lies elsewhere."""
    path = (static / name).resolve()
    if not path.is_relative_to(static.resolve()) or not path.is_file() or name.startswith("."):
        return None
    media_type = _TYPES.get(path.suffix) or mimetypes.guess_type(path.name)[0] or "application/octet-stream"
    return File(path, media_type, immutable=Path(name).parts[0] == _ASSETS)


def index(depth: int, static: Path = STATIC) -> str:
    """The page, for an address `depth` segments below the dashboard's own.

    Its base is relative, so that it is right under every prefix, also one that a proxy strips without telling.
    """
    page = (static / "index.html").read_text(encoding="utf-8")
    return page.replace(_BASE, f'<base href="{"../" * depth or "./"}" />', 1)
