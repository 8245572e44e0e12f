"""Error responses: RFC 9457 problem details with stable codes, for the routes of the admin API only."""

import logging
from collections.abc import Mapping
from enum import StrEnum
from typing import Any

import asyncpg
from fastapi import HTTPException, Request
from fastapi.encoders import jsonable_encoder
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from pydantic import BaseModel, ConfigDict, Field

from outbox.errors import (
    BodyStoreUnavailableError,
    BrokerUnavailableError,
    ConfigurationError,
    DatabaseUnavailableError,
    KeysUnavailableError,
    RefusedError,
    SchemaError,
)
from outbox.postgres.pool import DRIVER_ERRORS, REFUSALS, reason_of

MEDIA_TYPE = "application/problem+json"

logger = logging.getLogger("outbox")


class Code(StrEnum):
    """Stable code of a problem. Scripts may rely on it."""

    INVALID_CURSOR = "invalid_cursor"
    CURSOR_MISMATCH = "cursor_mismatch"
    UNAUTHENTICATED = "unauthenticated"
    FORBIDDEN = "forbidden"
    CROSS_SITE = "cross_site"
    READ_ONLY = "read_only"
    NOT_FOUND = "not_found"
    METHOD_NOT_ALLOWED = "method_not_allowed"
    CONFLICT = "conflict"
    NOT_SUPPORTED = "not_supported"
    COUNT_DRIFTED = "count_drifted"
    VERSION_CONFLICT = "version_conflict"
    REQUEST_RUNNING = "request_running"
    BODY_TOO_SLOW = "body_too_slow"
    BODY_TOO_LARGE = "body_too_large"
    INVALID_REQUEST = "invalid_request"
    FILTER_TOO_BROAD = "filter_too_broad"
    INVALID_EDIT = "invalid_edit"
    HEADER_LOCKED = "header_locked"
    KEY_REUSED = "key_reused"
    CONFIRMATION_REQUIRED = "confirmation_required"
    TOO_MANY_LOGINS = "too_many_logins"
    TOO_MANY_REQUESTS = "too_many_requests"
    TOO_MANY_STREAMS = "too_many_streams"
    INTERNAL = "internal"
    SCHEMA_OUTDATED = "schema_outdated"
    DATABASE_UNAVAILABLE = "database_unavailable"
    BROKER_UNAVAILABLE = "broker_unavailable"
    BODY_STORE_UNAVAILABLE = "body_store_unavailable"
    KEYS_UNAVAILABLE = "keys_unavailable"

    @property
    def status(self) -> int:
        """HTTP status of the response."""
        return _KINDS[self][0]

    @property
    def summary(self) -> str:
        """Title of the problem."""
        return _KINDS[self][1]


_KINDS: Mapping[Code, tuple[int, str]] = {
    Code.INVALID_CURSOR: (400, "Invalid cursor"),
    Code.CURSOR_MISMATCH: (400, "The cursor belongs to another filter or order"),
    Code.UNAUTHENTICATED: (401, "Authentication required"),
    Code.FORBIDDEN: (403, "The role does not allow this"),
    Code.CROSS_SITE: (403, "The request comes from another site"),
    Code.READ_ONLY: (403, "This installation is read-only"),
    Code.NOT_FOUND: (404, "Not found"),
    Code.METHOD_NOT_ALLOWED: (405, "Method not allowed"),
    Code.CONFLICT: (409, "The state does not allow this"),
    Code.NOT_SUPPORTED: (409, "The broker does not support this"),
    Code.COUNT_DRIFTED: (409, "The selected dead letters have changed since the dry run"),
    Code.VERSION_CONFLICT: (409, "It was changed in the meantime"),
    Code.REQUEST_RUNNING: (409, "The same request is still running"),
    Code.BODY_TOO_SLOW: (408, "The request body arrived too slowly"),
    Code.BODY_TOO_LARGE: (413, "The request body is too large"),
    Code.INVALID_REQUEST: (422, "Invalid request"),
    Code.FILTER_TOO_BROAD: (422, "The filter would take too long"),
    Code.INVALID_EDIT: (422, "The edited message is invalid"),
    Code.HEADER_LOCKED: (422, "The header is reserved"),
    Code.KEY_REUSED: (422, "The idempotency key was used for another request"),
    Code.CONFIRMATION_REQUIRED: (428, "A dry run is required first"),
    Code.TOO_MANY_LOGINS: (429, "Too many failed logins"),
    Code.TOO_MANY_REQUESTS: (429, "Too many concurrent requests of one principal"),
    Code.TOO_MANY_STREAMS: (503, "Too many streams are open"),
    Code.INTERNAL: (500, "Internal error"),
    Code.SCHEMA_OUTDATED: (503, "The database lacks a table, column or privilege that this release uses"),
    Code.DATABASE_UNAVAILABLE: (503, "The database is unavailable"),
    Code.BROKER_UNAVAILABLE: (503, "The broker is unavailable"),
    Code.BODY_STORE_UNAVAILABLE: (503, "The store of large bodies is unavailable"),
    Code.KEYS_UNAVAILABLE: (503, "The provider of encryption keys is unavailable"),
}


class OutboxProblem(BaseModel):
    """Problem details (RFC 9457), with a stable `code` and the `request_id` that the log contains."""

    # `problem_responses` refers to the schema by this name, so no model of a host application may have the same.
    model_config = ConfigDict(extra="allow", json_schema_serialization_defaults_required=True)

    type: str = Field(default="about:blank", description="Always `about:blank`: `code` identifies the problem.")
    title: str = Field(description="The problem in one sentence, the same for every problem with this code.")
    status: int = Field(description="HTTP status of the response.")
    code: Code = Field(description="Stable code of the problem, for scripts.")
    detail: str = Field(description="What is wrong with this request, and what to do about it.")
    request_id: str = Field(description="Id of the request, as in the log and the header `X-Request-ID`.")


class Problem(HTTPException):
    """An error that a route or dependency raises; the route converts it to a response. `more` are its additional members."""

    # An HTTPException, because FastAPI replaces any other exception that is raised while it reads a request's body.

    def __init__(self, code: Code, detail: str, *, headers: Mapping[str, str] | None = None, **more: Any) -> None:
        super().__init__(code.status, detail, dict(headers or {}))
        self.code = code
        self.more = more


class NotOpenError(ConfigurationError):
    """A use of an admin that was not entered. To a client it is an internal error."""

    def __init__(self) -> None:
        super().__init__("the admin is not open: enter it in the application's lifespan, async with admin")


def problem_of(error: Exception) -> Problem | None:
    """Converts an exception to a problem. Returns None for an exception that the host application handles."""
    match error:
        case Problem():
            return error
        case HTTPException():
            return None
        case RequestValidationError():
            # Without the input, which may be secret or huge.
            errors = [
                {
                    "field": ".".join(str(part) for part in each["loc"])[:200],
                    # Pydantic counts items of a text that another validator has seen.
                    "message": str(each["msg"]).replace("item", "character").replace(" after validation", "")
                    if each["type"] in ("too_short", "too_long") and isinstance(each.get("input"), str)
                    else _PLAIN.get(each["type"]) or str(each["msg"]),
                }
                for each in error.errors()[:20]
            ]
            return Problem(Code.INVALID_REQUEST, f"{errors[0]['field']}: {errors[0]['message']}", errors=errors)
        case ConfigurationError() if not isinstance(error, NotOpenError):
            return Problem(Code.INVALID_REQUEST, str(error))
        case SchemaError():
            return _outdated(str(error))
        case RefusedError():
            return Problem(Code.CONFLICT, str(error))
        case BrokerUnavailableError() | BodyStoreUnavailableError() | KeysUnavailableError():
            code, what = next(found for kind, found in _AWAY.items() if isinstance(error, kind))
            return Problem(code, f"{what} does not respond: try again", headers={"retry-after": "2"})
        case DatabaseUnavailableError() | OSError() | TimeoutError():
            return _of_database(error)
        case _ if isinstance(error, DRIVER_ERRORS) and not isinstance(error, AttributeError):
            return _of_database(error)
        case _:
            return Problem(Code.INTERNAL, _IN_THE_LOG)


def answer(problem: Problem, request: Request, error: Exception | None = None) -> JSONResponse:
    """Returns the response for `problem`, and logs it. An internal error is logged with the traceback of `error`."""
    request_id: str = request.state.request_id
    client_id: str | None = request.state.client_request_id
    logged_id = request_id if client_id is None else f"{request_id}, {client_id!r}"
    if problem.status_code >= 500:
        is_internal = problem.code is Code.INTERNAL
        reason = problem.detail if error is None or isinstance(error, Problem) else reason_of(error)
        cause = "" if is_internal else f": {_on_one_line(reason)}"
        logger.error(
            "%s %s: %s%s (request %s)",
            request.method,
            _on_one_line(request.url.path),
            problem.code,
            cause,
            logged_id,
            exc_info=error if is_internal else None,
        )
    else:
        path, detail = _on_one_line(request.url.path), _on_one_line(problem.detail)
        logger.info("%s %s: %s: %s (request %s)", request.method, path, problem.code, detail, logged_id)
    details = OutboxProblem(
        title=problem.code.summary,
        status=problem.status_code,
        code=problem.code,
        detail=problem.detail,
        request_id=request_id,
        **problem.more,
    )
    return JSONResponse(jsonable_encoder(details), problem.status_code, problem.headers, MEDIA_TYPE)


def _on_one_line(text: str) -> str:
    """Escapes a client's text for the log."""
    # A client could otherwise forge log lines, or send control sequences to a terminal.
    return "".join(char if char.isprintable() else ascii(char)[1:-1] for char in text[:_LONGEST_LOGGED])


_LONGEST_LOGGED = 1_000


def problem_responses(*codes: Code) -> dict[int | str, dict[str, Any]]:
    """Returns the `responses=` of a route that can return these problems."""
    by_status: dict[int | str, list[Code]] = {}
    for code in sorted(set(codes), key=list(Code).index):
        by_status.setdefault(code.status, []).append(code)
    responses: dict[int | str, dict[str, Any]] = {
        status: {
            "description": " or ".join(f"`{code}`: {code.summary}" for code in same),
            "content": {MEDIA_TYPE: {"schema": {"$ref": f"#/components/schemas/{OutboxProblem.__name__}"}}},
            _CODES: [str(code) for code in same],
        }
        for status, same in by_status.items()
    }
    # FastAPI builds a validator for each model of each route, and used most of its start for those of problems. One model for
    # each route brings the schema into the document, and the others refer to it.
    for first in list(responses.values())[:1]:
        first |= {"model": OutboxProblem, "content": _Content()}
    return responses


def add_problem_responses(responses: Mapping[int | str, Mapping[str, Any]], *codes: Code) -> dict[int | str, dict[str, Any]]:
    """Returns `responses` with these problems added to those that it documents."""
    known = [Code(code) for response in responses.values() for code in response.get(_CODES, ())]
    others = {status: dict(response) for status, response in responses.items() if _CODES not in response}
    return {**problem_responses(*known, *codes), **others}


_CODES = "x-problem-codes"
_PLAIN = {"extra_forbidden": "unknown parameter: remove it", "missing": "required"}
"""Messages by pydantic's error type, where pydantic's own message is not clear enough."""


class _Content(dict[str, Any]):
    """Content of a documented response. FastAPI documents a model with the route's media type; a problem has its own."""

    def setdefault(self, key: str, default: Any = None) -> Any:
        del key
        return super().setdefault(MEDIA_TYPE, default)


def lacks_schema(error: Exception) -> bool:
    """Whether the database answered that a table, a column or a privilege is missing."""
    return isinstance(error.__cause__ if isinstance(error, DatabaseUnavailableError) else error, _OF_SCHEMAS)


def _of_database(error: Exception) -> Problem:
    """Returns the problem for an error of the database: unavailable, outdated schema, invalid value, or our own fault."""
    reason = error.__cause__ if isinstance(error, DatabaseUnavailableError) else error
    if isinstance(reason, asyncpg.InsufficientPrivilegeError):
        return _outdated(f"{reason}: grant the privilege to the role that connects, or connect as the owner of the tables")
    if lacks_schema(error):
        return _outdated(f"{reason}: run `outbox migrate`, or `outbox doctor` to see what is missing")
    # asyncpg raises DataError itself, not a subclass, when it cannot encode a value.
    if isinstance(reason, _OF_VALUES) or type(reason) is asyncpg.DataError:
        return Problem(Code.INVALID_REQUEST, "the database cannot store a value: a time or number is out of range")
    if isinstance(reason, asyncpg.DataError):
        return Problem(Code.INTERNAL, _IN_THE_LOG)
    if isinstance(reason, REFUSALS):
        return Problem(Code.CONFLICT, f"the database refuses the change: {reason_of(reason)}")
    if isinstance(reason, asyncpg.ReadOnlySQLTransactionError):
        detail = "the database is read-only, as a standby is: connect to the primary, or try again after a failover"
    # It has answered, and its words name the cause: a lock, a full disk. Those about a login are for the log only.
    elif isinstance(reason, asyncpg.PostgresError) and not isinstance(reason, asyncpg.InvalidAuthorizationSpecificationError):
        detail = f"the database reports an error: {reason_of(reason)}"
    else:
        detail = "the database does not respond: try again"
    return Problem(Code.DATABASE_UNAVAILABLE, detail, headers={"retry-after": "2"})


def _outdated(detail: str) -> Problem:
    return Problem(Code.SCHEMA_OUTDATED, detail)


_AWAY: Mapping[type[Exception], tuple[Code, str]] = {
    BrokerUnavailableError: (Code.BROKER_UNAVAILABLE, "the broker"),
    BodyStoreUnavailableError: (Code.BODY_STORE_UNAVAILABLE, "the store of large bodies"),
    KeysUnavailableError: (Code.KEYS_UNAVAILABLE, "the provider of encryption keys"),
}
_IN_THE_LOG = "search the log for the request id"
_OF_SCHEMAS = (
    asyncpg.UndefinedTableError,
    asyncpg.UndefinedColumnError,
    asyncpg.UndefinedFunctionError,
    asyncpg.InsufficientPrivilegeError,
)
_OF_VALUES = (
    asyncpg.NumericValueOutOfRangeError,
    asyncpg.DatetimeFieldOverflowError,
    asyncpg.IntervalFieldOverflowError,
    asyncpg.InvalidDatetimeFormatError,
    asyncpg.CharacterNotInRepertoireError,
    asyncpg.UntranslatableCharacterError,
    asyncpg.InvalidTextRepresentationError,
)
