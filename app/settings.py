"""The service's settings: the table of `outbox.runtime.settings`, with the rules that involve several settings."""

from collections.abc import Iterator
from datetime import timedelta
from typing import Any, Self

from pydantic import ValidationError, field_validator, model_validator

from outbox.admin.alerts.rules import ALERT_ON, AlertRules
from outbox.admin.oidc import OpenIDConnect
from outbox.admin.principals import Tokens
from outbox.core.urls import redacted
from outbox.errors import ConfigurationError, MissingExtraError
from outbox.runtime import settings
from outbox.runtime.environment import check_environment, read_environment
from outbox.runtime.settings import OF_SERVICE, PREFIX, Runs

EXAMPLE_CONSUMERS = "app.orders.consumers:consumers"

__all__ = ["EXAMPLE_CONSUMERS", "Runs", "Settings", "read_settings"]


class Settings(settings.Settings):
    """The settings table, with values derived from several settings."""

    @field_validator("admin_tokens")
    @classmethod
    def _are_entries(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        return tuple(str(entry) for entry in Tokens.parse(value).entries)

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
        if self.clean_up_after not in ("IMMEDIATELY", "NEVER") and self.clean_up_after == timedelta(0):
            yield "OUTBOX_CLEAN_UP_AFTER must be positive: write IMMEDIATELY for zero"

    def _login_conflicts(self) -> Iterator[str]:
        try:
            provider = self.oidc
        except (ConfigurationError, MissingExtraError) as error:
            yield f"OUTBOX_OIDC_…: {error}"
            return
        if provider is None and (self.oidc_client_id is not None or self.oidc_client_secret is not None or self.oidc_roles):
            yield "OUTBOX_OIDC_CLIENT_ID, …_CLIENT_SECRET and …_ROLES require OUTBOX_OIDC_ISSUER"

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
