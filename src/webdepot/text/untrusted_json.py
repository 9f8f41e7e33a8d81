"""JSON that other people wrote: parsed only if it cannot become gigabytes of objects. Three bytes of JSON can
be a value that takes a hundred bytes of memory.
"""

import json
from typing import Any

MOST_VALUES = 2_000_000


def loads(data: bytes) -> Any:
    """The value; ValueError or RecursionError if it is not JSON, has too many values or nests too deeply."""
    if data.count(b",") + data.count(b"[") + data.count(b"{") > MOST_VALUES:
        raise ValueError("it has too many values")
    return json.loads(data)
