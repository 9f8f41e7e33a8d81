"""Answers of OpenWayback's XML query (`xmlquery`), which OutbackCDX gives, too: for OpenWayback with a remote
index, and for pywb's `xmlquery+http` sources.

    ?q=type:urlquery+url:http%3A%2F%2Fexample.org%2F       the captures of an address
    ?q=type:prefixquery+url:…                              the addresses that begin with it, with counts

`limit`, `offset`, `startdate` and `enddate` are further words of the query; `count` and `start_page` are
parameters of the request.
"""

from collections.abc import Iterable, Iterator, Mapping
from itertools import groupby, islice
from urllib.parse import unquote_plus
from xml.sax.saxutils import escape

from webdepot.access import cdx
from webdepot.access.cdx import Dialect
from webdepot.access.policy import Reader
from webdepot.archive import Archive
from webdepot.errors import InputError
from webdepot.model import Capture
from webdepot.services.access.cdx import cdx_server
from webdepot.times import to_timestamp

MOST_RESULTS = 10_000
MOST_COUNTED = 10_000
"""Results after the last returned one that are counted for `numresults`."""
_MATCHES = {"urlquery": "exact", "prefixquery": "prefix"}
_FIELDS = {
    "compressedoffset": "offset",
    "compressedendoffset": "length",
    "mimetype": "mime",
    "file": "filename",
    "redirecturl": "redirect",
    "urlkey": "urlkey",
    "digest": "digest",
    "httpresponsecode": "status",
    "robotflags": "robotflags",
    "url": "url",
    "capturedate": "timestamp",
}
"""Names here -> names of `access.cdx.FIELDS`. The end of a record is its length, as OutbackCDX writes it."""


def answer(archive: Archive, parameters: Mapping[str, str], *, reader: Reader, collection: str) -> str:
    """The XML answer to a request; InputError names what is wrong with it."""
    words = _words(parameters.get("q", ""))
    kind = words.get("type", "urlquery").lower()
    if kind not in _MATCHES:
        raise InputError(f"type {kind[:40]!r} is not supported. Use urlquery or prefixquery.")
    limit = _number(parameters.get("count") or words.get("limit", str(MOST_RESULTS)), "count")
    limit = min(max(limit, 1), MOST_RESULTS)
    page = _number(parameters.get("start_page", "1"), "start_page")
    offset = (
        limit * (max(page, 1) - 1)
        if "start_page" in parameters
        else _number(words.get("offset", "0"), "offset")
    )
    pairs = [("url", words.get("url", "")), ("matchType", _MATCHES[kind])]
    pairs += [
        (name, words[word]) for name, word in (("from", "startdate"), ("to", "enddate")) if word in words
    ]
    query = cdx.parse(pairs, Dialect.OUTBACKCDX)
    captures = cdx_server.find(archive, query, reader=reader, collection=collection).captures
    results = map(_capture, captures) if kind == "urlquery" else _addresses(captures)
    rest = islice(results, offset, None)
    written = list(islice(rest, limit))
    if not written:
        return _document(
            "<error><title>Resource Not In Archive</title>"
            "<message>The Resource you requested is not in this archive.</message></error>"
        )
    total = offset + len(written) + sum(1 for _ in islice(rest, MOST_COUNTED))
    request = {
        "startdate": words.get("startdate", "19960101000000"),
        "enddate": words.get("enddate", to_timestamp(archive.clock())),
        "type": kind,
        "firstreturned": offset,
        "url": query.url,
        "resultsrequested": limit,
        "resultstype": "resultstypecapture" if kind == "urlquery" else "resultstypeurl",
        "numreturned": len(written),
        "numresults": total,
    }
    return _document(f"<results>{''.join(written)}</results><request>{_elements(request)}</request>")


def _words(text: str) -> dict[str, str]:
    """The words of `q`: name and value, each escaped once more (https://github.com/iipc/openwayback)."""
    pairs = (word.partition(":") for word in text.split(" ") if word)
    return {unquote_plus(name).lower(): unquote_plus(value) for name, _, value in pairs}


def _number(text: str, name: str) -> int:
    if not text.isascii() or not text.isdigit() or len(text) > 9:
        raise InputError(f"{name} must be a whole number, not {text[:40]!r}.")
    return int(text)


def _capture(capture: Capture) -> str:
    return (
        f"<result>{_elements({name: cdx.FIELDS[field](capture) for name, field in _FIELDS.items()})}</result>"
    )


def _addresses(captures: Iterable[Capture]) -> Iterator[str]:
    """One result for each address, with how many captures and different contents it has."""
    for key, group in groupby(captures, key=lambda capture: capture.key):
        first = last = None
        versions = count = 0
        for capture in group:
            versions += last is None or capture.digest != last.digest
            count, first, last = count + 1, first or capture, capture
        if first is None or last is None:  # never: a group has a capture
            continue
        values = {
            "urlkey": key,
            "originalurl": last.url,
            "numversions": versions,
            "numcaptures": count,
            "firstcapturets": first.timestamp,
            "lastcapturets": last.timestamp,
        }
        yield f"<result>{_elements(values)}</result>"


def _elements(values: Mapping[str, object]) -> str:
    return "".join(f"<{name}>{_text(str(value))}</{name}>" for name, value in values.items())


def _text(value: str) -> str:
    return escape(
        "".join(letter if letter.isprintable() else "\N{REPLACEMENT CHARACTER}" for letter in value)
    )


def _document(content: str) -> str:
    return f'<?xml version="1.0" encoding="UTF-8"?>\n<wayback>{content}</wayback>\n'
