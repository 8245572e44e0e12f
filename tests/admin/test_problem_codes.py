"""The codes of problems: in the documentation, all of them and no others."""

import re
from pathlib import Path

from outbox.admin.problems import Code

_ROW = re.compile(r"^\| `([a-z_]+)` \| (\d{3}) \| (.+)\. \|$", re.MULTILINE)


def test_every_code_is_documented_and_nothing_else() -> None:
    section = Path("docs/admin.md").read_text().partition("\n## Problems\n")[2].partition("\n## ")[0]
    assert _ROW.findall(section) == [(code.value, str(code.status), code.summary) for code in Code]
