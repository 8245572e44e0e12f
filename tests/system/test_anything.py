"""Everything at once: whatever befalls processes and connections, in any order, nothing is lost."""

import random
from collections.abc import Callable

import pytest

from tests.servers.proxy import Proxy
from tests.support.eventually import eventually
from tests.system.handlers import Handler
from tests.system.harness import MakeSystem, Process, System
from tests.system.support import TERMINATE, all_is_well, progress, some_time


class Chaos:
    """Two relays, two workers, two publishers, and what befalls them."""

    def __init__(self, system: System, broker: Proxy, database: Proxy, seed: int) -> None:
        self.system = system
        self._broker = broker
        self._database = database
        self._random = random.Random(seed)
        handler = Handler(queue="mail", seconds=0.01)
        relay_options = {"db_engine_url": database.url, "publish_timeout": 1.0}
        self._makers: list[Callable[[], Process]] = [
            lambda: system.relay(**relay_options),
            lambda: system.relay(**relay_options),
            lambda: system.worker(handler),
            lambda: system.worker(handler),
        ]
        self._running = [make() for make in self._makers]
        self.publishers = [system.publisher(first=first, together=10, pause=0.03) for first in (0, 1_000_000)]

    async def strike(self) -> str:
        """Something bad; what it was."""
        blow = self._random.choice([self._kill, self._kill, self._freeze, self._end, self._cut, self._terminate])
        await blow()
        return blow.__name__

    async def _kill(self) -> None:
        place = self._random.randrange(4)
        self._running[place].kill()
        self._running[place] = self._makers[place]()

    async def _freeze(self) -> None:
        victim = self._random.choice(self._running)
        victim.freeze()
        await some_time(3)
        victim.thaw()

    async def _end(self) -> None:
        place = self._random.randrange(4)
        process = self._running[place]  # which may have been started a moment ago, in place of a killed one
        await eventually(lambda: process.catches_sigterm, message=f"{process.name} is ready to be stopped")
        process.terminate()
        assert await process.ended() == 0
        self._running[place] = self._makers[place]()

    async def _cut(self) -> None:
        self._random.choice([self._broker, self._database]).cut()

    async def _terminate(self) -> None:
        async with self.system.connection() as connection:
            await connection.fetchval(TERMINATE)


async def survive(
    transport: str,
    blows: int,
    request: pytest.FixtureRequest,
    database_url: str,
    proxied: Callable[[str], Proxy],
    make_system: MakeSystem,
) -> None:
    database = proxied(database_url)
    if transport == "postgres":
        broker = database
        system = await make_system(database_url, worker_options={"lease": 2.0, "broker": database.url})
    else:
        broker = proxied(request.getfixturevalue("broker_url"))
        system = await make_system(database_url, f"{broker.url}?heartbeat=2")
    seed = random.randrange(1_000_000)
    chaos = Chaos(system, broker, database, seed)
    await system.queue_is_consumed("mail")
    past = []
    for _ in range(blows):
        past.append(await chaos.strike())
        await some_time(0.2)
        try:
            await progress(system)
        except AssertionError as error:
            raise AssertionError(f"seed {seed}, after {past[-5:]}: {error}") from None
    await all_is_well(system, chaos.publishers)
    await system.stop()  # while its broker is there, which this test asked for later than for the system


TRANSPORTS = [pytest.param("rabbitmq", marks=pytest.mark.rabbitmq), "postgres"]


@pytest.mark.timeout(600)
@pytest.mark.parametrize("transport", TRANSPORTS)
async def test_twenty_random_faults_lose_nothing(
    transport: str,
    request: pytest.FixtureRequest,
    database_url: str,
    proxied: Callable[[str], Proxy],
    make_system: MakeSystem,
) -> None:
    await survive(transport, 20, request, database_url, proxied, make_system)


@pytest.mark.chaos
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("transport", TRANSPORTS)
async def test_four_hundred_random_faults_lose_nothing(
    transport: str,
    request: pytest.FixtureRequest,
    database_url: str,
    proxied: Callable[[str], Proxy],
    make_system: MakeSystem,
) -> None:
    await survive(transport, 400, request, database_url, proxied, make_system)
