"""Interpolates variables in docker-compose.yml like Compose."""

import re

_VARIABLE = re.compile(r"\$\{(\w+):-([^${}]*)\}")


def resolved(text: str, **variables: str) -> str:
    """Replaces variables in the text. Empty and unset variables get their defaults."""
    while _VARIABLE.search(text):
        text = _VARIABLE.sub(lambda match: variables.get(match[1]) or match[2], text)
    return text
