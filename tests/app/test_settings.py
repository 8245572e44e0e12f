"""Settings are complete and documented, and invalid ones prevent the start with a sentence."""

import logging
import re
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import click
import pytest
from click.testing import CliRunner
from pydantic import SecretStr

from app.settings import Runs, Servers, read_settings
from outbox import Archiver, MessageRelay, Worker
from outbox.admin import Admin
from outbox.cli import main
from outbox.errors import ConfigurationError
from outbox.maintenance import Maintenance
from outbox.runtime.environment import check_environment
from outbox.runtime.settings import OF_SERVICE, PREFIX, SETTINGS, Kind, Reader, Setting, arguments_of
from scripts.settings import PAGE, page

pytestmark = pytest.mark.usefixtures("no_settings_from_outside")


def _commands(group: click.Group, path: str = "") -> Iterator[tuple[str, click.Command]]:
    context = click.Context(group)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        assert command is not None
        if isinstance(command, click.Group):
            yield from _commands(command, f"{path}{name} ")
        else:
            yield f"{path}{name}", command


COMMANDS = dict(_commands(main))


# --- the table ----------------------------------------------------------------------------------------------------------


def test_the_page_is_generated_from_the_table() -> None:
    text = PAGE.read_text(encoding="utf-8")
    assert page(text) == text, "run `python -m scripts.settings --write`"


@pytest.mark.parametrize("setting", SETTINGS.values(), ids=lambda setting: setting.name)
def test_each_row_is_complete(setting: Setting) -> None:
    assert setting.help.endswith((".", ")."))
    assert setting.readers
    assert setting.secret or "SecretStr" not in str(setting.field.annotation)
    if setting.kind is Kind.NUMBER:
        assert None not in setting.bounds
        assert setting.unit or setting.name.endswith("_port")
    if setting.default is None:
        assert setting.unset or setting.kind is Kind.LIST
    else:
        assert setting.parse(setting.default) == setting.field.default


@pytest.mark.parametrize("command", sorted(COMMANDS))
def test_an_option_that_a_variable_sets_is_a_row_of_the_table(command: str) -> None:
    context = click.Context(COMMANDS[command])
    for param in context.command.params:
        if param.envvar is not None:
            row = SETTINGS[str(param.name)]
            assert param.envvar == row.variable
            if row.default is not None:
                assert param.type_cast_value(context, param.get_default(context)) == row.field.default


@pytest.mark.parametrize("reader", sorted(set(Reader) - {Reader.SERVICE, Reader.OPERATOR}))
def test_a_command_has_options_for_the_settings_that_it_reads(reader: Reader) -> None:
    assert _read_by(reader.value) == {each.name for each in SETTINGS.values() if reader in each.readers}


OF_THE_CALLER = {
    "database_url", "broker_url", "mask_keys", "mask_paths", "encryption_keys", "large_bodies_url", "monitoring_host",
    "monitoring_port", "log_level", "log_format", "databases_file", "databases_refresh", "databases_longest_pause",
}  # fmt: skip
"""Settings that are not passed on as arguments: servers, masking, keys, a store, and those of the command itself."""


@pytest.mark.parametrize(
    ("reader", "component", "others"),
    [
        (Reader.RELAY, MessageRelay, set[str]()),
        (Reader.WORKER, Worker, {"masking"}),
        (Reader.ARCHIVER, Archiver, {"masking"}),
        (Reader.MAINTAIN, Maintenance, set[str]()),
    ],
)
def test_a_process_is_given_the_settings_that_its_command_reads(reader: Reader, component: type, others: set[str]) -> None:
    read = {each.name for each in OF_SERVICE.values() if reader in each.readers} - OF_THE_CALLER
    arguments = arguments_of(component, dict.fromkeys(read, 1))
    if reader is Reader.ARCHIVER:
        read.remove("exchange_name")  # readiness asks for it; dead letters come from queues
    named = {
        "metrics": "enable_metrics",
        "tracing": "enable_tracing",
        "otel_metrics": "enable_otel_metrics",
        "archive_queues": "queues",
        "archive_discover_every": "discover_every",
    }
    assert set(arguments) == {named.get(name, name) for name in read} | others


KEY = "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8="


def test_settings_are_converted_to_arguments(tmp_path: Path) -> None:
    settings = read_settings(
        database_url="postgresql://h/d",
        listen_url="postgresql://u:secret@h/d",
        publish_timeout="2",
        clean_up_after="30m",
        dead_letter_retention="NEVER",
        audit_retention="30d",
        admin_read_only=True,
        mask_keys="colour",
        encryption_keys=f"2026-11={KEY}",
        large_bodies_url=f"file://{tmp_path}",
        metrics=False,
    )
    relay = arguments_of(MessageRelay, dict(settings))
    assert relay["listen_url"] == "postgresql://u:secret@h/d"
    assert relay["publish_timeout"] == 2.0
    assert relay["clean_up_after"] == timedelta(minutes=30)
    assert relay["enable_metrics"] is False
    assert "expiration" not in relay
    maintenance = arguments_of(Maintenance, dict(settings))
    assert maintenance["dead_letter_retention"] is None
    assert maintenance["audit_retention"] == timedelta(days=30)
    # As for a relay in Python, no time is not kept at all.
    assert read_settings(clean_up_after="0").clean_up_after == "IMMEDIATELY"
    admin = arguments_of(Admin, dict(settings))
    assert admin["read_only"] is True
    assert admin["masking"].masks("colour")
    assert repr(admin["encryption"]) == "Encryption(keys=StaticKeys(2026-11; current='2026-11'))"
    assert KEY not in repr(settings)
    assert {repr(each["large_bodies"]) for each in (admin, maintenance)} == {
        f"LargeBodies(FileStore('{tmp_path}'), above=262144)"
    }


ADA, BEN = "a" * 64, "b" * 64


def test_other_outboxes_have_servers_and_tokens() -> None:
    settings = read_settings(
        database_url="postgresql://h/d",
        admin_outbox_name="eu",
        admin_databases="us=postgresql://u:p@one,two:5433/d?x=y,asia=postgresql://h/a|amqp://u:p@h/|http://h:15672\n"
        "mars=postgresql://h/m , venus=postgres://h/v",
        admin_tokens=f"ada:admin:{ADA},us/ben:operator:{BEN},us/ada:viewer:{ADA}",
    )
    assert settings.other_outboxes == {
        "us": Servers("postgresql://u:p@one,two:5433/d?x=y", "postgresql://u:p@one,two:5433/d?x=y"),
        "asia": Servers("postgresql://h/a", "amqp://u:p@h/", "http://h:15672"),
        "mars": Servers("postgresql://h/m", "postgresql://h/m"),
        "venus": Servers("postgres://h/v", "postgres://h/v"),
    }
    assert ":p@" not in repr(settings) + repr(settings.other_outboxes)
    assert settings.admin_path == "/outbox/eu"
    assert settings.tokens_of("eu") == settings.tokens_of("asia") == (f"ada:admin:{ADA}",)
    assert settings.tokens_of("us") == (f"ben:operator:{BEN}", f"ada:viewer:{ADA}")


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({"admin_databases": "postgresql://u:s3cret@h/d?x=y"}, "entry 1 has no name"),
        ({"admin_databases": "us=postgresql://h/d main=postgresql://h/e"}, "two outboxes have the name 'main'"),
        ({"admin_databases": "ui=postgresql://h/d"}, "an outbox's name must be"),
        ({"admin_databases": "us=mysql://u:s3cret@h/d"}, "the database of us"),
        ({"admin_databases": "us=postgresql://h/d|ftp://u:s3cret@h/"}, "the broker of us"),
        ({"admin_tokens": f"us/ada:admin:{ADA}"}, "a token for the outbox 'us', which OUTBOX_ADMIN_DATABASES does not name"),
        (
            {"admin_databases": "us=postgresql://h/d", "admin_tokens": f"ada:admin:{ADA},us/ben:viewer:{ADA}"},
            "those for us: two entries have the same hash",
        ),
    ],
)
def test_invalid_outboxes_are_refused_without_their_secrets(given: dict[str, str], expected: str) -> None:
    with pytest.raises(ConfigurationError, match=expected) as caught:
        read_settings(database_url="postgresql://h/d", **given)
    assert "s3cret" not in str(caught.value)


def test_each_of_several_outboxes_has_its_own_callback() -> None:
    oidc = {"oidc_issuer": "https://login.example", "oidc_client_id": "outbox", "oidc_roles": "*=viewer"}
    settings = read_settings(oidc_redirect_url="https://host/outbox/session/oidc/callback", **oidc)
    provider = settings.oidc_of("us")
    assert provider is not None
    assert provider.redirect_url == "https://host/outbox/us/session/oidc/callback"
    assert read_settings(**oidc).oidc_of("us") == read_settings(**oidc).oidc


def test_the_other_commands_have_options_for_what_operators_may_set() -> None:
    others = {name for command in COMMANDS if command not in set(Reader) for name in _read_by(command)}
    assert others == {each.name for each in SETTINGS.values() if Reader.OPERATOR in each.readers} - {"token"}


def _read_by(command: str) -> set[str]:
    return {str(param.name) for param in COMMANDS[command].params if param.envvar is not None}


def test_without_any_variable_everything_runs_on_an_embedded_server() -> None:
    settings = read_settings()
    assert settings.run == set(Runs)
    assert settings.database_url is None
    assert settings.broker_url is None


def test_times_are_seconds_or_durations(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OUTBOX_PUBLISH_TIMEOUT", "2.5")
    monkeypatch.setenv("OUTBOX_GRACE_PERIOD", "1m30s")
    monkeypatch.setenv("OUTBOX_RETRY_DELAYS", "500ms, 2, 1m")
    settings = read_settings()
    assert settings.publish_timeout == timedelta(seconds=2.5)
    assert settings.grace_period == timedelta(seconds=90)
    assert settings.retry_delays == (timedelta(milliseconds=500), timedelta(seconds=2), timedelta(minutes=1))


def test_the_retry_delay_none_means_no_retries(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OUTBOX_RETRY_DELAYS", "none")
    assert read_settings().retry_delays == ()


@pytest.mark.parametrize(
    ("given", "meant"),
    [
        ("OUTBOX_DATABSE_URL", "OUTBOX_DATABASE_URL"),
        ("OUTBOX_BROKERURL", "OUTBOX_BROKER_URL"),
        ("OUTBOX_PREFETCH", "OUTBOX_PREFETCH_COUNT"),
        ("OUTBOX_LANE", "OUTBOX_LANES"),
        ("outbox_loglevel", "OUTBOX_LOG_LEVEL"),
        ("OUTBOX_POOL_SIZE", "OUTBOX_DATABASE_POOL_SIZE"),
    ],
)
def test_a_misspelt_setting_prevents_the_start(given: str, meant: str) -> None:
    with pytest.raises(ConfigurationError, match=f"^{given} is not a setting, did you mean {meant}\\?$"):
        check_environment({given: "1"})


@pytest.mark.parametrize("name", ["OUTBOX_HOME", "OUTBOX_RUN_ID", "OUTBOX_IMAGE"])
def test_other_unknown_variables_are_logged_as_a_warning(name: str, caplog: pytest.LogCaptureFixture) -> None:
    check_environment({name: "1"})
    assert [(record.levelno, record.getMessage()) for record in caplog.records] == [
        (logging.WARNING, f"{name} is not a setting and has no effect")
    ]


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("OUTBOX_PORT", "tcp://10.0.0.7:8000"),
        ("OUTBOX_SERVICE_HOST", "10.0.0.7"),
        ("OUTBOX_SERVICE_PORT", "8000"),
        ("OUTBOX_SERVICE_PORT_HTTP", "8000"),
        ("OUTBOX_PORT_8000_TCP_ADDR", "10.0.0.7"),
        ("OUTBOX_HTTP_SERVICE_HOST", "10.0.0.7"),
    ],
)
def test_variables_injected_by_orchestrators_are_ignored(name: str, value: str, caplog: pytest.LogCaptureFixture) -> None:
    check_environment({name: value})
    assert not caplog.records


@pytest.mark.parametrize(
    ("variables", "sentence"),
    [
        ({"RUN": "api,rely"}, "OUTBOX_RUN: "),
        ({"RUN": ","}, "OUTBOX_RUN: name at least one of api, relay, worker"),
        ({"LANES": "0"}, "OUTBOX_LANES: "),
        ({"PUBLISH_TIMEOUT": "-1"}, "OUTBOX_PUBLISH_TIMEOUT: the time must be longer than zero, not -1 seconds"),
        ({"POLL_INTERVAL": "0.001"}, "OUTBOX_POLL_INTERVAL: the time must be at least 0.01 seconds, not 0.001 seconds"),
        ({"INBOX_RETENTION": "30"}, "OUTBOX_INBOX_RETENTION: the time must be at least 60 seconds, not 30 seconds"),
        ({"HISTORY_RETENTION": "40000d"}, "OUTBOX_HISTORY_RETENTION: the time is too long: .* a hundred years$"),
        ({"AUDIT_RETENTION": "-1"}, "OUTBOX_AUDIT_RETENTION: the time must be longer than zero, not -1 seconds"),
        ({"GRACE_PERIOD": "inf"}, "OUTBOX_GRACE_PERIOD: 'inf' is not a duration"),
        ({"GRACE_PERIOD": "1e20"}, "OUTBOX_GRACE_PERIOD: '1e20' is not a duration"),
        ({"RETRY_DELAYS": "1s,-1"}, "OUTBOX_RETRY_DELAYS: a delay must not be negative: -1 seconds"),
        ({"RETRY_DELAYS": "1h"}, "OUTBOX_RETRY_DELAYS: '1h' is not a duration"),
        ({"DATABASE_URL": "mysql://ada:hunter2@db/x"}, "OUTBOX_DATABASE_URL: the address must be a postgresql:// URL|scheme"),
        ({"BROKER_URL": "mqtt://ada:hunter2@broker"}, "OUTBOX_BROKER_URL: the address has the scheme 'mqtt'"),
        ({"CONSUMERS": "not a module"}, "OUTBOX_CONSUMERS: "),
        ({"CLEAN_UP_AFTER": "-1"}, "OUTBOX_CLEAN_UP_AFTER: the time must be longer than zero, not -1 seconds"),
        ({"CLEAN_UP_AFTER": "1e10"}, "OUTBOX_CLEAN_UP_AFTER: the time is too long: .* a hundred years$"),
        ({"ADMIN_OUTBOX_NAME": "a/b"}, "^OUTBOX_ADMIN_OUTBOX_NAME: an outbox's name must be"),
        ({"OIDC_ISSUER": "https://[login.example"}, "^OUTBOX_OIDC_…: "),
    ],
)
def test_an_invalid_value_is_named(variables: dict[str, str], sentence: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in variables.items():
        monkeypatch.setenv(PREFIX + name, value)
    with pytest.raises(ConfigurationError, match=sentence) as caught:
        read_settings()
    assert "hunter2" not in str(caught.value)


@pytest.mark.parametrize(
    ("variables", "sentence"),
    [
        (
            {"DATA_DIR": "/data", "DATABASE_URL": "postgresql://ada:hunter2@db/x"},
            "OUTBOX_DATA_DIR is for the embedded server, and OUTBOX_DATABASE_URL for another one",
        ),
        ({"LISTEN_URL": "postgresql://ada:hunter2@db/x"}, "OUTBOX_DATABASE_URL, which is not set"),
        ({"METRICS": "false", "METRICS_TOKEN": "hunter2"}, "OUTBOX_METRICS_TOKEN is set, but OUTBOX_METRICS turns metrics off"),
        ({"OIDC_ISSUER": "https://login.example"}, "OUTBOX_OIDC_…: "),
        ({"OIDC_ISSUER": "https://login.example", "OIDC_ROLES": "admin", "OIDC_CLIENT_ID": "outbox"}, "value=role"),
        ({"OIDC_CLIENT_SECRET": "hunter2"}, "OUTBOX_OIDC_CLIENT_ID, .* require OUTBOX_OIDC_ISSUER"),
    ],
)
def test_conflicting_settings_prevent_the_start(
    variables: dict[str, str], sentence: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in variables.items():
        monkeypatch.setenv(PREFIX + name, value)
    with pytest.raises(ConfigurationError, match=sentence) as caught:
        read_settings()
    assert "hunter2" not in str(caught.value)


def test_settings_show_no_secrets(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OUTBOX_DATABASE_URL", "postgresql://ada:hunter2@db/orders")
    monkeypatch.setenv("OUTBOX_BROKER_URL", "amqp://ada:hunter2@broker/")
    monkeypatch.setenv("OUTBOX_METRICS_TOKEN", "hunter2")
    assert "hunter2" not in repr(read_settings())


def test_a_login_provider_is_read_from_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OUTBOX_OIDC_ISSUER", "https://login.example")
    monkeypatch.setenv("OUTBOX_OIDC_CLIENT_ID", "outbox")
    monkeypatch.setenv("OUTBOX_OIDC_ROLES", "sre=admin,a=b=operator,*=viewer")
    provider = read_settings().oidc
    assert provider is not None
    assert (provider.issuer, provider.client_id, provider.client_secret) == ("https://login.example", "outbox", None)
    assert provider.roles == {"sre": "admin", "a=b": "operator", "*": "viewer"}


# --- secrets in files ---------------------------------------------------------------------------------------------------


def test_every_secret_may_be_read_from_a_file(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    tokens = "ada:viewer:" + "0" * 64
    contents = {
        "OUTBOX_DATABASE_URL": "postgresql://ada:geheim@db/shop",
        "OUTBOX_LISTEN_URL": "postgresql://ada:geheim@direct/shop",
        "OUTBOX_BROKER_URL": "amqp://ada:geheim@rabbit/",
        "OUTBOX_MANAGEMENT_URL": "http://ada:geheim@rabbit:15672",
        "OUTBOX_METRICS_TOKEN": "scrape me",
        "OUTBOX_ADMIN_TOKENS": tokens,
        "OUTBOX_ADMIN_DATABASES": "us=postgresql://ada:geheim@us/shop",
        "OUTBOX_OIDC_CLIENT_SECRET": "from the provider",
        "OUTBOX_ALERT_WEBHOOKS": "https://hooks.example/T0/secret",
        "OUTBOX_ALERT_SECRET": "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw",
        "OUTBOX_ENCRYPTION_KEYS": f"2026-11={KEY}",
    }
    assert set(contents) == {each.variable for each in OF_SERVICE.values() if each.secret}
    for name, value in (("ISSUER", "https://login.example"), ("CLIENT_ID", "outbox"), ("ROLES", "*=viewer")):
        monkeypatch.setenv(f"OUTBOX_OIDC_{name}", value)
    for name, content in contents.items():
        (tmp_path / name).write_text(f"{content}\n")
        monkeypatch.setenv(f"{name}_FILE", str(tmp_path / name))
    settings = read_settings()
    for name, content in contents.items():
        value = getattr(settings, name.removeprefix(PREFIX).lower())
        assert (value.get_secret_value() if isinstance(value, SecretStr) else ",".join(value)) == content


@pytest.mark.parametrize(
    ("value", "content", "sentence"),
    [
        ("postgresql://db/x", "postgresql://db/y", "OUTBOX_DATABASE_URL and OUTBOX_DATABASE_URL_FILE are both set"),
        (None, "\n", "is empty"),
        (None, None, "cannot be read: No such file or directory"),
        (None, b"\xff", "cannot be read: it is not text"),
    ],
)
def test_an_unusable_secret_file_prevents_the_start(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, value: str | None, content: str | bytes | None, sentence: str
) -> None:
    file = tmp_path / "secret"
    if content is not None:
        file.write_bytes(content if isinstance(content, bytes) else content.encode())
    if value is not None:
        monkeypatch.setenv("OUTBOX_DATABASE_URL", value)
    monkeypatch.setenv("OUTBOX_DATABASE_URL_FILE", str(file))
    with pytest.raises(ConfigurationError, match=re.escape(sentence)):
        read_settings()
    answer = CliRunner().invoke(main, ["migrate"])
    assert (answer.exit_code, sentence in answer.output) == (1, True)


def test_a_misspelt_file_variable_prevents_the_start(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OUTBOX_DATABSE_URL_FILE", "/run/secrets/url")
    with pytest.raises(ConfigurationError, match="did you mean OUTBOX_DATABASE_URL_FILE"):
        check_environment()


def test_commands_read_secrets_from_files_too(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "url").write_text("mysql://ada:geheim@db/x\n")
    (tmp_path / "token").write_text("no token \x1b\n")
    monkeypatch.setenv("OUTBOX_DATABASE_URL_FILE", str(tmp_path / "url"))
    answer = CliRunner().invoke(main, ["relay"])
    assert "postgresql://" in answer.output
    assert "geheim" not in answer.output
    monkeypatch.setenv("OUTBOX_TOKEN_FILE", str(tmp_path / "token"))
    answer = CliRunner().invoke(main, ["backlog", "--url", "http://127.0.0.1:1"])
    assert "OUTBOX_TOKEN is not a token" in answer.output


def test_the_command_line_overrides_a_file(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OUTBOX_DATABASE_URL_FILE", "/nowhere")
    answer = CliRunner().invoke(main, ["relay", "--database-url", "mysql://db/x"])
    assert "postgresql://" in answer.output
