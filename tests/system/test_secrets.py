"""Passwords reach no log line of any logger, at any level, whatever goes wrong."""

import logging
from collections.abc import Callable
from urllib.parse import quote, urlsplit, urlunsplit

import asyncpg

from tests.servers.proxy import Proxy
from tests.support import RabbitAdmin, eventually
from tests.system.handlers import Handler
from tests.system.harness import MakeSystem
from tests.system.support import TERMINATE, progress

PASSWORD = "hunter2+/and more%"


def with_user(url: str, user: str, password: str = PASSWORD) -> str:
    """The same address for another user."""
    address = urlsplit(url)
    return urlunsplit(address._replace(netloc=f"{user}:{quote(password, safe='')}@{address.hostname}:{address.port}"))


async def test_no_password_is_logged_by_relay_and_worker_whatever_the_servers_do(
    database_url: str,
    broker_url: str,
    broker_admin: RabbitAdmin,
    proxied: Callable[[str], Proxy],
    make_system: MakeSystem,
) -> None:
    """They work, lose every connection, meet refusals, wrong passwords and a broker that is not there."""
    system = await make_system(database_url, broker_url, log_level=logging.DEBUG)
    role = urlsplit(database_url).path[1:]
    async with system.connection() as connection:
        await connection.execute(f"create role {role}_role superuser login password '{PASSWORD}'")
    try:
        address = await broker_admin.create_user("shop", PASSWORD)
        await broker_admin.permit("shop")
        broker, database = proxied(address), proxied(with_user(database_url, f"{role}_role"))
        options = {"db_engine_url": database.url, "broker": broker.url}
        system.worker(Handler(queue="mail", failures=1, rejected=frozenset({3})), broker=broker.url)
        await system.queue_is_consumed("mail")
        system.relay(**options)
        publisher = system.publisher(first=0)
        await progress(system, 10)
        async with system.connection() as connection:
            await connection.fetchval(TERMINATE)
        broker.cut()
        await progress(system, 10)
        broker.refuse()
        database.refuse()
        await eventually(lambda: sum("lost the broker" in process.log for process in system.processes) == 2)
        await eventually(lambda: any("lost the database" in process.log for process in system.processes))
        wrong = "wrong" + PASSWORD
        broker.accept()
        lost = system.relay(broker=with_user(broker.url, "shop", wrong))  # all relays of a table have one broker's address
        await eventually(lambda: "lost the broker" in lost.log)
        strangers = system.relay(db_engine_url=with_user(database_url, f"{role}_role", wrong))
        await eventually(lambda: "lost the database" in strangers.log)
        publisher.terminate()
        assert await publisher.ended() == 0
        database.accept()
        await system.stop()
        for process in system.processes:
            assert process.log
            assert PASSWORD not in process.log, process.name
            assert quote(PASSWORD, safe="") not in process.log, process.name
    finally:
        await drop_role(database_url, f"{role}_role")


async def drop_role(database_url: str, role: str) -> None:
    connection = await asyncpg.connect(database_url)
    await connection.execute(f"drop owned by {role}; drop role {role}")
    await connection.close()
