"""What makes no sense is refused before anything runs, with a sentence that says what to do."""

from collections.abc import Callable
from datetime import timedelta

import asyncpg
import pytest

from outbox import Consumer, MessageRelay, OutboxError, Publisher, Worker, consume
from outbox.utils import parse_duration

DATABASE = "postgresql://ada:hunter2@localhost/shop"
RABBITMQ = "amqp://ada:hunter2@localhost"


async def handler(body: dict[str, int]) -> None:
    """Does nothing."""


async def two_bodies(order: dict[str, int], customer: dict[str, int]) -> None:
    """Cannot be called with a message."""


@pytest.mark.parametrize(
    ("make", "advice"),
    [
        (lambda: MessageRelay(broker=RABBITMQ), "db_engine_url.*db_pool"),
        (lambda: MessageRelay(DATABASE), "rmq_connection.*broker"),
        (lambda: MessageRelay(DATABASE, broker=RABBITMQ, rmq_connection_url=RABBITMQ), "exactly one"),
        (lambda: MessageRelay("mysql://ada:hunter2@localhost/shop", broker=RABBITMQ), "postgresql://"),
        (lambda: MessageRelay(DATABASE, broker="http://ada:hunter2@localhost"), "amqp://"),
        (lambda: MessageRelay(DATABASE, rmq_connection_url=DATABASE), "amqp://"),
        (lambda: MessageRelay(DATABASE, broker=RABBITMQ, table_name='x"; drop table orders; --'), "table"),
        (lambda: MessageRelay(DATABASE, broker=RABBITMQ, batch_size=0), "batch_size"),
        (lambda: MessageRelay(DATABASE, broker=RABBITMQ, lanes=0), "lanes"),
        (lambda: MessageRelay(DATABASE, broker=RABBITMQ, max_attempts=0), "max_attempts"),
        (lambda: MessageRelay(DATABASE, broker=RABBITMQ, publish_timeout=-1), "publish_timeout"),
        (lambda: MessageRelay(DATABASE, broker=RABBITMQ, on_unroutable="holt"), "hold.*drop"),  # type: ignore[arg-type]
        (lambda: MessageRelay(DATABASE, broker=RABBITMQ, clean_up_after="LATER"), "IMMEDIATELY.*NEVER"),  # type: ignore[arg-type]
        (lambda: MessageRelay(DATABASE, broker=RABBITMQ, exchange_name=""), "exchange_name"),
        (lambda: Worker(broker=RABBITMQ, retry_delays=("1h",)), "1h"),
        (lambda: Worker(broker=RABBITMQ, consumers=[handler]), "@consume"),  # type: ignore[list-item]
        (lambda: Worker(broker=RABBITMQ, prefetch_count=0), "prefetch_count"),
        (lambda: Consumer("order.*", two_bodies), "order.*customer"),
        (lambda: consume("order.*", retry_delays=("60s",))(handler), "60s"),
        (lambda: parse_duration("5"), "5"),
        (lambda: Publisher(table_name="a.b.c"), "schema name"),
        (lambda: Publisher(expiration=timedelta(seconds=-1)), "expiration"),
    ],
)
def test_invalid_arguments_are_refused_with_advice(make: Callable[[], object], advice: str) -> None:
    with pytest.raises((OutboxError, ValueError, TypeError), match=f"(?s){advice}") as caught:
        make()
    assert isinstance(caught.value, OutboxError)
    assert isinstance(caught.value, (ValueError, TypeError))
    assert "hunter2" not in str(caught.value)


async def test_a_pool_too_small_for_the_lanes_is_refused_at_the_start(database_url: str) -> None:
    async with asyncpg.create_pool(database_url, min_size=0, max_size=3) as pool:
        with pytest.raises(OutboxError, match=r"max_size=\d+"):
            await MessageRelay(db_pool=pool, broker=database_url).run()
