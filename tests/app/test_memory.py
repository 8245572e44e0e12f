"""Long-running processes exempt startup objects from garbage collection."""

from contextlib import ExitStack
from pathlib import Path

from tests.app.support import service
from tests.support.processes import running

COMMANDS = (["relay"], ["worker", "app.orders.consumers:consumers"], ["archiver"], ["maintain"])
EXEMPT = "objects are exempt from garbage collection"


def test_each_command_and_the_service_freeze_startup_objects(tmp_path: Path, database_url: str, broker_url: str) -> None:
    settings = {"OUTBOX_DATABASE_URL": database_url, "OUTBOX_BROKER_URL": broker_url, "OUTBOX_LOG_LEVEL": "debug"}
    with ExitStack() as stack:
        processes = [stack.enter_context(service(tmp_path, settings | {"OUTBOX_MIGRATE": "true"})).process]
        for command in COMMANDS:
            arguments = ["-m", "outbox.cli", *command, "--monitoring-port", "0"]
            processes.append(stack.enter_context(running(arguments, tmp_path, settings, name=command[0])))
        for process in processes:
            process.says(EXEMPT)
