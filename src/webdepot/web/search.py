"""Search by words; what looks like an address and is in the archive leads to its versions at once."""

from collections.abc import Callable
from dataclasses import dataclass
from urllib.parse import urlencode

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from webdepot.access import query
from webdepot.errors import InputError, WebdepotError
from webdepot.model import EVERYTHING
from webdepot.ports import Sort
from webdepot.services import replaying, reporting, searching
from webdepot.times import to_timestamp
from webdepot.url import host_of
from webdepot.web import address, charts
from webdepot.web.site import language_of, reader_of, render, site_of

PAGE_HITS = 10
MOST_PAGES = 100
LONGEST_QUERY = 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """The form, checked."""

    query: str
    collection: str
    sort: Sort
    from_year: int | None
    to_year: int | None
    number: int

    def link(self, **changed: object) -> str:
        """The address of this search with some of it changed; defaults are left out."""
        values: dict[str, object] = {
            "q": self.query,
            "collection": self.collection if self.collection != EVERYTHING else None,
            "sort": self.sort.value if self.sort is not Sort.RELEVANCE else None,
            "from": self.from_year,
            "to": self.to_year,
            "page": None,
        }
        values.update(changed)
        return "/search?" + urlencode({name: value for name, value in values.items() if value not in (None, "")})


def search(request: Request) -> Response:
    asked = read(request)
    found_at = _versions_of(request, asked) if query.is_address(asked.query) else None
    if found_at:
        return RedirectResponse(found_at, status_code=303)
    archive, spoken = site_of(request).archive, language_of(request)
    page, wrong = None, ""
    if asked.query:
        try:
            page = searching.search(
                archive,
                with_period(asked),
                reader=reader_of(request),
                collection=asked.collection,
                sort=asked.sort,
                offset=(asked.number - 1) * PAGE_HITS,
                limit=PAGE_HITS,
            )
        except InputError as error:
            wrong = str(error)
    pages = min(-(-page.pages // PAGE_HITS), MOST_PAGES) if page else 0
    current = asked.from_year if asked.from_year == asked.to_year else None
    return render(
        request,
        "search.html",
        status=400 if wrong else 200,
        wrong=wrong,
        query=asked.query,
        collection=asked.collection,
        collections=[found.name for found in reporting.collections(archive)],
        sort=asked.sort.value,
        from_year=asked.from_year,
        to_year=asked.to_year,
        page=page,
        number=asked.number,
        pages=pages,
        offset=(asked.number - 1) * PAGE_HITS,
        year_bars=charts.of_years(
            page.years if page else {}, link=lambda year: asked.link(**{"from": year, "to": year}), current=current, spoken=spoken
        ),
        all_years=asked.link(**{"from": None, "to": None}),
        previous_page=asked.link(page=asked.number - 1) if asked.number > 1 else "",
        next_page=asked.link(page=asked.number + 1) if asked.number < pages else "",
        as_address=f"/versions?{urlencode({'url': asked.query})}" if query.is_address(asked.query) else "",
        site_query=_site_query(asked),
    )


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
        sort=Sort(sort) if sort in set(Sort) else Sort.RELEVANCE,
        from_year=_year(given.get("from")),
        to_year=_year(given.get("to")),
        number=min(max(int(number), 1), MOST_PAGES) if number.isascii() and number.isdigit() and len(number) < 6 else 1,
    )


def with_period(asked: Asked) -> str:
    """The years of the form as words of the query language."""
    after = f" after:{asked.from_year:04d}" if asked.from_year else ""
    before = f" before:{asked.to_year:04d}" if asked.to_year else ""
    return asked.query + after + before


def _versions_of(request: Request, asked: Asked) -> str | None:
    """Where the versions of what was typed are, if it is an address that is kept."""
    archive = site_of(request).archive
    try:
        url = address.archived_url(asked.query)
        now = to_timestamp(archive.clock())
        capture = replaying.find_closest(archive, url, now, collection=asked.collection, reader=reader_of(request))
    except WebdepotError:
        return None
    return address.path_of(asked.collection, "*", capture.url)


def _site_query(asked: Asked) -> Callable[[str], str]:
    words = " ".join(word for word in asked.query.split() if not word.startswith("site:"))
    return lambda url: asked.link(q=f"{words} site:{host_of(url)}", page=None)


def _year(text: str | None) -> int | None:
    return int(text) if text and text.isascii() and text.isdigit() and len(text) == 4 and int(text) > 0 else None
