"""Runs the service in separate processes, and places orders."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx

from app.orders.consumers import consumers
from tests.support import eventually_sync
from tests.support.processes import OurProcess, free_port, running


class Service:
    """A running service: its process, and a client."""

    def __init__(self, process: OurProcess, url: str) -> None:
        self.process = process
        self.url = url

    def get(self, path: str, **arguments: Any) -> httpx.Response:
        """Sends a GET request."""
        return httpx.get(self.url + path, timeout=60, **arguments)

    def place(self, sku: str = "book", customer: str = "ada@example.com") -> str:
        """Places an order and returns its id."""
        answer = httpx.post(f"{self.url}/orders", json={"customer": customer, "sku": sku, "quantity": 1}, timeout=60)
        assert answer.status_code == 201, answer.text
        assert answer.json() == {"id": answer.json()["id"], "status": "placed"}
        return str(answer.json()["id"])

    def order(self, id_: str) -> dict[str, Any]:
        """Returns the current order."""
        answer = self.get(f"/orders/{id_}")
        assert answer.status_code == 200
        order: dict[str, Any] = answer.json()
        return order

    def ends_as(self, id_: str, status: str, timeout: float = 90.0) -> dict[str, Any]:
        """Waits until the order has the status."""
        eventually_sync(lambda: self.order(id_)["status"] == status, timeout=timeout, message=f"{id_} is not {status}")
        return self.order(id_)

    def is_ready(self, timeout: float = 60.0) -> None:
        """Waits for readiness."""
        self.process.is_ready(f"{self.url}/outbox/health/ready", timeout)


@contextmanager
def service(folder: Path, settings: Mapping[str, str], *, name: str = "service") -> Iterator[Service]:
    """Runs `uvicorn app:main` with the example, and yields when it is ready."""
    port = free_port()
    command = ["-m", "uvicorn", "app:main", "--port", str(port), "--timeout-graceful-shutdown", "10"]
    with running(command, folder, {"OUTBOX_EXAMPLE": "true", **settings}, name=name) as process:
        it = Service(process, f"http://127.0.0.1:{port}")
        process.says("Uvicorn running on")
        it.is_ready()
        queues_are_bound(process, settings)
        yield it


def queues_are_bound(process: OurProcess, settings: Mapping[str, str]) -> None:
    """Waits for all bindings of the example: a queue misses events that are sent before it is bound."""
    is_example = settings.get("OUTBOX_EXAMPLE", "true") == "true" and "OUTBOX_CONSUMERS" not in settings
    if is_example and "worker" in settings.get("OUTBOX_RUN", "worker") and "OUTBOX_LOG_LEVEL" not in settings:
        for consumer in consumers:
            process.says(f"consumes queue {consumer.queue}, bound")
