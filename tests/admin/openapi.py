"""The OpenAPI document of the service as it was agreed on; `python -m tests.admin.openapi --write` agrees to what it is now."""

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
    """What the service publishes, but for its version."""
    published = create_service().openapi()
    return {**published, "info": {**published["info"], "version": "0"}}


def text() -> str:
    """The same, as it is stored: each value on a line, in an order that depends on nothing."""
    return json.dumps(document(), indent=1, sort_keys=True, ensure_ascii=False) + "\n"


def difference() -> str:
    """What has changed since it was agreed on, as a diff for people; empty if nothing has."""
    agreed = AGREED.read_text() if AGREED.exists() else ""
    lines = list(difflib.unified_diff(agreed.splitlines(), text().splitlines(), "agreed", "now", n=6, lineterm=""))
    more = [f"… and {len(lines) - _MOST_LINES:,} more lines"] if len(lines) > _MOST_LINES else []
    return "\n".join([*lines[:_MOST_LINES], *more])


def main() -> int:
    """Writes or compares; the exit status."""
    parser = argparse.ArgumentParser(description="Compare the service's OpenAPI document with tests/admin/openapi.json.")
    parser.add_argument("--write", action="store_true", help="agree to the document as it is")
    if parser.parse_args().write:
        AGREED.write_text(text())
        return 0
    print(difference())
    return 1 if difference() else 0


if __name__ == "__main__":
    sys.exit(main())
