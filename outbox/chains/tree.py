"""Builds the tree of a chain from its records. Copes with orphans, cycles and too many nodes."""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from outbox.chains.model import (
    Attempt,
    AttemptError,
    AttemptOutcome,
    Chain,
    ChainState,
    Delivery,
    Node,
    Waiting,
    WaitReason,
    worst,
)
from outbox.chains.traces import MOST_AHEAD, Row, Traces, expected_queues, ids_of, moment, span
from outbox.core.codec import trace_id_of
from outbox.core.failures import decode_failures


@dataclass(slots=True)
class _Draft:
    """Records of one node, before it is built."""

    id: str
    parent_id: str | None = None
    routing_key: str = ""
    facts: list[Row] = field(default_factory=list)
    letters: list[Row] = field(default_factory=list)
    deliveries: list[Row] = field(default_factory=list)
    row: Row | None = None


class Tree:
    """Builds the tree from traces; `chain` returns it."""

    def __init__(self, traces: Traces, max_nodes: int) -> None:
        self._traces = traces
        self._max_nodes = max_nodes
        self._drafts: dict[str, _Draft] = {}
        for fact in traces.facts:
            self._draft(fact, parent_id=fact["parent_id"]).facts.append(fact)
        for letter in traces.letters:
            self._draft(letter, chain=letter["chain"]).letters.append(letter)
        for delivery in traces.deliveries:
            self._draft(delivery, chain=delivery["chain"]).deliveries.append(delivery)
        for row in traces.rows:
            self._draft(row, chain=row["chain"]).row = row
        root = traces.root_id
        for draft in list(self._drafts.values()):
            id_ = draft.parent_id
            # A parent without records of its own: where it hangs is unknown, so it goes directly below the root.
            if id_ is not None and id_ not in self._drafts:
                self._drafts[id_] = _Draft(id_, None if id_ == root else root)
        if self._drafts and root not in self._drafts:
            self._drafts[root] = _Draft(root)

    def chain(self) -> Chain:
        """Builds the chain with at most `max_nodes` nodes."""
        nodes = [replace(_node(self._drafts[id_], self._traces), depth=depth) for id_, depth in self._in_order()]
        kept = tuple(nodes[: self._max_nodes])
        began = [node.published_at for node in kept if node.published_at is not None]
        ended = [node.last_at for node in kept if node.last_at is not None]
        return Chain(
            root_id=self._traces.root_id,
            nodes=kept,
            found=bool(kept),
            truncated=self._traces.truncated or len(nodes) > len(kept),
            unknown=tuple(self._unknown()),
            state=worst(node.state for node in nodes),
            duration=max(ended) - min(began) if began else None,
            critical_path=_critical_path(kept),
        )

    def _draft(self, row: Row, *, chain: str | None = None, parent_id: str | None = None) -> _Draft:
        ids = ids_of(chain)
        id_ = row["message_id"] or (ids[-1] if ids else "")
        draft = self._drafts.setdefault(id_, _Draft(id_))
        draft.routing_key = draft.routing_key or row["routing_key"]
        draft.parent_id = draft.parent_id or parent_id or (ids[-2] if len(ids) > 1 else None)
        return draft

    def _in_order(self) -> list[tuple[str, int]]:
        """Ids with their depths: parents before children, siblings by time. Cycles and orphans become trees."""
        children: dict[str | None, list[str]] = {}
        for draft in self._drafts.values():
            parent = draft.parent_id if draft.parent_id != draft.id else None
            children.setdefault(parent, []).append(draft.id)
        for siblings in children.values():
            siblings.sort(key=lambda id_: (_published_at(self._drafts[id_]), id_))
        placed: dict[str, int] = {}
        roots = children.get(None, [])
        # False sorts first: the root of the chain, then messages whose parent is unknown.
        for start in sorted(roots, key=lambda id_: id_ != self._traces.root_id):
            self._place(start, children, placed)
        # Only nodes in cycles are left: cut each cycle at its first node.
        for id_ in self._drafts:
            if id_ not in placed:
                self._drafts[id_].parent_id = None
                self._place(id_, children, placed)
        return list(placed.items())

    def _place(self, start: str, children: Mapping[str | None, Sequence[str]], placed: dict[str, int]) -> None:
        # A stack instead of recursion: chains can be deeper than Python's recursion limit.
        stack = [(start, 0)]
        while stack:
            id_, depth = stack.pop()
            if id_ in placed:
                continue
            placed[id_] = depth
            stack.extend((child, depth + 1) for child in reversed(children.get(id_, ())) if child not in placed)

    def _unknown(self) -> Iterable[str]:
        unseen = self._traces.unseen
        for source, reason in unseen.items():
            yield f"records of the {source}: {reason}"
        if not self._traces.facts and "history" not in unseen and self._drafts:
            yield "when it was sent and handled: it is not in the history, which was off or has been pruned"
        elif any(node.row is None and not any(f["fact"] == "sent" for f in node.facts) for node in self._drafts.values()):
            yield "when some messages were sent: the relay wrote no history, or the root is a request and not a message"
        only_sent = (
            draft.facts and all(fact["fact"] == "sent" for fact in draft.facts) and not (draft.letters or draft.deliveries)
            for draft in self._drafts.values()
        )
        if not self._traces.deliveries and any(only_sent):
            yield "the outcome of messages that were only sent: they wait at the broker, or their worker writes no history"


def _critical_path(nodes: Sequence[Node]) -> tuple[str, ...]:
    """Ids from the root to the message with the last event."""
    known = [node for node in nodes if node.last_at is not None]
    if not known:
        return ()
    parents = {node.id: node.parent_id for node in nodes}
    path: dict[str, None] = {}
    at: str | None = max(known, key=lambda node: (node.last_at, -node.depth)).id
    # Parents come from headers, which any program can write, so they may form a cycle.
    while at is not None and at in parents and at not in path:
        path[at] = None
        at = parents[at]
    return tuple(reversed(path))


def _published_at(draft: _Draft) -> float:
    """Time when a message was published: from the relay's facts, or else its earliest record."""
    sent = [fact["at"] - (fact["waited"] or 0.0) for fact in draft.facts if fact["fact"] == "sent"]
    if sent:
        return float(min(sent))
    times = [fact["at"] - (fact["waited"] or 0.0) - (fact["ran"] or 0.0) for fact in draft.facts[:1]]
    times += [row["created_at"] for row in (draft.row, *draft.letters[:1], *draft.deliveries[:1]) if row is not None]
    return min((float(time) for time in times if time is not None), default=float("inf"))


def _node(draft: _Draft, traces: Traces) -> Node:
    sends = [fact for fact in draft.facts if fact["fact"] == "sent"]
    row: Mapping[str, Any] = draft.row or {}
    deliveries = tuple(_deliveries(draft, sends, traces))
    sent_at = sends[0]["at"] if sends else row.get("sent_at")
    # What waits in the outbox is the latest news: a requeued message has outcomes of its earlier life as well.
    if row and row["state"] != "sent":
        state = ChainState(row["state"])
    else:
        state = worst(delivery.state for delivery in deliveries)
        if state is ChainState.UNKNOWN and (sends or row):
            state = ChainState.SENT
    # Take the higher count: the history may have been pruned, and a purged dead letter leaves its requeues only there.
    requeues = [int(letter["requeue_count"]) + int(letter["status"] == "requeued") for letter in draft.letters]
    headers = (row, *draft.deliveries, *draft.letters)
    trace_ids = [*(fact["trace_id"] for fact in sends), *(trace_id_of(each.get("traceparent")) for each in headers)]
    requeues.append(len([fact for fact in draft.facts if fact["fact"] == "requeued"]))
    return Node(
        id=draft.id,
        parent_id=draft.parent_id if draft.parent_id != draft.id else None,
        state=state,
        routing_key=draft.routing_key,
        published_at=moment(_published_at(draft)),
        sent_at=moment(sent_at),
        waited=span(sends[0]["waited"] if sends else None if sent_at is None else sent_at - row["created_at"]),
        due_at=moment(row.get("due_at")) if row.get("state") in ("scheduled", "retrying", "held") else None,
        held_at=moment(row.get("held_at")) if row.get("state") in ("held", "stalled") else None,
        relay=sends[0]["component"] if sends else "",
        last_error=row.get("last_error"),
        requeue_count=max(requeues),
        trace_id=next((trace_id for trace_id in trace_ids if trace_id is not None), None),
        deliveries=deliveries,
    )


def _deliveries(draft: _Draft, sends: Sequence[Row], traces: Traces) -> Iterable[Delivery]:
    """One delivery for each queue with records, in the order of the first record."""
    everything = (*draft.facts, *draft.deliveries, *draft.letters)
    queues: dict[str, None] = dict.fromkeys(each["queue"] for each in everything if each["queue"])
    for queue in queues:
        facts = [fact for fact in draft.facts if fact["queue"] == queue and fact["fact"] not in ("sent", "requeued")]
        requeues = [fact for fact in draft.facts if fact["queue"] == queue and fact["fact"] == "requeued"]
        delivery = next((row for row in draft.deliveries if row["queue"] == queue), None)
        letters = [letter for letter in draft.letters if letter["queue"] == queue]
        attempts = tuple(
            Attempt(
                at=moment(fact["at"]),
                attempt=fact["attempt"] or 1,
                outcome=AttemptOutcome.of_fact(fact["fact"]),
                handling=span(fact["ran"]),
                error=_error(fact["error_type"], fact["error_message"]),
                component=fact["component"],
                trace_id=fact["trace_id"],
            )
            for fact in facts
            # Without a history, dead letters still know their failed attempts.
        ) or tuple(_attempts_of_letter(letters))
        received = facts[0]["at"] - (facts[0]["ran"] or 0.0) if facts else None
        # A requeued dead letter is outdated once the history has facts after the requeue.
        requeued = bool(letters) and letters[-1]["status"] == "requeued"
        outdated = requeued and requeues and facts and facts[-1]["at"] > requeues[-1]["at"]
        state = _delivery_state(facts, delivery, [] if outdated else letters)
        yield Delivery(
            queue=queue,
            state=state,
            attempt_count=max([each.attempt for each in attempts] + [letter["attempt"] for letter in letters], default=0),
            received_at=moment(received),
            waited=span(received - sends[0]["at"]) if received is not None and sends else None,
            due_at=moment(_due(queue, facts, delivery, traces)) if state is ChainState.RETRYING else None,
            waiting=_waiting(queue, state, delivery, traces),
            attempts=attempts,
        )
    # If the first fact is a requeue, the message went to one queue only, and not to all that are bound.
    if draft.facts and draft.facts[0]["fact"] == "sent":
        for queue in expected_queues(traces.consumers, traces.subscribed, draft.routing_key, sends[0]["at"]):
            if queue not in queues:
                queues[queue] = None
                yield Delivery(queue=queue, state=ChainState.QUEUED, waiting=_waiting(queue, ChainState.QUEUED, None, traces))


_RETRY_AFTER = "outbox.errors.RetryAfter"
"""Error type in the history of a handler that chose its own delay."""


def _due(queue: str, facts: Sequence[Row], delivery: Row | None, traces: Traces) -> float | None:
    """Time of the next attempt, in seconds since 1970. For RabbitMQ, computed from the consumer's fixed delays."""
    if delivery is not None:
        return float(delivery["due_at"])
    plan = next((each["delays"] for each in traces.consumers if each["queue"] == queue and each["delays"]), None)
    if facts[-1]["error_type"] == _RETRY_AFTER:
        return None
    try:
        return float(facts[-1]["at"] + json.loads(plan or "[]")[(facts[-1]["attempt"] or 1) - 1])
    # The delays come from the worker's report, which may be of another version or malformed.
    except (IndexError, TypeError, ValueError):
        return None


def _waiting(queue: str, state: ChainState, delivery: Row | None, traces: Traces) -> Waiting | None:
    """Why a delivery waits; None if it does not."""
    if state not in (ChainState.QUEUED, ChainState.RETRYING):
        return None
    ahead = None if delivery is None or state is ChainState.RETRYING else int(delivery["ahead"])
    # Checked first: a pause delays retries, too.
    pause = next((each for each in traces.pauses if (each["scope"], each["name"]) in (("queue", queue), ("worker", ""))), None)
    if pause is not None:
        what = "the queue is" if pause["scope"] == "queue" else "all workers are"
        by = f" by {pause['requested_by']}" if pause["requested_by"] else ""
        return Waiting(
            reason=WaitReason.PAUSED,
            text=f"{what} paused{by}" + (f": {pause['reason']}" if pause["reason"] else ""),
            ahead=ahead,
            paused_by=pause["requested_by"],
            paused_at=moment(pause["requested_at"]),
            pause_reason=pause["reason"],
        )
    known = [each for each in traces.consumers if each["queue"] == queue]
    if (known and not any(each["lives"] for each in known)) or (not known and queue in traces.subscribed):
        return Waiting(reason=WaitReason.NO_CONSUMER, text="no worker consumes the queue", ahead=ahead)
    if any(each["failing"] for each in known):
        text = "the handler keeps failing, and its worker takes one message at a time until one succeeds"
        return Waiting(reason=WaitReason.FAILING, text=text, ahead=ahead)
    if state is ChainState.RETRYING:
        return Waiting(reason=WaitReason.RETRY, text="an attempt failed, and the next one is not due yet")
    if ahead:
        number = f"{ahead:,}" if ahead <= MOST_AHEAD else f"more than {MOST_AHEAD:,}"
        return Waiting(reason=WaitReason.BEHIND, text=f"{number} ahead of it in the queue", ahead=ahead)
    return Waiting(reason=WaitReason.NEXT, text="no worker has taken it yet", ahead=ahead)


def _delivery_state(facts: Sequence[Row], delivery: Row | None, letters: Sequence[Row]) -> ChainState:
    if delivery is not None:
        return ChainState(delivery["state"])
    if facts and facts[-1]["fact"] in ("processed", "duplicate"):
        return ChainState.PROCESSED
    if letters:
        status = letters[-1]["status"]
        return ChainState.DEAD if status == "open" else ChainState(status)
    if facts:
        return ChainState.DEAD if facts[-1]["fact"] == "died" else ChainState.RETRYING
    return ChainState.UNKNOWN


def _error(type_: str | None, message: str | None) -> AttemptError | None:
    return None if type_ is None and message is None else AttemptError(type=type_ or "", message=message or "")


def _attempts_of_letter(letters: Sequence[Row]) -> Iterable[Attempt]:
    """Attempts from the latest dead letter, for deliveries without history."""
    for letter in letters[-1:]:
        failures = decode_failures(letter["failures"])
        for failed in failures[:-1]:
            yield Attempt(
                at=failed.at,
                attempt=failed.attempt,
                outcome=AttemptOutcome.RETRIED,
                error=AttemptError(type=failed.failure.type, message=failed.failure.message),
                component=failed.failure.worker,
            )
        yield Attempt(
            at=moment(letter["failed_at"]),
            attempt=letter["attempt"],
            outcome=AttemptOutcome.DEAD_LETTERED,
            error=_error(letter["exception_type"], letter["exception_message"]),
            component=letter["worker"],
        )
