"""Responses of a service cannot move the cursor, rename the window or hide text in the terminal of a command."""

import ast
import json
import re
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

import outbox.cli
from outbox.cli import main
from outbox.cli.client import in_commands
from outbox.cli.output import echo, echo_json, printable, styled

HOSTILE = "a\x1b]0;owned\x07b\x1b[2Jc\x9b8md\u202ee\rf\x7fg"
OURS = re.compile(r"\x1b\[\d+(;\d+)*m")
"""Styles that commands add to text. The hostile text contains none of them."""
FIXED = {"hlc": "1", "id": "1", "counts": {"requeued": 1}, "by": "queue"}
"""Fields that commands parse, so they cannot be free text."""
DOCUMENT = json.loads((Path(__file__).parents[1] / "admin" / "openapi.json").read_text())


def example(schema: dict[str, Any]) -> Any:
    """Returns a value that conforms to the schema, with hostile text in every free text."""
    if "$ref" in schema:
        return example(DOCUMENT["components"]["schemas"][schema["$ref"].rpartition("/")[2]])
    if choices := schema.get("anyOf", schema.get("oneOf")):
        plans = [each for each in choices if "DryRun" in each.get("$ref", "")]
        return example((plans or choices)[0])
    if known := schema.get("enum", [schema["const"]] if "const" in schema else None):
        return known[0]
    match schema.get("type"):
        case "object":
            return _object(schema)
        case "array":
            return [example(schema["items"])]
        case "string" if schema.get("format") == "date-time":
            return "2026-01-31T12:00:00Z"
        case kind:
            return {"integer": 1, "number": 0.5, "boolean": True}.get(str(kind), HOSTILE)


def _object(schema: dict[str, Any]) -> dict[str, Any]:
    more = schema.get("additionalProperties")
    if "properties" not in schema and more:
        return {HOSTILE: example(more) if isinstance(more, dict) else HOSTILE}
    return {name: FIXED.get(name) or example(each) for name, each in schema.get("properties", {}).items()}


def documented(path: str, method: str) -> Any:
    """Returns a response that conforms to the operation's schema. Paths have values where the document has parameters."""
    for template, operations in DOCUMENT["paths"].items():
        if re.fullmatch(re.sub(r"\{\w+\}", "[^/]+", template), path) and method in operations:
            return example(operations[method]["responses"]["200"]["content"]["application/json"]["schema"])
    raise AssertionError(f"{method} {path} is not documented")


class _Hostile(BaseHTTPRequestHandler):
    """Responds like the admin, or with the error that the path begins with."""

    def do_GET(self) -> None:
        kind, _, path = self.path.partition("?")[0].removeprefix("/").partition("/")
        location = "http://x/\x9b2J"
        if kind == "problem":
            content = {"code": HOSTILE, "detail": HOSTILE, "request_id": HOSTILE}
            self._answer(409, json.dumps(content), {})
        elif kind == "elsewhere":
            self._answer(307, "", {"location": location})
        else:
            self._answer(200, json.dumps(documented(f"/outbox/{path}", self.command.lower())), {})

    do_POST = do_GET  # noqa: N815  so the base class looks for it

    def _answer(self, status: int, content: str, headers: dict[str, str]) -> None:
        self.rfile.read(int(self.headers.get("content-length", 0)))
        self.send_response(status)
        for name, value in {"content-type": "application/json", "content-length": str(len(content)), **headers}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(content.encode())

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002  the name is the base class's
        """Logs nothing."""


@pytest.fixture(scope="module")
def hostile() -> Iterator[str]:
    """The address of a service that returns only hostile text."""
    with ThreadingHTTPServer(("127.0.0.1", 0), _Hostile) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


def outbox_(*arguments: str) -> Result:
    """Runs `outbox …` like in a terminal."""
    return CliRunner().invoke(main, list(arguments), color=True)


def obeyed(text: str) -> list[str]:
    """Returns the control characters in the output."""
    return [sign for sign in OURS.sub("", text) if not sign.isprintable() and sign != "\n"]


@pytest.mark.parametrize("kind", ["problem", "elsewhere"])
def test_control_characters_in_errors_are_escaped(hostile: str, kind: str) -> None:
    answer = outbox_("backlog", "--url", f"{hostile}/{kind}")
    assert answer.exit_code == 1
    assert obeyed(answer.output) == []
    assert r"\x9b" in answer.output


COMMANDS = [
    "backlog", "components", "pause", "messages", "messages 1", "stats --group-by queue", "dlq list", "dlq show outbox-1",
    "dlq show outbox-1 --reveal", "dlq groups", "operations",
    "operations 3", "dlq pause 3", "chain x", "requeue --all --dry-run",
]  # fmt: skip


@pytest.mark.parametrize("command", COMMANDS)
def test_control_characters_in_output_are_escaped(hostile: str, command: str) -> None:
    answer = outbox_(*command.split(), "--url", f"{hostile}/fine")
    assert obeyed(answer.output) == []
    assert "owned" in answer.output, (answer.output, answer.exception)


@pytest.mark.parametrize("command", COMMANDS)
def test_control_characters_in_json_are_escaped_as_json(hostile: str, command: str) -> None:
    answer = outbox_(*command.split(), "--json", "--url", f"{hostile}/fine")
    assert obeyed(answer.output) == []
    assert HOSTILE in str(_strings(json.loads(answer.stdout))), (answer.output, answer.exception)


def _strings(value: Any) -> str:
    match value:
        case dict():
            return "\n".join(_strings(each) for pair in value.items() for each in pair)
        case list():
            return "\n".join(map(_strings, value))
    return str(value)


@pytest.mark.parametrize(
    ("given", "shown"),
    [
        ("\x1b[8mhidden", r"\x1b[8mhidden"),
        ("\x9b2J", r"\x9b2J"),
        ("two\nlines\tand a tab", "two\nlines\tand a tab"),
        ("gift\u202ecod.exe", r"gift\u202ecod.exe"),
        ("größer als 5\u00a0€ 名前", "größer als 5\u00a0€ 名前"),
        ("\ud800", r"\ud800"),
    ],
)
def test_control_characters_are_escaped_and_other_text_is_unchanged(
    given: str, shown: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert printable(given) == shown
    assert printable(shown) == shown
    echo("> ", given)
    echo(styled(given, bold=True))
    echo_json(given)
    lines = capsys.readouterr().out
    assert lines.startswith(f"> {shown}\n{shown}\n")
    assert json.loads(lines[2 * len(shown) + 4 :]) == given


def test_commands_print_only_through_the_escaping_functions() -> None:
    folder = Path(outbox.cli.__file__).parent
    for file in sorted(folder.rglob("*.py")):
        if file.name == "output.py":
            continue
        for node in ast.walk(ast.parse(file.read_text())):
            match node:
                case ast.Call(func=ast.Name(id="print")):
                    raise AssertionError(f"{file.name}:{node.lineno} prints past outbox.cli.output")
                case ast.Attribute(value=ast.Name(id="click"), attr="echo" | "secho" | "style" | "echo_via_pager"):
                    raise AssertionError(f"{file.name}:{node.lineno} prints past outbox.cli.output")


def test_advice_of_the_api_names_commands_and_options() -> None:
    """All texts of the API but docstrings and descriptions of fields, with a 7 for each value in them."""
    folder = Path(outbox.cli.__file__).parents[1]
    found: set[str] = set()
    for file in (*folder.glob("admin/**/*.py"), *folder.glob("dead_letters/*.py")):
        nodes = list(ast.walk(ast.parse(file.read_text())))
        formatted = [node for node in nodes if isinstance(node, ast.JoinedStr)]
        found |= {
            "".join(str(part.value) if isinstance(part, ast.Constant) else "7" for part in node.values) for node in formatted
        }
        inner = {id(part) for node in formatted for part in node.values}
        returned = [node.value for node in nodes if isinstance(node, ast.Return) and node.value is not None]
        for node in (part for value in returned for part in ast.walk(value)):
            if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in inner:
                found.add(node.value)
    advice = [text for text in found if re.search(r"\b(POST|GET) /|\b(set|use) force\b", text)]
    assert len(advice) >= 7
    # The name of an outbox is a part of `--url`, so its list is that of the service.
    left = [text for text in map(in_commands, advice) if re.search(r"\b(POST|GET) /(?!outboxes)|(?<!--)\bforce\b", text)]
    assert left == []
