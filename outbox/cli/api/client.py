"""The client of the admin's API: asks, follows pages, and tells what went wrong in one line."""

import uuid
from collections.abc import AsyncIterator, Mapping
from datetime import datetime, timedelta
from http import HTTPStatus
from typing import TYPE_CHECKING, Any

from outbox.cli.command import Sentence
from outbox.core.codec import encode_instant
from outbox.runtime.settings import PREFIX

if TYPE_CHECKING:
    import httpx

LARGEST_PAGE = 200
"""Items of a page, at most."""
_AWAY = frozenset({HTTPStatus.BAD_GATEWAY, HTTPStatus.SERVICE_UNAVAILABLE, HTTPStatus.GATEWAY_TIMEOUT})
_TOKEN = f"{PREFIX}TOKEN"


class ApiError(Sentence):
    """The service refused: `status` and `code` say how, for commands that know what to do about it."""

    def __init__(self, message: str, *, status: int, code: str) -> None:
        super().__init__(message)
        self.status = status
        self.code = code


class Unreachable(ApiError):
    """The service, or what it needs, is away: it may be back in a moment."""


class Api:
    """Asks one admin. `place` is what messages call it; one `just_opened` has still to gather what it tells from memory."""

    def __init__(self, client: "httpx.AsyncClient", place: str, timeout: timedelta, *, just_opened: bool = False) -> None:
        self.just_opened = just_opened
        self._client = client
        self._place = place
        self._timeout = timeout

    async def get(self, path: str, **parameters: Any) -> Any:
        """What the path answers. Parameters that are None are not sent. Raises `ApiError`."""
        return self._read(await self._answer("GET", path, params=_query(parameters)))

    async def download(self, path: str, **parameters: Any) -> bytes:
        """The bytes that the path answers."""
        return (await self._answer("GET", path, params=_query(parameters))).content

    async def post(self, path: str, body: Mapping[str, Any] | None = None) -> Any:
        """What the path answers to the body, which is a request of its own: sent twice by a proxy, it is done once."""
        headers = {"idempotency-key": uuid.uuid4().hex}
        return self._read(await self._answer("POST", path, json=_known(body or {}), headers=headers))

    async def page(self, path: str, *, limit: int, **parameters: Any) -> Any:
        """The first page as it is, with its items made `limit` by as many more pages as that takes."""
        found: Any = None
        async for part in self._pages(path, limit, parameters):
            if found is None:
                found = dict(part)
            else:
                found["items"] += part["items"]
                found["next"] = part["next"]
            if len(found["items"]) >= limit:
                break
        return found

    async def _pages(self, path: str, limit: int, parameters: Mapping[str, Any]) -> AsyncIterator[Any]:
        cursor, left = None, limit
        while left > 0:
            part = await self.get(path, **{**parameters, "limit": min(left, LARGEST_PAGE), "cursor": cursor})
            yield part
            left -= len(part["items"])
            cursor = part.get("next")
            if cursor is None:
                return

    def no_admin(self) -> ApiError:
        """What to say of an answer that is none of the admin's."""
        return _no_admin(self._place)

    def _read(self, answer: "httpx.Response") -> Any:
        """The JSON object that every answer of the admin is."""
        try:
            found = answer.json()
        except ValueError:
            raise self.no_admin() from None
        if not isinstance(found, dict):
            raise self.no_admin()
        return found

    async def _answer(self, method: str, path: str, **request: Any) -> "httpx.Response":
        import httpx

        try:
            answer = await self._client.request(method, path, **request)
        except httpx.TimeoutException:
            seconds = self._timeout.total_seconds()
            raise Unreachable(f"{self._place} has not answered for {seconds:g} s", status=0, code="timeout") from None
        except httpx.TransportError as error:
            why = str(error) or type(error).__name__
            raise Unreachable(f"there is no service at {self._place}: {why}", status=0, code="unreachable") from None
        if answer.is_success:
            return _of_ours(answer, self._place)
        raise _refusal(answer, self._place)


def _query(parameters: Mapping[str, Any]) -> list[tuple[str, str]]:
    """The parameters as text; those of a list one by one."""
    pairs = [(name, each) for name, value in parameters.items() for each in (value if isinstance(value, list) else [value])]
    return [(name, _word(value)) for name, value in pairs if value is not None]


def _word(value: Any) -> str:
    match value:
        case bool():
            return "true" if value else "false"
        case datetime():
            return encode_instant(value)
    return str(value)


def _known(body: Mapping[str, Any]) -> Mapping[str, Any]:
    """What of the body is given, as JSON knows it."""
    return {
        name: encode_instant(value) if isinstance(value, datetime) else value
        for name, value in body.items()
        if value is not None
    }


def _of_ours(answer: "httpx.Response", place: str) -> "httpx.Response":
    """The answer, unless what answers there is something else, such as somebody's web page."""
    if answer.headers.get("content-type", "").startswith("text/html"):
        raise _no_admin(place)
    return answer


def _no_admin(place: str) -> ApiError:
    return ApiError(f"what answers at {place} is no admin of ours: give the address of the API", status=200, code="no-api")


def _refusal(answer: "httpx.Response", place: str) -> ApiError:
    problem = _problem(answer)
    code = str(problem.get("code", ""))
    kind = Unreachable if answer.status_code in _AWAY else ApiError
    if not code:
        return kind(f"{place} answers {answer.status_code}: {_what_to_do(answer)}", status=answer.status_code, code=code)
    parts = [f"{code}: {problem.get('detail', '')}", *_hints(answer.status_code, code)]
    if request_id := problem.get("request_id"):
        parts.append(f"request {request_id}")
    return kind(" ".join("; ".join(parts).split()), status=answer.status_code, code=code)


def _problem(answer: "httpx.Response") -> Mapping[str, Any]:
    try:
        problem = answer.json()
    except ValueError:
        return {}
    return problem if isinstance(problem, dict) else {}


def _hints(status: int, code: str) -> list[str]:
    """What is to be done about it here, where the API cannot know."""
    if status == HTTPStatus.UNAUTHORIZED:
        return [f"{_TOKEN} is to hold a token of the service, which `outbox token` makes"]
    if code == "forbidden":
        return [f"take a token of that role for {_TOKEN}"]
    return []


def _what_to_do(answer: "httpx.Response") -> str:
    if answer.is_redirect:
        return f"it sends us on to {answer.headers.get('location', 'nowhere')}, and a token goes only where it was meant to"
    if answer.status_code == HTTPStatus.UNAUTHORIZED:
        return f"it wants to know who asks, and {_TOKEN} says who"
    if answer.status_code == HTTPStatus.NOT_FOUND:
        return "there is no admin at this address, or an older one: with its prefix it is http://host/outbox"
    return answer.reason_phrase or "nothing more"
