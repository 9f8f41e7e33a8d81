"""Search by words and time; what looks like an address and is in the archive leads to its versions at once.

/search            results as site, page, version, with the histogram and what they can be narrowed by
/search/why        why a page was found, and which of its versions match
/search/trend      several words over the years, as a picture with its data
/search/export     everything that matches, streamed
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from urllib.parse import urlencode

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response, StreamingResponse

from webdepot.access import query
from webdepot.errors import InputError, WebdepotError
from webdepot.model import EVERYTHING
from webdepot.ports import Facet, SearchSort
from webdepot.services.access import export as export_service
from webdepot.services.access import lookup
from webdepot.services.access import search as search_service
from webdepot.services.access.export import ExportForm
from webdepot.services.access.search import SearchPage
from webdepot.services.admin import archive_status
from webdepot.sheets import written
from webdepot.times import to_timestamp
from webdepot.url import host_of
from webdepot.web import charts
from webdepot.web.charts import DrawnBar
from webdepot.web.language import Language
from webdepot.web.replay import address
from webdepot.web.sheets import csv_file
from webdepot.web.site import language_of, reader_of, render, site_of

PAGE_HITS = 10
MOST_PAGES = 100
LONGEST_QUERY = 1000
_MOMENT = re.compile(r"\d{4}(?:-(?:0[1-9]|1[0-2]))?\Z", re.ASCII)
_DAY = re.compile(r"\d{4}(?:-(?:0[1-9]|1[0-2])(?:-(?:0[1-9]|[12]\d|3[01]))?)?\Z", re.ASCII)
_MOST_YEARS = 30
_FACET_WORDS = {
    Facet.SITE: "site:{}",
    Facet.DOMAIN: "site:{}",
    Facet.FORMAT: "type:{}",
    Facet.LANGUAGE: "lang:{}",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """The form, checked."""

    query: str
    collection: str
    sort: SearchSort
    from_: str
    """A year or a month, `2010` or `2010-03`; empty for the beginning."""
    to: str
    as_of: str
    """A year, a month or a day: the web as it stood then; empty for whenever."""
    relative: bool
    """The histogram is set against the archive's volume."""
    similar: bool
    """Pages that are nearly the same are shown too."""
    number: int

    def link(self, path: str = "/search", **changed: object) -> str:
        """The address of this search with some of it changed; defaults are left out."""
        values: dict[str, object] = {
            "q": self.query,
            "collection": self.collection if self.collection != EVERYTHING else None,
            "sort": self.sort.value if self.sort is not SearchSort.RELEVANCE else None,
            "from": self.from_,
            "to": self.to,
            "as_of": self.as_of,
            "relative": 1 if self.relative else None,
            "similar": 1 if self.similar else None,
            "page": None,
        }
        values.update(changed)
        return f"{path}?" + urlencode(
            {name: value for name, value in values.items() if value not in (None, "")}
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Value:
    """A value of a facet as a link."""

    label: str
    count: int
    href: str


def search(request: Request) -> Response:
    asked = read(request)
    found_at = _versions_of(request, asked) if query.is_address(asked.query) else None
    if found_at:
        return RedirectResponse(found_at, status_code=303)
    archive, reader = site_of(request).archive, reader_of(request)
    page, wrong = None, ""
    if asked.query:
        try:
            page = search_service.search(
                archive,
                with_period(asked),
                reader=reader,
                collection=asked.collection,
                sort=asked.sort,
                offset=(asked.number - 1) * PAGE_HITS,
                limit=PAGE_HITS,
                facets=search_service.EVERY_FACET,
                fold=not asked.similar,
            )
        except InputError as error:
            wrong = str(error)
    pages = min(-(-page.pages // PAGE_HITS), MOST_PAGES) if page else 0
    has_more = page is not None and asked.number < pages and len(page.hits) == PAGE_HITS
    return render(
        request,
        "search.html",
        status=400 if wrong else 200,
        wrong=wrong,
        asked=asked,
        query=asked.query,
        whole_query=with_period(asked),
        collection=asked.collection,
        collections=[found.name for found in archive_status.collections(archive)],
        sort=asked.sort.value,
        page=page,
        number=asked.number,
        pages=pages,
        offset=(asked.number - 1) * PAGE_HITS,
        bars=_bars(request, asked, page) if page else [],
        facets=_facets(asked, page, language_of(request)) if page else [],
        forms=list(ExportForm),
        previous_page=asked.link(page=asked.number - 1) if asked.number > 1 else "",
        next_page=asked.link(page=asked.number + 1) if has_more else "",
        # The form keeps its times by itself.
        spelling=page.spelling.removesuffix(with_period(asked)[len(asked.query) :]) if page else "",
        as_address=f"/versions?{urlencode({'url': asked.query})}" if query.is_address(asked.query) else "",
        site_query=_site_query(asked),
        why=lambda hit: asked.link("/search/why", key=hit.key),
    )


def why(request: Request) -> Response:
    asked = read(request)
    if not asked.query:
        return RedirectResponse("/search", status_code=303)
    found = search_service.explain(
        site_of(request).archive,
        with_period(asked),
        request.query_params.get("key", "")[:4000],
        reader=reader_of(request),
        collection=asked.collection,
    )
    return render(
        request, "why.html", asked=asked, found=found, collection=asked.collection, back=asked.link()
    )


def trend(request: Request) -> Response:
    asked = read(request)
    words = [
        word for word in (text.strip()[:LONGEST_QUERY] for text in request.query_params.getlist("w")) if word
    ]
    words = words or [word for word in asked.query.split(",") if word.strip()]
    found = (
        search_service.trend(
            site_of(request).archive, words, reader=reader_of(request), collection=asked.collection
        )
        if words
        else None
    )
    if found is not None and request.query_params.get("format") == "csv":
        head = ["year", "all", *found.words]
        rows = [
            [year, count, *(years.get(year, 0) for years in found.words.values())]
            for year, count in found.volume.items()
        ]
        return csv_file("trend", written([head, *rows]))
    return render(
        request,
        "trend.html",
        words=words,
        found=found,
        asked=asked,
        collection=asked.collection,
        relative=asked.relative,
        picture=charts.of_trend(found.words, found.volume, relative=asked.relative) if found else None,
        as_csv=f"/search/trend?{urlencode([*(('w', word) for word in words), ('format', 'csv')])}",
        most=search_service.MOST_TREND_WORDS,
    )


def export(request: Request) -> Response:
    asked = read(request)
    if not asked.query:
        return RedirectResponse("/search", status_code=303)
    wanted = request.query_params.get("form", "")
    if wanted not in set(ExportForm):
        raise InputError(f"There is no form {wanted[:30]!r}. Known: {', '.join(ExportForm)}.")
    form = ExportForm(wanted)
    pieces = export_service.export(
        site_of(request).archive,
        with_period(asked),
        form,
        reader=reader_of(request),
        collection=asked.collection,
    )
    headers = {**_attached(f"search.{export_service.SUFFIXES[form]}"), "Cache-Control": "no-store"}
    return StreamingResponse(pieces, media_type=export_service.MEDIA_TYPES[form], headers=headers)


def read(request: Request) -> Asked:
    """The parameters; what is no sensible value is an InputError only where ignoring it would mislead."""
    given = request.query_params
    words = " ".join(given.get("q", "").split())
    if len(words) > LONGEST_QUERY:
        raise InputError(f"The query is longer than {LONGEST_QUERY} characters.")
    collection = given.get("collection") or EVERYTHING
    if not address.COLLECTION.match(collection):
        raise address.BadAddress("errors.text_collection", collection=collection[:60])
    sort = given.get("sort", "")
    number = given.get("page", "1")
    return Asked(
        query=words,
        collection=collection,
        sort=SearchSort(sort) if sort in set(SearchSort) else SearchSort.RELEVANCE,
        from_=_moment(given.get("from"), _MOMENT),
        to=_moment(given.get("to"), _MOMENT),
        as_of=_moment(given.get("as_of"), _DAY),
        relative=given.get("relative") == "1",
        similar=given.get("similar") == "1",
        number=min(max(int(number), 1), MOST_PAGES)
        if number.isascii() and number.isdigit() and len(number) < 6
        else 1,
    )


def with_period(asked: Asked) -> str:
    """The words, and the times of the form as words of the query language."""
    after = f" after:{asked.from_}" if asked.from_ else ""
    before = f" before:{asked.to}" if asked.to else ""
    as_of = f" as-of:{asked.as_of}" if asked.as_of else ""
    return asked.query + after + before + as_of


def _bars(request: Request, asked: Asked, page: SearchPage) -> list[DrawnBar]:
    """Months where no more than three years are asked for, else years."""
    spoken = language_of(request)
    archive, reader = site_of(request).archive, reader_of(request)
    volume = (
        search_service.volume(archive, reader=reader, collection=asked.collection) if asked.relative else None
    )
    by_month = bool(asked.from_ and asked.to) and int(asked.to[:4]) - int(asked.from_[:4]) < 3

    def link(moment: str) -> str:
        return asked.link(**{"from": moment, "to": moment})

    return charts.of_captures(
        page.months, volume, by_month=by_month, link=link, chosen=(asked.from_, asked.to), spoken=spoken
    )


def _facets(asked: Asked, page: SearchPage, spoken: Language) -> list[tuple[str, Sequence[Value]]]:
    found: list[tuple[str, Sequence[Value]]] = []
    for facet, values in page.facets.items():
        if facet is Facet.COLLECTION:
            links = [
                Value(label=value, count=count, href=asked.link(collection=value)) for value, count in values
            ]
        else:
            words = _FACET_WORDS[facet]
            links = [
                Value(
                    label=_label(page, facet, value, spoken),
                    count=count,
                    href=asked.link(q=_with(asked.query, words.format(value))),
                )
                for value, count in values
            ]
        # What cannot narrow is no help.
        if len(links) > 1:
            found.append((facet.value, links))
    years = [
        Value(label=str(year), count=count, href=asked.link("/search", **{"from": year, "to": year}))
        for year, count in page.years.items()
    ]
    return [*found, ("year", years[::-1][:_MOST_YEARS])] if len(years) > 1 else found


def _label(page: SearchPage, facet: Facet, value: str, spoken: Language) -> str:
    """Formats and languages by their name; two formats that are called the same keep their identifiers."""
    if facet is Facet.LANGUAGE and f"search.language_{value}" in spoken.texts:
        return spoken.texts[f"search.language_{value}"]
    name = page.format_names.get(value, "") if facet is Facet.FORMAT else ""
    is_only = list(page.format_names.values()).count(name) == 1
    return value if not name else name if is_only else f"{name} ({value})"


def _with(words: str, field: str) -> str:
    """The query narrowed by a field; another value of the same field gives way."""
    name = field.partition(":")[0]
    return " ".join([*(word for word in words.split() if not word.startswith(f"{name}:")), field])


def _versions_of(request: Request, asked: Asked) -> str | None:
    """Where the versions of what was typed are, if it is an address that is kept."""
    archive = site_of(request).archive
    try:
        url = address.archived_url(asked.query)
        now = to_timestamp(archive.clock())
        capture = lookup.find_closest(
            archive, url, now, collection=asked.collection, reader=reader_of(request)
        )
    except WebdepotError:
        return None
    return address.path_of(asked.collection, "*", capture.url)


def _site_query(asked: Asked) -> Callable[[str], str]:
    return lambda url: asked.link(q=_with(asked.query, f"site:{host_of(url)}"), page=None)


def _attached(name: str) -> dict[str, str]:
    return {"Content-Disposition": f'attachment; filename="{name}"'}


def _moment(text: str | None, form: re.Pattern[str]) -> str:
    return text if text and form.match(text) and int(text[:4]) > 0 else ""
