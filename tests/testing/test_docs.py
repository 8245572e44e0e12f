"""The programs of docs/testing.md run as they are printed."""

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent.parent
PROGRAM = re.compile(r"```python\n# (?P<name>\w+\.py)\n(?P<text>.*?)```", re.DOTALL)


def test_the_examples_of_the_page_on_testing_pass(tmp_path: Path) -> None:
    for match in PROGRAM.finditer((ROOT / "docs" / "testing.md").read_text()):
        (tmp_path / match["name"]).write_text(match["text"])
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(tmp_path)]
    done = subprocess.run(command, cwd=tmp_path, env={"PYTHONPATH": str(ROOT)}, capture_output=True, text=True, timeout=60)
    assert "4 passed" in done.stdout, done.stdout + done.stderr
