"""SQS and SNS for tests: moto's server, in a process of its own, which forgets everything when it ends."""

import json
import os
import signal
import subprocess
import sys
import threading
import time
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from http.client import HTTPException
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest

from outbox.embedded.binaries import Account
from outbox.embedded.server import StopStep, SupervisedProcess
from tests.support.eventually import eventually_sync
from tests.support.processes import free_port

REGION = "eu-west-1"
ACCOUNT = "123456789012"
CREDENTIALS: Mapping[str, str] = {"AWS_ACCESS_KEY_ID": "test", "AWS_SECRET_ACCESS_KEY": "test"}
_START_SECONDS = 60.0
_ROOT = Path(__file__).parents[2]


class Moto:
    """A server on a port that stays the same, and what tests do there without the library that they test."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._process: SupervisedProcess | None = None
        self.port = free_port()
        self.endpoint = f"http://127.0.0.1:{self.port}"

    def sqs(self, **options: str) -> str:
        """A URL of queues."""
        return f"sqs://{REGION}?{self._query(options)}"

    def sns(self, topic: str, **options: str) -> str:
        """A URL of a topic."""
        return f"sns://{REGION}/{topic}?{self._query(options)}"

    def start(self) -> None:
        """Starts the server, and waits until it answers."""
        self._folder.mkdir(exist_ok=True)
        log = self._folder / "output.log"
        self._process = process = SupervisedProcess(
            [sys.executable, "-m", "tests.servers.moto", str(self.port)],
            account=Account(os.geteuid(), os.getegid(), switched=False),
            folder=self._folder,
            environment={"PATH": os.defpath, "PYTHONPATH": str(_ROOT)},
            log=log,
            stop_steps=[StopStep(signal=signal.SIGKILL, seconds=5)],
        )
        eventually_sync(lambda: self._answers() or not process.alive, timeout=_START_SECONDS, message="moto does not answer")
        if not process.alive:
            pytest.fail(f"moto did not start: {log.read_text(errors='replace')[-2000:]}", pytrace=False)

    def kill(self) -> None:
        """SIGKILL: the server is away, and its queues are gone."""
        assert self._process is not None
        self._process.kill()

    def freeze(self) -> None:
        """Stops the process without ending it: connections stay, and nothing is answered."""
        assert self._process is not None
        pid = self._process.pid
        self._process.signal(signal.SIGSTOP)
        eventually_sync(lambda: b"T" in subprocess.check_output(["ps", "-o", "stat=", "-p", str(pid)]))

    def thaw(self) -> None:
        """Continues after `freeze`."""
        assert self._process is not None
        self._process.signal(signal.SIGCONT)

    def stop(self) -> None:
        """Ends the server for good."""
        if self._process is not None:
            self._process.stop()

    def reset(self) -> None:
        """Deletes all queues and topics."""
        self._post("/moto-api/reset", b"", {})

    def call(self, action: str, **parameters: Any) -> dict[str, Any]:
        """Calls an action of SQS."""
        headers = {"X-Amz-Target": f"AmazonSQS.{action}", "Content-Type": "application/x-amz-json-1.0", **_signed("sqs")}
        return dict(json.loads(self._post("/", json.dumps(parameters).encode(), headers) or "{}"))

    def create_queue(self, name: str, **attributes: str) -> str:
        """Creates a queue, and returns its URL."""
        attributes |= {"FifoQueue": "true"} if name.endswith(".fifo") else {}
        return str(self.call("CreateQueue", QueueName=name, Attributes=attributes)["QueueUrl"])

    def create_topic(self, name: str) -> str:
        """Creates a topic, and returns its ARN."""
        fifo = {"Attributes.entry.1.key": "FifoTopic", "Attributes.entry.1.value": "true"} if name.endswith(".fifo") else {}
        self._sns("CreateTopic", Name=name, **fifo)
        return f"arn:aws:sns:{REGION}:{ACCOUNT}:{name}"

    def subscribe(self, topic: str, queue: str) -> None:
        """Subscribes a queue to all messages of a topic, in the envelope of SNS."""
        self._sns("Subscribe", TopicArn=topic, Protocol="sqs", Endpoint=f"arn:aws:sqs:{REGION}:{ACCOUNT}:{queue}")

    def publish(self, topic: str, body: str) -> None:
        """Publishes a message of another program, without attributes."""
        self._sns("Publish", TopicArn=topic, Message=body)

    def send(self, queue: str, *bodies: str, **options: Any) -> None:
        """Sends messages of another program."""
        url = self.url_of(queue)
        for start in range(0, len(bodies), 10):
            entries = [{"Id": str(n), "MessageBody": body, **options} for n, body in enumerate(bodies[start : start + 10])]
            self.call("SendMessageBatch", QueueUrl=url, Entries=entries)

    def receive(self, queue: str, count: int = 1_000) -> Sequence[dict[str, Any]]:
        """Receives up to `count` messages that are visible, without deleting them."""
        found: list[dict[str, Any]] = []
        while len(found) < count:
            answer = self.call(
                "ReceiveMessage",
                QueueUrl=self.url_of(queue),
                MaxNumberOfMessages=min(10, count - len(found)),
                MessageAttributeNames=["All"],
                AttributeNames=["All"],
            )
            if not (messages := answer.get("Messages")):
                break
            found += messages
        return found

    def take(self, queue: str, count: int = 10) -> Sequence[dict[str, Any]]:
        """Receives messages and deletes them, so that their groups go on."""
        taken = self.receive(queue, count)
        for each in taken:
            self.call("DeleteMessage", QueueUrl=self.url_of(queue), ReceiptHandle=each["ReceiptHandle"])
        return taken

    def has_queue(self, queue: str) -> bool:
        """Whether the queue exists."""
        return any(url.endswith(f"/{queue}") for url in self.call("ListQueues").get("QueueUrls", ()))

    def counts(self, queue: str) -> tuple[int, int]:
        """How many messages of a queue are visible, and how many are in flight."""
        names = ["ApproximateNumberOfMessages", "ApproximateNumberOfMessagesNotVisible"]
        answer = self.call("GetQueueAttributes", QueueUrl=self.url_of(queue), AttributeNames=names)["Attributes"]
        return int(answer[names[0]]), int(answer[names[1]])

    def url_of(self, queue: str) -> str:
        """The URL of a queue."""
        return f"{self.endpoint}/{ACCOUNT}/{queue}"

    def _sns(self, action: str, **parameters: str) -> str:
        content = urlencode({"Action": action, "Version": "2010-03-31", **parameters}).encode()
        return self._post("/", content, {"Content-Type": "application/x-www-form-urlencoded", **_signed("sns")})

    def _query(self, options: Mapping[str, str]) -> str:
        return "&".join(f"{name}={value}" for name, value in {"endpoint_url": self.endpoint, **options}.items())

    def _post(self, path: str, content: bytes, headers: Mapping[str, str]) -> str:
        request = urllib.request.Request(self.endpoint + path, content, dict(headers), method="POST")
        with urllib.request.urlopen(request, timeout=10) as response:
            return str(response.read().decode())

    def _answers(self) -> bool:
        try:
            with urllib.request.urlopen(f"{self.endpoint}/moto-api/data.json", timeout=1):
                return True
        except (OSError, HTTPException):
            return False


def _signed(service: str) -> Mapping[str, str]:
    """What moto reads the service and the region from. It does not check signatures."""
    credential = f"Credential=test/20260101/{REGION}/{service}/aws4_request"
    return {"Authorization": f"AWS4-HMAC-SHA256 {credential}, SignedHeaders=host, Signature=0"}


@contextmanager
def running_moto(folder: Path) -> Iterator[Moto]:
    """A server that ends with the block."""
    server = Moto(folder)
    try:
        server.start()
        yield server
    finally:
        server.stop()


def _serve(port: str) -> None:
    """Runs moto, whose own long poll (5.2.5) checks only at its start which groups of a FIFO queue are in flight.

    Here it checks each time that messages arrive, one receiver at a time: two receivers never have messages of one group.
    """
    from moto.server import main
    from moto.sqs.models import SQSBackend

    receive, lock = SQSBackend.receive_message, threading.Lock()

    def long_poll(backend: SQSBackend, queue: str, count: int, wait: int, *options: Any) -> list[Any]:
        ends = time.monotonic() + wait
        while True:
            with lock:
                found = receive(backend, queue, count, 0, *options)
            left = ends - time.monotonic()
            if found or left <= 0:
                return found
            backend.get_queue(queue).wait_for_messages(1)

    SQSBackend.receive_message = long_poll  # type: ignore[assignment]
    main(["-p", port])


if __name__ == "__main__":
    _serve(sys.argv[1])
