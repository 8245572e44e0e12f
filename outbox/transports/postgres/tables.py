"""The transport's tables, which stand beside the outbox table in the same schema."""

from collections.abc import Mapping
from dataclasses import dataclass

from outbox.core.failures import MOST_FAILURES
from outbox.postgres.deaths import recorded
from outbox.postgres.names import TableName
from outbox.postgres.queries import queries
from outbox.postgres.schema.objects import SATELLITES


@dataclass(frozen=True, slots=True)
class TransportTables:
    """Deliveries, subscriptions and dead letters of the outbox table `outbox`."""

    outbox: TableName

    @property
    def delivery(self) -> TableName:
        """One row is one message for one queue."""
        return TableName("outbox_delivery", self.outbox.schema)

    @property
    def subscription(self) -> TableName:
        """One row is one binding."""
        return TableName("outbox_subscription", self.outbox.schema)

    @property
    def dead_letter(self) -> TableName:
        """One row is a message that failed for good."""
        return TableName("outbox_dead_letter", self.outbox.schema)

    def queries(self, file: str, **values: str) -> Mapping[str, str]:
        """The SQL of `file`, with these tables' names and any other values that it has places for."""
        names = {
            "table": self.outbox.sql,
            "delivery": self.delivery.sql,
            "subscription": self.subscription.sql,
            "dead_letter": self.dead_letter.sql,
            "edition": TableName(SATELLITES["edition"], self.outbox.schema).sql,
            "operation": TableName(SATELLITES["operation"], self.outbox.schema).sql,
            "operation_item": TableName(SATELLITES["operation_item"], self.outbox.schema).sql,
        }
        names["most_failures"] = str(MOST_FAILURES)
        names |= {"routes": queries("routing.sql", **names)["routes"], "recorded": recorded(self.outbox.schema)}
        return queries(file, **names, **values)
