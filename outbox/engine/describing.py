"""Consumers in words that JSON can hold: what operators are shown of them, and what edited bodies are checked against."""

import json
from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Any

from pydantic import BaseModel, PydanticSchemaGenerationError
from pydantic.errors import PydanticInvalidForJsonSchema, PydanticUserError

from outbox.engine.consuming import Consumer
from outbox.retry import Delays, Strategy

LARGEST_SCHEMA = 32_768
"""Characters of a body's JSON schema that are told; a larger one is left out."""


def described(
    consumers: Sequence[Consumer], *, retry_delays: Sequence[timedelta], prefetch_count: int
) -> list[Mapping[str, Any]]:
    """Each consumer as it runs at a worker with these defaults."""
    return [_described(consumer, retry_delays, prefetch_count) for consumer in consumers]


def _described(consumer: Consumer, retry_delays: Sequence[timedelta], prefetch_count: int) -> Mapping[str, Any]:
    schema = body_schema(consumer.plan.body_type)
    return {
        "queue": consumer.queue,
        "binding_key": consumer.binding_key,
        "retry": _retry(consumer.strategy(retry_delays)),
        "timeout_seconds": None if consumer.terms.timeout is None else consumer.terms.timeout.total_seconds(),
        "prefetch_count": prefetch_count,
        "max_deliveries": consumer.max_deliveries,
        "ordered": consumer.ordered,
        "inbox": consumer.inbox,
        "batch": consumer.batch,
        **({} if schema is None else {"body": schema}),
    }


def _retry(strategy: Strategy) -> Mapping[str, Any]:
    """The delays that are known beforehand, and whether there may be others."""
    return {
        "delays_seconds": [delay.total_seconds() for delay in strategy.announced],
        "computed": not isinstance(strategy, Delays),
    }


def body_schema(body_type: Any) -> Mapping[str, Any] | None:
    """The JSON schema of a pydantic model; None for what is not one, and for what is too large or has none."""
    if not (isinstance(body_type, type) and issubclass(body_type, BaseModel)):
        return None
    try:
        schema = body_type.model_json_schema()
        return schema if len(json.dumps(schema)) <= LARGEST_SCHEMA else None
    except (PydanticUserError, PydanticInvalidForJsonSchema, PydanticSchemaGenerationError, TypeError, ValueError):
        return None
