"""docker-compose.yml as Compose reads it."""

import re

_VARIABLE = re.compile(r"\$\{(\w+):-([^${}]*)\}")


def resolved(text: str, **variables: str) -> str:
    """The text with its variables put in; those that are empty or not set have their defaults."""
    while _VARIABLE.search(text):
        text = _VARIABLE.sub(lambda match: variables.get(match[1]) or match[2], text)
    return text
