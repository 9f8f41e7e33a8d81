"""The text of the search box, parsed into a `TextQuery`.

    words               all are wanted, in any order                gemeente archief
    "a phrase"          these words in this order                   "raad van state"
    word*               words that begin with these letters         sal*
    -word  -"a phrase"  must not occur                              -wikipedia
    a OR b              one of them is enough                       fiets OR rijwiel
    site:example.org    that host and all hosts below it            site:kb.nl
    type:pdf            format: short name, media type, PRONOM identifier    type:html  type:fmt/95
    lang:nl             language                                    lang:de
    author:name         sites with that author in the catalogue; also genre: keyword:    author:"Jan Jansen"
    title:word          in the title; also heading: address: text: image: anchor:        title:"annual report"
    before:2005  after:2019-06                                      captured before, captured after; dates may
                                                                    also be written 31-12-2005 or 31.12.2005
    as-of:2010-03-01                                                pages as they were on that day

Several `site:`, `type:` or `lang:` mean any of them; `before:` and `after:` include the date they name. A
query that cannot be parsed raises an InputError that shows the place. `is_address` recognises a typed
address.
"""

import contextlib
import difflib
import re
from collections.abc import Iterator
from dataclasses import dataclass

from webdepot import times
from webdepot.errors import InputError
from webdepot.ports.search import PagePart, TextQuery
from webdepot.reasons import said
from webdepot.times import EARLIEST, LATEST, Period
from webdepot.url import find_canonical, is_known_host

LONGEST_QUERY = 10_000
MOST_TERMS = 64
TYPES = {
    "html": ("text/html", "application/xhtml+xml"),
    "pdf": ("application/pdf",),
    "text": ("text/plain", "text/markdown"),
    "txt": ("text/plain",),
    "word": (
        "application/vnd.openxmlformats-officedocument.wordprocessingml.document",
        "application/vnd.oasis.opendocument.text",
    ),
    "slides": (
        "application/vnd.openxmlformats-officedocument.presentationml.presentation",
        "application/vnd.oasis.opendocument.presentation",
    ),
    "sheet": (
        "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
        "application/vnd.oasis.opendocument.spreadsheet",
    ),
}
"""Short names of formats whose text is indexed."""
_PARTS = {
    "title": PagePart.TITLE,
    "heading": PagePart.HEADINGS,
    "address": PagePart.ADDRESS,
    "text": PagePart.TEXT,
    "image": PagePart.IMAGE,
    "anchor": PagePart.ANCHOR,
}
CATALOGUE_FIELDS = ("author", "genre", "keyword")
_FIELDS = ("site", "type", "lang", "before", "after", "as-of", *CATALOGUE_FIELDS, *_PARTS)
_PUID = re.compile(r"(?:x-)?fmt/\d+\Z", re.ASCII)
_NAMED = re.compile(r"([A-Za-z][A-Za-z-]{0,19}):")
_QUOTES = str.maketrans("“”„‟«»＂", '"""""""')
_HOST = re.compile(r"(?:[\w-]+\.)+[^\W\d_][\w-]+\.?(?::\d{1,5})?\Z")
_PLAIN_PLACE = re.compile(r"(?:localhost|(?:\d{1,3}\.){3}\d{1,3}|\[[0-9a-f:.]+\])(?::\d{1,5})?\Z", re.ASCII)
_FILE_NAMES = (
    "html",
    "htm",
    "pdf",
    "php",
    "asp",
    "aspx",
    "jsp",
    "txt",
    "doc",
    "docx",
    "jpg",
    "png",
    "gif",
    "xml",
    "js",
    "css",
    "md",
    "py",
    "sh",
)


@dataclass(frozen=True, slots=True)
class _Term:
    text: str
    at: int
    is_phrase: bool
    is_minus: bool
    field: str = ""


def parse(text: str) -> TextQuery:
    """Parse a query; InputError with the place marked if it is wrong, empty or too long."""
    if len(text) > LONGEST_QUERY:
        raise InputError(
            said("query_long", "The query is longer than {most} characters. Shorten it.", most=LONGEST_QUERY)
        )
    terms = list(_terms(text.translate(_QUOTES), text))
    if len(terms) > MOST_TERMS:
        raise _wrong(
            text,
            terms[MOST_TERMS].at,
            "query_terms",
            "A query can have at most {most} words.",
            most=MOST_TERMS,
        )
    wanted, groups = _with_alternatives([term for term in terms if not term.field], text)
    fields = [term for term in terms if term.field]
    query = TextQuery(
        words=tuple(term.text for term in wanted if not term.is_phrase and not term.is_minus),
        phrases=tuple(term.text for term in wanted if term.is_phrase and not term.is_minus),
        alternatives=tuple(groups),
        excluded=tuple(term.text for term in wanted if term.is_minus),
        sites=tuple(_site(term, text) for term in fields if term.field == "site"),
        mimes=tuple(
            mime
            for term in fields
            if term.field == "type" and not _PUID.match(term.text)
            for mime in _mimes(term, text)
        ),
        formats=tuple(term.text for term in fields if term.field == "type" and _PUID.match(term.text)),
        parts=tuple(_part(term, text) for term in fields if term.field in _PARTS),
        catalogue=tuple(_catalogue_term(term, text) for term in fields if term.field in CATALOGUE_FIELDS),
        languages=tuple(_language(term, text) for term in fields if term.field == "lang"),
        period=_period(fields, text),
        as_of=next((_dates(term, text).end for term in reversed(fields) if term.field == "as-of"), None),
    )
    if not (query.words or query.phrases or query.alternatives or fields):
        raise InputError(
            said("query_empty", "The query is empty. Enter at least one word to look for.")
            if not query.excluded
            else said("query_excludes", "The query only excludes words. Enter a word to look for as well.")
        )
    return query


def is_address(text: str) -> bool:
    """Whether a typed text is meant as an address: it has a scheme, begins with `www.`, or is a host name
    with or without a path.
    """
    typed = text.strip()
    if not typed or len(typed) > LONGEST_QUERY or any(char.isspace() for char in typed) or '"' in typed:
        return False
    if re.match(r"(?:https?|ftp)://", typed, re.IGNORECASE):
        return find_canonical(typed) is not None
    host, slash, _ = typed.partition("/")
    if _PLAIN_PLACE.match(host.lower()):
        return True
    if not _HOST.match(host) or find_canonical(f"http://{typed}") is None:
        return False
    name = host.partition(":")[0].rstrip(".").lower()
    if slash or ":" in host or name.startswith("www."):
        return True
    # `index.html` looks like a host: a name in an existing top-level domain is a host, unless it ends like a
    # file name.
    return name.rpartition(".")[2] not in _FILE_NAMES and is_known_host(name)


def _terms(text: str, original: str) -> Iterator[_Term]:
    at = 0
    while (at := _skipped(text, at)) < len(text):
        start = at
        is_minus = text[at] == "-" and text[at + 1 : at + 2].strip() != ""
        at += is_minus
        named = _NAMED.match(text, at)
        field = named[1].lower() if named else ""
        if field in _FIELDS:
            at += len(field) + 1
        elif field:
            _refuse_near_field(field, original, start)
        is_phrase = text.startswith('"', at)
        end = text.find('"', at + 1) if is_phrase else _word_end(text, at)
        if end < 0:  # a phrase whose quotation mark is not closed ends with the query
            end = len(text)
        value = text[at + is_phrase : end].strip()
        at = end + is_phrase
        if field in _FIELDS and not value:
            raise _wrong(
                original, start, "query_value", "A value must follow {field}: without a space.", field=field
            )
        if field in _FIELDS or any(map(str.isalnum, value)):
            yield _Term(value, start, is_phrase, is_minus, field if field in _FIELDS else "")


def _skipped(text: str, at: int) -> int:
    while at < len(text) and text[at].isspace():
        at += 1
    return at


def _word_end(text: str, at: int) -> int:
    """Where a word ends: at a space or a quotation mark, but not at its first character."""
    end = at
    while end < len(text) and not text[end].isspace() and (text[end] != '"' or end == at):
        end += 1
    return end


def _refuse_near_field(field: str, original: str, at: int) -> None:
    """Refuse a misspelt field: `sites:` is a typing error, `Betreff:` or `http:` a word with a colon."""
    near = difflib.get_close_matches(field, _FIELDS, n=1, cutoff=0.75)
    if near:
        raise _wrong(
            original,
            at,
            "query_field",
            "There is no field '{field}:'. Did you mean {near}:?",
            field=field,
            near=near[0],
        )


def _with_alternatives(terms: list[_Term], text: str) -> tuple[list[_Term], list[tuple[str, ...]]]:
    """Separate groups `a OR b OR c` from the other terms."""
    rest: list[_Term] = []
    groups: list[tuple[str, ...]] = []
    at = 0
    while at < len(terms):
        if _is_or(terms[at]):
            raise _wrong(text, terms[at].at, "query_or", "OR needs a word before and after it.")
        group = [terms[at]]
        while at + 1 < len(terms) and _is_or(terms[at + 1]):
            if at + 2 >= len(terms) or _is_or(terms[at + 2]):
                raise _wrong(text, terms[at + 1].at, "query_or", "OR needs a word before and after it.")
            group.append(terms[at + 2])
            at += 2
        if len(group) == 1:
            rest += group
        elif minus := next((term for term in group if term.is_minus), None):
            raise _wrong(text, minus.at, "query_or_minus", "An excluded word cannot be an alternative of OR.")
        else:
            groups.append(tuple(term.text for term in group))
        at += 1
    return rest, groups


def _is_or(term: _Term) -> bool:
    return term.text == "OR" and not term.is_phrase and not term.is_minus


def _site(term: _Term, text: str) -> str:
    _refuse_minus(term, text)
    bare = re.sub(r"\A[a-z]+://", "", term.text.lower()).removeprefix("*.").partition("/")[0]
    canonical = find_canonical(f"http://{bare}/") if bare else None
    if canonical is None:
        raise _wrong(
            text,
            term.at,
            "query_host",
            "{typed} is not a host. Write it like site:example.org",
            typed=repr(term.text[:50]),
        )
    return (
        canonical.removeprefix("http://").rstrip("/").partition(":")[0] if not bare.startswith("[") else bare
    )


def _mimes(term: _Term, text: str) -> tuple[str, ...]:
    _refuse_minus(term, text)
    value = term.text.lower()
    if value in TYPES:
        return TYPES[value]
    if re.fullmatch(r"[a-z]+/[a-z0-9.+-]+", value):
        return (value,)
    raise _wrong(
        text,
        term.at,
        "query_type",
        "Unknown type {typed}. Use one of {types}, or a media type such as text/html.",
        typed=repr(value[:50]),
        types=", ".join(TYPES),
    )


def _part(term: _Term, text: str) -> tuple[PagePart, str]:
    _refuse_minus(term, text)
    return _PARTS[term.field], term.text


def _catalogue_term(term: _Term, text: str) -> tuple[str, str]:
    _refuse_minus(term, text)
    return term.field, term.text


def _language(term: _Term, text: str) -> str:
    _refuse_minus(term, text)
    value = term.text.lower()
    if not re.fullmatch(r"[a-z]{2,3}", value):
        raise _wrong(
            text,
            term.at,
            "query_language",
            "{typed} is not a language code. Write its two letters: lang:nl",
            typed=repr(value[:50]),
        )
    return value


def _period(fields: list[_Term], text: str) -> Period | None:
    starts = [_dates(term, text).start for term in fields if term.field == "after"]
    ends = [_dates(term, text).end for term in fields if term.field == "before"]
    if not starts and not ends:
        return None
    start, end = max(starts, default=EARLIEST), min(ends, default=LATEST)
    if start > end:
        last = next(term for term in reversed(fields) if term.field in ("after", "before"))
        raise _wrong(text, last.at, "query_period", "The period ends before it begins.")
    return Period(start, end)


def _dates(term: _Term, text: str) -> Period:
    """The year, month or day that a date names."""
    _refuse_minus(term, text)
    with contextlib.suppress(ValueError):
        return times.period_of(times.read_date(term.text))
    raise _wrong(
        text,
        term.at,
        "query_date",
        "{typed} is not a date. Write {field}:2010, {field}:2010-03 or {field}:2010-03-01",
        typed=repr(term.text[:50]),
        field=term.field,
    )


def _refuse_minus(term: _Term, text: str) -> None:
    if term.is_minus:
        raise _wrong(
            text,
            term.at,
            "query_minus",
            "{field}: cannot be excluded with a minus sign.",
            field=term.field,
        )


def _wrong(text: str, at: int, key: str, message: str, **values: object) -> InputError:
    """An error with the message, and the query with the place marked below it."""
    start = max(at - 30, 0)
    shown = text[start : start + 60].replace("\n", " ").replace("\t", " ")
    place = f"\n  {'…' if start else ''}{shown}\n  {' ' * (at - start + (1 if start else 0))}^"
    return InputError(said(key, message + "{place}", place=place, **values))
