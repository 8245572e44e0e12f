"""What the tests of dead letters over HTTP share: letters as an archiver writes them, lists read page by page."""

from collections.abc import Mapping, Sequence
from typing import Any

import httpx


async def answered(client: httpx.AsyncClient, path: str, **parameters: Any) -> Any:
    """The JSON of an answer that is good."""
    response = await client.get(path, params=parameters)
    assert response.status_code == 200, response.text
    return response.json()


async def problem(client: httpx.AsyncClient, path: str, **parameters: Any) -> tuple[int, str]:
    """The status and the code of an answer that is a problem."""
    response = await client.get(path, params=parameters)
    assert response.headers["content-type"] == "application/problem+json", response.text
    return response.status_code, response.json()["code"]


def message_ids(page: Mapping[str, Any]) -> list[str]:
    """The messages of a page, in its order."""
    return [item["message_id"] for item in page["items"]]


async def pages(client: httpx.AsyncClient, *, way: str = "next", cursor: str | None = None, **parameters: Any) -> list[Any]:
    """Every page from there on, in one direction."""
    found: list[Any] = []
    while not found or cursor is not None:
        given = parameters if cursor is None else {**parameters, "cursor": cursor}
        found.append(await answered(client, "/dlq", **given))
        cursor = found[-1][way]
    return found


def flat(found: Sequence[Mapping[str, Any]]) -> list[str]:
    """The messages of several pages."""
    return [id_ for page in found for id_ in message_ids(page)]
