"""The application of docs/fastapi.md, as it is printed there, with relay and worker next to its routes."""

import re
from pathlib import Path
from typing import Any

import pytest
from fastapi import FastAPI

from tests.fastapi.support import client_of, routing_keys
from tests.support import eventually

PAGE = Path("docs/fastapi.md")
ADDRESS = '"postgresql://user:password@localhost:5432/database"'


@pytest.fixture
def host(database_url: str) -> FastAPI:
    """The application, with the test's database."""
    program = re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL)[0]
    assert program.count(ADDRESS) == 1
    names: dict[str, Any] = {"__name__": "documented"}
    exec(compile(program.replace(ADDRESS, repr(database_url)), str(PAGE), "exec"), names)
    app: FastAPI = names["app"]
    return app


async def test_the_documented_host_publishes_relays_and_consumes_in_one_process(
    host: FastAPI, database_url: str, capsys: pytest.CaptureFixture[str]
) -> None:
    said = ""

    def has_welcomed() -> bool:
        nonlocal said
        said += capsys.readouterr().out
        return "welcome, ada" in said

    async def is_empty() -> bool:
        return await routing_keys(database_url) == []

    async with client_of(host) as client:
        assert (await client.post("/users", json={"name": "ada"})).json() == {"name": "ada"}
        await eventually(has_welcomed)
        await eventually(is_empty)
        parts = (await client.get("/outbox/health/ready")).json()["parts"]
    assert parts == {"relay": "ok", "worker": "ok", "server": "ok"}
