"""Compares the service's OpenAPI document with the committed one; `python -m tests.admin.openapi --write` updates that."""

import argparse
import difflib
import json
import sys
from pathlib import Path
from typing import Any

from app.service import create_service

AGREED = Path(__file__).with_name("openapi.json")
COMMAND = "python -m tests.admin.openapi --write"
_MOST_LINES = 200


def document() -> dict[str, Any]:
    """Returns the document of the service, without its version."""
    published = create_service().openapi()
    return {**published, "info": {**published["info"], "version": "0"}}


def text() -> str:
    """Returns the document as stored: sorted, with one value per line."""
    return json.dumps(document(), indent=1, sort_keys=True, ensure_ascii=False) + "\n"


def difference() -> str:
    """Returns the diff from the committed document to the current one; empty if they are equal."""
    agreed = AGREED.read_text() if AGREED.exists() else ""
    lines = list(difflib.unified_diff(agreed.splitlines(), text().splitlines(), "agreed", "now", n=6, lineterm=""))
    more = [f"… and {len(lines) - _MOST_LINES:,} more lines"] if len(lines) > _MOST_LINES else []
    return "\n".join([*lines[:_MOST_LINES], *more])


def main() -> int:
    """Writes or compares the document. Returns the exit status."""
    parser = argparse.ArgumentParser(description="Compare the service's OpenAPI document with tests/admin/openapi.json.")
    parser.add_argument("--write", action="store_true", help="replace the committed document")
    if parser.parse_args().write:
        AGREED.write_text(text())
        return 0
    print(difference())
    return 1 if difference() else 0


if __name__ == "__main__":
    sys.exit(main())
