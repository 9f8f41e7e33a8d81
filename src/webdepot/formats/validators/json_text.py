"""JSON, strictly by RFC 8259: one value, no NaN, no trailing comma, a Unicode encoding."""

import json
from collections import Counter
from typing import Any, BinaryIO

from webdepot.formats.texts import finding
from webdepot.formats.validation_result import CheckResult, Validity, judge

LONGEST_JSON_BYTES = 8 << 20


def check_json(stream: BinaryIO) -> CheckResult:
    data = stream.read(LONGEST_JSON_BYTES + 1)
    if len(data) > LONGEST_JSON_BYTES:
        return CheckResult(
            validity=Validity.NOT_CHECKED,
            findings=[finding("too-large", detail=f"more than {LONGEST_JSON_BYTES} bytes")],
        )
    repeated: list[str] = []
    try:
        value = json.loads(
            data,
            parse_constant=_refuse,
            object_pairs_hook=lambda pairs: _to_dict(pairs, repeated),
            parse_int=str,
        )
    except RecursionError:
        return CheckResult(
            validity=Validity.NOT_CHECKED,
            findings=[finding("nested-too-deep", detail="more levels than can be read")],
        )
    except UnicodeDecodeError as error:
        return judge([finding("json-not-valid", place=f"byte {error.start}", detail=error.reason)])
    except json.JSONDecodeError as error:
        return judge(
            [finding("json-not-valid", place=f"line {error.lineno}, column {error.colno}", detail=error.msg)]
        )
    except ValueError as error:
        return judge([finding("json-not-valid", detail=error)])
    kind = "object" if isinstance(value, dict) else "array" if isinstance(value, list) else "value"
    return judge(
        [finding("json-names-repeated", detail=name) for name in repeated[:3]],
        {"root": kind, "encoding": "US-ASCII" if data.isascii() else json.detect_encoding(data).upper()},
    )


def _to_dict(pairs: list[tuple[str, Any]], repeated: list[str]) -> dict[str, Any]:
    """The object; a name that occurs twice is added to `repeated`."""
    members = dict(pairs)
    if len(members) != len(pairs):
        repeated.append(Counter(name for name, _ in pairs).most_common(1)[0][0])
    return members


def _refuse(constant: str) -> None:
    raise ValueError(f"{constant} is not a JSON value")
