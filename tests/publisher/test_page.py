"""The program of docs/publishing.md runs as it is printed."""

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


@pytest.mark.slow
def test_the_program_on_the_page_runs(database_url: str, tmp_path: Path) -> None:
    (program,) = re.findall(r"```python\n(# publishing\.py\n.*?)```", PAGE, re.DOTALL)
    (tmp_path / "publishing.py").write_text(program)
    finished = subprocess.run(
        [sys.executable, "publishing.py"],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT), "OUTBOX_DATABASE_URL": database_url},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert finished.stderr == ""
    assert finished.stdout.splitlines() == [
        'order.placed {"id": 7}',
        'order.paid {"id": 7}',
        'document.changed {"id": 1, "version": 2}',
    ]


def test_the_page_names_every_option() -> None:
    named = re.findall(r"^\| `(\w+)` \|", PAGE.partition("\n## ")[0], re.MULTILINE)

    assert set(named) == {field.name for field in fields(OutboxMessage)} - {"routing_key", "body"}
