"""`outbox dlq`: what failed for good, looked at and repaired from a terminal or a script."""

import click

from outbox.cli.dlq.operating import cancel, operations, pause, resume
from outbox.cli.dlq.reading import groups, list_, show
from outbox.cli.dlq.repairing import discard, purge, requeue, restore


@click.group()
def dlq() -> None:
    """Dead letters: list, show and group them; requeue, discard, restore and purge them.

    An id is that of a dead letter, such as 17, or of a message that the relay parked, such as outbox-17.

    Exit code 0: everything was done that was asked for. 1: some of it was not, and the output says why. 2: the command was not
    understood.
    """


for command in (list_, show, groups, requeue, discard, restore, purge, operations, pause, resume, cancel):
    dlq.add_command(command)
