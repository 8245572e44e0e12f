"""The script `outbox`, and `python -m outbox.cli` where it is not on the PATH."""

import gc
import os
import sys

from outbox.cli import main


def run() -> None:
    """Runs the command line in a process of its own."""
    # Until the command is imported: collections meanwhile find no garbage, and take a fifth of the start.
    gc.disable()
    try:
        main(prog_name="outbox")
    finally:
        # The interpreter writes what is left once more when it ends, and exits with 120 if there is still no room for it.
        if sys.stdout is not None:  # which it is if the file was closed at the start
            try:
                sys.stdout.flush()
            except OSError:
                os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


if __name__ == "__main__":
    run()
