"""`outbox dlq`: dead letters, listed and repaired from a terminal or a script."""

import click

from outbox.cli.dlq.letters import group, groups, list_, mark, policy, show
from outbox.cli.dlq.operations import cancel, operations, pause, resume
from outbox.cli.dlq.repair import discard, purge, requeue, restore


@click.group()
def dlq() -> None:
    """Lists and repairs dead letters.

    An id is that of a dead letter, such as 17, or of a message that the relay parked, such as outbox-17.

    Exit code 0: everything that was asked for was done. 1: some of it was not, and the output says why. 2: the command was not
    understood.
    """


for command in (list_, show, groups, group, mark, policy, requeue, discard, restore, purge, operations, pause, resume, cancel):
    dlq.add_command(command)
