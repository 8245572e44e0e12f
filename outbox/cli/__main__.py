"""`python -m outbox.cli`: the command `outbox`, for where its script is not on the path."""

from outbox.cli import main

main(prog_name="outbox")
