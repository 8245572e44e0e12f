"""What test modules share lies in modules of helpers, so that each of them can be moved, split and read by itself."""

import ast
from collections.abc import Iterator
from pathlib import Path

TESTS = Path(__file__).parents[1]


def test_no_test_module_imports_another_one() -> None:
    assert not set(_imports())


def _imports() -> Iterator[str]:
    for path in TESTS.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ImportFrom) and node.module and node.module.startswith("tests."):
                name = node.module.rpartition(".")[2]
                if name.startswith("test_") or name == "conftest":
                    yield f"{path.relative_to(TESTS.parent).as_posix()} imports {node.module}"
