"""A process exempts its startup objects from garbage collection, once."""

import asyncio
import gc
import os
import subprocess
import sys
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest

from outbox.runtime.gc import freeze_gc
from tests.support import eventually

AT_ONCE = timedelta(0)


@pytest.fixture(autouse=True)
def _nothing_is_exempt() -> Iterator[None]:
    gc.unfreeze()
    yield
    gc.unfreeze()


async def test_objects_that_exist_by_then_are_exempt() -> None:
    with freeze_gc(after=AT_ONCE):
        await eventually(lambda: gc.get_freeze_count() > 10_000)


async def test_a_process_that_ends_before_is_left_alone() -> None:
    with freeze_gc(after=AT_ONCE):
        pass  # the loop has had no turn
    cursor_page = asyncio.Event()
    asyncio.get_running_loop().call_later(0, cursor_page.set)
    await cursor_page.wait()
    assert gc.get_freeze_count() == 0


def test_a_command_collects_again_after_its_imports_which_are_exempt(tmp_path: Path) -> None:
    (tmp_path / "handlers.py").write_text("import gc\nprint(gc.isenabled(), gc.get_freeze_count() > 10_000)\nconsumers = []\n")
    command = [sys.executable, "-m", "outbox.cli", "worker", "handlers:consumers", "--database-url", "postgresql://"]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(tmp_path), str(Path.cwd())])}
    process = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert process.stdout == "True True\n", process.stderr
