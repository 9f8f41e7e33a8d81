"""Search by words and time. An address that is in the archive redirects to its versions.

/search            results as site, page, version, with a histogram and facets
/search/why        why a page was found, and which of its versions match
/search/trend      several terms over the years, as a chart with its data
/search/export     all results, streamed
"""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from typing import Any
from urllib.parse import urlencode

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from webdepot.errors import InputError, RemoteError, WebdepotError
from webdepot.model import EVERYTHING
from webdepot.ports.search import Facet, Hit, SearchSort
from webdepot.services.access import collections, lookup
from webdepot.services.access import search as search_service
from webdepot.services.access.browse import page_pictures, search_groups
from webdepot.services.access.browse.search_groups import SiteGroups
from webdepot.services.access.export import export as export_service
from webdepot.services.access.export.export import ExportForm
from webdepot.services.access.search import SearchPage
from webdepot.text.csv_text import written
from webdepot.text.search_words import fold
from webdepot.times import to_timestamp
from webdepot.url import host_of
from webdepot.web import charts, heavy_work
from webdepot.web.charts import DrawnBar
from webdepot.web.csv_response import csv_file
from webdepot.web.forms import page_number
from webdepot.web.language import format_words
from webdepot.web.language.language import Language, read_date
from webdepot.web.problems import explain
from webdepot.web.reader.page_pictures import path_of as picture_path
from webdepot.web.replay import address
from webdepot.web.site import language_of, reader_of, render, site_of

PAGE_HITS = 10
MOST_PAGES = 100
LONGEST_QUERY = 1000
_YEAR = re.compile("19[89][0-9]|20[0-9]{2}")
_ISO_DATE = re.compile(r"\d{4}(?:-\d\d){0,2}\Z", re.ASCII)
LONGEST_DATE = 20
_MOST_YEARS = 30
_FACET_FIELDS = {
    Facet.SITE: "site:{}",
    Facet.DOMAIN: "site:{}",
    Facet.FORMAT: "type:{}",
    Facet.LANGUAGE: "lang:{}",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchQuery:
    """The fields of the search form, checked."""

    words: str
    """As typed."""
    collection: str
    sort: SearchSort
    from_: str
    """A year, a month or a day in ISO 8601, or what was typed if it is not a date; empty means from the
    beginning.
    """
    to: str
    as_of: str
    """A year, a month or a day: the web as it was then; empty means at any time."""
    relative: bool
    """Whether the histogram shows shares of all captures."""
    similar: bool
    """Whether pages with nearly the same text are shown too."""
    by_site: bool
    """Whether results are grouped by site."""
    number: int
    """Number of the page of results."""

    @property
    def wrong_dates(self) -> list[str]:
        """What was typed into a date field and is not a date."""
        return [date for date in (self.from_, self.to, self.as_of) if date and not _ISO_DATE.match(date)]

    @property
    def year_meant(self) -> tuple[str, str] | None:
        """The other words and the year of a query such as `opening hours 2009`, which may ask for pages
        of 2009, not only for pages that contain the number.
        """
        words = self.words.split()
        years = [word for word in words if _YEAR.fullmatch(word)]
        if len(years) != 1 or len(words) == 1 or '"' in self.words or self.from_ or self.to or self.as_of:
            return None
        return " ".join(word for word in words if word != years[0]), years[0]

    @property
    def text(self) -> str:
        """The whole query, with the times of the form in the query language."""
        after = f" after:{self.from_}" if self.from_ else ""
        before = f" before:{self.to}" if self.to else ""
        as_of = f" as-of:{self.as_of}" if self.as_of else ""
        return self.words + after + before + as_of

    def link(self, path: str = "/search", **changed: object) -> str:
        """The address of this search with some fields changed; defaults are left out."""
        values: dict[str, object] = {
            "q": self.words,
            "collection": self.collection if self.collection != EVERYTHING else None,
            "sort": self.sort.value if self.sort is not SearchSort.RELEVANCE else None,
            "from": self.from_,
            "to": self.to,
            "as_of": self.as_of,
            "relative": 1 if self.relative else None,
            "similar": 1 if self.similar else None,
            "group": "site" if self.by_site else None,
            "page": None,
        }
        values.update(changed)
        return f"{path}?" + urlencode(
            {name: value for name, value in values.items() if value not in (None, "")}
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class FacetLink:
    """A value of a facet as a link."""

    label: str
    count: int
    href: str


def search(request: Request) -> Response:
    query = read_query(request)
    is_address = search_service.is_address(query.words)
    versions = _find_versions(request, query) if is_address else None
    if versions:
        return RedirectResponse(versions, status_code=303)
    page, groups, wrong, status = None, None, "", 200
    if query.wrong_dates:
        status = InputError.http_status
        wrong = language_of(request).say("answers.wrong_date", date=query.wrong_dates[0])
    elif query.words:
        try:
            page = _search(request, query)
            groups = _groups(request, query, page) if query.by_site else None
        except (InputError, RemoteError) as error:
            wrong, status = explain(request, error), error.http_status
    return render(
        request,
        "search.html",
        status=status,
        wrong=wrong,
        asked=query,
        query=query.words,
        whole_query=query.text,
        collection=query.collection,
        collections=collections.names(site_of(request).archive),
        sort=query.sort.value,
        page=page,
        then=_page_then(request, query),
        groups=groups,
        pictures=_pictures(request, query, page, groups),
        picture_path=picture_path,
        format_of=partial(format_words.of_format, language_of(request)),
        forms=list(ExportForm),
        most_endings=search_service.MOST_ENDINGS,
        as_address=f"/versions?{urlencode({'url': query.words})}" if is_address else "",
        site_query=_site_query(query),
        why=lambda hit: query.link("/search/why", key=hit.key),
        **_paging(query, page, groups),
        **_narrowing(request, query, page),
    )


def _search(request: Request, query: SearchQuery) -> SearchPage:
    return search_service.search(
        site_of(request).archive,
        query.text,
        reader=reader_of(request),
        collection=query.collection,
        sort=query.sort,
        offset=0 if query.by_site else (query.number - 1) * PAGE_HITS,
        limit=PAGE_HITS,
        facets=search_service.EVERY_FACET,
        fold=not query.similar,
        relax=True,
    )


def _page_then(request: Request, query: SearchQuery) -> Hit | None:
    """The best page for a query such as `opening hours 2009` without its year. Its version of that year may
    answer the question in other words, and then no search of that year finds it.
    """
    if query.year_meant is None or query.number > 1:
        return None
    try:
        found = search_service.search(
            site_of(request).archive,
            query.year_meant[0],
            reader=reader_of(request),
            collection=query.collection,
            limit=1,
        )
    except (InputError, RemoteError):
        return None  # the whole query was answered, or says what is wrong
    return next(iter(found.hits), None)


def _groups(request: Request, query: SearchQuery, page: SearchPage) -> SiteGroups:
    return search_groups.find(
        site_of(request).archive,
        query.text,
        reader=reader_of(request),
        collection=query.collection,
        sort=query.sort,
        number=query.number,
        is_relaxed=page.is_relaxed,
    )


def _pictures(
    request: Request, query: SearchQuery, page: SearchPage | None, groups: SiteGroups | None
) -> Mapping[str, object]:
    """Which of the hits have a picture, by address."""
    hits = [hit for group in groups.groups for hit in group.hits] if groups else page.hits if page else ()
    return page_pictures.find_many(
        site_of(request).archive,
        ((hit.url, hit.timestamp) for hit in hits),
        collection=query.collection,
        reader=reader_of(request),
    )


def _paging(query: SearchQuery, page: SearchPage | None, groups: SiteGroups | None) -> dict[str, Any]:
    if groups is not None:
        return {
            "number": query.number,
            "pages": 0,
            "offset": 0,
            "previous_page": query.link(page=query.number - 1) if query.number > 1 else "",
            "next_page": query.link(page=query.number + 1) if groups.has_more else "",
        }
    pages = min(-(-page.pages // PAGE_HITS), MOST_PAGES) if page else 0
    has_more = page is not None and query.number < pages and len(page.hits) == PAGE_HITS
    return {
        "number": query.number,
        "pages": pages,
        "offset": (query.number - 1) * PAGE_HITS,
        "previous_page": query.link(page=query.number - 1) if query.number > 1 else "",
        "next_page": query.link(page=query.number + 1) if has_more else "",
        "last_page": query.link(page=pages if pages > 1 else None) if page and page.pages else "",
    }


def _narrowing(request: Request, query: SearchQuery, page: SearchPage | None) -> dict[str, Any]:
    if page is None:
        return {"bars": [], "facets": [], "spelling": ""}
    return {
        "bars": _bars(request, query, page),
        "facets": _facets(query, page, language_of(request)),
        # The form keeps its times in fields of their own.
        "spelling": page.spelling.removesuffix(query.text[len(query.words) :]),
    }


def why(request: Request) -> Response:
    query = read_query(request)
    if not query.words:
        return RedirectResponse("/search", status_code=303)
    explained = search_service.explain(
        site_of(request).archive,
        query.text,
        request.query_params.get("key", "")[:4000],
        reader=reader_of(request),
        collection=query.collection,
    )
    return render(
        request, "why.html", asked=query, found=explained, collection=query.collection, back=query.link()
    )


def trend(request: Request) -> Response:
    query = read_query(request)
    terms = [
        word for word in (text.strip()[:LONGEST_QUERY] for text in request.query_params.getlist("w")) if word
    ]
    terms = terms or [word for word in query.words.split(",") if word.strip()]
    trend, wrong = None, ""
    if terms:
        try:
            trend = search_service.trend(
                site_of(request).archive, terms, reader=reader_of(request), collection=query.collection
            )
        except InputError as error:
            wrong = explain(request, error)
    if trend is not None and request.query_params.get("format") == "csv":
        head = ["year", "all", *trend.words]
        rows = [
            [year, count, *(years.get(year, 0) for years in trend.words.values())]
            for year, count in trend.volume.items()
        ]
        return csv_file(
            _file_name("trend", " ".join(terms), site_of(request).archive.clock()), written([head, *rows])
        )
    return render(
        request,
        "trend.html",
        status=400 if wrong else 200,
        wrong=wrong,
        words=terms,
        found=trend,
        asked=query,
        collection=query.collection,
        relative=query.relative,
        picture=charts.of_trend(
            trend.words, trend.volume, relative=query.relative, spoken=language_of(request)
        )
        if trend
        else None,
        as_csv=f"/search/trend?{urlencode([*(('w', word) for word in terms), ('format', 'csv')])}",
        most=search_service.MOST_TREND_WORDS,
    )


def export(request: Request) -> Response:
    query = read_query(request)
    if not query.words:
        return RedirectResponse("/search", status_code=303)
    name = request.query_params.get("form", "")
    if name not in set(ExportForm):
        raise InputError(f"{name[:30]!r} is not a format of a download. Use one of {', '.join(ExportForm)}.")
    form = ExportForm(name)
    pieces = export_service.export(
        site_of(request).archive,
        query.text,
        form,
        reader=reader_of(request),
        collection=query.collection,
    )
    name = _file_name("search", query.text, site_of(request).archive.clock())
    headers = {
        "Content-Disposition": f'attachment; filename="{name}.{export_service.SUFFIXES[form]}"',
        "Cache-Control": "no-store",
    }
    return heavy_work.stream(request, pieces, media_type=export_service.MEDIA_TYPES[form], headers=headers)


def _file_name(kind: str, text: str, now: datetime) -> str:
    """The name of a downloaded file: what was searched for, and the day."""
    searched = re.sub(r"[^a-z0-9]+", "-", fold(text)).strip("-")[:60].strip("-")
    return "-".join(filter(None, (kind, searched, f"{now:%Y-%m-%d}")))


def read_query(request: Request) -> SearchQuery:
    """The fields of the form. An invalid field is ignored, or an InputError where that would mislead."""
    fields = request.query_params
    words = " ".join(fields.get("q", "").split())
    if len(words) > LONGEST_QUERY:
        raise InputError(f"The query is longer than {LONGEST_QUERY} characters.")
    collection = fields.get("collection") or EVERYTHING
    if not address.COLLECTION.match(collection):
        raise address.BadAddress("errors.text_collection", collection=collection[:60])
    sort = fields.get("sort", "")
    return SearchQuery(
        words=words,
        collection=collection,
        sort=SearchSort(sort) if sort in set(SearchSort) else SearchSort.RELEVANCE,
        from_=_date(fields.get("from", "")),
        to=_date(fields.get("to", "")),
        as_of=_date(fields.get("as_of", "")),
        relative=fields.get("relative") == "1",
        similar=fields.get("similar") == "1",
        by_site=fields.get("group") == "site",
        number=min(page_number(request), MOST_PAGES),
    )


def _bars(request: Request, query: SearchQuery, page: SearchPage) -> list[DrawnBar]:
    """By month when the query covers at most three years, else by year."""
    archive, reader = site_of(request).archive, reader_of(request)
    volume = (
        search_service.volume(archive, reader=reader, collection=query.collection) if query.relative else None
    )
    by_month = bool(query.from_ and query.to) and int(query.to[:4]) - int(query.from_[:4]) < 3

    def link(moment: str) -> str:
        return query.link(**{"from": moment, "to": moment})

    return charts.of_captures(
        page.months,
        volume,
        by_month=by_month,
        link=link,
        chosen=(query.from_[:7], query.to[:7]),
        spoken=language_of(request),
    )


def _facets(query: SearchQuery, page: SearchPage, spoken: Language) -> list[tuple[str, Sequence[FacetLink]]]:
    """Facets with at least two values: one value alone cannot narrow the results."""
    facets: list[tuple[str, Sequence[FacetLink]]] = []
    for facet, values in page.facets.items():
        if facet is Facet.COLLECTION:
            links = [
                FacetLink(label=value, count=count, href=query.link(collection=value))
                for value, count in values
            ]
        else:
            field = _FACET_FIELDS[facet]
            links = [
                FacetLink(
                    label=_label(page, facet, value, spoken),
                    count=count,
                    href=query.link(q=_narrow(query.words, field.format(value))),
                )
                for value, count in values
            ]
        if len(links) > 1:
            facets.append((facet.value, links))
    years = [
        FacetLink(label=str(year), count=count, href=query.link("/search", **{"from": year, "to": year}))
        for year, count in page.years.items()
    ]
    return [*facets, ("year", years[::-1][:_MOST_YEARS])] if len(years) > 1 else facets


def _label(page: SearchPage, facet: Facet, value: str, spoken: Language) -> str:
    """The name of a format or language; formats with the same name are followed by their identifiers."""
    if facet is Facet.LANGUAGE and f"search.language_{value}" in spoken.texts:
        return spoken.texts[f"search.language_{value}"]
    if facet is not Facet.FORMAT or value not in page.format_names:
        return value
    short = [format_words.of_format(spoken, name, "") for name in page.format_names.values()]
    name = format_words.of_format(spoken, page.format_names[value], "")
    return name if short.count(name) == 1 else f"{name} ({value})"


def _narrow(words: str, field: str) -> str:
    """The query narrowed by a field; another value of the same field is replaced."""
    name = field.partition(":")[0]
    return " ".join([*(word for word in words.split() if not word.startswith(f"{name}:")), field])


def _find_versions(request: Request, query: SearchQuery) -> str | None:
    """The path of the versions of an address; None when it is not in the archive."""
    archive = site_of(request).archive
    try:
        url = address.archived_url(query.words)
        now = to_timestamp(archive.clock())
        capture = lookup.find_closest(
            archive, url, now, collection=query.collection, reader=reader_of(request)
        )
    except WebdepotError:
        return None
    return address.path_of(query.collection, "*", capture.url)


def _site_query(query: SearchQuery) -> Callable[[str], str]:
    return lambda url: query.link(q=_narrow(query.words, f"site:{host_of(url)}"), page=None)


def _date(typed: str) -> str:
    """A typed date in ISO 8601; what is not a date stays as typed, so that it can be shown and refused."""
    try:
        digits = read_date(typed)
    except ValueError:
        return "".join(typed.split())[:LONGEST_DATE]
    return "-".join(filter(None, (digits[:4], digits[4:6], digits[6:])))
