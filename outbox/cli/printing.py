"""What the commands print. Text of a server, of a database or of a message never reaches a terminal as it is."""

import json
import sys
import unicodedata
from dataclasses import dataclass
from typing import IO, Any

import click


@dataclass(frozen=True, slots=True)
class Styled:
    """A part of a line with its looks, as `click.style` takes them."""

    text: str
    looks: dict[str, Any]


def styled(text: str, **looks: Any) -> Styled:
    """`text` with looks of ours. `echo` neutralises the text before it adds them."""
    return Styled(text, looks)


def echo(*parts: str | Styled, err: bool = False, file: IO[Any] | None = None) -> None:
    """Prints the parts and a line break. What a terminal would obey is shown instead, as `\\x1b`."""
    texts = [_looks(part) if isinstance(part, Styled) else printable(part) for part in parts]
    click.echo("".join(texts), err=err, file=file)


def echo_json(value: Any) -> None:
    """Prints `value` as JSON. What a terminal would obey is escaped as JSON does it, so that scripts read the same."""
    text = json.dumps(value, indent=2, ensure_ascii=False)
    click.echo("".join(sign if _is_harmless(sign) else json.dumps(sign)[1:-1] for sign in text))


def echo_bytes(content: bytes) -> None:
    """Writes bytes as they are to a file or a pipe. A terminal gets them as text, like everything else."""
    if sys.stdout.isatty():
        click.echo(printable(content.decode(errors="replace")), nl=False)
    else:
        click.echo(content, nl=False)


def overwrite(text: str) -> None:
    """Writes `text` over the line on standard error that the terminal is at."""
    click.echo(f"\r\033[K{printable(text)}", nl=False, err=True)


def printable(text: str) -> str:
    """`text` with its lines, and everything else that a terminal would obey shown as `\\x1b`. Twice is the same as once."""
    return text if text.isprintable() else "".join(sign if _is_harmless(sign) else ascii(sign)[1:-1] for sign in text)


def one_line(text: str) -> str:
    """`printable`, on one line."""
    return printable(" ".join(text.split()))


def _looks(part: Styled) -> str:
    return click.style(printable(part.text), **part.looks)


def _is_harmless(sign: str) -> bool:
    """Printable, a space of any width, a line break or a tab. U+202E, which shows text backwards, is none of them."""
    return sign.isprintable() or sign in "\n\t" or unicodedata.category(sign) == "Zs"
