"""Paging by cursors. A cursor names the last row of a page by the values that the list is sorted by, so it
stays valid when rows are added or removed: nothing is skipped and nothing comes twice.

    cursor    base64url of a JSON array with those values; clients must not look inside
"""

import base64
import json
from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Any, TypeVar

from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from webdepot.errors import InputError
from webdepot.times import from_iso
from webdepot.web.api.input_fields import MOST_NUMBER, FieldKind, InputField
from webdepot.web.site import site_of

ROWS = 50
MOST_ROWS = 200
_EARLIEST_YEAR = 1990
Row = TypeVar("Row")
PAGING = (
    InputField(
        name="limit",
        meaning=f"Rows on a page. Default: {ROWS}.",
        kind=FieldKind.WHOLE,
        least=1,
        highest=MOST_ROWS,
    ),
    InputField(name="cursor", meaning="The `next_cursor` of the previous page, unchanged.", longest=500),
)
"""The parameters of every list."""


def read_cursor(text: str, *kinds: type) -> tuple[Any, ...] | None:
    """The values of a cursor, one of each kind (str, int or datetime); None for an empty text. InputError if
    it is not a cursor of this list.
    """
    if not text:
        return None
    try:
        raw = base64.b64decode(text.encode("ascii"), altchars=b"-_", validate=True)
        values = json.loads(raw.decode("utf-8"))
        if not isinstance(values, list) or len(values) != len(kinds):
            raise ValueError
        return tuple(_read(value, kind) for value, kind in zip(values, kinds, strict=True))
    except (ValueError, TypeError, RecursionError):
        raise InputError(
            "The cursor does not belong to this list. Send the next_cursor of the previous page."
        ) from None


def _read(value: object, kind: type) -> object:
    if kind is datetime:
        moment = from_iso(value) if isinstance(value, str) else None
        if moment is None or moment.year < _EARLIEST_YEAR:
            raise ValueError
        return moment
    if type(value) is not kind or (isinstance(value, int) and not 0 <= value <= MOST_NUMBER):
        raise ValueError
    if isinstance(value, str) and ("\0" in value or not value.isprintable()):
        raise ValueError
    return value


def make_cursor(*values: object) -> str:
    plain = [value.isoformat() if isinstance(value, datetime) else value for value in values]
    return base64.urlsafe_b64encode(json.dumps(plain, separators=(",", ":")).encode()).decode("ascii")


def answer_page(
    request: Request,
    rows: Sequence[Row],
    limit: int,
    *,
    shown: Callable[[Row], dict[str, Any]],
    cursor_of: Callable[[Row], str],
) -> Response:
    """One page of a list, from at most `limit` + 1 rows; an extra row means that there is a next page."""
    following = cursor_of(rows[limit - 1]) if len(rows) > limit else None
    headers = {}
    if following is not None:
        own = request.url.include_query_params(cursor=following)
        headers["Link"] = f'<{site_of(request).portal_url}{own.path}?{own.query}>; rel="next"'
    page = {"items": [shown(row) for row in rows[:limit]], "next_cursor": following}
    return JSONResponse(page, headers=headers)


def describe_page(items: dict[str, Any]) -> dict[str, Any]:
    """The schema of one page of a list."""
    return {
        "type": "object",
        "properties": {
            "items": {"type": "array", "items": items},
            "next_cursor": {
                "type": ["string", "null"],
                "description": "Send it as `cursor` to get the next page; null on the last one.",
            },
        },
        "required": ["items", "next_cursor"],
        "additionalProperties": False,
    }
