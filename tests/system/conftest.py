"""Systems of real processes, on both transports."""

from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.servers.proxy import Proxy
from tests.system.harness import MakeSystem, System, prepare

pytest.register_assert_rewrite("tests.system.support")


@asynccontextmanager
async def _made(folder: Path, database_url: str, broker: str | None = None, **options: Any) -> AsyncIterator[System]:
    await prepare(database_url)
    folder.mkdir()
    system = System(database_url, broker or database_url, folder, **options)
    try:
        yield system
        await system.stop()
        assert system.complaints() == []
    finally:
        system.close()


@pytest.fixture
async def make_system(tmp_path: Path, proxied: Callable[[str], Proxy]) -> AsyncIterator[MakeSystem]:
    """Makes a system on a database and a broker; afterwards its processes end orderly, and none has complained.

    Tests name it behind the servers' fixtures: what is named last ends first.
    """
    async with AsyncExitStack() as systems:

        async def make(database_url: str, broker: str | None = None, **options: Any) -> System:
            folder = tmp_path / f"system-{len(list(tmp_path.iterdir()))}"
            return await systems.enter_async_context(_made(folder, database_url, broker, **options))

        yield make


@pytest.fixture(params=[pytest.param("rabbitmq", marks=pytest.mark.rabbitmq), "postgres"])
async def system(request: pytest.FixtureRequest, database_url: str, tmp_path: Path) -> AsyncIterator[System]:
    """A system of each kind: with RabbitMQ between relay and worker, and with PostgreSQL alone."""
    if request.param == "postgres":
        made = _made(tmp_path / "system", database_url, worker_options={"lease": 5.0})
    else:
        made = _made(tmp_path / "system", database_url, request.getfixturevalue("broker_url"))
    async with made as system:
        yield system
