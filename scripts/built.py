"""The built dashboard: which sources it is made of, and the record that a build leaves beside its files.

For scripts/dashboard.py, which builds, and hatch_build.py, which packs what was built.
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
    """What the sources are now, as one line; tests are none."""
    return _digest({str(path.relative_to(FRONTEND)): path for path in _sources()})


def compress(folder: Path) -> None:
    """Puts a gzipped copy next to each file that gets smaller; the admin sends it to browsers that accept it."""
    for path in [path for path in folder.rglob("*") if path.suffix in _COMPRESSED]:
        content = path.read_bytes()
        gzipped = gzip.compress(content, mtime=0)
        if len(gzipped) < len(content):
            path.with_name(f"{path.name}.gz").write_bytes(gzipped)


def write_record(folder: Path, sources: str) -> None:
    """Notes what the files of `folder` are, and of which sources they were made."""
    (folder / _RECORD).write_text(json.dumps({"sources": sources, "files": _files(folder)}, indent=1) + "\n")


def problem() -> str | None:
    """What is wrong with the built files, as the end of a sentence about them; None if they are those of the sources."""
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
    """Of names and contents."""
    digest = hashlib.sha256()
    for name, path in sorted(files.items()):
        content = path.read_bytes()
        digest.update(f"{name}\0{len(content)}\0".encode() + content)
    return f"sha256:{digest.hexdigest()}"
