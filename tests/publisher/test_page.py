"""The programs of docs/publishing.md, destinations.md, encryption.md and large-bodies.md run as they are printed."""

import os
import re
import subprocess
import sys
from dataclasses import fields
from pathlib import Path

import pytest

from outbox import OutboxMessage

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "publishing.md").read_text()


def _printed(program: str, database_url: str, folder: Path, *, logged: str = "") -> list[str]:
    finished = subprocess.run(
        [sys.executable, "-c", program],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(ROOT), "OUTBOX_DATABASE_URL": database_url},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert re.fullmatch(logged, finished.stderr), finished.stderr
    return finished.stdout.splitlines()


@pytest.mark.slow
def test_the_program_on_the_page_runs(database_url: str, tmp_path: Path) -> None:
    (program,) = re.findall(r"```python\n(# publishing\.py\n.*?)```", PAGE, re.DOTALL)
    assert _printed(program, database_url, tmp_path) == [
        'order.placed {"id": 7}',
        'order.paid {"id": 7}',
        'document.changed {"id": 1, "version": 2}',
    ]


@pytest.mark.slow
def test_the_program_on_destinations_runs(database_url: str, tmp_path: Path) -> None:
    page = (ROOT / "docs" / "destinations.md").read_text()
    (program,) = re.findall(r"```python\n(# destinations\.py\n.*?)```", page, re.DOTALL)
    (printed,) = re.findall(r"```text\n(.*?)```", page, re.DOTALL)
    assert _printed(program, database_url, tmp_path) == printed.splitlines()


@pytest.mark.slow
def test_the_program_on_encryption_runs(database_url: str, tmp_path: Path) -> None:
    page = (ROOT / "docs" / "encryption.md").read_text()
    (program,) = re.findall(r"```python\n(# encrypted\.py\n.*?)```", page, re.DOTALL)
    (printed,) = re.findall(r"```text\n(.*?)```", page, re.DOTALL)
    assert _printed(program, database_url, tmp_path, logged="(unroutable .*\n)?") == printed.splitlines()


@pytest.mark.slow
def test_the_program_on_large_bodies_runs(database_url: str, tmp_path: Path) -> None:
    page = (ROOT / "docs" / "large-bodies.md").read_text()
    (program,) = re.findall(r"```python\n(# large\.py\n.*?)```", page, re.DOTALL)
    (printed,) = re.findall(r"```text\n(.*?)```", page, re.DOTALL)
    assert _printed(program, database_url, tmp_path, logged="(unroutable .*\n)?") == printed.splitlines()


def test_the_page_names_every_option() -> None:
    named = re.findall(r"^\| `(\w+)` \|", PAGE.partition("\n## ")[0], re.MULTILINE)

    assert set(named) == {field.name for field in fields(OutboxMessage)} - {"routing_key", "body"}
