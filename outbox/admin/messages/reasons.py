"""Why a message waits, as a sentence and as fields."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, assert_never

from outbox.admin.store.backlog import MessageState
from outbox.chains.traces import moment
from outbox.reporting.pauses import Pause


@dataclass(frozen=True, slots=True, kw_only=True)
class Surroundings:
    """What a message may wait for. `living_relays` None: not known. `probe` finds out for all that go its way."""

    pauses: Sequence[Pause]
    living_relays: int | None
    earlier: Mapping[str, Any] | None
    probe: Mapping[str, Any] | None
    exchange_name: str

    @property
    def pause(self) -> Pause | None:
        """The pause of all relays, if there is one."""
        return next((pause for pause in self.pauses if not pause.name), None)


def reason_of(row: Mapping[str, Any], around: Surroundings) -> str:
    """Why it is where it is, and what happens next, in a sentence or two."""
    state = MessageState(row["state"])
    match state:
        case MessageState.PENDING:
            return _pending(around)
        case MessageState.SCHEDULED:
            return _with_hindrance(f"It is due {_at(row['due_at'])}, as it was published.", around)
        case MessageState.RETRYING:
            times = "once" if row["attempts"] == 1 else f"{row['attempts']:,} times"
            return _with_hindrance(f"It was refused {times}, and is sent again {_at(row['due_at'])}.", around)
        case MessageState.HELD:
            return _with_hindrance(_held(row, around), around)
        case MessageState.STALLED:
            return _with_hindrance(_stalled(row, around), around)
        case MessageState.BLOCKED:
            return _blocked(around)
        case MessageState.PARKED:
            return (
                f"It was given up {_at(row['failed_at'])}, for the error that is told; nothing happens until somebody requeues "
                f"or discards the dead letter outbox-{row['id']}."
            )
        case MessageState.SENT:
            return f"It was sent {_at(row['sent_at'])}, and is kept until clean-up."
        case _:
            assert_never(state)


def hint_of(row: Mapping[str, Any], around: Surroundings) -> str | None:
    """What a person can do about it; None: nothing needs to be done."""
    match MessageState(row["state"]):
        case MessageState.HELD if row["target_queue"] is not None:
            return f"start a consumer of the queue {row['target_queue']!r}, which declares it; its success releases the message"
        case MessageState.HELD:
            return (
                f"bind a queue to the exchange {around.exchange_name!r} with a key that matches {row['routing_key']!r}, or "
                "start its consumer; all held messages of the routing key follow the first that finds it"
            )
        case MessageState.STALLED:
            queues = (
                f"the queue {row['target_queue']!r}" if row["target_queue"] else f"the queues bound for {row['routing_key']!r}"
            )
            return (
                f"look at {queues} for one that is full, or that has lost most of its members; once it takes messages again, "
                "all that wait follow by themselves"
            )
        case MessageState.PARKED:
            return f"POST /requeue or /discard with the id outbox-{row['id']}"
        case MessageState.SENT:
            return None
    if around.living_relays == 0:
        return "start a relay"
    return "POST /resume with the scope relay" if around.pause else None


def _pending(around: Surroundings) -> str:
    if around.earlier is not None:
        return _with_hindrance(f"It is due, and follows {_named(around.earlier)} of its ordering key.", around)
    hindrance = _hindrance(around)
    return f"It is due, but {hindrance}." if hindrance else "It is due, and goes out with one of the next batches."


def _held(row: Mapping[str, Any], around: Surroundings) -> str:
    way = f"The queue {row['target_queue']!r} is not there" if row["target_queue"] else "No queue is bound for its routing key"
    if around.probe is None:
        return f"{way}. A relay will soon try one message of the routing key again."
    if around.probe["id"] == row["id"]:
        return f"{way}. It is the one that is tried again, {_at(around.probe['due_at'])}."
    return f"{way}. It waits for message {around.probe['id']}, which is tried again {_at(around.probe['due_at'])}."


def _stalled(row: Mapping[str, Any], around: Surroundings) -> str:
    way = f"The queue {row['target_queue']!r}" if row["target_queue"] else "A queue that is bound for its routing key"
    text = f"{way} takes no messages: the broker answers, and did not confirm or refused what was sent there last."
    if around.probe is None:
        return text
    if around.probe["id"] == row["id"]:
        return f"{text} It is the one that is sent again within a minute, to find out."
    return f"{text} It waits for message {around.probe['id']}, which is sent again within a minute, to find out."


def _blocked(around: Surroundings) -> str:
    if around.earlier is None:
        return _with_hindrance(
            "It waited for an earlier message of its ordering key, and is due as soon as a relay looks.", around
        )
    return _with_hindrance(f"It waits for {_named(around.earlier)} of its ordering key.", around)


def _named(row: Mapping[str, Any]) -> str:
    return f"message {row['id']}, which is {row['state']},"


def _with_hindrance(sentence: str, around: Surroundings) -> str:
    hindrance = _hindrance(around)
    return f"{sentence} But {hindrance}." if hindrance else sentence


def _hindrance(around: Surroundings) -> str | None:
    """What keeps everything from being sent."""
    if (pause := around.pause) is not None:
        end = "" if pause.until is None else f" until {_words(pause.until)}"
        why = f" ({pause.reason})" if pause.reason else ""
        return f"all relays are paused{end}{why}"
    return "no relay is running" if around.living_relays == 0 else None


def _at(seconds: float | None) -> str:
    at = moment(seconds)
    return "never" if at is None else f"at {_words(at)}"


def _words(at: datetime) -> str:
    return f"{at:%Y-%m-%d %H:%M:%S} UTC"
