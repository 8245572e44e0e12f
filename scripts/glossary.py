"""Find words that the project avoids, in code, texts and documentation. `make check` fails where there are more than before.

    python scripts/glossary.py           print how often each word stands, and exit with 1 where that is above its ceiling
    python scripts/glossary.py WORD      print where the word stands

One concept has one word, the one that RabbitMQ, PostgreSQL and the RFCs use. A word whose ceiling is 0 is gone for good. The
others are on their way out: lower the ceiling when you replace some, never raise it.
"""

import re
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PLACES = {
    "outbox": (".py", ".sql"),
    "app": (".py",),
    "docs": (".md",),
    "frontend/src": (".ts", ".tsx"),
    "migrations": (".py",),
    "tests": (".py", ".md"),
    "benchmarks": (".py",),
    "scripts": (".py",),
    "README.md": (".md",),
    "CONTRIBUTING.md": (".md",),
}
EXEMPT = {"frontend/src/api/schema.d.ts", "scripts/glossary.py"}
CEILINGS: dict[str, tuple[str, int]] = {
    # word (a regular expression): what to write instead, and in how many lines it may stand
    r"coroner": ("dead letter writer", 0),
    r"whence": ("from where", 0),
    r"hark": ("…", 0),
    r"crew": ("tasks, components", 0),
    r"wellness": ("status", 0),
    r"came back dead": ("failed again", 0),
    r"going on": ("active", 0),
    r"beside": ("next to, in addition to", 12),
    r"anew": ("again", 0),
    r"heed(?:s|ed|ing)?": ("respect", 0),
    r"whoever": ("the role: a client, an operator", 3),
    r"somebody": ("the role: an operator, a producer", 1),
    r"nobody": ("no worker, no client", 7),
    r"told": ("report, return, notify", 0),
    r"tells?": ("report, return, notify", 0),
    r"mends?": ("hint, fix", 1),
    r"in hand": ("in flight", 0),
    r"let in": ("authenticate, load", 0),
    r"fates?": ("outcome", 0),
    r"deeds?": ("change, action", 0),
    r"trails?": ("attempts, failures", 0),
    r"suspects?": ("poison message", 0),
    r"roads?": ("path, exchange", 2),
    r"signs? of life": ("heartbeat", 0),
    r"died again": ("failed again", 16),
    r"g(?:a|i)ven? up": ("retries exhausted", 0),
    r"buried|burial|bury": ("dead-letter", 0),
    r"afterlife": ("requeue history", 0),
    r"promised?": ("confirmation token", 29),  # the others are of JavaScript
    r"consent": ("confirmation token", 0),
}


def main(arguments: list[str]) -> int:
    """Prints the counts, or the places of one word; 1 where a count is above its ceiling."""
    if arguments:
        for place, line in occurrences(arguments[0]):
            print(f"{place}: {line}")
        return 0
    above = 0
    for word, (instead, ceiling) in CEILINGS.items():
        count = sum(1 for _ in occurrences(word))
        above += count > ceiling
        if count > ceiling or ceiling:
            print(f"  {word:<28} {count:>5}   at most {ceiling:<5} write {instead}{'   ABOVE' if count > ceiling else ''}")
    if above:
        print("glossary: use the other word; `python scripts/glossary.py WORD` prints the places", file=sys.stderr)
    return 1 if above else 0


def occurrences(word: str) -> Iterator[tuple[str, str]]:
    """Where a word stands: file and line number, and the line."""
    pattern = re.compile(rf"(?<![A-Za-z])(?:{word})(?![A-Za-z])", re.IGNORECASE)
    for file in sources():
        for number, line in enumerate(file.read_text().splitlines(), 1):
            if pattern.search(line):
                yield f"{file.relative_to(ROOT)}:{number}", line.strip()


def sources() -> Iterator[Path]:
    """The files that are read."""
    for place, endings in PLACES.items():
        base = ROOT / place
        for file in [base] if base.is_file() else sorted(base.rglob("*")):
            if file.suffix in endings and file.is_file() and str(file.relative_to(ROOT)) not in EXEMPT:
                yield file


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
