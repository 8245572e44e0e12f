"""Asking for repairs over HTTP, and reading what came of them."""

import json
from typing import Any

import httpx

from outbox.postgres.pool import Pool


async def ask(client: httpx.AsyncClient, verb: str, selector: Any, **more: Any) -> httpx.Response:
    """A change of what `selector` says: ids, or a selector."""
    if isinstance(selector, list):
        selector = {"ids": selector}
    return await client.post(f"/{verb}", json={"selector": selector, **more})


async def confirmed(client: httpx.AsyncClient, verb: str, selector: Any, **more: Any) -> httpx.Response:
    """A change that a dry run has preceded."""
    token = (await ask(client, verb, selector, dry_run=True, **more)).json()["confirm_token"]
    return await ask(client, verb, selector, confirm_token=token, **more)


def outcomes(answer: httpx.Response) -> dict[str, str]:
    """What came of each id."""
    assert answer.status_code == 200, answer.text
    return {item["id"]: item["outcome"] for item in answer.json()["items"]}


def problem(answer: httpx.Response) -> tuple[int, str]:
    """The status and the code of a problem."""
    assert answer.headers["content-type"] == "application/problem+json", answer.text
    return answer.status_code, answer.json()["code"]


async def audited(pool: Pool) -> list[tuple[str, str, Any]]:
    """Entries of the audit log about what was done or denied: action, target and details, oldest first."""
    rows = await pool.fetch("select action, target, details from outbox_audit where outcome <> 'failed' order by id")
    return [(row["action"], row["target"], json.loads(row["details"])) for row in rows]
