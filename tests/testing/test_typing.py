"""What the pages and docstrings show passes type checkers as strictly as they come."""

import re
import textwrap
from pathlib import Path

import pytest
from mypy import api

import outbox.fastapi

ROOT = Path(__file__).parent.parent.parent
PROGRAM = re.compile(r"```python\n# (?P<name>\w+\.py)\n(?P<text>.*?)```", re.DOTALL)

BARE = """
from typing import assert_type

from sqlalchemy.ext.asyncio import AsyncSession
from sqlalchemy.orm import Session

from outbox import BoundPublisher, OutboxMessage
from outbox.testing import RecordingPublisher


async def awaited(bare: BoundPublisher, bound: BoundPublisher[AsyncSession], recording: RecordingPublisher) -> None:
    assert_type(await bare.publish("key", {}), str | None)
    assert_type(await bound.publish("key", {}), str | None)
    assert_type(await recording.publish("key", {}, ordering_key="a"), str | None)
    assert_type(await recording.bulk_publish([OutboxMessage("key", {})]), list[str | None])
    assert_type(await recording.cancel("a"), bool)
    assert_type(await RecordingPublisher().publish("key", {}), str | None)


def at_once(bound: BoundPublisher[Session], recording: RecordingPublisher[Session]) -> None:
    assert_type(bound.publish("key", {}), str | None)
    assert_type(recording.publish("key", {}), str | None)
    assert_type(RecordingPublisher(sync=True).publish("key", {}), str | None)
"""

BEFORE_THE_DOCSTRING = """
from typing import Annotated

from fastapi import Depends, FastAPI
from pydantic import BaseModel
from sqlalchemy.ext.asyncio import AsyncSession, async_sessionmaker, create_async_engine

from outbox import BoundPublisher, MessageRelay
from outbox.fastapi import outbox_lifespan, publisher_for, transactional

DATABASE_URL = BROKER_URL = ""


class User(BaseModel):
    name: str


"""


@pytest.mark.slow
@pytest.mark.timeout(600)  # without a cache of mypy, as in a fresh clone
def test_the_documented_types_pass_mypy_strict(tmp_path: Path) -> None:
    (tmp_path / "bare.py").write_text(BARE)
    docstring = (outbox.fastapi.__doc__ or "").split("\n\n", 1)[1].rsplit("\n\n", 1)[0]
    shown = textwrap.dedent(docstring).replace("db_engine_url=…, broker=…", "db_engine_url=DATABASE_URL, broker=BROKER_URL")
    (tmp_path / "docstring.py").write_text(BEFORE_THE_DOCSTRING + shown.replace("…", "user"))
    for program in PROGRAM.finditer((ROOT / "README.md").read_text() + (ROOT / "docs" / "getting-started.md").read_text()):
        (tmp_path / program["name"]).write_text(program["text"])
    files = sorted(str(path) for path in tmp_path.glob("*.py"))
    output, errors, status = api.run(["--strict", *files])
    assert (errors, status) == ("", 0), output
    assert {"bare.py", "docstring.py", "service.py", "shop.py", "handlers.py"} <= {Path(file).name for file in files}
