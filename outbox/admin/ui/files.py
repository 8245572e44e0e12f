"""The dashboard's built files."""

import gzip
import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

STATIC = Path(__file__).parent / "static"
INDEX = "index.html"
_ASSETS = "assets"
_BUILD = "build.json"  # what the build says about itself
_BASE = '<base href="./" />'
# The registry of the machine may lack or redefine these.
_MEDIA_TYPES = {
    ".css": "text/css",
    ".html": "text/html",
    ".ico": "image/x-icon",
    ".js": "text/javascript",
    ".json": "application/json",
    ".png": "image/png",
    ".svg": "image/svg+xml",
    ".txt": "text/plain",
    ".wasm": "application/wasm",
    ".webp": "image/webp",
    ".woff2": "font/woff2",
}
_COMPRESSED_ALREADY = {".png", ".webp", ".woff2"}


@dataclass(frozen=True, slots=True)
class File:
    """A file as it is sent."""

    content: bytes
    gzipped: bytes | None
    """None where that is not smaller."""
    media_type: str
    digest: str
    immutable: bool
    """Whether its name changes with its content."""


@dataclass(frozen=True, slots=True)
class Build:
    """What one build left: the page, and its files by the addresses under which the page names them."""

    page: str
    files: Mapping[str, File]

    def page_at(self, depth: int, more: str = "") -> str:
        """The page, for an address `depth` segments below the dashboard's own, with `more` in its head.

        Its base is relative, so that it is right under every prefix, also one that a proxy strips without telling.
        """
        return self.page.replace(_BASE, f'<base href="{"../" * depth or "./"}" />{more}', 1)


class BuiltFiles:
    """The files of a folder: kept in memory, under a megabyte and a half, and read again when they were built anew.

    A name that somebody asks for is looked up among those that were found, and never becomes a path.
    """

    def __init__(self, folder: Path = STATIC) -> None:
        self._folder = folder
        self._build: Build | None = None
        self._read_at: tuple[int, ...] | None = None

    @property
    def are_there(self) -> bool:
        """Whether the dashboard was built."""
        return (self._folder / INDEX).is_file()

    def current(self) -> Build | None:
        """What is there now; None where nothing was built. It reads files: for threads."""
        changed_at = self._changed_at()
        if changed_at is None:
            return None
        if self._build is None or changed_at != self._read_at:
            self._build, self._read_at = _read(self._folder), changed_at
        return self._build

    def _changed_at(self) -> tuple[int, ...] | None:
        try:
            found = [path.stat() for path in (self._folder / INDEX, self._folder / _ASSETS)]
        except (FileNotFoundError, NotADirectoryError):
            return None
        return tuple(number for each in found for number in (each.st_ino, each.st_mtime_ns))


def _read(folder: Path) -> Build:
    names = (path.relative_to(folder) for path in sorted(folder.rglob("*")) if path.is_file())
    return Build(
        page=(folder / INDEX).read_text(encoding="utf-8"),
        files={name.as_posix(): _read_file(folder, name) for name in names if _is_for_browsers(name)},
    )


def _is_for_browsers(name: Path) -> bool:
    return name.as_posix() not in (INDEX, _BUILD) and not any(part.startswith(".") for part in name.parts)


def _read_file(folder: Path, name: Path) -> File:
    content = (folder / name).read_bytes()
    gzipped = None if name.suffix in _COMPRESSED_ALREADY else gzip.compress(content, mtime=0)
    return File(
        content=content,
        gzipped=gzipped if gzipped is not None and len(gzipped) < len(content) else None,
        media_type=_MEDIA_TYPES.get(name.suffix, "application/octet-stream"),
        digest=hashlib.sha256(content).hexdigest()[:32],
        immutable=name.parts[0] == _ASSETS,
    )
