"""What a program may send to the API: fields of a JSON body and parameters of a query, each described once.

The same table checks the input and describes it in OpenAPI. A field that is missing, unknown or wrong is an
InputError that names it.
"""

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from enum import StrEnum
from typing import Any

from starlette.exceptions import HTTPException
from starlette.requests import Request

from webdepot.errors import InputError
from webdepot.web.api.openapi_parts import parameter
from webdepot.web.forms import read_body

LONGEST_BODY_BYTES = 256 << 10
MOST_NUMBER = 2**53 - 1
"""The largest whole number that every JSON parser reads exactly (RFC 8259, 6)."""
_DAY = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}\Z")
_WHOLE = re.compile(r"[0-9]{1,16}\Z")
_FLAGS = {"true": True, "false": False}


class FieldKind(StrEnum):
    """What a field holds; the names are those of JSON Schema, but for `day`."""

    TEXT = "string"
    WHOLE = "integer"
    NUMBER = "number"
    FLAG = "boolean"
    DAY = "day"
    TEXTS = "array"
    """A list of texts."""


@dataclass(frozen=True, slots=True, kw_only=True)
class InputField:
    name: str
    meaning: str
    """What it means, for the description of the API."""
    kind: FieldKind = FieldKind.TEXT
    choices: tuple[str, ...] = ()
    required: bool = False
    longest: int = 2000
    """Characters of a text, or of each text of a list."""
    most: int = 1000
    """Texts of a list."""
    least: int = 0
    """The smallest number."""
    highest: int = MOST_NUMBER

    def schema(self) -> dict[str, Any]:
        """The field in JSON Schema."""
        match self.kind:
            case FieldKind.TEXT if self.choices:
                return {"type": "string", "enum": list(self.choices)}
            case FieldKind.TEXT:
                return {"type": "string", **self._shortest("minLength"), "maxLength": self.longest}
            case FieldKind.WHOLE | FieldKind.NUMBER:
                return {"type": self.kind.value, "minimum": self.least, "maximum": self.highest}
            case FieldKind.DAY:
                return {"type": "string", "format": "date"}
            case FieldKind.TEXTS:
                text = {"type": "string", "maxLength": self.longest}
                return {"type": "array", "items": text, **self._shortest("minItems"), "maxItems": self.most}
            case FieldKind.FLAG:
                return {"type": "boolean"}

    def _shortest(self, keyword: str) -> dict[str, Any]:
        """The smallest length of a required value, which must not be empty; no limit for other fields."""
        return {keyword: 1} if self.required else {}

    def check(self, value: object) -> Any:
        """The value of a JSON body; InputError if it is not of this kind, or empty though it is required."""
        checked = _CHECKS[self.kind](self, value)
        if checked is None or (self.required and checked in ("", [])):
            raise InputError(f"{self.name}: {_shown(value)} is not {self.wanted()}.")
        return checked

    def parse(self, text: str) -> Any:
        """The value of a query parameter; InputError if it is not of this kind."""
        value: object = text
        if self.kind is FieldKind.WHOLE and _WHOLE.match(text):
            value = int(text)
        elif self.kind is FieldKind.FLAG:
            value = _FLAGS.get(text, text)
        return self.check(value)

    def wanted(self) -> str:
        """What it should be, for messages."""
        match self.kind:
            case FieldKind.TEXT if self.choices:
                return f"one of {', '.join(self.choices)}"
            case FieldKind.TEXT:
                return f"a text of at most {self.longest} characters"
            case FieldKind.WHOLE:
                return f"a whole number from {self.least} to {self.highest}"
            case FieldKind.NUMBER:
                return f"a number from {self.least} to {self.highest}"
            case FieldKind.DAY:
                return "a day like 2026-01-31"
            case FieldKind.TEXTS:
                return f"a list of at most {self.most} texts of at most {self.longest} characters"
            case FieldKind.FLAG:
                return "true or false"


def _shown(value: object) -> str:
    return json.dumps(value)[:60]


def _is_text(value: object, longest: int) -> bool:
    """Whether it can be stored: PostgreSQL has no NUL, and half of a surrogate pair is not a character."""
    if not isinstance(value, str) or len(value) > longest or "\0" in value:
        return False
    return not any("\ud800" <= char <= "\udfff" for char in value)


def _check_text(field: InputField, value: object) -> str | None:
    if not isinstance(value, str) or not _is_text(value, field.longest):
        return None
    return value if not field.choices or value in field.choices else None


def _check_number(field: InputField, value: object) -> int | float | None:
    kinds = (int,) if field.kind is FieldKind.WHOLE else (int, float)
    if isinstance(value, float) and value.is_integer() and abs(value) <= MOST_NUMBER:
        value = int(value)  # 1.0 is an integer in JSON Schema
    if isinstance(value, bool) or not isinstance(value, kinds):
        return None
    return value if field.least <= value <= field.highest else None


def _check_flag(field: InputField, value: object) -> bool | None:
    return value if isinstance(value, bool) else None


def _check_day(field: InputField, value: object) -> date | None:
    if not isinstance(value, str) or not _DAY.match(value):
        return None
    try:
        return date.fromisoformat(value)
    except ValueError:
        return None


def _check_texts(field: InputField, value: object) -> list[str] | None:
    if not isinstance(value, list) or len(value) > field.most:
        return None
    return value if all(_is_text(each, field.longest) for each in value) else None


_CHECKS: Mapping[FieldKind, Callable[[InputField, object], Any]] = {
    FieldKind.TEXT: _check_text,
    FieldKind.WHOLE: _check_number,
    FieldKind.NUMBER: _check_number,
    FieldKind.FLAG: _check_flag,
    FieldKind.DAY: _check_day,
    FieldKind.TEXTS: _check_texts,
}


async def read_json(request: Request, fields: Sequence[InputField]) -> dict[str, Any]:
    """The fields of a JSON body that were sent. An empty body is an object without fields."""
    body = await read_body(request, longest=LONGEST_BODY_BYTES)
    if not body:
        return _checked({}, fields)
    if request.headers.get("content-type", "").partition(";")[0].strip().lower() != "application/json":
        raise HTTPException(415, "Send JSON with the header Content-Type: application/json.")
    try:
        sent = json.loads(body.decode("utf-8"), parse_constant=_refuse_constant)
    except (ValueError, RecursionError) as error:
        raise InputError(f"The body is not valid JSON: {error}."[:300]) from None
    if not isinstance(sent, dict):
        raise InputError("The body is not a JSON object. Send one, with the fields by name.")
    return _checked(sent, fields)


def _refuse_constant(name: str) -> object:
    raise ValueError(f"{name} is not a number of JSON")


def _checked(sent: Mapping[str, object], fields: Sequence[InputField]) -> dict[str, Any]:
    known = {field.name: field for field in fields}
    for name in sent:
        if name not in known:
            raise InputError(f"{_shown(name)} is not a field here. Known: {', '.join(known) or 'none'}.")
    for field in fields:
        if field.required and field.name not in sent:
            raise InputError(f"The field {field.name} is missing. Send {field.wanted()}.")
    return {name: known[name].check(value) for name, value in sent.items()}


def read_query(request: Request, fields: Sequence[InputField]) -> dict[str, Any]:
    """The parameters of a query that were sent; `lang` is known everywhere."""
    known = {field.name: field for field in fields}
    values: dict[str, Any] = {}
    for name, text in request.query_params.multi_items():
        if name == "lang":
            continue
        if name not in known:
            raise InputError(f"{_shown(name)} is not a parameter here. Known: {', '.join(known) or 'none'}.")
        if name in values:
            raise InputError(f"The parameter {name} was sent twice.")
        values[name] = known[name].parse(text)
    return values


def describe_body(fields: Sequence[InputField]) -> dict[str, Any]:
    """A JSON body in OpenAPI."""
    required = [field.name for field in fields if field.required]
    schema: dict[str, Any] = {
        "type": "object",
        "properties": {field.name: {**field.schema(), "description": field.meaning} for field in fields},
        "additionalProperties": False,
        **({"required": required} if required else {}),
    }
    return {"required": bool(required), "content": {"application/json": {"schema": schema}}}


def describe_query(fields: Sequence[InputField]) -> list[dict[str, Any]]:
    """Parameters of a query in OpenAPI."""
    return [
        {**parameter(field.name, field.meaning, required=field.required), "schema": field.schema()}
        for field in fields
    ]
