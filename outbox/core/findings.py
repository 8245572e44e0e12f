"""Findings of an examination: what is right, what is wrong, and a hint for each."""

from dataclasses import dataclass
from enum import StrEnum


class Severity(StrEnum):
    """How bad it is. WARNING: it works, slower or less safely than it could. ERROR: something does not work."""

    OK = "ok"
    WARNING = "warning"
    ERROR = "error"


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One fact about an installation; `advice` says how to fix it, and `sql` are statements that do.

    Nothing of it was executed: a person reads the statements first.
    """

    check: str
    severity: Severity
    summary: str
    advice: str = ""
    sql: tuple[str, ...] = ()


def well(check: str, summary: str) -> Finding:
    """A finding that all is well."""
    return Finding(check=check, severity=Severity.OK, summary=summary)


def warning(check: str, summary: str, advice: str = "", *sql: str) -> Finding:
    """A finding that something could be better."""
    return Finding(check=check, severity=Severity.WARNING, summary=summary, advice=advice, sql=sql)


def error(check: str, summary: str, advice: str = "", *sql: str) -> Finding:
    """A finding that something does not work."""
    return Finding(check=check, severity=Severity.ERROR, summary=summary, advice=advice, sql=sql)
