"""The OpenAPI document is complete, and equals the committed one."""

import re
from collections.abc import Iterator
from typing import Any

import pytest
from jsonschema import Draft202012Validator

import outbox
from app.service import create_service
from outbox.admin.examples import EXAMPLES, values
from tests.admin.openapi import COMMAND, difference, document

METHODS = ("get", "put", "post", "delete", "patch")


@pytest.fixture(scope="module")
def published() -> dict[str, Any]:
    """The current document."""
    return document()


def operations(published: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Every operation of the admin, with a label for messages."""
    for path, item in published["paths"].items():
        for method in METHODS:
            if path.startswith("/outbox/") and not path.startswith("/outbox/health/") and method in item:
                yield f"{method.upper()} {path}", item[method]


def values_of(document: Any) -> Iterator[str]:
    """Every value of an enumeration."""
    if isinstance(document, dict):
        several = [*document.get("enum", ()), *([document["const"]] if "const" in document else [])]
        yield from (value for value in several if isinstance(value, str))
    for inner in document.values() if isinstance(document, dict) else document if isinstance(document, list) else ():
        yield from values_of(inner)


def test_the_document_equals_the_committed_one() -> None:
    changed = difference()
    assert not changed, f"if this is meant, `{COMMAND}` and commit the file:\n{changed}"


def test_the_document_has_the_version_of_the_release() -> None:
    assert create_service().openapi()["info"]["version"] == outbox.__version__


def test_every_value_is_one_word_in_snake_case(published: dict[str, Any]) -> None:
    assert [value for value in values_of(published) if not re.fullmatch(r"[a-z0-9_]+", value)] == []


def test_every_operation_has_a_unique_name(published: dict[str, Any]) -> None:
    names = {asked: operation["operationId"] for asked, operation in operations(published)}
    assert [asked for asked, name in names.items() if not re.fullmatch(r"outbox(_[a-z]+)+", name)] == []
    assert len(set(names.values())) == len(names)


def test_every_operation_has_a_description(published: dict[str, Any]) -> None:
    unexplained = [asked for asked, operation in operations(published) if len(operation.get("description", "")) < 20]
    assert unexplained == []


def test_every_operation_has_an_example_request(published: dict[str, Any]) -> None:
    for asked, operation in operations(published):
        [sample] = operation["x-codeSamples"]
        assert sample["source"].startswith("curl "), asked
        if "requestBody" in operation:
            assert operation["requestBody"]["content"]["application/json"]["example"], asked
    named = {operation["operationId"] for item in published["paths"].values() for operation in item.values()}
    assert {operation["operationId"] for _, operation in operations(published)} <= EXAMPLES.keys() <= named


def test_every_response_has_an_example_that_fits_its_schema(published: dict[str, Any]) -> None:
    for path, item in published["paths"].items():
        for operation in item.values():
            for status, response in operation["responses"].items():
                answer = response.get("content", {}).get("application/json") if status < "300" else None
                if answer is None:
                    continue
                named = answer["schema"].get("$ref", "").rpartition("/")[2]
                example = answer.get("example") or published["components"]["schemas"][named]["examples"][0]
                Draft202012Validator({**answer["schema"], "components": published["components"]}).validate(example)
                assert example, f"{path} {status}"


def test_example_values_are_for_existing_fields(published: dict[str, Any]) -> None:
    schemas = published["components"]["schemas"]
    known = {f"{name}.{field}" for name, schema in schemas.items() for field in schema.get("properties", {})}
    known |= {name.partition(".")[2] for name in known}
    assert values().keys() - known == set()


def test_the_schema_has_the_rules_of_the_server(published: dict[str, Any]) -> None:
    schemas = published["components"]["schemas"]
    assert schemas["Selector"]["oneOf"] == [{"required": ["ids"]}, {"required": ["filter"]}, {"required": ["group_id"]}]
    filters = schemas["DeadLetterFilters"]["properties"]
    time, text = filters["failed_after"]["anyOf"][0], filters["q"]["anyOf"][0]
    assert re.search(time["pattern"], "2026-03-01T13:00:00.5+01:00")
    assert not any(re.search(time["pattern"], wrong) for wrong in ("2026-03-01T12:00:00", "2026-03-01", "1772366400"))
    assert re.search(text["pattern"], "ü")
    assert not re.search(text["pattern"], "a\0b")
    parameters = {each["name"]: each["schema"] for each in published["paths"]["/outbox/dlq"]["get"]["parameters"]}
    cursor = parameters["cursor"]["pattern"]
    assert re.search(cursor, "WyJuZXh0Il0")
    assert not re.search(cursor, "no cursor")


def test_every_operation_has_one_tag_with_a_description(published: dict[str, Any]) -> None:
    described = {tag["name"] for tag in published.get("tags", []) if tag.get("description")}
    assert {
        asked: operation.get("tags") for asked, operation in operations(published) if len(operation.get("tags", [])) != 1
    } == {}
    assert {tag for _, operation in operations(published) for tag in operation["tags"]} - described == set()


def test_every_documented_problem_has_the_problem_media_type(published: dict[str, Any]) -> None:
    for asked, operation in operations(published):
        for status, response in operation["responses"].items():
            if status >= "400":
                assert "application/problem+json" in response["content"], f"{asked} {status}"


def test_every_schema_has_a_readable_name(published: dict[str, Any]) -> None:
    names = published["components"]["schemas"]
    assert [name for name in names if not re.fullmatch(r"([A-Z]+[a-z]*)+", name)] == []


PASSED_ON = {
    "ComponentActivity",
    "ConsumerResponse",
    "EventVersions",
    "DeadLetterLinks",
    "OperationSelector",
    "DeadLetterFilters",
}
"""Schemas of data that is returned as stored, where fields may be missing."""


def test_fields_that_are_always_present_are_required(published: dict[str, Any]) -> None:
    schemas = published["components"]["schemas"]
    answered: set[str] = set()
    for _, operation in operations(published):
        for response in operation["responses"].values():
            answered |= named_in(response, schemas)
    lacking = {name: set(schemas[name].get("properties", {})) - set(schemas[name].get("required", [])) for name in answered}
    assert {name: fields for name, fields in lacking.items() if fields and name not in PASSED_ON} == {}
    assert answered >= PASSED_ON


def named_in(part: Any, schemas: dict[str, Any]) -> set[str]:
    """The schemas that a part of the document refers to, directly or indirectly."""
    found: set[str] = set()
    waiting = [part]
    while waiting:
        match waiting.pop():
            case {"$ref": str(reference)} if (name := reference.rpartition("/")[2]) not in found:
                found.add(name)
                waiting.append(schemas[name])
            case dict() as inner:
                waiting.extend(inner.values())
            case list() as inner:
                waiting.extend(inner)
    return found
