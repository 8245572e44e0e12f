"""Systems of real processes, on both transports."""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.system.harness import System, prepare

MakeSystem = Callable[..., Awaitable[System]]


@pytest.fixture
async def make_system(tmp_path: Path) -> AsyncIterator[MakeSystem]:
    """Makes a system on a database and a broker; afterwards its processes end orderly, and none has complained."""
    async with AsyncExitStack() as systems:

        async def make(database_url: str, broker: str | None = None, **options: Any) -> System:
            await prepare(database_url)
            folder = tmp_path / f"system-{len(list(tmp_path.iterdir()))}"
            folder.mkdir()
            system = System(database_url, broker or database_url, folder, **options)
            await systems.enter_async_context(_ending(system))
            return system

        yield make


@asynccontextmanager
async def _ending(system: System) -> AsyncIterator[None]:
    try:
        yield
        await system.stop()
        assert system.complaints() == []
    finally:
        system.close()


@pytest.fixture(params=["rabbitmq", "postgres"])
async def system(request: pytest.FixtureRequest, database_url: str, make_system: MakeSystem) -> System:
    """A system of each kind: with RabbitMQ between relay and worker, and with PostgreSQL alone."""
    if request.param == "postgres":
        return await make_system(database_url, worker_options={"lease": 2.0})
    return await make_system(database_url, request.getfixturevalue("broker_url"))
