"""What test modules share lies in modules of helpers, so that each of them can be moved, split and read by itself."""

import ast
from collections.abc import Iterator
from pathlib import Path

TESTS = Path(__file__).parents[1]
ITS_NEIGHBOUR = {"tests/admin/test_cli_mishaps.py imports tests.admin.test_cli"}
"""What remains to be moved; nothing is added."""


def test_no_test_module_imports_another_one() -> None:
    assert set(_imports()) <= ITS_NEIGHBOUR


def _imports() -> Iterator[str]:
    for path in TESTS.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ImportFrom) and node.module and node.module.startswith("tests."):
                name = node.module.rpartition(".")[2]
                if name.startswith("test_") or name == "conftest":
                    yield f"{path.relative_to(TESTS.parent).as_posix()} imports {node.module}"
