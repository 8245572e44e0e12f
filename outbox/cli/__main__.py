"""`python -m outbox.cli`: runs `outbox` where its script is not on the PATH."""

from outbox.cli import main

main(prog_name="outbox")
