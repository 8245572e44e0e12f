"""The state of the built dashboard: a fingerprint of its sources, and a record that each build writes next to its files.

Used by scripts/dashboard.py, which builds it, and hatch_build.py, which packages it.
"""

import gzip
import hashlib
import json
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
FRONTEND = ROOT / "frontend"
STATIC = ROOT / "outbox" / "admin" / "ui" / "static"
_RECORD = "build.json"
_SOURCES = ("index.html", "package.json", "package-lock.json", "tsconfig.json", "vite.config.ts", "public", "src")
_COMPRESSED = (".css", ".js", ".svg")
_TESTS = (".test.ts", ".test.tsx")


def fingerprint() -> str:
    """Returns a digest of the current sources, without tests."""
    return _digest({str(path.relative_to(FRONTEND)): path for path in _sources()})


def compress(folder: Path) -> None:
    """Adds a gzipped copy of each file that gets smaller, for browsers that accept it."""
    for path in [path for path in folder.rglob("*") if path.suffix in _COMPRESSED]:
        content = path.read_bytes()
        gzipped = gzip.compress(content, mtime=0)
        if len(gzipped) < len(content):
            path.with_name(f"{path.name}.gz").write_bytes(gzipped)


def write_record(folder: Path, sources: str) -> None:
    """Records digests of the files in `folder` and of their sources."""
    (folder / _RECORD).write_text(json.dumps({"sources": sources, "files": _files(folder)}, indent=1) + "\n")


def problem() -> str | None:
    """Returns why the built files cannot be used, as the end of a sentence; None if they match the sources."""
    try:
        record = json.loads((STATIC / _RECORD).read_text())
    except (FileNotFoundError, ValueError):
        return "was not built"
    if record["files"] != _files(STATIC):
        return "was changed since it was built"
    if FRONTEND.exists() and record["sources"] != fingerprint():
        return "is older than its sources"
    return None


def _sources() -> Iterator[Path]:
    for name in _SOURCES:
        path = FRONTEND / name
        for each in path.rglob("*") if path.is_dir() else [path]:
            if each.is_file() and not each.name.startswith(".") and not each.name.endswith(_TESTS):
                yield each


def _files(folder: Path) -> str:
    files = [path for path in folder.rglob("*") if path.is_file() and path != folder / _RECORD]
    return _digest({str(path.relative_to(folder)): path for path in files})


def _digest(files: dict[str, Path]) -> str:
    """Returns a digest of names and contents."""
    digest = hashlib.sha256()
    for name, path in sorted(files.items()):
        content = path.read_bytes()
        digest.update(f"{name}\0{len(content)}\0".encode() + content)
    return f"sha256:{digest.hexdigest()}"
