"""Builds the dashboard from this working copy, for tests that serve, package or open it."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


def build_dashboard() -> None:
    """Builds the dashboard if its sources changed. Several processes may call it at the same time."""
    command = [sys.executable, str(ROOT / "scripts" / "dashboard.py")]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=900)
    if ended.returncode != 0:
        pytest.fail(f"{ended.stdout}{ended.stderr}", pytrace=False)
