"""An AWS of canned answers, for what moto never says."""

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from tests.servers.moto import ACCOUNT, REGION


class CannedAws:
    """Answers each action with the next of its `answers`, a status and a content, and remembers the `requests`.

    A queue's URL is always known. An error's content has `__type` and `message`.
    """

    def __init__(self) -> None:
        self.answers: dict[str, list[tuple[int, dict[str, Any]]]] = {}
        self.requests: list[tuple[str, dict[str, Any]]] = []
        canned = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                action = self.headers["X-Amz-Target"].partition(".")[2]
                status, content = canned.answer(action, request)
                body = json.dumps(content).encode()
                self.send_response(status)
                self.send_header("Content-Type", "application/x-amz-json-1.0")
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *arguments: Any) -> None:
                """Says nothing."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever)
        self._thread.start()
        self.url = f"sqs://{REGION}?endpoint_url=http://127.0.0.1:{self._server.server_port}&queue=mail"

    def answer(self, action: str, request: dict[str, Any]) -> tuple[int, dict[str, Any]]:
        self.requests.append((action, request))
        if action == "GetQueueUrl":
            return 200, {"QueueUrl": f"http://127.0.0.1/{ACCOUNT}/{request['QueueName']}"}
        return self.answers[action].pop(0)

    def of(self, action: str) -> list[dict[str, Any]]:
        """The requests of one action."""
        return [request for name, request in self.requests if name == action]

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()
