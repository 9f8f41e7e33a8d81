"""Checks answers against the OpenAPI description. Knows only the keywords of JSON Schema that the description
uses, and fails on any other.
"""

import json
import re
from typing import Any

from museum import Answer

KNOWN = {
    "$ref", "type", "properties", "required", "additionalProperties", "items", "enum", "anyOf",
    "format", "description", "minimum", "maximum", "minLength", "maxLength", "minItems", "maxItems",
}  # fmt: skip
TYPES: dict[str, Any] = {
    "string": str, "integer": int, "number": (int, float), "boolean": bool,
    "object": dict, "array": list, "null": type(None),
}  # fmt: skip
FORMATS = {
    "date-time": re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ\Z"),
    "date": re.compile(r"\d{4}-\d\d-\d\d\Z"),
}


def check(value: Any, schema: dict[str, Any], document: dict[str, Any], where: str = "answer") -> None:
    """AssertionError names the part of the answer that is not as described."""
    assert set(schema) <= KNOWN, (where, set(schema) - KNOWN)
    if "$ref" in schema:
        name = schema["$ref"].rpartition("/")[2]
        check(value, document["components"]["schemas"][name], document, where)
        return
    if "anyOf" in schema:
        assert any(fits(value, each, document) for each in schema["anyOf"]), (where, value)
        return
    if "enum" in schema:
        assert value in schema["enum"], (where, value)
    kinds = schema.get("type", list(TYPES))
    kinds = [kinds] if isinstance(kinds, str) else kinds
    assert any(is_of(value, kind) for kind in kinds), (where, value, kinds)
    if isinstance(value, str) and "format" in schema:
        assert FORMATS[schema["format"]].match(value), (where, value)
    if isinstance(value, list):
        for number, each in enumerate(value):
            check(each, schema.get("items", {}), document, f"{where}[{number}]")
    if isinstance(value, dict):
        check_object(value, schema, document, where)


def check_object(value: dict[str, Any], schema: dict[str, Any], document: dict[str, Any], where: str) -> None:
    known, others = schema.get("properties", {}), schema.get("additionalProperties", {})
    assert set(schema.get("required", ())) <= set(value), (where, set(schema["required"]) - set(value))
    for name, each in value.items():
        assert name in known or others is not False, (where, name)
        check(each, known.get(name, others), document, f"{where}.{name}")


def is_of(value: Any, kind: str) -> bool:
    if isinstance(value, bool):
        return kind == "boolean"
    return isinstance(value, TYPES[kind])


def fits(value: Any, schema: dict[str, Any], document: dict[str, Any]) -> bool:
    try:
        check(value, schema, document)
    except AssertionError:
        return False
    return True


def check_answer(answer: Answer, method: str, path: str, document: dict[str, Any]) -> Any:
    """The content of an answer to an operation, which must be described with this status and media type."""
    described = document["paths"][path][method.lower()]["responses"]
    assert str(answer.status) in described, (method, path, answer.status, answer.text[:500])
    ((media, content),) = described[str(answer.status)]["content"].items()
    assert answer.headers["Content-Type"].partition(";")[0] == media, (method, path)
    value = json.loads(answer.text)
    check(value, content["schema"], document, f"{method} {path} {answer.status}")
    return value
