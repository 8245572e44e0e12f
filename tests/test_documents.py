"""Every code block and command of README and docs runs: here, or in the test that is named, or there is a reason why not."""

import asyncio
import json
import re
import shlex
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Annotated, Any, NamedTuple

import aio_pika
import asyncpg
import click
import httpx
import pytest
import yaml
from alembic.migration import MigrationContext
from alembic.operations import Operations
from click.testing import CliRunner
from fastapi import Depends, FastAPI
from pydantic import BaseModel
from sqlalchemy import Connection
from sqlalchemy.ext.asyncio import AsyncSession, async_sessionmaker, create_async_engine

from benchmarks.peers import __main__ as peers
from outbox import Publisher, Worker, consume, ensure_outbox_schema_async
from outbox.cli import main
from outbox.observers.logging import FIELDS
from outbox.postgres.pool import Pool, open_pool
from outbox.postgres.schema.versions import HEAD
from outbox.testing import RecordingPublisher
from outbox.transports.rabbitmq.connection import broker_version
from tests.admin.served import served
from tests.dead_letters.repairs import add_dead_letters, park
from tests.schema.catalog import catalog
from tests.support import eventually

pytestmark = pytest.mark.usefixtures("no_settings_from_outside")

ROOT = Path(__file__).parent.parent
FENCED = re.compile(r"^```(?P<language>\w*)\n(?P<text>.*?)^```$", re.MULTILINE | re.DOTALL)


class Block(NamedTuple):
    """A code block: its page, its language, and what it says."""

    page: str
    language: str
    text: str

    @property
    def name(self) -> str:
        """The page and the beginning of the first line, by which the tables below know it."""
        first = " ".join(self.text.strip().splitlines()[0].split())
        return f"{self.page}: {first if len(first) <= 60 else first[:60].rstrip() + ' …'}"


BLOCKS = [
    Block(str(path.relative_to(ROOT)), match["language"], match["text"])
    for path in (ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md")))
    for match in FENCED.finditer(path.read_text())
]

NOT_RUN = {
    "README.md: $ make run # everything in one process: API, relay, worker, …": (
        "a clone of its own; tests/app/test_development.py starts what it starts, tests/test_makefile.py looks at the targets"
    ),
    "README.md: route relay worker": "a picture",
    'docs/encryption.md: pip install "fastapi-outbox[encryption]"': "takes the registry; the program below it runs",
    "docs/encryption.md: stored 44 bytes: v=1;alg=A256GCM;kid=2026-1": "what the program prints, which its test compares",
    "docs/large-bodies.md: the row has 0 bytes and v=1;key=…;size=1000012": (
        "what the program prints, which its test compares"
    ),
    "docs/destinations.md: outbox_table order.placed": "what the program above it prints, which its test compares",
    'README.md: $ pip install "fastapi-outbox[fastapi]" uvicorn': (
        "takes the registry; tests/system/test_wheel.py installs the wheel, and the extras are compared below"
    ),
    'docs/alerts.md: $ pip install "fastapi-outbox[alerts]" # part of the extra s …': (
        "takes the registry; tests/app/test_alerting.py runs a service with such settings"
    ),
    "docs/getting-started.md: $ python3 -m venv .venv && . .venv/bin/activate": "takes the registry, as README's",
    "docs/getting-started.md: $ . .venv/bin/activate": "the service is run with the program, by the test that is named there",
    'docs/tracing.md: $ pip install "fastapi-outbox[cli,rabbitmq,otel]" openteleme …': (
        "takes the registry and a collector; tests/tracing/test_otlp.py exports to one"
    ),
    "docs/tracing.md: # telemetry.py": "sets the provider of the process; tests/tracing/test_otlp.py does the same for a test",
    "docs/tracing.md: POST /orders your instrumentation": "a picture; tests/tracing/test_traces.py compares such trees",
    "docs/tracing.md: # logs.py": "configures the process's logging; tests/tracing/test_log_fields.py does it for a logger",
    "docs/topology.md: # outbox.tf": "takes Terraform and a broker; the definitions above it are the same as JSON",
    'docs/interop.md: $ pip install "fastapi-outbox[rabbitmq,cli]"': "takes the registry; its programs run in tests/interop",
    "docs/cookbook.md: # flask_app.py": "takes Flask; it was run by hand with Flask 3.1 and psycopg2, and the event is sent",
    "docs/cookbook.md: # to_celery.py": "takes Celery and a broker of its own",
    "docs/monitoring.md: docker compose --profile monitoring up --build": (
        "takes Docker; tests/app/test_compose.py reads the files"
    ),
    "docs/monitoring.md: promtool check rules monitoring/alerts.yml": "tests/monitoring/test_alerts.py runs both",
    "docs/admin.md: retry: 2000": "an answer; tests/admin/test_events.py reads streams",
    "docs/architecture.md: route relay worker": "a picture",
    "docs/dashboard.md: Dashboard http://127.0.0.1:8000/outbox/ui/#token=outbox_…": "a line of output",
    "docs/dashboard.md: default-src 'none'; script-src 'self'; style-src 'self'; img …": (
        "a header; tests/admin/test_ui.py looks at it"
    ),
    "docs/dashboard.md: $ make run # in one terminal: the service": (
        "a server for development that does not end; `make check` builds the same sources"
    ),
    "docs/operations.md: EVENT QUEUE PUBLISHED OUTBOX BROKER HANDLER ATTEMPTS STATE B …": (
        "output; tests/reporting/test_chains.py compares such a tree"
    ),
    "docs/kafka.md: docker run -d --name kafka -p 9092:9092 apache/kafka:4.1.0": "takes Docker and a registry",
    "docs/kafka.md: docker exec kafka /opt/kafka/bin/kafka-console-consumer.sh - …": "takes Docker",
    "docs/kafka.md: kafka://user:password@host:9092,host2:9092/?topic=events.{ro …": (
        "a URL; tests/kafka/test_configuration.py::test_the_url_of_the_page_is_accepted creates a relay with it"
    ),
    "docs/nats.md: docker run -d --name nats -p 4222:4222 nats:2.12 --jetstream": "takes Docker and a registry",
    "docs/nats.md: nats://user:password@host:4222,host2:4222/?subject=events.{r …": (
        "a URL; tests/nats/test_configuration.py::test_the_url_of_the_page_is_accepted creates a relay with it"
    ),
    "docs/redis.md: docker run -d --name redis -p 6379:6379 redis:7 redis-server …": "takes Docker and a registry",
    "docs/redis.md: rediss://user:password@host:6379/0?stream=events&trim=true": (
        "a URL; tests/redis/test_configuration.py::test_the_url_of_the_page_is_accepted creates a relay and a worker with it"
    ),
    'docs/aws.md: pip install "moto[server]"': "takes a package registry; tests/servers/moto.py runs the same server",
    "docs/aws.md: sns://eu-west-1/orders.fifo?account=123456789012&visibility_ …": (
        "a URL; tests/aws/test_configuration.py::test_the_url_of_the_page_is_accepted creates a relay and a worker with it"
    ),
    'docs/aws.md: {"routing_key": ["order", {"prefix": "order."}]}': (
        "a filter policy; tests/aws/test_configuration.py::test_a_filter_has_all_that_the_binding_key_matches has the same"
    ),
    "docs/cookbook.md: // publish.go": "takes Go and pgx; the statement is that of the other languages",
    "docs/cookbook.md: // publish.mjs": "takes pg of npm; it was run by hand with Node 20, and prints the id",
    "docs/cookbook.md: // Publish.java": "takes the JDBC driver; it was run by hand with Java 17, and prints the id",
}
"""Blocks that no test runs, and why."""

RUN_BY = {
    "README.md: # service.py": ("tests/test_readme.py::test_the_complete_example_brings_an_event_from_a_route_to_a_letter"),
    "docs/getting-started.md: # shop.py": ("tests/test_readme.py::test_the_tutorial_brings_an_event_from_a_route_to_a_letter"),
    "docs/getting-started.md: # handlers.py": (
        "tests/test_readme.py::test_the_tutorial_brings_an_event_from_a_route_to_a_letter"
    ),
    "docs/getting-started.md: $ export OUTBOX_DATABASE_URL=postgresql://user:password@loca …": (
        "tests/test_readme.py::test_the_tutorial_brings_an_event_from_a_route_to_a_letter"
    ),
    "docs/alerts.md: import base64": "tests/admin/test_alerts.py::test_the_documented_check_accepts_valid_signatures_only",
    "docs/cookbook.md: # plain.py": "tests/test_readme.py::test_the_program_without_fastapi_and_rabbitmq_greets_until_its_end",
    "docs/cookbook.md: # reports.py": "tests/test_readme.py::test_the_cookbook_s_plain_function_handles_messages",
    "docs/cookbook.md: # nightly.py": "tests/test_readme.py::test_the_cookbook_s_nightly_report_schedules_the_next_one_once",
    "docs/cookbook.md: # webhooks.py": "tests/test_readme.py::test_the_cookbook_s_webhook_judges_what_is_answered",
    **dict.fromkeys(
        (
            "docs/interop.md: # place_order.py",
            "docs/interop.md: # celery_app.py",
            "docs/interop.md: # dramatiq_app.py",
            "docs/interop.md: # taskiq_app.py",
            "docs/interop.md: # faststream_app.py",
        ),
        "tests/interop/test_workers.py::test_the_page_s_program_starts_a_task_in_each_framework",
    ),
    "docs/interop.md: # cloud_events.py": (
        "tests/interop/test_cloudevents.py::test_both_modes_arrive_at_rabbitmq_and_the_page_s_handler_reads_them"
    ),
    "docs/consumers.md: # consumers.py": "tests/worker/test_consumers_page.py::test_the_page_s_consumer_does_what_it_says",
    'docs/consumers.md: @consume("order.*", index_keys=("$.order_id", "$.customer.id …': (
        "tests/reporting/test_reports.py::test_the_history_keeps_index_keys_of_what_was_sent_and_handled"
    ),
    "docs/consumers.md: import re": "tests/worker/test_consumers_page.py::test_the_page_s_redaction_takes_card_numbers_out",
    "docs/contracts.md: # events.py": "tests/asyncapi/test_page.py::test_the_page_leads_from_an_event_to_a_failed_check",
    "docs/contracts.md: # publish.py": "tests/asyncapi/test_page.py::test_the_page_leads_from_an_event_to_a_failed_check",
    "docs/contracts.md: # handlers.py": "tests/asyncapi/test_page.py::test_the_page_leads_from_an_event_to_a_failed_check",
    "docs/admin.md: # console.py": "tests/admin/test_outboxes.py::test_the_command_line_works_with_the_address_of_one",
    "docs/embedding.md: # host.py": "tests/admin/test_embedding.py::test_host_and_admin_keep_their_paths_behind_a_proxy",
    "docs/fastapi.md: from contextlib import asynccontextmanager": (
        "tests/fastapi/test_embedding.py::test_the_documented_host_publishes_relays_and_consumes_in_one_process"
    ),
    "docs/kafka.md: # confirmations.py": "tests/kafka/test_consuming.py::test_the_consumer_on_the_page_handles_an_event",
    "docs/kafka.md: # to_kafka.py": "tests/kafka/test_relaying.py::test_the_program_on_the_page_relays_to_its_topics",
    "docs/destinations.md: from alembic import op": (
        "tests/schema/test_destinations.py::test_the_page_s_revision_creates_the_table"
    ),
    "docs/destinations.md: # destinations.py": "tests/publisher/test_page.py::test_the_program_on_destinations_runs",
    "docs/nats.md: # receipts.py": "tests/nats/test_consuming.py::test_the_program_on_the_page_handles_the_message_on_the_page",
    "docs/nats.md: # to_nats.py": "tests/nats/test_relaying.py::test_the_program_on_the_page_relays_to_its_subjects",
    "docs/redis.md: # to_redis.py": "tests/redis/test_relaying.py::test_the_program_on_the_page_relays_to_its_streams",
    "docs/redis.md: # mail.py": "tests/redis/test_consuming.py::test_the_consumer_on_the_page_prints_a_receipt",
    "docs/aws.md: # mail.py": "tests/aws/test_consuming.py::test_the_consumer_on_the_page_prints_a_receipt",
    "docs/encryption.md: # encrypted.py": "tests/publisher/test_page.py::test_the_program_on_encryption_runs",
    "docs/several-databases.md: # tenants.py": (
        "tests/relay/test_several_databases.py::test_the_program_on_the_page_serves_the_tenants_of_a_table"
    ),
    "docs/several-databases.md: # name=url, or name url": (
        "tests/relay/test_several_databases.py::test_the_file_on_the_page_is_valid"
    ),
    "docs/large-bodies.md: # large.py": "tests/publisher/test_page.py::test_the_program_on_large_bodies_runs",
    "docs/large-bodies.md: from outbox.large_bodies import LargeBodies, S3Store": (
        "tests/large_bodies/test_messages.py::test_a_sweep_keeps_what_any_table_refers_to_and_maintenance_sweeps"
    ),
    "docs/publishing.md: # publishing.py": "tests/publisher/test_page.py::test_the_program_on_the_page_runs",
    "docs/repair.md: import asyncio": (
        "tests/dead_letters/test_operations.py::test_the_program_in_the_documentation_does_what_it_says"
    ),
    "docs/repair.md: from outbox import DeadLetters": (
        "tests/dead_letters/test_before_commit.py::test_the_documented_audit_is_committed_with_its_action"
    ),
    "docs/tracing.md: OUTBOX_TRACE_URL=https://jaeger.example/trace/{trace_id}": (
        "tests/admin/test_external.py::test_the_documented_templates_are_valid"
    ),
    "docs/tracing.md: OUTBOX_TRACE_URL=https://grafana.example/explore?schemaVersi …": (
        "tests/admin/test_external.py::test_the_documented_templates_are_valid"
    ),
    "docs/tracing.md: # sentry.py": (
        "tests/tracing/test_sentry.py::test_an_issue_in_sentry_has_the_id_of_its_group_of_dead_letters"
    ),
    "docs/testing.md: # test_routes.py": "tests/testing/test_docs.py::test_the_examples_of_the_page_on_testing_pass",
    "docs/testing.md: # test_handlers.py": "tests/testing/test_docs.py::test_the_examples_of_the_page_on_testing_pass",
    "docs/testing.md: # test_chain.py": "tests/testing/test_docs.py::test_the_examples_of_the_page_on_testing_pass",
    "docs/testing.md: # conftest.py": "tests/testing/test_docs.py::test_the_examples_of_the_page_on_testing_pass",
    "docs/testing.md: # test_crashes.py": "tests/testing/test_docs.py::test_the_examples_of_the_page_on_testing_pass",
}
"""Blocks that a test next to their subject runs."""

FRAGMENTS = {
    "docs/admin.md: from outbox.admin import Admin, admin_router",
    'docs/fastapi.md: await publisher.publish("order.unpaid", order, eta=timedelta …',
    "docs/fastapi.md: async def afterwards() -> None:",
    "docs/fastapi.md: app.dependency_overrides[get_publisher] = lambda: recording_ …",
    "docs/operations.md: from outbox import DeadLetters",
    "docs/schema.md: from alembic import op",
    "docs/schema.md: context.configure(connection=connection, target_metadata=met …",
}
"""Blocks that are run below, with what they take for granted."""


def is_run_by_language(block: Block) -> bool:
    """Whether the tests below run every block of the kind."""
    commands = [command for command in commands_of(block) if command[0] in ("outbox", "curl")]
    return block.language in ("json", "sql", "yaml") or bool(commands) or set(map(first_word, lines_of(block))) == {"export"}


def test_every_block_is_run_or_has_a_reason_not_to_be() -> None:
    unknown = [
        block.name
        for block in BLOCKS
        if block.name not in NOT_RUN.keys() | RUN_BY.keys() | FRAGMENTS and not is_run_by_language(block)
    ]
    assert unknown == []


def test_the_tables_name_nothing_that_is_not_there() -> None:
    names = {block.name for block in BLOCKS}
    assert sorted((NOT_RUN.keys() | RUN_BY.keys() | FRAGMENTS) - names) == []
    for place in RUN_BY.values():
        file, _, test = place.partition("::")
        assert re.search(rf"^(async )?def {test}\(", (ROOT / file).read_text(), re.MULTILINE), place


def test_the_page_of_benchmarks_shows_the_figures_of_its_data_file() -> None:
    text = (ROOT / "docs" / "benchmarks.md").read_text()
    assert text == peers.page(text, json.loads(peers.FIGURES.read_text()))


def test_readme_lists_every_extra() -> None:
    import tomllib

    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    readme = (ROOT / "README.md").read_text()
    listed = {name for line in re.findall(r"^\| (`.*?) \|", readme, re.MULTILINE) for name in re.findall(r"`(\w+)`", line)}
    extras = set(project["optional-dependencies"])
    assert extras - {"service"} <= listed, "service is what the image installs"
    for text in (path.read_text() for path in (ROOT / "README.md", *(ROOT / "docs").glob("*.md"))):
        for installed in re.findall(rf"{project['name']}\[([\w,]+)\]", text):
            assert set(installed.split(",")) <= extras


# --- commands -----------------------------------------------------------------------------------------------------------

NOT_WAITED_FOR = {
    "outbox worker": "runs until it is stopped",
    "outbox relay": "runs until it is stopped",
    "outbox asyncapi": "takes the page's modules; tests/asyncapi/test_page.py runs it",
    "outbox dlq requeue --canary": "waits for what becomes of the canary; tests/dead_letters do it",
}
"""Commands that are only read here, and not run."""
LOOKING = {"backlog", "components", "doctor", "queues", "stats", "status"}
"""Commands that change nothing."""
FAILING = {
    "outbox chain 0b5d7c1e-5a4f-4f0e-9a39-2f1f1d6f8f10",
    "outbox doctor",
    "outbox status",
    "outbox dlq requeue 12 13 99 outbox-14 --reason 'deployed 1.4.2'",
    "outbox dlq pause 2",
}
"""Commands that end with another code than 0, as their pages say or because there is nothing of that id here."""


def lines_of(block: Block) -> list[str]:
    """The commands of a block, without what they print; those of several lines on one."""
    text = block.text.replace("\\\n", " ")
    if block.language == "console":
        return [match[1] for match in re.finditer(r"^\$ ((?:[^\n'\"]|'[^']*'|\"[^\"]*\")*)", text, re.MULTILINE)]
    return [line for line in text.splitlines() if line.strip()] if block.language == "sh" else []


def first_word(line: str) -> str:
    return line.split(maxsplit=1)[0]


def commands_of(block: Block) -> list[list[str]]:
    """The same as words."""
    return [shlex.split(line, comments=True) for line in lines_of(block) if first_word(line) != "export"]


def of_outbox() -> Iterator[tuple[str, list[str]]]:
    for block in BLOCKS:
        for words in commands_of(block):
            if words[0] == "outbox":
                yield block.page, words


@pytest.mark.parametrize("words", [words for _, words in of_outbox()], ids=shlex.join)
def test_a_command_exists_with_its_options(words: list[str]) -> None:
    command: click.Command = main
    context, arguments = click.Context(main), [word for word in words[1:] if word not in (">", "body.json")]
    while isinstance(command, click.Group):
        found = command.get_command(context, arguments[0])
        assert found is not None, f"there is no command {arguments[0]}"
        command, arguments = found, arguments[1:]
    for option in (word for word in arguments if word.startswith("--")):
        assert any(option in parameter.opts for parameter in command.params), option


async def _prepare(url: str, work: Callable[[Pool], Any]) -> Any:
    pool = await open_pool(url, size=2, application_name="documents")
    try:
        return await work(pool)
    finally:
        await pool.close()


async def _as_on_the_page(pool: Pool) -> None:
    """The dead letters that docs/repair.md begins with: 1 to 10, 11 to 40, 41 to 46, and a parked message."""
    await add_dead_letters(pool, 10, queue="mail.welcome", fingerprint="2edc215aad11b9f9")
    await add_dead_letters(pool, 30, queue="orders.charge", fingerprint="d63623d0af109ec5", exception_type="ConnectionError")
    await add_dead_letters(pool, 6, queue="orders.charge", fingerprint="7cdcc6a7e383c429", exception_type="KeyError", attempt=3)
    for _ in range(14):
        await park(pool)
    await pool.execute(
        "insert into outbox_table (id, routing_key, body, send_after) overriding system value "
        "select 1000000 + n, case when n < 7 then 'oder.placed' else 'report.monthly' end, '{}', "
        "now() + case when n < 7 then interval '0' else interval '1 day' end from generate_series(1, 9) as n"
    )
    await pool.execute(
        "insert into outbox_delivery (id, exchange, queue, message_id, routing_key, body, tracking_ids, attempt, available_at) "
        "overriding system value select 2000000 + n, 'outbox', 'mail', n::text, 'order.placed', '', '[]', 2, "
        "now() + interval '1 hour' from generate_series(1, 12) as n"
    )


@pytest.mark.parametrize("page", sorted({page for page, _ in of_outbox()}))
def test_the_commands_of_a_page_do_what_they_say(
    page: str, database: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asyncio.run(_prepare(database, _as_on_the_page))
    monkeypatch.chdir(tmp_path)
    # The runbook looks at the same things for many alerts; once is enough.
    commands = [words for where, words in of_outbox() if where == page]
    looks = [words for words in commands if words[1] in LOOKING]
    for words in [words for number, words in enumerate(commands) if words not in looks or commands.index(words) == number]:
        if any(set(pattern.split()) <= set(words) for pattern in NOT_WAITED_FOR):
            continue
        arguments, _, file = shlex.join(words[1:]).partition(" '>' ")
        answer = CliRunner(env={"OUTBOX_DATABASE_URL": database}).invoke(main, shlex.split(arguments))
        assert answer.exception is None or isinstance(answer.exception, SystemExit), (words, answer.exception)
        assert (answer.exit_code != 0) == (shlex.join(words) in FAILING), (words, answer.exit_code, answer.output)
        if file:
            Path(file).write_bytes(answer.stdout_bytes)


def test_the_requests_of_the_page_on_the_api_are_answered(database: str) -> None:
    asyncio.run(_prepare(database, _as_on_the_page))
    given = {"8f1c00d2aa31be47": "d63623d0af109ec5", "5c73762f-7c66-4b48-8146-637331cc91c6": "m1"}
    page = [block for block in BLOCKS if block.page == "docs/admin.md"]
    requests = [words for block in page for words in commands_of(block) if words[0] == "curl"]
    with served(db_engine_url=database) as address, httpx.Client(headers={"authorization": "Bearer operator"}) as client:
        for words in requests:
            line = shlex.join(words)
            for then, now in given.items():
                line = line.replace(then, now)
            answer = _requested(client, address, shlex.split(line))
            assert answer.is_success, (line, answer.text)
            with suppress(ValueError, KeyError):
                given[re.findall(r'"confirm_token":"([\w-]+)"', "".join(block.text for block in page))[0]] = answer.json()[
                    "confirm_token"
                ]
    assert len(requests) >= 8


def _requested(client: httpx.Client, address: str, words: list[str]) -> httpx.Response:
    """What curl would be answered."""
    url, method, body = "", None, None
    headers: dict[str, str] = {}
    rest = iter(words[1:])
    for word in rest:
        match word:
            case "-s" | "-si" | "-sf" | "-sfOJ":
                pass
            case ">":
                next(rest)
            case "-X":
                method = next(rest)
            case "-H":
                name, _, value = next(rest).partition(": ")
                headers |= {name: value} if value else {}
            case "--json":
                body = json.loads(next(rest))
            case _:
                url = word.replace("$URL", address)
    return client.request(method or ("GET" if body is None else "POST"), url, headers=headers, json=body)


# --- by language --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("block", [block for block in BLOCKS if block.language == "json"], ids=lambda block: block.name)
def test_json_is_json(block: Block) -> None:
    assert json.loads(block.text)


@pytest.mark.parametrize("block", [block for block in BLOCKS if block.language == "yaml"], ids=lambda block: block.name)
def test_yaml_is_yaml(block: Block) -> None:
    assert yaml.safe_load(block.text)


def test_a_log_line_has_the_names_that_lines_have() -> None:
    (line,) = [json.loads(block.text) for block in BLOCKS if block.language == "json" and '"logger"' in block.text]
    assert line.keys() == {"time", "level", "logger", "message", *FIELDS}


@pytest.mark.parametrize("block", [block for block in BLOCKS if block.language == "sql"], ids=lambda block: block.name)
async def test_sql_can_be_executed(block: Block, database_url: str) -> None:
    await ensure_outbox_schema_async(database_url)
    connection = await asyncpg.connect(database_url)
    try:
        await connection.execute("create table orders (id int, sku text)")
        await connection.execute(block.text.replace("= …", "= 1"))
    finally:
        await connection.close()


async def test_the_definitions_are_what_a_worker_declares(broker_url: str) -> None:
    definitions = json.loads(
        next(block.text for block in BLOCKS if block.page == "docs/topology.md" and block.language == "json")
    )

    @consume("user.created", queue="mail", retry_delays=("1s", "10s"))
    async def mail(body: bytes) -> None:
        """Never called."""

    worker = Worker(broker=broker_url, consumers=[mail], reporting=False)
    running = asyncio.create_task(worker.run(handle_signals=False))
    connection = await aio_pika.connect(broker_url)
    try:
        for queue in definitions["queues"]:
            await eventually(partial(_is_declared, connection, queue["name"]), timeout=30)
        channel = await connection.channel()
        for exchange in definitions["exchanges"]:
            await channel.declare_exchange(exchange["name"], exchange["type"], durable=exchange["durable"])
        for queue in definitions["queues"]:
            arguments = dict(queue["arguments"])
            assert connection.transport is not None
            if broker_version(connection.transport.connection) < (4, 0):
                arguments.pop("x-delivery-limit", None)
            await channel.declare_queue(queue["name"], durable=queue["durable"], arguments=arguments)
    finally:
        worker.stop()
        await running
        await connection.close()


async def _is_declared(connection: aio_pika.abc.AbstractConnection, queue: str) -> bool:
    channel = await connection.channel()
    try:
        await channel.declare_queue(queue, passive=True)
    except aio_pika.exceptions.ChannelNotFoundEntity:
        return False
    await channel.close()
    return True


# --- fragments ----------------------------------------------------------------------------------------------------------


def fragment(beginning: str, number: int = 0) -> str:
    """The text of a block of `FRAGMENTS`, of those with this beginning the one of that number."""
    assert any(name.startswith(beginning) for name in FRAGMENTS)
    return [block.text for block in BLOCKS if block.name.startswith(beginning)][number]


async def run(text: str, **names: Any) -> dict[str, Any]:
    """Executes it as the body of a coroutine; its names afterwards."""
    body = "\n".join(f"    {line}" for line in text.splitlines())
    exec(f"async def _body(names):\n{body}\n    names |= locals()", names)
    found: dict[str, Any] = {}
    await names["_body"](found)
    return found


async def test_the_admin_in_two_lines_has_its_routes(database_url: str) -> None:
    text = fragment("docs/admin.md: from outbox.admin")
    assert "postgresql://…" in text
    app = FastAPI()
    await run(text.replace("postgresql://…", database_url).replace("9a12cc…", "0" * 64), app=app)
    assert "/outbox/dlq" in app.openapi()["paths"]


class Order(BaseModel):
    """What the page's order may be."""

    id: int


async def test_a_timer_is_set_and_cancelled() -> None:
    from datetime import timedelta

    publisher = RecordingPublisher()
    text = fragment("docs/fastapi.md: await publisher.publish")
    await run(text, publisher=publisher, order=Order(id=7), timedelta=timedelta)
    publisher.assert_not_published("order.unpaid")


async def test_a_background_task_has_a_transaction_of_its_own(database_url: str) -> None:
    await ensure_outbox_schema_async(database_url)
    engine = create_async_engine(database_url.replace("postgresql://", "postgresql+asyncpg://"))
    sessions: async_sessionmaker[AsyncSession] = async_sessionmaker(engine)
    text = fragment("docs/fastapi.md: async def afterwards")
    try:
        names = await run(text, sessions=sessions, Publisher=Publisher, report={"pages": 3})
        await names["afterwards"]()
    finally:
        await engine.dispose()
    connection = await asyncpg.connect(database_url)
    assert await connection.fetchval("select routing_key from outbox_table") == "report.ready"
    await connection.close()


async def test_a_test_of_a_host_replaces_the_publisher() -> None:
    app, recording_publisher = FastAPI(), RecordingPublisher()

    def get_publisher() -> None:
        raise AssertionError("replaced")

    @app.post("/")
    async def route(publisher: Annotated[Any, Depends(get_publisher)]) -> None:
        await publisher.publish("a", {})

    names = {"app": app, "get_publisher": get_publisher, "recording_publisher": recording_publisher}
    await run(fragment("docs/fastapi.md: app.dependency_overrides"), **names)
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://test") as client:
        assert (await client.post("/")).is_success
    recording_publisher.assert_published("a")


async def test_dead_letters_are_listed(database_url: str) -> None:
    await ensure_outbox_schema_async(database_url)
    await run(fragment("docs/operations.md: from outbox import"), url=database_url)


async def test_the_revisions_of_an_alembic_of_ones_own_go_up_and_down(database_url: str) -> None:
    whole, step = fragment("docs/schema.md: from alembic"), fragment("docs/schema.md: from alembic", 1)
    engine = create_async_engine(database_url.replace("postgresql://", "postgresql+asyncpg://"))

    async def revise(text: str, function: str) -> None:
        def on(connection: Connection) -> None:
            with Operations.context(MigrationContext.configure(connection)):
                names: dict[str, Any] = {}
                exec(text, names)
                names[function]()

        async with engine.begin() as connection:
            await connection.run_sync(on)

    connection = await asyncpg.connect(database_url)
    try:
        await revise(whole, "upgrade")
        assert await connection.fetchval("select version_num from outbox_schema_version") == HEAD
        made = await catalog(connection)
        await revise(step, "downgrade")
        older = await connection.fetchval("select version_num from outbox_schema_version")
        assert f'since="{older}"' in step
        await revise(step, "upgrade")
        assert await catalog(connection) == made
        await revise(whole, "downgrade")
        assert (await catalog(connection))["tables"] == []
    finally:
        await connection.close()
        await engine.dispose()


async def test_autogenerate_leaves_the_tables_alone() -> None:
    from outbox import schema

    configured: dict[str, Any] = {}
    text = fragment("docs/schema.md: context.configure")
    context = SimpleNamespace(configure=lambda **given: configured.update(given))
    await run(text, context=context, connection=None, metadata=None, schema=schema)
    assert configured["include_name"]("outbox_table", "table", {}) is False
    assert configured["include_name"]("orders", "table", {}) is True
