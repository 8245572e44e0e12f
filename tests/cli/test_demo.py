"""`outbox demo`: its report is correct, and polling is no burden."""

import json
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import httpx
import pytest
from click.testing import CliRunner

from outbox.cli import main
from outbox.cli.demo import WATCHERS

PLACED: dict[str, object] = {"id": "1", "status": "placed"}
CONFIRMED: dict[str, object] = {
    "id": "1",
    "status": "confirmed",
    "placed_at": "2026-01-01T00:00:00.000000Z",
    "events": [
        {"event": "order.placed", "at": "2026-01-01T00:00:00.100000Z"},
        {"event": "order.confirmed", "at": "2026-01-01T00:00:00.250000Z"},
    ],
}


class _Stub(ThreadingHTTPServer):
    """A service with identical orders and slow responses."""

    def __init__(self, order: dict[str, object], seconds: float) -> None:
        super().__init__(("127.0.0.1", 0), _Answer)
        self.order, self.seconds = order, seconds
        self.asked: Counter[str] = Counter()

    @property
    def url(self) -> str:
        """The address."""
        return f"http://127.0.0.1:{self.server_port}"


class _Answer(BaseHTTPRequestHandler):
    server: _Stub
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        """Returns an order, or the liveness."""
        self.server.asked["GET"] += 1
        if self.path.startswith("/orders"):
            time.sleep(self.server.seconds)
        self._answer(200, self.server.order)

    def do_POST(self) -> None:
        """Returns the placed order."""
        self.rfile.read(int(self.headers["content-length"]))
        time.sleep(self.server.seconds)
        self._answer(201, PLACED)

    def _answer(self, status: int, content: dict[str, object]) -> None:
        body = json.dumps(content).encode()
        self.send_response(status)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 — the name is the base class's
        """Logs nothing."""


@contextmanager
def service(order: dict[str, object], *, seconds: float = 0.0) -> Iterator[_Stub]:
    with _Stub(order, seconds) as stub:
        thread = threading.Thread(target=stub.serve_forever)
        thread.start()
        try:
            yield stub
        finally:
            stub.shutdown()
            thread.join()


def test_latencies_are_computed_from_the_service_s_timestamps() -> None:
    with service(CONFIRMED, seconds=0.5) as stub:
        answer = CliRunner().invoke(main, ["demo", "--url", stub.url, "--rate", "20", "--duration", "0.5"])
    assert answer.exit_code == 0, answer.output
    assert "confirmed  10" in answer.output
    assert "p50 0.25 s, p95 0.25 s" in answer.output


def test_an_order_has_ended_when_its_last_event_was_handled() -> None:
    unnoted = {**CONFIRMED, "events": []}
    with service(unnoted) as stub:
        answer = CliRunner().invoke(main, ["demo", "--url", stub.url, "--rate", "10", "--duration", "0.5", "--wait", "0.5"])
    assert answer.exit_code == 1
    assert "still open 5" in answer.output
    assert "to the end" not in answer.output


def test_the_polling_rate_does_not_depend_on_the_number_of_open_orders() -> None:
    with service({**CONFIRMED, "status": "placed", "events": []}) as stub:
        began = time.monotonic()
        CliRunner().invoke(main, ["demo", "--url", stub.url, "--rate", "200", "--duration", "1", "--wait", "1"])
        seconds = time.monotonic() - began
    assert stub.asked["GET"] <= 16 * (seconds + 1), "four watchers, four times a second"


def test_no_order_waits_in_the_client_for_a_connection(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its time limit there may pass as it gets a new one, which httpcore then never uses nor closes."""
    in_flight = [0]
    post = httpx.AsyncClient.post

    async def counted(*arguments: Any, **options: Any) -> httpx.Response:
        in_flight.append(in_flight[-1] + 1)
        try:
            return await post(*arguments, **options)
        finally:
            in_flight.append(in_flight[-1] - 1)

    monkeypatch.setattr("httpx.AsyncClient.post", counted)
    monkeypatch.setattr("outbox.cli.demo.MOST_CONNECTIONS", 7)
    with service(CONFIRMED, seconds=0.05) as stub:
        answer = CliRunner().invoke(main, ["demo", "--url", stub.url, "--rate", "200", "--duration", "0.5"])
    assert answer.exit_code == 0, answer.output
    assert "placed     100\n" in answer.output
    assert max(in_flight) == 7 - WATCHERS
