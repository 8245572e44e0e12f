"""Where a relay's rounds come from: by way of a transport, or within the database if the queues are in it."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from outbox.core.urls import ServerKind, server_kind
from outbox.engine.lifecycle import Stopping, until_it_answers
from outbox.engine.ordering import OrderingRules
from outbox.engine.sending import SendingPolicy, SendingRounds
from outbox.runtime.brokers import destination_of, open_transport, own_database

if TYPE_CHECKING:
    from outbox.core.byte_limits import ByteLimits
    from outbox.engine.sending import Rounds
    from outbox.ports import Observer
    from outbox.postgres.history import SentFacts
    from outbox.postgres.index_positions import ScanStart
    from outbox.postgres.names import TableName
    from outbox.postgres.pool import Pool
    from outbox.postgres.store import PostgresStore
    from outbox.runtime.brokers import BrokerSource


@dataclass(frozen=True, slots=True, kw_only=True)
class RoundsSource:
    """The outbox table and the broker that its messages go to. `component` is whom the history names, None if there is none."""

    broker: "BrokerSource"
    table: "TableName"
    policy: SendingPolicy
    ordering: OrderingRules
    keep_sent: bool
    component: str | None
    byte_limits: "ByteLimits"

    def facts(self, observer: "Observer") -> "SentFacts | None":
        """What the history is told of sent messages; None if it is told nothing."""
        from outbox.postgres.history import SentFacts

        return None if self.component is None else SentFacts(self.table, self.component, observer)

    def store(self, pool: "Pool", facts: "SentFacts | None") -> "PostgresStore":
        """The outbox table."""
        from outbox.postgres.store import PostgresStore

        return PostgresStore(
            pool,
            self.table,
            keep_sent=self.keep_sent,
            longest_send=self.policy.publish_timeout,
            ordering=self.ordering,
            facts=facts,
            byte_limits=self.byte_limits,
        )

    def destination(self, rounds: "Rounds") -> str:
        """Where `rounds`, which `open` gave, send to; it holds no secret."""
        from outbox.transports.postgres.rounds import HandoverRounds

        if isinstance(rounds, HandoverRounds):
            return own_database(exchange_name=self.policy.exchange_name)
        return destination_of(self.broker, exchange_name=self.policy.exchange_name)

    @asynccontextmanager
    async def open(
        self,
        pool: "Pool",
        store: "PostgresStore",
        facts: "SentFacts | None",
        observer: "Observer",
        stopping: Stopping,
    ) -> AsyncIterator["Rounds"]:
        """Rounds within the database if the queues are in it, otherwise by way of a transport."""
        if isinstance(self.broker, str) and server_kind(self.broker) is ServerKind.POSTGRES:
            handover = await self._handover(pool, self.broker, facts, store.scan_start, observer, stopping)
            if handover is not None:
                yield handover
                return
        name = self.policy.exchange_name
        transport = open_transport(self.broker, exchange_name=name, table=self.table, observer=observer)
        try:
            yield SendingRounds(store, transport, self.policy)
        finally:
            await transport.close()

    async def _handover(
        self,
        pool: "Pool",
        url: str,
        facts: "SentFacts | None",
        scan_start: "ScanStart",
        observer: "Observer",
        stopping: Stopping,
    ) -> "Rounds | None":
        """Rounds by hand-over; None if the queues are in another database."""
        from outbox.postgres.pool import open_pool
        from outbox.transports.postgres.handover import PostgresHandover, same_database
        from outbox.transports.postgres.rounds import HandoverRounds

        name = self.policy.exchange_name
        handover = PostgresHandover(
            pool,
            self.table,
            exchange_name=name,
            keep_sent=self.keep_sent,
            default_expiration=self.policy.expiration,
            drop_unroutable=self.policy.drop_unroutable,
            ordering=self.ordering,
            facts=facts,
            scan_start=scan_start,
            byte_limits=self.byte_limits,
            retry=self.policy.retry,
        )
        here = False

        async def look() -> None:
            nonlocal here
            other = await open_pool(url, size=1, application_name="outbox relay")
            try:
                here = await same_database(pool, other)
            finally:
                other.terminate()
            if here:
                await handover.check()

        await until_it_answers(look, stopping, observer)
        return HandoverRounds(handover, exchange_name=name) if here else None
