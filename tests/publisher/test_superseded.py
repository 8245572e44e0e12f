"""A message that came back unsent while another was published with its dedup key is not sent as well."""

from datetime import timedelta

import asyncpg

from outbox import Publisher
from outbox.outcome import RETURNED
from outbox.postgres.names import TableName
from outbox.postgres.pool import open_pool
from outbox.postgres.store import PostgresStore
from tests.publisher.onlooker import Onlooker

publisher = Publisher()


async def test_a_message_that_came_back_unsent_makes_way_for_the_one_that_replaced_it(
    outbox_url: str, onlooker: Onlooker
) -> None:
    connection = await asyncpg.connect(outbox_url)
    pool = await open_pool(outbox_url, size=1, application_name="test")
    store = PostgresStore(pool, TableName("outbox_table"), keep_sent=False, longest_send=timedelta(seconds=10))
    async with connection.transaction():
        await publisher.publish(connection, "saved", {"version": 1}, dedup_key="document")

    claim = await store.claim(10)
    assert claim is not None
    async with claim:  # the broker does not answer meanwhile
        async with connection.transaction():
            second = await publisher.publish(connection, "saved", {"version": 2}, dedup_key="document", on_conflict="replace")
        await claim.settle([RETURNED])
    assert len(await onlooker.rows()) == 2

    claim = await store.claim(10)
    assert claim is not None
    async with claim:
        assert [pending.message.id for pending in claim.messages] == [second]
        await claim.settle([RETURNED])
    assert await onlooker.ids() == [second]
    await pool.close()
    await connection.close()
