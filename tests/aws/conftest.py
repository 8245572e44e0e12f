"""The AWS of canned answers, as a fixture."""

from collections.abc import Iterator

import pytest

from tests.aws.canned import CannedAws
from tests.servers.moto import CREDENTIALS


@pytest.fixture
def canned(monkeypatch: pytest.MonkeyPatch) -> Iterator[CannedAws]:
    """A server of the test's own, with credentials for it in the environment."""
    for name, value in CREDENTIALS.items():
        monkeypatch.setenv(name, value)
    server = CannedAws()
    yield server
    server.close()
