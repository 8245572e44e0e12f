"""The list of guarantees names tests that there are."""

import ast
import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
NAMED = re.compile(r"`(tests/[\w/]+\.py)::(\w+)`")


def test_every_guarantee_names_tests_and_each_of_them_exists() -> None:
    lines = (Path(__file__).parent / "README.md").read_text().splitlines()
    guarantees = [line for line in lines if line.startswith("| ") and not line.startswith("| guarantee")]
    assert len(guarantees) >= 40
    assert [line for line in guarantees if not NAMED.search(line)] == []
    named = {match.groups() for line in guarantees for match in NAMED.finditer(line)}
    assert {f"{path}::{name}" for path, name in named if name not in functions(ROOT / path)} == set()


def functions(path: Path) -> set[str]:
    """The names of a module's functions."""
    tree = ast.parse(path.read_text())
    return {node.name for node in tree.body if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)}
