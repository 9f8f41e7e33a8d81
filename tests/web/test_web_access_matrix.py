"""Every interface that has an address gives the same answer as the slow reference (`rule_matrix.py`), asked
over HTTP.

A reader's access point is where the request comes from: a network for the reading room and for partners, a
session (and, on the origins without sessions, a pass) for staff. The server's clock is a file, so that it can be
another day. Lending has tests of its own: `test_web_usage_and_lending.py`.

Beside the pages of `rule_matrix.py` there are images for the search for images, and a work in the depot
for what partners fetch. Every route of the three origins is requested, or `NOT_ASKED` says why it need not be.
"""

import csv
import http.client
import io
import json
import random
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, closing
from datetime import UTC, date, datetime
from urllib.parse import quote, quote_plus, urlsplit

import pytest
from museum import PASSWORD, Answer, Served, Warc, make_home, serving, sign_in
from PIL import Image
from starlette.routing import compile_path

from rule_matrix import DAYS, STAMPS, URLS, random_rules, reference
from webdepot.access import rule_rows
from webdepot.access.policy import AccessPoint, Reader, Rule, RuleAnswer
from webdepot.accounts import accounts
from webdepot.accounts.roles import Role
from webdepot.archive import Archive
from webdepot.model import Capture, Location, RecordKind
from webdepot.services.depot import deposit
from webdepot.services.harvest import harvests
from webdepot.services.index import indexer
from webdepot.services.intake import warc_files
from webdepot.services.progress import unwatched
from webdepot.services.quality import harvest_check
from webdepot.url import key as key_of
from webdepot.web.routes import FRAME_ROUTES, PORTAL_ROUTES, REPLAY_ROUTES

RULE_SETS = 3
PICTURES = [f"http://b.org/x/{number}.png" for number in range(len(URLS))]
"""One for each page, captured once, where rules about `org,` and `org,b)/x` reach them and the questions
about a.org do not.
"""
WORK = "http://b.org/x/work.html"
"""Stands in the depot by itself, so that partners can fetch it where no rule closes a capture of it."""
NOT_ASKED = {
    "/opensearch.xml": "describes the search box",
    "/api/openapi.json": "describes the interfaces",
    "/api/{rest:path}": "an error: there is no such interface",
    "/evidence/key.pem": "a public key",
    "/-/go": "leads to an archived address",
    "/about": "tells figures, no addresses",
    "/robots.txt": "tells crawlers what to leave alone",
    "/favicon.ico": "leads to the icon",
    "/help": "tells how to search",
    "/searches/{token}.atom": "the feed of /search.atom, as the public sees it",
    "/catalogue": "describes works by what people wrote; what it leads to is asked",
    "/catalogue/subjects": "lists what people wrote",
    "/collections": "lists what people wrote; its pictures are asked",
    "/title/{key}/{form}": "the description of a work in other notations",
    "/urn/{urn:path}": "leads to the title",
    "/compare/picture": "a screenshot, past `find_closest` as the comparison; tested in test_web_compare.py",
    "/health": "whether the portal answers",
    "/ready": "whether the database answers",
    "/sign-in/oidc": "signs in",
    "/sign-in/oidc/back": "signs in",
    "/suggest": "a form",
    "/complain": "a form",
    "/answer/{token}": "a form for owners",
    "/-/language": "sets a cookie",
    "/-/seat/{address:path}": "lending, tested in test_web_usage_and_lending.py",
    "/-/left/{address:path}": "lending, tested in test_web_usage_and_lending.py",
    "/-/start/{address:path}": "installs the worker; tells nothing of a capture",
    "/-/migrated/{address:path}": "past `find_closest`; tested with a migration in test_web_formats.py",
    "/{page}": "leads to the portal",
}
"""Routes for everybody that show no capture, or that are tested elsewhere."""
SOURCES = {
    AccessPoint.PUBLIC: "127.0.0.1",
    AccessPoint.READING_ROOM: "127.0.0.2",
    AccessPoint.PARTNER: "127.0.0.3",
}
SETTINGS = '[web]\nreading_room_networks = ["127.0.0.2/32"]\npartner_networks = ["127.0.0.3/32"]\n'
SHOWS = (RuleAnswer.SHOW, RuleAnswer.REFUSE, RuleAnswer.HIDE, RuleAnswer.WARN)


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    folder = tmp_path_factory.mktemp("matrix")
    warc = Warc(folder / "matrix.warc.gz")
    for url in URLS:
        for stamp in STAMPS:
            warc.response(url, stamp, _body(url, stamp))
    drawn = io.BytesIO()
    Image.new("RGB", (40, 30), "navy").save(drawn, "PNG")
    for picture in PICTURES:
        warc.response(picture, STAMPS[1], drawn.getvalue(), mime="image/png")
    for url in URLS:
        fields = {"WARC-Type": "resource", "Content-Type": "image/png"}
        warc.raw(f"urn:view:{url}", STAMPS[0], drawn.getvalue(), fields)
    work = Warc(folder / "work.warc.gz")
    for stamp in STAMPS[1:5]:
        work.response(WORK, stamp, b"<title>Dial</title>" + stamp.encode())
    home = make_home(folder / "home", warc.write(), settings=SETTINGS)
    with Archive.open(home, clock=lambda: _noon(DAYS[0])) as archive:
        accounts.add(archive.database, "curator", PASSWORD, [Role.CURATOR], _noon(DAYS[0]))
        (pages,) = harvests.latest(archive, 2)
        harvest_check.note_screenshots(archive, pages)
        harvest = warc_files.take_files(archive, [work.write()], collection="works", watch=unwatched).harvest
        assert harvest is not None
        harvest_check.check(archive, harvest)
        deposit.keep(archive, harvest)
        indexer.index_harvest(archive, harvest.id)
    with serving(home, clock=folder / "clock", now=_noon(DAYS[0]), as_proxy=True) as running:
        yield running


def _body(url: str, stamp: str) -> bytes:
    picture = PICTURES[URLS.index(url)]
    return f"<title>Clock</title><p>A clock of {stamp} at {url}</p><img src='{picture}' alt='clock'>".encode()


def _noon(day: date) -> datetime:
    return datetime(day.year, day.month, day.day, 12, tzinfo=UTC)


class Asker:
    """One reader at one access point on one day."""

    def __init__(self, served: Served, point: AccessPoint) -> None:
        self.served = served
        self.point = point
        self.source = SOURCES.get(point, "127.0.0.1")
        self.session = sign_in(served, "curator") if point is AccessPoint.STAFF else ""
        self._passes: dict[str, str] = {}
        self._opened = ExitStack()
        self._connections: dict[int, http.client.HTTPConnection] = {}

    def get(self, face: str, path: str, **headers: str) -> Answer:
        base = {"portal": self.served.portal, "frame": self.served.frame, "replay": self.served.replay}[face]
        asked.add((face, route_of(face, path.partition("?")[0])))
        given = {"Host": urlsplit(base).netloc} | {
            name.replace("_", "-"): value for name, value in headers.items()
        }
        if self.session and face == "portal":
            given["Cookie"] = self.session
        elif self.session:
            cookie = self._pass_to(path)
            if face == "frame":
                given["Cookie"] = cookie
            else:
                path = path.replace("/all/", f"/all~{cookie.partition('=')[2]}/", 1)
        return self._said(base, path, given)

    def _pass_to(self, path: str) -> str:
        """The cookie with the pass to the page in a path, as staff get it on their way to the frame."""
        url = re.findall(r"http://[^&]+", path)[0]
        if url not in self._passes:
            there = self.get("portal", f"/compare?url={url}&at={STAMPS[0]}").headers["Location"]
            entered = self._said(
                self.served.frame, there.removeprefix(self.served.frame), {"Host": urlsplit(there).netloc}
            )
            self._passes[url] = entered.headers["Set-Cookie"].partition(";")[0]
        return self._passes[url]

    def through_the_proxy(self, url: str, moment: str) -> Answer:
        """A request as a browser sends it to its proxy: with the whole address in the request line."""
        return self._said(self.served.proxy, url, {"Host": urlsplit(url).netloc, "Accept-Datetime": moment})

    def _said(self, base: str, target: str, headers: dict[str, str]) -> Answer:
        """Send a request; one connection for all requests to a port."""
        port = urlsplit(base).port
        assert port
        if port not in self._connections:
            made = http.client.HTTPConnection("127.0.0.1", port, timeout=30, source_address=(self.source, 0))
            self._connections[port] = self._opened.enter_context(closing(made))
        connection = self._connections[port]
        try:
            return self._exchange(connection, target, headers)
        except http.client.RemoteDisconnected:  # it was idle for longer than the server waits
            connection.close()
            return self._exchange(connection, target, headers)

    @staticmethod
    def _exchange(connection: http.client.HTTPConnection, target: str, headers: dict[str, str]) -> Answer:
        connection.putrequest("GET", target, skip_host=True, skip_accept_encoding=True)
        for name, value in headers.items():
            connection.putheader(name, value)
        connection.endheaders()
        got = connection.getresponse()
        return Answer(got.status, got.headers, got.read())

    def __enter__(self) -> "Asker":
        return self

    def __exit__(self, *_: object) -> None:
        self._opened.close()


asked: set[tuple[str, str]] = set()
"""Faces and routes that were asked in this process."""
shots: Counter[tuple[bool, int]] = Counter()
"""Whether a version of the page is shown, and the status of its picture."""
TABLES = {"portal": PORTAL_ROUTES, "frame": FRAME_ROUTES, "replay": REPLAY_ROUTES}
ROUTES = {
    face: [(compile_path(page.path)[0], page.path) for page in pages if "GET" in page.methods]
    for face, pages in TABLES.items()
}


def route_of(face: str, path: str) -> str:
    """The first row of the route table that matches a path, as the server finds it."""
    return next((route for pattern, route in ROUTES[face] if pattern.match(path)), "")


def test_every_surface_agrees_with_the_reference_over_http(served: Served):
    chance = random.Random(7)
    compared = 0
    for _ in range(RULE_SETS):
        with served.archive() as archive, archive.database.transaction() as connection:
            for rule in rule_rows.every(connection):
                rule_rows.remove(connection, rule.id)
            every = [rule_rows.add(connection, rule) for rule in random_rules(chance, SHOWS)]
        for today in DAYS:
            served.set_clock(_noon(today))
            for point in AccessPoint:
                answers = _reference(every, Reader(access_point=point), today)
                case = f"{point} on {today}: {every}"
                with Asker(served, point) as asker:
                    _compare(asker, answers, case)
                    _compare_pictures(
                        asker,
                        answers,
                        _shown(every, Reader(access_point=point), today, PICTURES, [STAMPS[1]]),
                        case,
                    )
                    _compare_work(
                        asker, _shown(every, Reader(access_point=point), today, [WORK], STAMPS[1:5]), case
                    )
                compared += len(answers)
    assert compared == RULE_SETS * len(DAYS) * len(AccessPoint) * len(URLS) * len(STAMPS)
    assert shots[True, 200] > shots[True, 404], "a page that is shown has no picture only beside a closed one"
    for face, pages in TABLES.items():
        open_to_all = {page.path for page in pages if "GET" in page.methods and not page.roles}
        left = open_to_all - {route for where, route in asked if where == face} - NOT_ASKED.keys()
        # The portal redirects to these pages on the frame, and signs in.
        assert not left - {
            "/",
            "/compare",
            "/sign-in",
            "/-/pass/{token}/{address:path}",
            "/cdx/search/cdx",
            "/web/timemap/cdx",
            "/outbackcdx/{collection}",
            "/{collection}/xmlquery",
            "/wayback/available",
            "/-/banner/{address:path}",
        }, face


def _shown(
    every: list[Rule], reader: Reader, today: date, urls: Sequence[str], stamps: Sequence[str]
) -> dict[tuple[str, str], bool]:
    return {
        place: answer is RuleAnswer.SHOW
        for place, answer in _reference(every, reader, today, urls, stamps).items()
    }


def _reference(
    every: list[Rule], reader: Reader, today: date, urls: Sequence[str] = URLS, stamps: Sequence[str] = STAMPS
) -> dict[tuple[str, str], RuleAnswer]:
    def capture(url: str, stamp: str) -> Capture:
        place = Location(container="", offset=0, length=0)
        return Capture(
            key=key_of(url),
            timestamp=stamp,
            url=url,
            kind=RecordKind.RESPONSE,
            status=200,
            mime="text/html",
            digest="",
            location=place,
        )

    return {
        (url, stamp): reference(capture(url, stamp), every, reader, today) for url in urls for stamp in stamps
    }


def _compare(asker: Asker, answers: dict[tuple[str, str], RuleAnswer], case: str) -> None:
    shown = {place for place, answer in answers.items() if answer is RuleAnswer.SHOW}
    for url in URLS:
        mine = [stamp for stamp in STAMPS if (url, stamp) in shown]
        refused = 451 if answers[url, STAMPS[-1]] is RuleAnswer.REFUSE else 404
        _compare_lists(asker, url, mine, 200 if mine else refused, case)
        _compare_pages(asker, url, mine, refused, case)
    # Staff are known on the portal; a pass on the other origins is to one page, not to lists.
    faces = ("portal",) if asker.session else ("portal", "replay")
    for face in faces:
        for query, whole in (("a.org/x*", "http://a.org/x"), ("*.a.org", "a.org/")):
            lines = asker.get(face, f"/all/cdx?url={query}&output=json").text.splitlines()
            listed = {(said["url"], said["timestamp"]) for said in map(json.loads, lines)}
            assert listed == {place for place in shown if whole in place[0]}, (face, query, case)
    text = asker.get("portal", "/versions?url=*.a.org").text
    below = {url for url, _ in shown if "a.org" in url}
    assert set(re.findall(r'href="/all/\*/(http://[^"]+)"', text)) == below, case
    _compare_search(asker, shown, case)
    for path in ("/", "/collections/museums"):
        page = asker.get("portal", path).text
        listed = {
            (url, stamp)
            for stamp, url in re.findall(r'href="/(?:all|museums)/(\d{14})/(http://[^"]+)"', page)
            if url in URLS
        }
        assert listed <= shown, (path, case)
        newest = {urlsplit(url).netloc for url, stamp in shown if stamp == STAMPS[-1]}
        assert path != "/" or {urlsplit(url).netloc for url, _ in listed} >= newest, case


def _compare_lists(asker: Asker, url: str, mine: list[str], status: int, case: str) -> None:
    page = asker.get("portal", f"/all/*/{url}")
    assert page.status == status, (url, case)
    count = re.search(r"Archived (once|\d+ times)", page.text)
    assert (count[1] if count else "") == (
        "once" if len(mine) == 1 else f"{len(mine)} times" if mine else ""
    ), (url, case)
    for face in ("portal",) if asker.session else ("portal", "replay"):
        lines = asker.get(face, f"/all/cdx?url={url}&output=json").text.splitlines()
        assert [json.loads(line)["timestamp"] for line in lines] == mine, (face, url, case)
    if asker.session:
        return
    timemap = asker.get("replay", f"/all/timemap/json/{url}")
    assert timemap.status == status, (url, case)
    if mine:
        found = [
            re.search(r"/(\d{14})id_/", one["uri"]) for one in json.loads(timemap.text)["mementos"]["list"]
        ]
        assert [stamp[1] for stamp in found if stamp] == mine, (url, case)
    for form in ("link", "cdxj"):
        timemap = asker.get("replay", f"/all/timemap/{form}/{url}")
        assert timemap.status == status, (url, case)
        assert re.findall(r"/(\d{14})id_/", timemap.text) == mine, (form, url, case)
    for path in ("/cdx/search/cdx", "/web/timemap/cdx"):
        rows = json.loads(asker.get("replay", f"{path}?url={url}&output=json").text)
        assert [row[1] for row in rows[1:]] == mine, (url, case)
    lines = asker.get("replay", f"/outbackcdx/all?url={url}").text.splitlines()
    assert [line.split(" ")[1] for line in lines] == mine, (url, case)
    query = quote_plus(f"type:urlquery url:{quote_plus(url)}")
    dates = re.findall(r"<capturedate>(\d+)", asker.get("replay", f"/all/xmlquery?q={query}").text)
    assert dates == mine, (url, case)
    closest = json.loads(asker.get("replay", f"/wayback/available?url={url}").text)["archived_snapshots"]
    assert [one["timestamp"] for one in closest.values()] == mine[-1:], (url, case)


def _compare_pages(asker: Asker, url: str, mine: list[str], refused: int, case: str) -> None:
    for stamp in STAMPS:
        raw = asker.get("replay", f"/all/{stamp}id_/{url}")
        if not mine:
            assert raw.status == refused, (url, stamp, case)
            continue
        nearest = [one for one in mine if raw.body == _body(url, one)]
        assert raw.status == 200 and len(nearest) == 1 and (nearest == [stamp]) == (stamp in mine), (
            url,
            stamp,
            case,
        )
    for stamp in (STAMPS[1], STAMPS[-1]):
        frame = asker.get("frame", f"/all/{stamp}/{url}")
        banner = asker.get("frame", f"/-/banner/all/{stamp}/{url}")
        gate = asker.get("replay", f"/all/{url}", Accept_Datetime="Thu, 31 Dec 2026 00:00:00 GMT")
        if not mine:
            assert frame.status == banner.status == gate.status == refused, (url, stamp, case)
            continue
        assert frame.status == (200 if stamp in mine else 302), (url, stamp, case)
        assert banner.headers["X-Archived-Path"][5:19] in mine, (url, stamp, case)
        assert f"/{mine[-1]}" in gate.headers["Location"], (url, case)
    _compare_other_forms(asker, url, mine, refused, case)


def _compare_other_forms(asker: Asker, url: str, mine: list[str], refused: int, case: str) -> None:
    """The same capture for the worker, without scripts, through the proxy, as a citation; and a comparison of
    two.
    """
    stamp = STAMPS[3]
    for_worker, still = (asker.get("replay", f"/all/{stamp}{form}/{url}") for form in ("sw_", "ns_"))
    cited = asker.get("portal", f"/cite?url={url}&at={stamp}&form=ris")
    compared = asker.get("frame", f"/compare?url={url}&at={STAMPS[0]}&with={STAMPS[-1]}")
    proved = asker.get("portal", f"/evidence?url={url}&at={stamp}&form=json")
    answers = [for_worker, still, cited, compared, proved]
    if asker.point is not AccessPoint.STAFF:  # nobody signs in at a terminal
        answers.append(asker.through_the_proxy(url, "Tue, 31 Dec 2019 23:59:59 GMT"))
    assert {answer.status for answer in answers} == ({200} if mine else {refused}), (
        [one.status for one in answers],
        url,
        case,
    )
    said = {
        found
        for answer in answers
        for found in re.findall(r"A clock of (\d{14}) at", re.sub(r"<[^>]*>", "", answer.text))
    }
    assert said <= set(mine), (said, url, case)
    if mine:
        assert re.findall(r'<option value="(\d{14})"', compared.text) == 2 * mine, (url, case)
        assert {mine[0], mine[-1]} <= said, (url, case)
        days = {f"{one[:4]}/{one[4:6]}/{one[6:8]}" for one in mine}
        assert set(re.findall(r"DA  - (\S+)", cited.text)) <= days, (url, case)
        assert json.loads(proved.text)["report"]["timestamp"] in mine, (url, case)


def _compare_search(asker: Asker, shown: set[tuple[str, str]], case: str) -> None:
    urls = {url for url, _ in shown}
    examples = asker.get("portal", "/developers").text
    assert not {url for url in URLS if f"all/timemap/link/{url}&#39;" in examples} - urls, case
    found = json.loads(asker.get("portal", "/api/search?q=clock&limit=50").text)
    assert {hit["url"] for hit in found["hits"]} == urls, case
    page = asker.get("portal", "/search?q=clock").text
    assert {url for url in URLS if f">{url}<" in page or quote(url, safe=":/") + '"' in page} == urls, case
    rows = list(csv.DictReader(io.StringIO(asker.get("portal", "/search/export?q=clock&form=csv").text)))
    assert {(row["url"], row["timestamp"]) for row in rows} == shown, case
    feed = asker.get("portal", "/search.atom?q=clock").text
    assert {urlsplit(url).path for url in URLS if url in urls} <= {
        urlsplit(url).path for url in URLS if url in feed
    }, case
    trend = json.loads(asker.get("portal", "/api/trend?w=clock").text)
    years = Counter(stamp[:4] for _, stamp in shown)
    assert {year: count for year, count in trend["words"]["clock"].items() if count} == years, case
    table = asker.get("portal", "/search/trend?w=clock&format=csv").text.splitlines()[1:]
    assert {
        line.split(",")[0]: int(line.split(",")[2]) for line in table if line.split(",")[2] != "0"
    } == years, case
    assert json.loads(asker.get("portal", "/api/suggest?q=cloc").text)[1] == (["clock"] if shown else []), (
        case
    )
    for url in URLS[:2]:
        why = asker.get("portal", f"/search/why?q=clock&key={quote(key_of(url))}")
        assert why.status == (200 if url in urls else 404), (url, case)


def _compare_pictures(
    asker: Asker, answers: dict[tuple[str, str], RuleAnswer], pictures: dict[tuple[str, str], bool], case: str
) -> None:
    """A picture is found where both it and a version of its page are shown."""
    urls = {url for (url, _), answer in answers.items() if answer is RuleAnswer.SHOW}
    wanted = {
        picture
        for url, picture in zip(URLS, PICTURES, strict=True)
        if url in urls and pictures[picture, STAMPS[1]]
    }
    found = json.loads(asker.get("portal", "/api/images?q=clock").text)["images"]
    assert {one["url"] for one in found} == wanted, case
    page = asker.get("portal", "/search/images?q=clock").text
    assert {picture for picture in PICTURES if picture in page} == wanted, case
    for url in URLS:
        mine = [stamp for stamp in STAMPS if answers[url, stamp] is RuleAnswer.SHOW]
        shot = asker.get("portal", f"/picture?url={url}&at={STAMPS[2]}&size=hit").status
        assert shot in ((200, 404) if mine else (404, 451)), (url, case)
        shots[bool(mine), shot] += 1
    for picture in PICTURES[:2]:
        small = asker.get("replay", f"/-/thumbnail/all/{STAMPS[1]}/{picture}")
        assert (small.status == 200) == pictures[picture, STAMPS[1]] and small.status in (200, 404, 451), (
            small.status,
            case,
        )


def _compare_work(asker: Asker, shown: dict[tuple[str, str], bool], case: str) -> None:
    """An object is sent whole or not at all; its description contains no address but that of the site."""
    listed = asker.get("portal", "/oai?verb=ListRecords&metadataPrefix=oai_mets_lmer").text
    (place,) = set(re.findall(r"/transfer/([^<\"]+)\.zip", listed))
    one = asker.get(
        "portal",
        f"/oai?verb=GetRecord&metadataPrefix=oai_mets_lmer&identifier=oai:localhost.localdomain:{place}",
    ).text
    assert place in one and not any(url in listed + one for url in URLS), case
    fetched = asker.get("portal", f"/transfer/{place}.zip")
    assert fetched.status == (200 if all(shown.values()) else 401), (fetched.status, case)
    title = asker.get("portal", f"/title/{place}").text
    assert (f"/transfer/{place}.zip" in title) == all(shown.values()), case
