"""The programs of docs/consumers.md run as they are printed, and its table of outcomes is true."""

import importlib.util
import re
from pathlib import Path
from types import ModuleType

import pytest

from outbox import Worker
from outbox.core.events import Processed
from outbox.core.outcome import DONE, Cause, Dead, Retry
from outbox.transports.memory import MemoryBroker
from tests.contract.support import message
from tests.contract.workers import working
from tests.support import eventually
from tests.worker.support import SOON, TIMEOUT

PAGE = (Path(__file__).parents[2] / "docs" / "consumers.md").read_text()
PROGRAMS = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)


@pytest.fixture
def module(tmp_path: Path) -> ModuleType:
    """The page's programs, one after another, as a module."""
    path = tmp_path / "consumers.py"
    path.write_text("\n".join(PROGRAMS))
    spec = importlib.util.spec_from_file_location("consumers_page", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


async def test_the_page_s_consumer_does_what_it_says(module: ModuleType, capsys: pytest.CaptureFixture[str]) -> None:
    broker = MemoryBroker(exchange_name="shop")
    bodies = [b'{"order": 1, "cents": 500}', b'{"order": 2, "cents": 0}', b'{"order": 3, "cents": 2000000}', b'{"order": "x"}']
    async with working(broker, *module.consumers) as worker:
        await broker.send([message("payment.requested", body, ordering_key="ada") for body in bodies], timeout=TIMEOUT)
        await eventually(lambda: len(worker.recorder.of(Processed)) == 5, timeout=SOON)
    first, second, third, again, fourth = [event.outcome for event in worker.recorder.of(Processed)]
    assert (first, again) == (DONE, DONE)
    assert isinstance(second, Dead)
    assert isinstance(third, Retry)
    assert isinstance(fourth, Dead)
    assert (second.cause, fourth.cause) == (Cause.REJECTED, Cause.UNDECODABLE)
    assert capsys.readouterr().out == ("charged 500 for order 1 at attempt 1\ncharged 2000000 for order 3 at attempt 2\n")


def test_the_page_s_redaction_takes_card_numbers_out(module: ModuleType) -> None:
    assert isinstance(module.worker, Worker)
    assert module.worker._redact is not None
    assert module.worker._redact("card 4111111111111111 was refused") == "card [card] was refused"
