"""Random valid and invalid requests: each response is as documented, and none is a server error."""

import re
from collections import deque
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import psycopg2
import pytest
import requests
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from hypothesis.errors import FlakyStrategyDefinition, Unsatisfiable
from schemathesis.checks import not_a_server_error
from schemathesis.core.failures import FailureGroup
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from outbox.admin.principals import Role, new_token
from tests.app.support import service

CHECKS = [
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
]
NOT_HTTP = "Invalid HTTP request received."
"""uvicorn's own response to a URL of more than 64 KiB."""
_LONG = re.compile(r"(?<=.{600}).+", re.DOTALL)
STREAMS = {"outbox_events_stream"}
"""The stream, which does not end. test_events.py covers it."""


@pytest.fixture
def running_service(tmp_path: Path, database_url: str, broker_url: str) -> Iterator[tuple[str, str]]:
    """The address of a service with data, and an administrator's token."""
    token, entry = new_token("ada", Role.ADMIN)
    variables = {
        "OUTBOX_DATABASE_URL": database_url,
        "OUTBOX_BROKER_URL": broker_url,
        "OUTBOX_MIGRATE": "true",
        "OUTBOX_ADMIN_TOKENS": str(entry),
    }
    with service(tmp_path, variables) as it:
        it.ends_as(it.place("forbidden"), "rejected")
        _fill(database_url)
        yield it.url, token


def _fill(url: str) -> None:
    """Dead letters, an operation, and messages that wait, each with the number 1 among them."""
    connection = psycopg2.connect(url)
    with connection, connection.cursor() as cursor:
        cursor.execute(
            "insert into outbox_dead_letter (message_id, tracking_ids, created_at, source, exchange, queue, routing_key, body, "
            "content_type, attempt, cause, exception_type, exception_message, exception_traceback, fingerprint) "
            "select 'm' || n, jsonb_build_array('m' || n), now(), 'worker', 'outbox', 'gone', 'order.placed', "
            "convert_to('{}', 'utf8'), 'application/json', 1, 'exhausted', 'ValueError', 'no', '', 'f1' "
            "from generate_series(1, 20) n"
        )
        cursor.execute(
            "insert into outbox_table (routing_key, body, send_after) "
            "select 'order.due', '', now() + interval '1 day' from generate_series(1, 20)"
        )
    connection.close()


@pytest.mark.timeout(600)
def test_every_response_is_as_documented_and_none_is_a_server_error(running_service: tuple[str, str]) -> None:
    _conforms(*running_service, examples=5)


@pytest.mark.chaos
@pytest.mark.timeout(1_800)
def test_every_response_is_as_documented_in_a_long_run(running_service: tuple[str, str]) -> None:
    _conforms(*running_service, examples=300)


def _conforms(url: str, token: str, *, examples: int) -> None:
    """Calls every operation of the admin with valid and invalid values."""
    schema = schemathesis.openapi.from_url(f"{url}/openapi.json")
    problems: list[str] = []
    answers: deque[str] = deque(maxlen=1)
    with requests.Session() as session:
        for operation in _operations(schema):
            for mode in schemathesis.GenerationMode:
                try:
                    _asked(operation, mode, answers, session, url, token, examples)
                except FailureGroup as failures:  # every operation is to be heard
                    summary = "; ".join(_LONG.sub("…", str(failure)) for failure in failures.exceptions)
                    problems.append(f"{operation.label}, {mode.value}: {summary}\n{answers[-1]}")
    assert not problems, "\n\n".join(problems)


def _operations(schema: Any) -> list[Any]:
    """The operations of the admin. Login is last, since wrong tokens trigger its limit."""
    found = [result.ok() for result in schema.get_all_operations()]
    named = {operation.definition.raw.get("operationId", ""): operation for operation in found}
    ours = [name for name in named if name.startswith("outbox_") and name not in STREAMS]
    assert len(ours) > 20
    return [named[name] for name in sorted(ours, key=lambda name: ("session" in name, name))]


def _asked(
    operation: Any, mode: Any, answers: "deque[str]", session: requests.Session, url: str, token: str, examples: int
) -> None:
    cases = operation.as_strategy(generation_mode=mode)
    if "{id}" in operation.path and mode is schemathesis.GenerationMode.POSITIVE:
        cases = st.one_of(cases, operation.as_strategy(generation_mode=mode, path_parameters={"id": "1"}))

    @settings(
        max_examples=examples,
        deadline=None,
        database=None,
        derandomize=True,
        suppress_health_check=list(HealthCheck),
        phases=(Phase.generate,),
    )
    @given(case=cases)
    def ask(case: Any) -> None:
        answer = case.call(base_url=url, session=session, headers={"authorization": f"Bearer {token}"}, timeout=60)
        answers.append(_LONG.sub("…", f"{answer.request.method} {answer.request.url} {answer.request.body!r}: {answer.text}"))
        if answer.text != NOT_HTTP:
            case.validate_response(answer, checks=CHECKS)

    # An operation without parameters cannot be asked wrongly. After hundreds of wrong values Schemathesis may make others than
    # before from the same choices, which says nothing about the answers.
    with suppress(Unsatisfiable, FlakyStrategyDefinition):
        ask()
