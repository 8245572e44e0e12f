"""`GET /topology`."""

from datetime import timedelta
from typing import TYPE_CHECKING, Literal

from pydantic import Field

from outbox.admin.access import Viewer
from outbox.admin.backlog.view import BacklogView
from outbox.admin.brokers import BrokerKind, BrokerView
from outbox.admin.cache import SingleFlightCache, Snapshot
from outbox.admin.models import Error, Model, Moment
from outbox.admin.routing import area
from outbox.admin.topology.drawing import TopologyEdge, TopologyNode, drawn
from outbox.admin.topology.findings import Judged, WarningCode, judged
from outbox.admin.topology.seen import Seen, look

if TYPE_CHECKING:
    from outbox.admin.admin import Admin

topology = area("topology")

MAX_AGE = timedelta(seconds=10)
TIMEOUT = timedelta(seconds=20)


class TopologyWarning(Model):
    """Something that is wrong, or could be better."""

    code: WarningCode = Field(description="A stable name of the problem.")
    severity: Literal["warning", "error"]
    node: str | None = Field(description="The node that it is about.")
    summary: str
    hint: str = Field(description="What to do about it.")


class Topology(Model):
    """Where messages go."""

    as_of: Moment
    degraded: list[Literal["broker", "database"]] = Field(description="What could not be asked.")
    broker: BrokerKind
    broker_error: Error | None
    bindings_known: bool = Field(
        description="False: only those that workers report; with the URL of RabbitMQ's management API, all."
    )
    nodes: list[TopologyNode]
    edges: list[TopologyEdge]
    warnings: list[TopologyWarning]


class TopologyView:
    """Keeps what was seen for a moment, and looks once however many ask."""

    def __init__(self, admin: "Admin") -> None:
        self._admin = admin
        self._broker = admin.shared(BrokerView)
        self._backlog = admin.shared(BacklogView)
        self._seen = SingleFlightCache(self._look, max_age=MAX_AGE, timeout=TIMEOUT)

    async def now(self) -> Snapshot[Seen]:
        """What was seen last. Raises what looking raised if nothing was seen yet."""
        return await self._seen.get()

    async def close(self) -> None:
        """Ends what is being looked at."""
        await self._seen.close()

    async def _look(self) -> Seen:
        figures = await self._backlog.figures() if self._broker.kind is BrokerKind.POSTGRESQL else None
        depths = figures.value.deliveries if figures else ()
        return await look(self._admin, self._broker.kind, self._broker.rabbitmq, depths)


@topology.get("/topology", operation_id="outbox_topology_show", summary="Show Topology")
async def show(context: Viewer) -> Topology:
    """Shows exchanges, queues, workers and their connections as nodes and edges, and warnings, each with a hint.

    It is read on request, at most every ten seconds. If the broker is unavailable, it shows what workers have reported.
    """
    snapshot = await context.admin.shared(TopologyView).now()
    seen = snapshot.value
    nodes, edges = drawn(seen)
    return Topology(
        as_of=snapshot.as_of,
        degraded=[*(["broker"] if seen.problem else []), *(["database"] if snapshot.error else [])],
        broker=seen.broker,
        broker_error=None if seen.problem is None else Error(type="", message=seen.problem),
        bindings_known=seen.bindings is not None,
        nodes=nodes,
        edges=edges,
        warnings=[_warned(each) for each in judged(seen)],
    )


def _warned(each: Judged) -> TopologyWarning:
    finding = each.finding
    return TopologyWarning(
        code=each.code,
        severity="error" if finding.severity == "error" else "warning",
        node=each.node,
        summary=finding.summary,
        hint=finding.advice,
    )
