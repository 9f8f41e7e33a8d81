"""The CDX server's questions: parameters as pywb and as the Internet Archive's server take them, read into
one value.

    url, matchType, from, to, limit, sort, closest, filter, fl or fields, collapse, collapseTime, output,
    page, pageSize, showNumPages, resumeKey, showResumeKey, resolveRevisits, allowFuzzy

The two dialects differ in what an answer looks like and in filters without a sign; `Dialect` says which is
meant.

* pywb (https://pywb.readthedocs.io/en/latest/manual/cdxserver_api.html): `filter=[!][=|~]field:text`, without
  a sign the field contains it;
* Internet Archive (https://github.com/internetarchive/wayback/tree/master/wayback-cdx-server):
  `filter=[!]field:expression`, the whole field.

Expressions are read by RE2, which takes time in proportion to the text: a stranger's expression cannot hold
the server up.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any
from urllib.parse import quote, unquote

import re2  # type: ignore[import-untyped]

from webdepot.errors import InputError
from webdepot.model import Capture, RecordKind
from webdepot.ports import Position, Span
from webdepot.times import period_of, to_timestamp
from webdepot.url import UrlMatch, split_wildcard

MOST_LINES = 150_000
"""Of one answer; what is left is fetched with its resume key."""
PAGE_LINES = 3000
MOST_PAGE_LINES = 10_000
MOST_FILTERS = 16
LONGEST_EXPRESSION = 500
_MOST_ASKED = frozenset({"url", "output", "matchType"})
_EVER = ("0" * 14, "9" * 14)
_FILTER = re.compile(r"(!?)([=~]?)([A-Za-z_-]{1,30}):(.*)\Z", re.DOTALL)


class Dialect(StrEnum):
    PYWB = "pywb"
    INTERNET_ARCHIVE = "internet archive"


class Sort(StrEnum):
    DEFAULT = "default"
    REVERSE = "reverse"
    CLOSEST = "closest"


class Output(StrEnum):
    CDXJ = "cdxj"
    JSON = "json"
    TEXT = "text"
    LINK = "link"


_MATCHES = {match.value: match for match in UrlMatch}
_SORTS = {sort.value: sort for sort in Sort}
_OUTPUTS = {output.value: output for output in Output}
FIELDS: dict[str, Callable[[Capture], str]] = {
    "urlkey": lambda capture: capture.key,
    "timestamp": lambda capture: capture.timestamp,
    "url": lambda capture: capture.url,
    "mime": lambda capture: "warc/revisit" if capture.kind is RecordKind.REVISIT else capture.mime,
    "status": lambda capture: str(capture.status) if capture.status else "-",
    "digest": lambda capture: capture.digest or "-",
    "redirect": lambda capture: capture.redirect or "-",
    "length": lambda capture: str(capture.location.length),
    "offset": lambda capture: str(capture.location.offset),
    "filename": lambda capture: capture.location.container,
}
"""The fields of a capture in pywb's names."""
_FOREIGN = {"original": "url", "mimetype": "mime", "statuscode": "status"}
"""The Internet Archive's names."""
_USUAL = {
    Dialect.PYWB: ("urlkey", "timestamp", "url", "mime", "status", "digest", "length", "offset", "filename"),
    Dialect.INTERNET_ARCHIVE: (
        "urlkey",
        "timestamp",
        "original",
        "mimetype",
        "statuscode",
        "digest",
        "length",
    ),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class CdxQuery:
    dialect: Dialect
    url: str
    match: UrlMatch
    span: Span
    sort: Sort = Sort.DEFAULT
    closest: str = ""
    filters: tuple[Callable[[Capture], bool], ...] = ()
    fields: tuple[str, ...] = ()
    """As asked for; the dialect's usual ones otherwise."""
    has_fields: bool = False
    collapse: tuple[tuple[str, int], ...] = ()
    """Field and how many of its first signs; 0 means all."""
    output: Output = Output.CDXJ
    limit: int = MOST_LINES
    last: bool = False
    """The last ones instead of the first."""
    page: int | None = None
    page_lines: int = PAGE_LINES
    counts_pages: bool = False
    after: Position | None = None
    shows_resume_key: bool = False
    resolves_revisits: bool = False
    allows_fuzzy: bool = False

    @property
    def is_plain(self) -> bool:
        """Whether it is about one address and every capture that is read is part of the answer."""
        searches = (
            self.filters
            or self.collapse
            or self.counts_pages
            or self.last
            or self.page is not None
            or self.resolves_revisits
        )
        return self.match is UrlMatch.EXACT and not searches


def parse(parameters: Iterable[tuple[str, str]], dialect: Dialect) -> CdxQuery:
    """Read a query string; InputError names the parameter that is wrong. Unknown parameters are passed over,
    as both servers do.
    """
    given: dict[str, str] = {}
    filters: list[str] = []
    collapse: list[str] = []
    for name, value in parameters:
        if name == "filter":
            filters.append(value)
        elif name == "collapse":
            collapse.append(value)
        given.setdefault(name, value)
    if not given.get("url", "").strip():
        raise InputError("The parameter url is missing. Example: cdx?url=example.org&limit=10")
    if len(filters) > MOST_FILTERS:
        raise InputError(f"At most {MOST_FILTERS} filters are read.")
    url, match = _url(given)
    if given.keys() <= _MOST_ASKED:  # as most machines ask
        return CdxQuery(
            dialect=dialect,
            url=url,
            match=match,
            span=_EVER,
            fields=_USUAL[dialect],
            output=_output(given, dialect),
        )
    sort, closest = _sort(given, match)
    limit = _number(given, "limit", MOST_LINES, lowest=-MOST_LINES)
    if limit < 0 and match is not UrlMatch.EXACT:
        raise InputError("limit below 0 (the last ones) is for one address only. Take matchType=exact.")
    fields = _fields(given.get("fl") or given.get("fields") or "", dialect)
    if "collapseTime" in given:
        collapse.append(f"timestamp:{given['collapseTime']}")
    return CdxQuery(
        dialect=dialect,
        url=url,
        match=match,
        span=_span(given),
        sort=sort,
        closest=closest,
        filters=tuple(_filter(text, dialect) for text in filters),
        fields=fields or _USUAL[dialect],
        has_fields=bool(fields),
        collapse=tuple(_collapse(text) for text in collapse),
        output=_output(given, dialect),
        limit=min(abs(limit), MOST_LINES),
        last=limit < 0,
        page=_number(given, "page", 0, lowest=0) if "page" in given else None,
        page_lines=min(_number(given, "pageSize", 1, lowest=1) * PAGE_LINES, MOST_PAGE_LINES),
        counts_pages=_is_true(given, "showNumPages"),
        after=_position(given["resumeKey"]) if given.get("resumeKey") else None,
        shows_resume_key=_is_true(given, "showResumeKey"),
        resolves_revisits=_is_true(given, "resolveRevisits"),
        allows_fuzzy=_is_true(given, "allowFuzzy"),
    )


def selected(captures: Iterator[Capture], query: CdxQuery) -> Iterator[Capture]:
    """Those that pass the filters, of equal neighbours the first."""
    known: tuple[str, ...] | None = None
    for capture in captures:
        if not all(passes(capture) for passes in query.filters):
            continue
        if query.collapse:
            values = (
                value[:width] if width else value
                for name, width in query.collapse
                for value in [FIELDS[name](capture)]
            )
            seen = tuple(values)
            if seen == known:
                continue
            known = seen
        yield capture


def values(capture: Capture, query: CdxQuery) -> list[str]:
    """The wanted fields of a capture, in order. The Internet Archive writes digests without their label."""
    row = [FIELDS[_FOREIGN.get(name, name)](capture) for name in query.fields]
    if query.dialect is Dialect.INTERNET_ARCHIVE:
        row = [value.removeprefix("sha1:") for value in row]
    return row


def resume_key(position: Position) -> str:
    return quote(f"{position.key} {position.timestamp} {position.container} {position.offset}", safe="")


def _position(text: str) -> Position:
    for form in (text, unquote(text)):
        parts = form.split(" ")
        if (
            len(parts) == 4
            and parts[3].isascii()
            and parts[3].isdigit()
            and len(parts[3]) < 18
            and _is_stamp(parts[1])
        ):
            return Position(key=parts[0], timestamp=parts[1], container=parts[2], offset=int(parts[3]))
    raise InputError(f"resumeKey {text[:100]!r} is none that this server gave.")


def _is_stamp(text: str) -> bool:
    return len(text) == 14 and text.isascii() and text.isdigit()


def _url(given: dict[str, str]) -> tuple[str, UrlMatch]:
    url, wildcard = split_wildcard(given["url"])
    asked = given.get("matchType", "")
    if not asked:
        return url, wildcard
    if asked not in _MATCHES:
        raise InputError(f"matchType {asked[:50]!r} is unknown. Take one of {', '.join(UrlMatch)}.")
    return url, _MATCHES[asked]


def _sort(given: dict[str, str], match: UrlMatch) -> tuple[Sort, str]:
    asked = given.get("sort", "") or (Sort.CLOSEST.value if given.get("closest") else "")
    if not asked:
        return Sort.DEFAULT, ""
    if asked not in _SORTS:
        raise InputError(f"sort {asked[:50]!r} is unknown. Take reverse or closest.")
    sort = _SORTS[asked]
    if sort is not Sort.DEFAULT and match is not UrlMatch.EXACT:
        raise InputError(f"sort={sort} is for one address only. Take matchType=exact.")
    closest = given.get("closest", "")
    if sort is Sort.CLOSEST:
        return sort, _stamp(closest, "closest", end=False)
    return sort, ""


def _span(given: dict[str, str]) -> Span:
    if not given.get("from") and not given.get("to"):
        return _EVER
    first = _stamp(given["from"], "from", end=False) if given.get("from") else "0" * 14
    last = _stamp(given["to"], "to", end=True) if given.get("to") else "9" * 14
    return first, last


def _stamp(text: str, name: str, *, end: bool) -> str:
    try:
        period = period_of(text)
    except ValueError:
        raise InputError(
            f"{name} {text[:30]!r} is no timestamp. Write 4 to 14 digits: 2019 or 20190304050607."
        ) from None
    return to_timestamp(period.end if end else period.start)


def _filter(text: str, dialect: Dialect) -> Callable[[Capture], bool]:
    found = _FILTER.match(text)
    name = _FOREIGN.get(found[3], found[3]) if found else ""
    if not found or name not in FIELDS:
        raise InputError(f"filter {text[:100]!r} is none. Write field:text with one of {', '.join(FIELDS)}.")
    is_not, sign, wanted, field = found[1] == "!", found[2], found[4], FIELDS[name]
    if sign == "=":
        return lambda capture: (field(capture) == wanted) != is_not
    if not sign and dialect is Dialect.PYWB:
        return lambda capture: (wanted in field(capture)) != is_not
    expression = _expression(wanted)
    matches = expression.fullmatch if dialect is Dialect.INTERNET_ARCHIVE else expression.match
    return lambda capture: (matches(field(capture)) is not None) != is_not


def _expression(text: str) -> Any:
    if len(text) > LONGEST_EXPRESSION:
        raise InputError(f"The expression {text[:50]!r}… is longer than {LONGEST_EXPRESSION} signs.")
    options = re2.Options()
    options.log_errors = False
    options.max_mem = 1 << 20
    try:
        return re2.compile(text, options)
    except re2.error as error:
        raise InputError(f"The expression {text[:100]!r} cannot be read: {error}") from None


def _fields(text: str, dialect: Dialect) -> tuple[str, ...]:
    if not text:
        return ()
    names = tuple(name.strip() for name in text.split(",") if name.strip())
    unknown = [name for name in names if _FOREIGN.get(name, name) not in FIELDS]
    if unknown:
        raise InputError(f"The field {unknown[0][:50]!r} is unknown. Take some of {', '.join(FIELDS)}.")
    return names


def _collapse(text: str) -> tuple[str, int]:
    name, _, width = text.partition(":")
    name = _FOREIGN.get(name, name)
    if name not in FIELDS or (width and not (width.isascii() and width.isdigit() and len(width) < 5)):
        raise InputError(
            f"collapse {text[:50]!r} is none. Write a field, or a field and how many signs of it count: timestamp:8"
        )
    return name, int(width or 0)


def _output(given: dict[str, str], dialect: Dialect) -> Output:
    asked = given.get("output", "")
    if not asked:
        return Output.CDXJ if dialect is Dialect.PYWB else Output.TEXT
    if asked not in _OUTPUTS:
        raise InputError(f"output {asked[:50]!r} is unknown. Take one of {', '.join(Output)}.")
    return _OUTPUTS[asked]


def _number(given: dict[str, str], name: str, default: int, *, lowest: int) -> int:
    text = given.get(name, "")
    if not text:
        return default
    if not re.match(r"-?[0-9]{1,12}\Z", text, re.ASCII) or int(text) < lowest:
        raise InputError(f"{name} {text[:30]!r} is no number from {lowest}.")
    return int(text)


def _is_true(given: dict[str, str], name: str) -> bool:
    return given.get(name, "").lower() in ("true", "1", "yes")


def within(spans: Sequence[Span], span: Span) -> tuple[Span, ...]:
    """The part of open spans that lies in a span."""
    if span is _EVER:
        return tuple(spans)
    return tuple(
        (max(first, span[0]), min(last, span[1]))
        for first, last in spans
        if first <= span[1] and last >= span[0]
    )
