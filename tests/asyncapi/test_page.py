"""The page on contracts, from its first typed event to a check that fails."""

import asyncio
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

from outbox import MessageRelay
from tests.support.processes import running

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "contracts.md").read_text()
SOON = 60.0


def test_the_page_leads_from_an_event_to_a_failed_check(database_url: str, tmp_path: Path) -> None:
    programs = {match[1]: match[0] for match in re.findall(r"```python\n(# (\w+\.py)\n.*?)```", PAGE, re.DOTALL)}
    assert list(programs) == ["events.py", "publish.py", "handlers.py"]
    for name, text in programs.items():
        (tmp_path / name).write_text(text)
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "OUTBOX_DATABASE_URL": database_url}

    def run(*arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, *arguments], cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=60, check=False
        )

    assert run("publish.py").stderr == ""
    settings = {**environment, "OUTBOX_MONITORING_PORT": "0"}
    folder = f"import os, sys; os.chdir({str(tmp_path)!r}); sys.argv = ['outbox', 'worker', 'handlers']"
    with running(["-c", f"{folder}; from outbox.cli import main; main()"], tmp_path, settings) as worker:
        asyncio.run(_relay_until(database_url, worker.says))

    # The commands of the page, with what they print.
    blocks = re.findall(r"```console\n(.*?)```", PAGE, re.DOTALL)
    before, after, failing = ([line[2:] for line in block.splitlines() if line.startswith("$ ")] for block in blocks)
    for command in (*before, *after[:1]):
        words, _, file = command.partition(" > ")
        printed = run("-m", "outbox.cli", *shlex.split(words)[1:])
        assert printed.stderr == ""
        (tmp_path / file).write_text(printed.stdout)
    checked = run("-m", "outbox.cli", *shlex.split(after[1])[1:])
    assert (checked.returncode, checked.stdout) == (0, blocks[1].splitlines(keepends=True)[-1])

    events = tmp_path / "events.py"
    events.write_text(events.read_text().replace("number: int", "order_id: int"))
    words, _, file = after[0].partition(" > ")
    (tmp_path / file).write_text(run("-m", "outbox.cli", *shlex.split(words)[1:]).stdout)
    checked = run("-m", "outbox.cli", *shlex.split(failing[0])[1:])
    assert (checked.returncode, checked.stdout) == (1, blocks[2].partition("\n")[2])


async def _relay_until(database_url: str, says: Callable[[str], None]) -> None:
    """Relays until the worker has handled both orders."""
    relay = MessageRelay(database_url, broker=database_url)
    task = asyncio.create_task(relay.run(handle_signals=False))
    for line in ("order 7 in CHF", "order 6 in EUR"):
        await asyncio.to_thread(says, line)
    relay.stop()
    await asyncio.wait_for(task, SOON)
