"""Requests with a body, folded into an address, so that responses to different requests of one address have
different keys.

    POST http://example.org/api  {"q": "clock"}   ->   http://example.org/api?__wb_method=POST&q=clock

This is the convention that cdxj-indexer, pywb and the replay worker share
(https://specs.webrecorder.net/request-body-canonicalization/latest/): forms and JSON become arguments,
everything else base 64. If the tools differ (`null`, `1.0`), we write what a script in a browser would,
because scripts send these requests.
"""

import base64
import json
from typing import Any
from urllib.parse import unquote_plus, urlencode

LONGEST_QUERY = 4096
MOST_BODY_BYTES = 1 << 16
_DEEPEST = 100


def folded(url: str, method: str, content_type: str, body: bytes) -> str:
    """The address under which the response is found; the address itself for GET."""
    method = method.upper()
    if method in ("GET", "HEAD"):
        return url
    query = _query(content_type, body)[:LONGEST_QUERY] if method in ("POST", "PUT", "PATCH") and body else ""
    return f"{url}{'&' if '?' in url else '?'}__wb_method={method}{'&' if query else ''}{query}"


def _query(content_type: str, body: bytes) -> str:
    from python_multipart.multipart import parse_options_header  # slow to load, and few containers need it

    mime, options = parse_options_header(content_type)
    match mime.decode("latin-1"):
        case "application/x-www-form-urlencoded":
            try:
                return unquote_plus(body.decode("utf-8"))
            except UnicodeDecodeError:
                return _binary(body)
        case "multipart/form-data":
            return _multipart(body, options.get(b"boundary", b"")) or _binary(body)
        case "application/json":
            return _json(body) or ""
        case "text/plain":
            return _json(body) or _binary(body)
        case _:
            return _binary(body)


def _binary(body: bytes) -> str:
    return f"__wb_post_data={base64.b64encode(body).decode('ascii')}"


def _multipart(body: bytes, boundary: bytes) -> str:
    """Names and values of the parts; empty if it cannot be read."""
    from python_multipart.multipart import parse_options_header

    values: list[tuple[str, bytes]] = []
    for part in body.split(b"--" + boundary)[1:] if boundary else []:
        head, mark, value = part.partition(b"\r\n\r\n")
        disposition = next(
            (line for line in head.split(b"\r\n") if line.lower().startswith(b"content-disposition:")), b""
        )
        name = parse_options_header(disposition.partition(b":")[2].strip())[1].get(b"name")
        if mark and name is not None:
            values.append((name.decode("utf-8", "replace"), value.removesuffix(b"\r\n")))
    return urlencode(values)


def _json(body: bytes) -> str | None:
    """Every value under its own name, however deep; the second of a name is `name.2_`. None if it is not
    JSON.
    """
    try:
        documents = [json.loads(body)]
    except (ValueError, RecursionError):
        try:
            documents = (
                [json.loads(line) for line in body.split(b"\n") if line.strip()] if b"\n" in body else []
            )
        except (ValueError, RecursionError):
            return None
    if not documents:
        return None
    arguments: dict[str, str] = {}
    counts: dict[str, int] = {}
    for document in documents:
        for name, value in _values(document, "", 0):
            counts[name] = counts.get(name, 0) + 1
            arguments[name if counts[name] == 1 else f"{name}.{counts[name]}_"] = value
    return urlencode(arguments, errors="replace")  # JSON can name half a character (a surrogate)


def _values(node: Any, name: str, depth: int) -> list[tuple[str, str]]:
    if depth > _DEEPEST:
        return []
    if isinstance(node, dict):
        return [pair for key, value in node.items() for pair in _values(value, key, depth + 1)]
    if isinstance(node, list):
        return [pair for value in node for pair in _values(value, name, depth + 1)]
    return [(name, _as_script_would(node))] if name else []


def _as_script_would(value: object) -> str:
    if value is None or isinstance(value, bool):
        return json.dumps(value)
    return (
        str(int(value))
        if isinstance(value, float) and value.is_integer() and abs(value) < 1e21
        else str(value)
    )
