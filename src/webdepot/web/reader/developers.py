"""The page for people who program: every interface with examples that work against this archive."""

from collections.abc import Iterator
from dataclasses import dataclass
from urllib.parse import urlencode

from starlette.requests import Request
from starlette.responses import Response

from webdepot.services.access import lookup
from webdepot.services.access.export.export import ExportForm
from webdepot.times import http_date
from webdepot.url import host_of
from webdepot.web.problems import PROBLEM_CODES, heading
from webdepot.web.replay import address
from webdepot.web.site import Site, language_of, render, site_of

SECTIONS = ("search", "versions", "memento", "content", "evidence", "catalogue", "feeds", "downloads")
"""In the order of the page; `developers.SECTION` and `developers.SECTION_words` are their texts."""
_PLACEHOLDER = ("http://www.example.org/", "20200101000000")


@dataclass(frozen=True, slots=True, kw_only=True)
class ApiExample:
    url: str
    words: str
    """Key of the text that explains it, below `developers`."""
    header: str = ""
    """A request header that the example needs."""

    @property
    def command(self) -> str:
        """The example as a shell command."""
        return f"curl -i -H '{self.header}' '{self.url}'" if self.header else f"curl '{self.url}'"


def show(request: Request) -> Response:
    site = site_of(request)
    capture = lookup.find_example(site.archive)
    url, timestamp = (capture.url, capture.timestamp) if capture else _PLACEHOLDER
    examples = {name: list(_EXAMPLES[name](site, url, timestamp)) for name in SECTIONS}
    spoken = language_of(request)
    problems = [(code, status, heading(spoken, status)) for code, status in PROBLEM_CODES.items()]
    return render(request, "developers.html", sections=SECTIONS, examples=examples, problems=problems)


def _search(site: Site, url: str, timestamp: str) -> Iterator[ApiExample]:
    query = f"site:{host_of(url)}"
    yield ApiExample(url=_portal(site, "/api/search", q=query, limit=5), words="ex_search")
    yield ApiExample(url=_portal(site, "/api/images", q=query), words="ex_images")
    yield ApiExample(url=_portal(site, "/api/trend", w=query), words="ex_trend")
    yield ApiExample(
        url=_portal(site, "/api/suggest", q=host_of(url).removeprefix("www.")[:3]), words="ex_suggest"
    )
    yield ApiExample(url=_portal(site, "/api/openapi.json"), words="ex_openapi")


def _versions(site: Site, url: str, timestamp: str) -> Iterator[ApiExample]:
    yield ApiExample(
        url=f"{site.replay_url}/all/cdx?{urlencode({'url': url, 'output': 'json'})}", words="ex_cdx"
    )
    wide = {"url": f"{host_of(url)}/*", "limit": 10}
    yield ApiExample(url=f"{site.replay_url}/all/cdx?{urlencode(wide)}", words="ex_cdx_prefix")
    yield ApiExample(
        url=f"{site.replay_url}/cdx/search/cdx?{urlencode({'url': url, 'output': 'json'})}", words="ex_cdx_ia"
    )


def _memento(site: Site, url: str, timestamp: str) -> Iterator[ApiExample]:
    shown = address.quote_url(url)
    yield ApiExample(
        url=f"{site.replay_url}/all/timegate/{shown}",
        words="ex_timegate",
        header=f"Accept-Datetime: {http_date(timestamp)}",
    )
    yield ApiExample(url=f"{site.replay_url}/all/timemap/link/{shown}", words="ex_timemap")
    yield ApiExample(url=f"{site.replay_url}/all/timemap/json/{shown}", words="ex_timemap_json")


def _content(site: Site, url: str, timestamp: str) -> Iterator[ApiExample]:
    yield ApiExample(url=site.replay_url + address.path_of("all", f"{timestamp}id_", url), words="ex_raw")


def _evidence(site: Site, url: str, timestamp: str) -> Iterator[ApiExample]:
    yield ApiExample(url=_portal(site, "/evidence", url=url, at=timestamp, form="json"), words="ex_evidence")
    yield ApiExample(url=_portal(site, "/evidence/key.pem"), words="ex_key")


def _catalogue(site: Site, url: str, timestamp: str) -> Iterator[ApiExample]:
    yield ApiExample(url=_portal(site, "/oai", verb="Identify"), words="ex_oai")
    yield ApiExample(
        url=_portal(site, "/oai", verb="ListRecords", metadataPrefix="oai_dc"), words="ex_oai_records"
    )


def _feeds(site: Site, url: str, timestamp: str) -> Iterator[ApiExample]:
    yield ApiExample(url=_portal(site, "/search.atom", q=f"site:{host_of(url)}"), words="ex_atom")
    yield ApiExample(url=_portal(site, "/opensearch.xml"), words="ex_opensearch")


def _downloads(site: Site, url: str, timestamp: str) -> Iterator[ApiExample]:
    query = f"site:{host_of(url)}"
    for form in (ExportForm.CSV, ExportForm.JSONL, ExportForm.WACZ):
        yield ApiExample(
            url=_portal(site, "/search/export", q=query, form=form.value), words=f"ex_{form.value}"
        )


def _portal(site: Site, path: str, **fields: object) -> str:
    return site.portal_url + path + (f"?{urlencode(fields)}" if fields else "")


_EXAMPLES = {
    "search": _search,
    "versions": _versions,
    "memento": _memento,
    "content": _content,
    "evidence": _evidence,
    "catalogue": _catalogue,
    "feeds": _feeds,
    "downloads": _downloads,
}
