"""The Sentry example of docs/tracing.md runs as it is printed, with a stand-in for Sentry's SDK."""

import importlib.util
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType, SimpleNamespace

import pytest

from outbox import Consumer, DeadLetters, fingerprint_of
from tests.support import eventually
from tests.tracing.support import publish, system

PAGE = (Path(__file__).parents[2] / "docs" / "tracing.md").read_text()
[PROGRAM] = re.findall(r"```python\n(# sentry\.py\n.*?)```", PAGE, re.DOTALL)


class Sentry(ModuleType):
    """Stands in for `sentry_sdk`: keeps what was captured, with the scope that was current."""

    def __init__(self) -> None:
        super().__init__("sentry_sdk")
        self.captured: list[tuple[BaseException, list[str], dict[str, object]]] = []
        self._scope = SimpleNamespace(fingerprint=[], tags={})

    @contextmanager
    def new_scope(self) -> Iterator[SimpleNamespace]:
        tags: dict[str, object] = {}
        before = self._scope
        self._scope = SimpleNamespace(fingerprint=[], tags=tags, set_tag=tags.__setitem__)
        try:
            yield self._scope
        finally:
            self._scope = before

    def capture_exception(self, error: BaseException) -> None:
        self.captured.append((error, self._scope.fingerprint, self._scope.tags))


@pytest.fixture
def sentry(monkeypatch: pytest.MonkeyPatch) -> Sentry:
    module = Sentry()
    monkeypatch.setitem(sys.modules, "sentry_sdk", module)
    return module


@pytest.fixture
def page(sentry: Sentry, tmp_path: Path) -> ModuleType:
    """The page's program as a module."""
    path = tmp_path / "sentry.py"
    path.write_text(PROGRAM)
    spec = importlib.util.spec_from_file_location("sentry_page", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


async def test_an_issue_in_sentry_has_the_id_of_its_group_of_dead_letters(
    database: str, page: ModuleType, sentry: Sentry
) -> None:
    async def charge(body: int) -> None:
        raise ValueError(f"no stock of {body}")

    async with (
        system(database, database, Consumer("a", page.reported("q")(charge), queue="q", retry_delays=())),
        DeadLetters(database, exchange_name="shop") as dead_letters,
    ):
        await publish(database, "a", 7)
        await publish(database, "a", 8)
        await eventually(lambda: len(sentry.captured) == 2)
        (group,) = await eventually(dead_letters.groups)
        await eventually(lambda: _count(dead_letters))
        letters = await dead_letters.list()
    assert [type(error) for error, _, _ in sentry.captured] == [ValueError, ValueError]
    assert [fingerprint for _, fingerprint, _ in sentry.captured] == [[group.id], [group.id]]
    assert {tags["outbox.message_id"] for _, _, tags in sentry.captured} == {letter.message_id for letter in letters}
    assert {tags["outbox.queue"] for _, _, tags in sentry.captured} == {"q"}


def test_a_redacted_error_has_the_fingerprint_of_what_is_stored() -> None:
    plain, secret = ValueError("no access"), ValueError("no access with secret")
    assert fingerprint_of(plain, queue="q") != fingerprint_of(secret, queue="q")
    assert fingerprint_of(secret, queue="q", redact=lambda text: text.replace(" with secret", "")) == fingerprint_of(
        plain, queue="q"
    )
    assert fingerprint_of(plain, queue="q") != fingerprint_of(plain, queue="other")


async def _count(dead_letters: DeadLetters) -> bool:
    return await dead_letters.count() == 2
