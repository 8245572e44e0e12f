"""Write the tables of docs/settings.md from the settings table, or check that they are up to date.

python -m scripts.settings --write
python -m scripts.settings --check
"""

import argparse
import re
from pathlib import Path

from outbox.runtime.settings import SETTINGS, Kind, Reader, Setting

PAGE = Path(__file__).resolve().parent.parent / "docs" / "settings.md"
_TABLE = re.compile(r"(<!-- settings: (?P<section>[^>]+) -->\n\n)(?:.*?)(\n\n<!-- /settings -->)", re.DOTALL)
_HEAD = ("| variable | type | default | read by | meaning |", "|---|---|---|---|---|")


def main() -> int:
    """Write or check the page. Return the exit code."""
    parser = argparse.ArgumentParser(description="Write the tables of docs/settings.md.")
    action = parser.add_mutually_exclusive_group(required=True)
    action.add_argument("--write", action="store_true")
    action.add_argument("--check", action="store_true")
    text = PAGE.read_text(encoding="utf-8")
    wanted = page(text)
    if parser.parse_args().check:
        if text != wanted:
            print("docs/settings.md is not up to date: run `python -m scripts.settings --write`")
        return int(text != wanted)
    PAGE.write_text(wanted, encoding="utf-8")
    return 0


def page(text: str) -> str:
    """Replaces the table between the comments of each section. Raises `ValueError` if the sections differ."""
    missing = {each.section for each in SETTINGS.values()} ^ {match["section"] for match in _TABLE.finditer(text)}
    if missing:
        raise ValueError(f"the page and the settings table have different sections: {', '.join(sorted(missing))}")
    return _TABLE.sub(lambda match: f"{match[1]}{table(match['section'])}{match[3]}", text)


def table(section: str) -> str:
    """Returns the settings of a section as a Markdown table."""
    return "\n".join((*_HEAD, *(_row(each) for each in SETTINGS.values() if each.section == section)))


def _row(setting: Setting) -> str:
    default = f"`{setting.default}`" if setting.default is not None else f"unset: {setting.unset}" if setting.unset else "none"
    text = setting.help.replace("|", r"\|")  # would end the cell, also within code
    return f"| `{setting.variable}` | {_type(setting)} | {default} | {_readers(setting)} | {text} |"


def _type(setting: Setting) -> str:
    words = [f"`{choice}`" for choice in setting.choices]
    if setting.kind is Kind.NUMBER:
        least, most = setting.bounds
        words.append(f"{least:,} to {most:,} {setting.unit}".rstrip())
    elif setting.kind is not Kind.CHOICE:
        words.append(str(setting.kind))
    return ", ".join([*words, "secret"] if setting.secret else words)


def _readers(setting: Setting) -> str:
    return "all" if len(setting.readers) == len(Reader) else ", ".join(each for each in Reader if each in setting.readers)


if __name__ == "__main__":
    raise SystemExit(main())
