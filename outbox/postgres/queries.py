"""Named SQL blocks in files next to the code, rendered once with quoted names."""

import re
from collections.abc import Mapping
from functools import cache
from importlib import resources

_BLOCK = re.compile(r"^-- name: (?P<name>[a-z_]+)\n", re.MULTILINE)
_PLACEHOLDER = re.compile(r"\{([a-z_]+)\}")


def queries(file: str, **names: str) -> Mapping[str, str]:
    """The blocks of `sql/<file>`, by name, with each `{placeholder}` replaced by the quoted name given for it.

    A block begins with a line `-- name: <name>`. A placeholder without a name given raises `KeyError`.
    """
    return {name: render(text, **names) for name, text in _blocks(file).items()}


def query(file: str, block: str, **names: str) -> str:
    """One block of `queries(file)`, by itself: the others' placeholders need no names."""
    return render(_blocks(file)[block], **names)


def render(text: str, **names: str) -> str:
    """`text` with its `{placeholders}` replaced."""
    return _PLACEHOLDER.sub(lambda match: names[match[1]], text)


@cache
def _blocks(file: str) -> dict[str, str]:
    parts = _BLOCK.split(resources.files("outbox.postgres").joinpath("sql", file).read_text())
    return {name: text.strip() for name, text in zip(parts[1::2], parts[2::2], strict=True)}
