"""`outbox dlq`: lists and repairs dead letters."""

import click

from outbox.cli.dlq.letters import group, groups, list_, mark, policy, show
from outbox.cli.dlq.operations import cancel, operations, pause, resume
from outbox.cli.dlq.repair import discard, purge, requeue, restore


@click.group()
def dlq() -> None:
    """Lists and repairs dead letters.

    An ID is that of a dead letter, such as 17, or of a message that the relay parked, such as outbox-17.

    Exit code 0: everything was done. 1: something was not done, and the output says why. 2: invalid arguments.
    """


for command in (list_, show, groups, group, mark, policy, requeue, discard, restore, purge, operations, pause, resume, cancel):
    dlq.add_command(command)
