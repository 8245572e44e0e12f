"""What the API answers about dead letters and operations, read into what the library has for them."""

import base64
from datetime import timedelta
from typing import Any, TypeVar

from pydantic import TypeAdapter, ValidationError

from outbox.cli.api.client import ApiError
from outbox.dead_letters import (
    ORIGINAL_ROUTING,
    Action,
    Canary,
    DeadLetter,
    DeadLetterDetail,
    Item,
    ItemOutcome,
    Operation,
    OperationItem,
    Repaired,
    Result,
    ToQueue,
)
from outbox.dead_letters.actions import Options

T = TypeVar("T")

_DONE = {Action.REQUEUE: "requeued", Action.DISCARD: "discarded", Action.RESTORE: "restored", Action.PURGE: "purged"}
_OUTCOMES = {outcome.value.replace(" ", "-"): outcome for outcome in ItemOutcome} | dict.fromkeys(
    _DONE.values(), ItemOutcome.DONE
)


def read(kind: type[T], value: Any) -> T:
    """`value` as the dataclass `kind`; what that does not know is left out. Raises `ApiError` for what it cannot be."""
    try:
        return TypeAdapter(kind).validate_python(value)
    except ValidationError as error:
        where = ".".join(str(part) for part in error.errors()[0]["loc"])
        message = f"the service answers what this version does not understand, at {where}: it may be of another version"
        raise ApiError(message, status=200, code="not-understood") from error


def outcome_word(action: Action, outcome: ItemOutcome) -> str:
    """What the API calls it."""
    return _DONE[action] if outcome is ItemOutcome.DONE else outcome.value.replace(" ", "-")


def letter_of(line: Any) -> DeadLetter:
    """One line of the list."""
    chain = line.get("tracking_ids") or dict.fromkeys(id_ for id_ in (line["root_id"], line["message_id"]) if id_)
    values = {
        **line,
        "tracking_ids": tuple(chain),
        "exception_type": line["error"]["type"],
        "exception_message": line["error"]["message"],
        "fingerprint": line["group_id"],
    }
    return read(DeadLetter, values)


def detail_of(shown: Any) -> DeadLetterDetail:
    """The whole of one, as far as the service shows it."""
    values = {
        **shown,
        "letter": letter_of(shown),
        "body": _body(shown["body"]),
        "failure": _failure(shown["error"]),
        "trail": [
            {"at": each["at"] or shown["failed_at"], "attempt": each["attempt"], "failure": _failure(each)}
            for each in shown["trail"]
        ],
        "editions": [
            {
                **each,
                "body": _body(each["body"]),
                "size": each["body"]["size"],
                "content_type": each["body"]["content_type"],
            }
            for each in shown["editions"]
        ],
    }
    return read(DeadLetterDetail, values)


def _failure(shown: Any) -> Any:
    return {name: shown[name] for name in ("type", "message", "traceback", "worker")}


def _body(content: Any) -> bytes:
    """What is shown of a body."""
    text = content["content"] or ""
    return base64.b64decode(text) if content["encoding"] == "base64" else text.encode()


def repaired_of(answer: Any) -> Repaired:
    """What was done at once."""
    return Repaired(Action(answer["action"]), [item_of(item) for item in answer["items"]])


def item_of(answer: Any) -> Item:
    """What came of one letter."""
    return Item(answer["id"], _OUTCOMES[answer["outcome"]], answer["reason"])


def operation_item_of(answer: Any) -> OperationItem:
    """One letter of an operation."""
    result = answer.get("result")
    return OperationItem(
        answer["position"],
        item_of(answer),
        None if result is None else Result(result.replace("_", " ")),
        answer.get("failed_attempts", 0),
    )


def operation_of(answer: Any) -> Operation:
    """An operation."""
    values = {
        **answer,
        "results": answer.get("results") or {},
        "options": _options(answer["options"]),
        "continue_at": answer["continues_at"] or answer["updated_at"],
        "counts": {_OUTCOMES[word]: count for word, count in answer["counts"].items()},
    }
    return read(Operation, values)


def _options(answer: Any) -> Options:
    canary, queue = answer["canary"], answer["destination"]
    return Options(
        destination=ORIGINAL_ROUTING if answer["original_routing"] else ToQueue(queue) if queue else None,
        rate=answer["rate_per_second"],
        canary=None if canary is None else Canary(canary["count"], timedelta(seconds=canary["wait_seconds"])),
        stop_ratio=answer["stop_on_failure_ratio"],
        force=answer["force"],
        max_items=answer["max_items"],
    )
