"""Measure the shape of the source: how it is cut, and what holds it together. `make check` fails above the ceilings below.

    python scripts/shape.py            print every figure with its ceiling, and exit with 1 where one is above it
    python scripts/shape.py --names    print also what is counted

A change that needs a higher ceiling raises it in its own commit, with the reason.
"""

import argparse
import ast
import re
import sys
import tokenize
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
CEILINGS = {
    # 6 files and 16 edges are outbox.interop: users import a module for each framework, and one for CloudEvents. 3 files and 17
    # edges are typed events, their AsyncAPI document, and its command. A file and 22 edges are destinations, a file and 12
    # edges encryption, and 12 files and 76 edges Kafka, NATS and Redis, whose clients call private methods of ours. A
    # file is threads, which handlers, files and sources of databases share. 4 files and 28 edges are modules of 500 to 860
    # lines that held two ideas: handlers' connections and transactions, changes of many messages and of one, counts and lists,
    # requests of repairs and the validation of edits.
    # Three edges are the header of versions, which typed events and edits read, the line of code that a failure names, and
    # destinations, which are checked before a body is stored.
    "Python files": 267,
    "lines of Python": 62_614,
    "modules with one importer": 40,
    "private functions named once, %": 12.0,
    "modules named …ing": 9,
    "import edges": 1_579,
    "import cycles": 0,
    "docstrings that lean on another": 0,
    "files in import circles of the dashboard": 0,
}
FLOORS = {"full-line comments, %": 1.9}
"""Where concurrency, SQL and protocol need a reason, it stands next to the line."""
LEANING = re.compile(r"(The same\b|The whole of\b|Whatever\b|Likewise\b|Whoever\b)")
FRONTEND_IMPORT = re.compile(r"""^(?:import|export)\b[^;'"]*?from\s+["'](\.[^"']+)["']""", re.MULTILINE)


@dataclass
class Figure:
    """A number, and what was counted."""

    value: float
    names: list[str] = field(default_factory=list)


def main() -> int:
    """Prints the figures; 1 where one is beyond its limit."""
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--names", action="store_true", help="print what is counted, too")
    show_names = arguments.parse_args().names
    beyond = 0
    for name, figure in figures().items():
        limit = CEILINGS.get(name, FLOORS.get(name))
        bad = limit is not None and (figure.value > limit if name in CEILINGS else figure.value < limit)
        beyond += bad
        word = "at most" if name in CEILINGS else "at least"
        print(f"  {name:<42} {figure.value:>9,g}   {word} {limit:,g}{'   BEYOND' if bad else ''}")
        for each in figure.names if show_names else ():
            print(f"      {each}")
    if beyond:
        print(
            "shape: fewer and fuller files, or a new limit in scripts/shape.py with its reason in the commit", file=sys.stderr
        )
    return 1 if beyond else 0


def figures() -> dict[str, Figure]:
    """Every figure by its name, in the order in which they are printed."""
    sources = {module_of(path): path for path in sorted((ROOT / "outbox").rglob("*.py"))}
    trees = {module: ast.parse(path.read_text()) for module, path in sources.items()}
    app = {module_of(path): ast.parse(path.read_text()) for path in sorted((ROOT / "app").rglob("*.py"))}
    imports = {module: set(imported(module, tree, sources)) for module, tree in {**trees, **app}.items()}
    at_import = {module: set(imported(module, tree, sources, at_import=True)) for module, tree in trees.items()}
    importers = Counter(target for targets in imports.values() for target in targets)
    plain = [module for module, path in sources.items() if path.name not in {"__init__.py", "__main__.py"}]
    once, functions = private_functions(trees)
    lines = {module: path.read_text().splitlines() for module, path in sources.items()}
    every_line = sum(map(len, lines.values()))
    single = [module for module in plain if importers[module] == 1]
    gerunds = [module for module in plain if module.endswith("ing")]
    leaning = list(leaning_docstrings(trees))
    cycles = circles(at_import)
    dashboard = circles(frontend_imports())
    return {
        "Python files": Figure(len(sources)),
        "lines of Python": Figure(every_line),
        "modules with one importer": Figure(len(single), single),
        "private functions named once, %": Figure(round(100 * len(once) / functions, 1), once),
        "modules named …ing": Figure(len(gerunds), gerunds),
        "import edges": Figure(sum(len(targets) for module, targets in imports.items() if module in trees)),
        "import cycles": Figure(len(cycles), [" ".join(circle) for circle in cycles]),
        "full-line comments, %": Figure(round(100 * sum(map(comment_lines, sources.values())) / every_line, 2)),
        "docstrings that lean on another": Figure(len(leaning), leaning),
        "files in import circles of the dashboard": Figure(
            sum(map(len, dashboard)), [" ".join(circle) for circle in dashboard]
        ),
    }


def module_of(path: Path) -> str:
    """The dotted name of a file in the repository."""
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def imported(module: str, tree: ast.Module, known: Iterable[str], *, at_import: bool = False) -> Iterator[str]:
    """The modules of the package that a module imports: anywhere, or only those that are imported when it is."""
    names = set(known)
    for node in executed(tree) if at_import else ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module:
            for alias in node.names:
                target = next((name for name in (f"{node.module}.{alias.name}", node.module) if name in names), None)
                if target is not None and target != module:
                    yield target
        elif isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name in names and alias.name != module)


def executed(tree: ast.Module) -> Iterator[ast.stmt]:
    """The statements of a module outside of functions and of what only type checkers read."""
    for node in tree.body:
        if isinstance(node, ast.If | ast.Try) and "TYPE_CHECKING" not in ast.dump(node):
            yield from (child for child in ast.walk(node) if isinstance(child, ast.stmt))
        else:
            yield node


def private_functions(trees: Mapping[str, ast.Module]) -> tuple[list[str], int]:
    """Private functions whose name stands once outside of their definition, and how many functions there are."""
    once, total = [], 0
    for module, tree in trees.items():
        defined = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]
        total += len(defined)
        named = Counter(node.id for node in ast.walk(tree) if isinstance(node, ast.Name))
        named += Counter(node.attr for node in ast.walk(tree) if isinstance(node, ast.Attribute))
        once += [
            f"{module}.{node.name}"
            for node in defined
            if node.name.startswith("_") and not node.name.startswith("__") and named[node.name] == 1
        ]
    return once, total


def comment_lines(path: Path) -> int:
    """How many lines of a file hold nothing but a comment."""
    with tokenize.open(path) as file:
        return sum(
            token.type == tokenize.COMMENT and token.line.lstrip().startswith("#")
            for token in tokenize.generate_tokens(file.readline)
        )


def leaning_docstrings(trees: Mapping[str, ast.Module]) -> Iterator[str]:
    """Docstrings that cannot be read alone."""
    for module, tree in trees.items():
        for node in ast.walk(tree):
            if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
                text = ast.get_docstring(node) or ""
                if LEANING.match(text):
                    yield f"{module}.{getattr(node, 'name', '')}: {text.splitlines()[0]}"


def frontend_imports() -> dict[str, set[str]]:
    """Which of the dashboard's files imports which."""
    base = ROOT / "frontend" / "src"
    files = [path for path in base.rglob("*.ts*") if ".test." not in path.name and not path.name.endswith(".d.ts")]
    spelled = {candidate: file for file in files for candidate in (file, file.with_suffix(""))}
    spelled |= {file.parent: file for file in files if file.stem == "index"}
    found: dict[str, set[str]] = {}
    for path in files:
        targets = {(path.parent / target).resolve() for target in FRONTEND_IMPORT.findall(path.read_text())}
        found[str(path.relative_to(base))] = {str(spelled[target].relative_to(base)) for target in targets if target in spelled}
    return found


def circles(graph: Mapping[str, set[str]]) -> list[list[str]]:
    """The groups of modules that reach each other (Tarjan's strongly connected components of more than one)."""
    index: dict[str, int] = {}
    low: dict[str, int] = {}
    stack: list[str] = []
    found: list[list[str]] = []

    def visit(name: str) -> None:
        index[name] = low[name] = len(index)
        stack.append(name)
        for target in sorted(graph.get(name, ())):
            if target not in index:
                visit(target)
            if target in stack:
                low[name] = min(low[name], low[target])
        if low[name] == index[name]:
            group = stack[stack.index(name) :]
            del stack[stack.index(name) :]
            if len(group) > 1:
                found.append(sorted(group))

    sys.setrecursionlimit(10_000)
    for name in sorted(graph):
        if name not in index:
            visit(name)
    return found


if __name__ == "__main__":
    sys.exit(main())
