"""JSON by RFC 8259, strictly: one value, no NaN, no trailing comma, an encoding of Unicode."""

import json
from typing import Any, BinaryIO

from webdepot.formats.texts import finding
from webdepot.formats.validity import Validity
from webdepot.model import Finding

LONGEST_JSON_BYTES = 32 << 20


def check_json(stream: BinaryIO) -> tuple[Validity, list[Finding]]:
    data = stream.read(LONGEST_JSON_BYTES + 1)
    if len(data) > LONGEST_JSON_BYTES:
        return Validity.NOT_CHECKED, [finding("too-large", detail=f"more than {LONGEST_JSON_BYTES} bytes")]
    repeated: list[str] = []
    try:
        json.loads(data, parse_constant=_refuse, object_pairs_hook=lambda pairs: _note_repeated(pairs, repeated), parse_int=str)
    except RecursionError:
        return Validity.NOT_CHECKED, [finding("nested-too-deep", detail="more levels than can be read")]
    except UnicodeDecodeError as error:
        return Validity.NOT_VALID, [finding("json-not-valid", place=f"byte {error.start}", detail=error.reason)]
    except json.JSONDecodeError as error:
        return Validity.NOT_VALID, [finding("json-not-valid", place=f"line {error.lineno}, column {error.colno}", detail=error.msg)]
    except ValueError as error:
        return Validity.NOT_VALID, [finding("json-not-valid", detail=error)]
    return Validity.VALID, [finding("json-names-repeated", detail=name) for name in repeated[:3]]


def _note_repeated(pairs: list[tuple[str, Any]], repeated: list[str]) -> None:
    names = [name for name, _ in pairs]
    if len(names) != len(set(names)):
        repeated.append(next(name for name in names if names.count(name) > 1))


def _refuse(constant: str) -> None:
    raise ValueError(f"{constant} is no JSON value")
