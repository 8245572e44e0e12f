"""The dashboard, built from the sources of this working copy, for tests of what serves, packs or shows it."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


def build_dashboard() -> None:
    """Builds it where that is necessary; several processes may ask for it at once."""
    command = [sys.executable, str(ROOT / "scripts" / "dashboard.py")]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=900)
    if ended.returncode != 0:
        pytest.fail(f"{ended.stdout}{ended.stderr}", pytrace=False)
