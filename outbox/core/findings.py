"""Findings of the diagnosis of an installation, each with advice."""

from dataclasses import dataclass
from enum import StrEnum


class Severity(StrEnum):
    """How serious a finding is. WARNING: works, but slower or less safely than it could. ERROR: does not work."""

    OK = "ok"
    WARNING = "warning"
    ERROR = "error"


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One fact about an installation. `advice` says how to fix it, and `sql` are statements that fix it.

    The statements are never executed automatically: an operator reviews them first.
    """

    check: str
    severity: Severity
    summary: str
    advice: str = ""
    sql: tuple[str, ...] = ()


def well(check: str, summary: str) -> Finding:
    """Creates a finding without a problem."""
    return Finding(check=check, severity=Severity.OK, summary=summary)


def warning(check: str, summary: str, advice: str = "", *sql: str) -> Finding:
    """Creates a finding that something could work better."""
    return Finding(check=check, severity=Severity.WARNING, summary=summary, advice=advice, sql=sql)


def error(check: str, summary: str, advice: str = "", *sql: str) -> Finding:
    """Creates a finding that something does not work."""
    return Finding(check=check, severity=Severity.ERROR, summary=summary, advice=advice, sql=sql)
