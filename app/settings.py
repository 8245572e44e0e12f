"""The service's settings: the table of `outbox.runtime.settings`, with the rules that involve several settings."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Self

from pydantic import ValidationError, field_validator, model_validator

from outbox.admin.alerts.rules import ALERT_ON, AlertRules
from outbox.admin.oidc import OpenIDConnect
from outbox.admin.outboxes import check_outbox_name
from outbox.admin.principals import Tokens
from outbox.core.urls import postgres_url, redacted, server_kind
from outbox.errors import ConfigurationError, MissingExtraError
from outbox.runtime import settings
from outbox.runtime.environment import check_environment, read_environment
from outbox.runtime.settings import OF_SERVICE, PREFIX, Runs

EXAMPLE_CONSUMERS = "app.orders.consumers:consumers"

__all__ = ["EXAMPLE_CONSUMERS", "Runs", "Servers", "Settings", "read_settings"]

# A comma ends an entry only before the next name: a PostgreSQL URL may list several hosts.
_BETWEEN_DATABASES = re.compile(r"[\s,]+(?=[^\s,=|/]+=postgres)|[\s,]+$")
_CALLBACK = "/session/oidc/callback"


@dataclass(frozen=True, slots=True)
class Servers:
    """The servers of one outbox. `broker_url` is that of the database if PostgreSQL is the broker."""

    database_url: str = field(repr=False)
    broker_url: str = field(repr=False)
    management_url: str | None = field(default=None, repr=False)


class Settings(settings.Settings):
    """The settings table, with values derived from several settings."""

    @field_validator("admin_tokens")
    @classmethod
    def _are_entries(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        outboxes: dict[str, list[str]] = {}
        for text in value:
            outbox, slash, entry = text.rpartition("/")
            outboxes.setdefault(f"{outbox}{slash}", []).append(entry)
        return tuple(f"{outbox}{entry}" for outbox, texts in outboxes.items() for entry in Tokens.parse(texts).entries)

    @field_validator("admin_outbox_name")
    @classmethod
    def _is_an_outbox(cls, value: str) -> str:
        check_outbox_name(value)
        return value

    @property
    def runs_example(self) -> bool:
        """Whether the example runs: as set by `example`, or by default without a database."""
        return self.database_url is None if self.example is None else self.example

    @property
    def worker_consumers(self) -> str | None:
        """The consumers that the worker runs; None without any."""
        return self.consumers or (EXAMPLE_CONSUMERS if self.runs_example else None)

    @property
    def alert_rules(self) -> AlertRules | None:
        """The rules for alerts; None without webhooks. Raises `ConfigurationError`."""
        if not self.alert_webhooks:
            return None
        return AlertRules(
            self.alert_webhooks,
            secret=None if self.alert_secret is None else self.alert_secret.get_secret_value(),
            on=ALERT_ON if self.alert_on is None else self.alert_on,
            after=self.alert_after,
            dead_letters_above=self.alert_dead_letters_above,
            quiet=self.alert_quiet,
            dashboard_url=self.dashboard_url,
            every=self.alert_every,
            timeout=self.alert_timeout,
        )

    @property
    def other_outboxes(self) -> Mapping[str, Servers]:
        """The servers of the outboxes of `admin_databases`, by name. Raises `ConfigurationError`, without quoting a URL."""
        given = "" if self.admin_databases is None else self.admin_databases.get_secret_value().strip()
        found = dict[str, Servers]()
        for number, entry in enumerate(_BETWEEN_DATABASES.split(given) if given else (), start=1):
            name, equals, urls = entry.partition("=")
            if not equals or ":" in name:
                raise ConfigurationError(f"entry {number} has no name: write name=postgresql://user:password@host/database")
            check_outbox_name(name)
            if name in found or name == self.admin_outbox_name:
                raise ConfigurationError(f"two outboxes have the name {name!r}; this service's own is OUTBOX_ADMIN_OUTBOX_NAME")
            database_url, *more = urls.split("|")
            postgres_url(database_url, argument=f"the database of {name}")
            if len(more) > 2:
                raise ConfigurationError(f"{name} has more than a database, a broker and RabbitMQ's HTTP API")
            broker_url = more[0] if more else database_url
            server_kind(broker_url, argument=f"the broker of {name}")
            found[name] = Servers(database_url, broker_url, *more[1:])
        return found

    @property
    def admin_path(self) -> str:
        """The path of this service's own outbox below the service's address."""
        return f"/outbox/{self.admin_outbox_name}" if self.admin_databases is not None else "/outbox"

    def tokens_of(self, outbox: str) -> tuple[str, ...]:
        """Returns the token entries for an outbox. Those that name it replace a principal's entries for all outboxes."""
        named = [entry.removeprefix(f"{outbox}/") for entry in self.admin_tokens if entry.startswith(f"{outbox}/")]
        replaced = {entry.partition(":")[0] for entry in named}
        common = [entry for entry in self.admin_tokens if "/" not in entry and entry.partition(":")[0] not in replaced]
        return (*named, *common)

    def oidc_of(self, outbox: str) -> OpenIDConnect | None:
        """Returns the login provider for one of several outboxes, each of which has its own callback."""
        provider = self.oidc
        if provider is None or provider.redirect_url is None:
            return provider
        return replace(provider, redirect_url=f"{provider.redirect_url.removesuffix(_CALLBACK)}/{outbox}{_CALLBACK}")

    @property
    def oidc(self) -> OpenIDConnect | None:
        """The login provider; None without one. Raises `ConfigurationError`."""
        if self.oidc_issuer is None:
            return None
        roles = dict[str, str]()
        for entry in self.oidc_roles:
            value, equals, role = entry.rpartition("=")
            if not equals:
                raise ConfigurationError(f"{entry!r} is not an entry: write value=role, such as sre=admin")
            roles[value] = role
        return OpenIDConnect(
            issuer=self.oidc_issuer,
            client_id=self.oidc_client_id or "",
            client_secret=None if self.oidc_client_secret is None else self.oidc_client_secret.get_secret_value(),
            roles=roles,
            roles_claim=self.oidc_roles_claim,
            name_claim=self.oidc_name_claim,
            scopes=self.oidc_scopes,
            redirect_url=self.oidc_redirect_url,
        )

    @model_validator(mode="after")
    def _check_consistency(self) -> Self:
        for conflict in self._conflicts():
            raise ValueError(conflict)
        return self

    def _conflicts(self) -> Iterator[str]:
        if self.data_dir is not None and self.database_url is not None:
            yield "OUTBOX_DATA_DIR is for the embedded server, and OUTBOX_DATABASE_URL for another one: unset one of them"
        if self.listen_url is not None and self.database_url is None:
            yield "OUTBOX_LISTEN_URL is a direct address of the database of OUTBOX_DATABASE_URL, which is not set"
        if self.metrics_token is not None and not self.metrics:
            yield "OUTBOX_METRICS_TOKEN is set, but OUTBOX_METRICS turns metrics off: unset one of them"
        if "run" in self.model_fields_set and Runs.WORKER in self.run and self.worker_consumers is None:
            yield "OUTBOX_RUN includes the worker, but there are no consumers: set OUTBOX_CONSUMERS or OUTBOX_EXAMPLE"
        if self.development and self.admin_tokens:
            yield "OUTBOX_DEVELOPMENT creates an admin token and excludes OUTBOX_ADMIN_TOKENS: unset one of them"
        if self.health_overdue_after < self.health_late_after:
            yield "OUTBOX_HEALTH_OVERDUE_AFTER must not be shorter than OUTBOX_HEALTH_LATE_AFTER"
        yield from self._alert_conflicts()
        yield from self._login_conflicts()
        yield from self._outbox_conflicts()

    def _login_conflicts(self) -> Iterator[str]:
        try:
            provider = self.oidc
        except (ValueError, MissingExtraError) as error:
            yield f"OUTBOX_OIDC_…: {error}"
            return
        if provider is None and (self.oidc_client_id is not None or self.oidc_client_secret is not None or self.oidc_roles):
            yield "OUTBOX_OIDC_CLIENT_ID, …_CLIENT_SECRET and …_ROLES require OUTBOX_OIDC_ISSUER"

    def _outbox_conflicts(self) -> Iterator[str]:
        try:
            others = self.other_outboxes
        except (ConfigurationError, ValueError) as error:
            yield f"OUTBOX_ADMIN_DATABASES: {error}"
            return
        outboxes = {self.admin_outbox_name, *others} if others else set[str]()
        for outbox in {entry.partition("/")[0] for entry in self.admin_tokens if "/" in entry} - outboxes:
            yield f"OUTBOX_ADMIN_TOKENS has a token for the outbox {outbox!r}, which OUTBOX_ADMIN_DATABASES does not name"
        for outbox in outboxes:
            try:
                Tokens.parse(self.tokens_of(outbox))
            except ConfigurationError as error:
                yield f"OUTBOX_ADMIN_TOKENS, those for {outbox}: {error}"

    def _alert_conflicts(self) -> Iterator[str]:
        try:
            rules = self.alert_rules
        except ConfigurationError as error:
            yield f"OUTBOX_ALERT_…: {error}"
            return
        if rules is None and (self.alert_secret is not None or self.alert_on is not None):
            yield "OUTBOX_ALERT_SECRET and OUTBOX_ALERT_ON require OUTBOX_ALERT_WEBHOOKS"


def read_settings(**given: Any) -> Settings:
    """Reads the settings from the environment; keyword arguments take precedence.

    Raises `ConfigurationError` with a sentence for each invalid variable, without values that may be secret.
    """
    check_environment()
    try:
        return Settings(**read_environment(OF_SERVICE.values()) | given)
    except ValidationError as error:
        raise ConfigurationError("; ".join(_sentences(error))) from None


def _sentences(error: ValidationError) -> Iterator[str]:
    for problem in error.errors(include_url=False, include_context=False, include_input=False):
        message = redacted(problem["msg"].removeprefix("Value error, "))
        name = str(problem["loc"][0]) if problem["loc"] else ""
        yield f"{PREFIX}{name.upper()}: {message}" if name else message
