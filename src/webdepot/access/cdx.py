"""Queries to the CDX server: parameters as pywb and as the Internet Archive's server take them, parsed into
one value.

    url, matchType, from, to, limit, sort, closest, filter, fl or fields, collapse, collapseTime, output,
    page, pageSize, showNumPages, resumeKey, showResumeKey, resolveRevisits, allowFuzzy

The two dialects (`Dialect`) differ in the form of the answer and in filters without an operator.

* pywb (https://pywb.readthedocs.io/en/latest/manual/cdxserver_api.html): `filter=[!][=|~]field:text`; without
  an operator the field must contain the text;
* Internet Archive (https://github.com/internetarchive/wayback/tree/master/wayback-cdx-server):
  `filter=[!]field:expression`; the expression must match the whole field;
* OutbackCDX (https://github.com/nla/outbackcdx): CDX lines with eleven columns, which crawlers request before
  they store a payload again; filters as in the Internet Archive's server.

Regular expressions are run by RE2 in linear time, so a hostile expression cannot block the server.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import islice
from urllib.parse import quote, unquote

from webdepot.errors import InputError, TooExpensive
from webdepot.model import Capture, RecordKind
from webdepot.ports.captures import Position, Span, place_of
from webdepot.text.patterns import LinearPattern
from webdepot.times import period_of, to_timestamp
from webdepot.url import UrlMatch, split_wildcard

MOST_LINES = 150_000
"""Maximum number of lines in one answer; the rest is fetched with the resume key."""
MOST_EXAMINED = MOST_LINES
"""Maximum number of captures read for one answer, whether they match or not; the resume key continues it."""
PAGE_LINES = 3000
MOST_PAGE_LINES = 10_000
MOST_FILTERS = 16
LONGEST_EXPRESSION = 500
LARGEST_EXPRESSION = 1_000
"""Maximum number of instructions of a compiled expression; see `patterns`."""
_MOST_ASKED = frozenset({"url", "output", "matchType"})
_EVER = ("0" * 14, "9" * 14)
_FILTER = re.compile(r"(!?)([=~]?)([A-Za-z_-]{1,30}):(.*)\Z", re.DOTALL)


class Dialect(StrEnum):
    PYWB = "pywb"
    INTERNET_ARCHIVE = "internet archive"
    OUTBACKCDX = "outbackcdx"


class CdxSort(StrEnum):
    DEFAULT = "default"
    REVERSE = "reverse"
    CLOSEST = "closest"


class CdxOutput(StrEnum):
    CDXJ = "cdxj"
    JSON = "json"
    TEXT = "text"
    LINK = "link"


_MATCHES = {match.value: match for match in UrlMatch}
_SORTS = {sort.value: sort for sort in CdxSort}
_OUTPUTS = {output.value: output for output in CdxOutput}
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
    "robotflags": lambda capture: "-",
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
    Dialect.OUTBACKCDX: (
        "urlkey",
        "timestamp",
        "original",
        "mimetype",
        "statuscode",
        "digest",
        "redirect",
        "robotflags",
        "length",
        "offset",
        "filename",
    ),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class CdxQuery:
    dialect: Dialect
    url: str
    match: UrlMatch
    span: Span
    sort: CdxSort = CdxSort.DEFAULT
    closest: str = ""
    filters: tuple[Callable[[Capture], bool], ...] = ()
    fields: tuple[str, ...] = ()
    """As asked for, else the default fields of the dialect."""
    has_fields: bool = False
    collapse: tuple[tuple[str, int], ...] = ()
    """Field, and how many of its first characters count; 0 means all."""
    output: CdxOutput = CdxOutput.CDXJ
    limit: int = MOST_LINES
    last: bool = False
    """Return the last lines instead of the first."""
    page: int | None = None
    page_lines: int = PAGE_LINES
    counts_pages: bool = False
    after: Position | None = None
    shows_resume_key: bool = False
    resolves_revisits: bool = False
    allows_fuzzy: bool = False

    @property
    def may_continue(self) -> bool:
        """Whether a resume key can continue the answer: its order is the order of the index."""
        return not self.last and self.sort is not CdxSort.CLOSEST

    @property
    def is_plain(self) -> bool:
        """Whether it is about one address and every capture that is read belongs to the answer."""
        searches = (
            self.filters
            or self.collapse
            or self.counts_pages
            or self.last
            or self.page is not None
            or self.resolves_revisits
            or self.allows_fuzzy
        )
        return self.match is UrlMatch.EXACT and not searches


def parse(parameters: Iterable[tuple[str, str]], dialect: Dialect) -> CdxQuery:
    """Parse a query string; InputError names the wrong parameter. Unknown parameters are ignored, as both
    servers do.
    """
    arguments: dict[str, str] = {}
    filters: list[str] = []
    collapse: list[str] = []
    for name, value in parameters:
        if name == "filter":
            filters.append(value)
        elif name == "collapse":
            collapse.append(value)
        # OutbackCDX calls it `limit`, but jwarc asks for `rows`.
        arguments.setdefault("limit" if name == "rows" and dialect is Dialect.OUTBACKCDX else name, value)
    if not arguments.get("url", "").strip():
        raise InputError("The parameter url is missing. Example: cdx?url=example.org&limit=10")
    if len(filters) > MOST_FILTERS:
        raise InputError(f"There are {len(filters)} filters; at most {MOST_FILTERS} are allowed.")
    url, match = _url(arguments)
    if arguments.keys() <= _MOST_ASKED:  # the most frequent form of a query
        return CdxQuery(
            dialect=dialect,
            url=url,
            match=match,
            span=_EVER,
            fields=_USUAL[dialect],
            output=_output(arguments, dialect),
        )
    sort, closest = _sort(arguments, match)
    limit = _number(arguments, "limit", MOST_LINES, lowest=-MOST_LINES)
    if limit < 0 and match is not UrlMatch.EXACT:
        raise InputError("A negative limit (the last lines) works for one address only. Use matchType=exact.")
    fields = _fields(arguments.get("fl") or arguments.get("fields") or "", dialect)
    if "collapseTime" in arguments:
        collapse.append(f"timestamp:{arguments['collapseTime']}")
    page, page_lines = _page(arguments)
    return CdxQuery(
        dialect=dialect,
        url=url,
        match=match,
        span=_span(arguments),
        sort=sort,
        closest=closest,
        filters=tuple(_filter(text, dialect) for text in filters),
        fields=fields or _USUAL[dialect],
        has_fields=bool(fields),
        collapse=tuple(_collapse(text) for text in collapse),
        output=_output(arguments, dialect),
        limit=min(abs(limit), MOST_LINES),
        last=limit < 0,
        page=page,
        page_lines=page_lines,
        counts_pages=_is_true(arguments, "showNumPages"),
        after=_position(arguments["resumeKey"]) if arguments.get("resumeKey") else None,
        shows_resume_key=_is_true(arguments, "showResumeKey"),
        resolves_revisits=_is_true(arguments, "resolveRevisits"),
        allows_fuzzy=_is_true(arguments, "allowFuzzy"),
    )


def selected(
    captures: Iterator[Capture], query: CdxQuery, before: Capture | None = None
) -> Iterator[Capture]:
    """Yield the captures that pass the filters, and only the first of neighbours that collapse. `before` is
    the last capture of the previous answer: captures that collapse with it are left out.
    """
    known = _collapsed(before, query) if before and all(passes(before) for passes in query.filters) else None
    for capture in captures:
        if not all(passes(capture) for passes in query.filters):
            continue
        if query.collapse:
            seen = _collapsed(capture, query)
            if seen == known:
                continue
            known = seen
        yield capture


def _collapsed(capture: Capture, query: CdxQuery) -> tuple[str, ...]:
    """The values that are compared to collapse captures: neighbours with equal values become one line."""
    values = ((FIELDS[name](capture), width) for name, width in query.collapse)
    return tuple(value[:width] if width else value for value, width in values)


def examined(captures: Iterator[Capture], query: CdxQuery, cut: list[Position]) -> Iterator[Capture]:
    """At most `MOST_EXAMINED` captures; if there are more, the position of the last one is put into `cut`.
    TooExpensive if the query cannot be continued from there.
    """
    last: Capture | None = None
    for last in islice(captures, MOST_EXAMINED):
        yield last
    if last is None or next(captures, None) is None:
        return
    if not query.may_continue:
        raise TooExpensive(
            f"This query would read more than {MOST_EXAMINED} captures. Narrow it with from and to."
        )
    cut.append(place_of(last))


def values(capture: Capture, query: CdxQuery) -> list[str]:
    """The wanted fields of a capture, in order. Only pywb writes digests with `sha1:`."""
    row = [FIELDS[_FOREIGN.get(name, name)](capture) for name in query.fields]
    if query.dialect is not Dialect.PYWB:
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
    raise InputError(f"The resumeKey {text[:100]!r} was not given by this server.")


def _is_stamp(text: str) -> bool:
    return len(text) == 14 and text.isascii() and text.isdigit()


def _url(arguments: dict[str, str]) -> tuple[str, UrlMatch]:
    url, wildcard = split_wildcard(arguments["url"])
    wanted = arguments.get("matchType", "")
    if not wanted:
        return url, wildcard
    if wanted not in _MATCHES:
        raise InputError(f"Unknown matchType {wanted[:50]!r}. Use one of {', '.join(UrlMatch)}.")
    return url, _MATCHES[wanted]


def _sort(arguments: dict[str, str], match: UrlMatch) -> tuple[CdxSort, str]:
    wanted = arguments.get("sort", "") or (CdxSort.CLOSEST.value if arguments.get("closest") else "")
    if not wanted:
        return CdxSort.DEFAULT, ""
    if wanted not in _SORTS:
        raise InputError(f"Unknown sort {wanted[:50]!r}. Use reverse or closest.")
    sort = _SORTS[wanted]
    if sort is not CdxSort.DEFAULT and match is not UrlMatch.EXACT:
        raise InputError(f"sort={sort} works for one address only. Use matchType=exact.")
    closest = arguments.get("closest", "")
    if sort is CdxSort.CLOSEST:
        return sort, _stamp(closest, "closest", end=False)
    return sort, ""


def _span(arguments: dict[str, str]) -> Span:
    if not arguments.get("from") and not arguments.get("to"):
        return _EVER
    first = _stamp(arguments["from"], "from", end=False) if arguments.get("from") else "0" * 14
    last = _stamp(arguments["to"], "to", end=True) if arguments.get("to") else "9" * 14
    return first, last


def _stamp(text: str, name: str, *, end: bool) -> str:
    try:
        period = period_of(text)
    except ValueError:
        raise InputError(
            f"{name} {text[:30]!r} is not a timestamp. Write 4 to 14 digits: 2019 or 20190304050607."
        ) from None
    return to_timestamp(period.end if end else period.start)


def _filter(text: str, dialect: Dialect) -> Callable[[Capture], bool]:
    match = _FILTER.match(text)
    name = _FOREIGN.get(match[3], match[3]) if match else ""
    if not match or name not in FIELDS:
        raise InputError(f"Invalid filter {text[:100]!r}. Write field:text with one of {', '.join(FIELDS)}.")
    is_not, operator, wanted, field = match[1] == "!", match[2], match[4], FIELDS[name]
    if operator == "=":
        return lambda capture: (field(capture) == wanted) != is_not
    if not operator and dialect is Dialect.PYWB:
        return lambda capture: (wanted in field(capture)) != is_not
    expression = _expression(wanted)
    matches = expression.match if dialect is Dialect.PYWB else expression.fullmatch
    return lambda capture: matches(field(capture)) != is_not


def _expression(text: str) -> LinearPattern:
    if len(text) > LONGEST_EXPRESSION:
        raise InputError(f"The expression {text[:50]!r}… is longer than {LONGEST_EXPRESSION} characters.")
    try:
        return LinearPattern(text, largest=LARGEST_EXPRESSION)
    except ValueError as error:
        raise InputError(f"The expression {text[:100]!r} cannot be read: {error}") from None


def _page(arguments: dict[str, str]) -> tuple[int | None, int]:
    """The number of the page that is asked for, and how many lines a page has."""
    page = _number(arguments, "page", 0, lowest=0) if "page" in arguments else None
    page_lines = min(_number(arguments, "pageSize", 1, lowest=1) * PAGE_LINES, MOST_PAGE_LINES)
    if page is not None and (page + 1) * page_lines > MOST_EXAMINED:
        raise InputError(
            f"Page {page} is past the first {MOST_EXAMINED} captures, which are all that one query reads. "
            "Leave out page, add showResumeKey=true, and send the key at the end of each answer as resumeKey "
            "to get the next."
        )
    return page, page_lines


def _fields(text: str, dialect: Dialect) -> tuple[str, ...]:
    if not text:
        return ()
    names = tuple(name.strip() for name in text.split(",") if name.strip())
    unknown = [name for name in names if _FOREIGN.get(name, name) not in FIELDS]
    if unknown:
        raise InputError(f"Unknown field {unknown[0][:50]!r}. Use fields of {', '.join(FIELDS)}.")
    return names


def _collapse(text: str) -> tuple[str, int]:
    name, _, width = text.partition(":")
    name = _FOREIGN.get(name, name)
    if name not in FIELDS or (width and not (width.isascii() and width.isdigit() and len(width) < 5)):
        raise InputError(
            f"Invalid collapse {text[:50]!r}. Write a field, or a field and how many of its characters "
            "count: timestamp:8"
        )
    return name, int(width or 0)


def _output(arguments: dict[str, str], dialect: Dialect) -> CdxOutput:
    wanted = arguments.get("output", "")
    if not wanted:
        return CdxOutput.CDXJ if dialect is Dialect.PYWB else CdxOutput.TEXT
    if wanted not in _OUTPUTS:
        raise InputError(f"Unknown output {wanted[:50]!r}. Use one of {', '.join(CdxOutput)}.")
    return _OUTPUTS[wanted]


def _number(arguments: dict[str, str], name: str, default: int, *, lowest: int) -> int:
    text = arguments.get(name, "")
    if not text:
        return default
    if not re.match(r"-?[0-9]{1,12}\Z", text, re.ASCII) or int(text) < lowest:
        raise InputError(f"{name} {text[:30]!r} is not a number of at least {lowest}.")
    return int(text)


def _is_true(arguments: dict[str, str], name: str) -> bool:
    return arguments.get(name, "").lower() in ("true", "1", "yes")


def within(spans: Sequence[Span], span: Span) -> tuple[Span, ...]:
    """The part of open spans that is inside a span."""
    if span is _EVER:
        return tuple(spans)
    return tuple(
        (max(first, span[0]), min(last, span[1]))
        for first, last in spans
        if first <= span[1] and last >= span[0]
    )
