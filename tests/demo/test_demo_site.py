"""The sample site: every edition whole, of its time, and served as a real site would be."""

import gzip
import http.client
import io
import json
import re
from collections.abc import Iterator
from html import unescape
from urllib.parse import urljoin, urlsplit

import pikepdf
import pytest
from lxml import etree
from PIL import Image

from webdepot.demo import site
from webdepot.demo.render import CLOSED_FOLDER
from webdepot.demo.resource import HOST, HOSTS, MAP_HOST, Edition, Resource
from webdepot.demo.server import DemoSite
from webdepot.demo.site import EDITIONS, Served
from webdepot.demo.texts import blocks

MISSING = {
    "2003": {"/beeld/klosjes.jpg", "/rondleiding/zaal3.html"},
    "2004": {"/beeld/klosjes.jpg", "/rondleiding/zaal3.html"},
    "2009": {"/images/klosjes.jpg", "/agenda/buslijnen-2008.html"},
    "2016": {"/img/klosjes-480.jpg", "/img/klosjes-1200.jpg", "/pers/"},
    "2024": {"/media/waterschap-lurze.svg", "/verslag/herkomst-damast.html"},
}
_ADDRESS = re.compile(
    r'(?:\b(?:href|src|srcset|background|data|content)\s*=\s*"([^"]*)")|url\(([^)]*)\)', re.IGNORECASE
)


@pytest.fixture(scope="module", params=EDITIONS, ids=lambda edition: edition.name)
def served(request: pytest.FixtureRequest) -> Served:
    return site.serve(request.param)


def _html(served: Served) -> Iterator[Resource]:
    return (
        resource
        for resource in served.resources.values()
        if resource.type.startswith("text/html") and resource.status == 200
    )


def _words(resource: Resource) -> str:
    return resource.body.decode("iso-8859-1" if "8859" in resource.type else "utf-8")


def _addresses(resource: Resource) -> Iterator[str]:
    """Every address of the sample hosts that a page or style sheet names."""
    for found in _ADDRESS.finditer(_words(resource)):
        for part in (found[1] or found[2] or "").split(","):
            first = unescape(part.strip()).split(" ")[0]
            if not first or not re.match(r"(/|http://)", first):
                continue
            url = urlsplit(urljoin(resource.url, first))
            if url.hostname in HOSTS:
                yield f"{url.hostname}{url.path}"


def test_exactly_the_planned_addresses_are_missing(served: Served) -> None:
    known = {f"{host}{path}" for host, path in served.resources}
    texts = [item for item in served.resources.values() if item.type.startswith(("text/html", "text/css"))]
    named = {address for resource in texts for address in _addresses(resource)}
    assert named - known == {f"{HOST}{path}" for path in MISSING[served.edition.name]}


def test_every_resource_can_be_reached_by_links(served: Served) -> None:
    found, waiting = set(), [f"{HOST}/", f"{HOST}/robots.txt", f"{HOST}/sitemap.xml"]
    while waiting:
        address = waiting.pop()
        host, _, path = address.partition("/")
        resource = served.resources.get((host, f"/{path}"))
        if resource is None or address in found:
            continue
        found.add(address)
        if resource.location:
            target = urlsplit(urljoin(resource.url, resource.location))
            waiting.append(f"{target.hostname}{target.path}")
        if resource.type.startswith(("text/html", "text/css")):
            waiting.extend(_addresses(resource))
        if "javascript" in resource.type or "json" in resource.type:
            waiting.extend(
                f"{host}{word}" for word in re.findall(r"""["'](/[^"']+)["']""", resource.body.decode())
            )
    expected = {f"{host}{path}" for host, path in served.resources} - {
        f"{HOST}/sitemap.xml",
        f"{HOST}/robots.txt",
    }
    assert expected - found == set()


def test_three_languages_and_enough_of_everything(served: Served) -> None:
    assert 25 <= len(served.resources) <= 60
    languages = {
        re.search(r'<html[^>]* lang="(\w\w)"', _words(page), re.IGNORECASE)[1] for page in _html(served)
    }
    assert languages == {"nl", "de", "en"}


def test_the_same_edition_gives_the_same_bytes(served: Served) -> None:
    again = site.serve(served.edition)
    assert again == served


def test_images_are_what_their_type_says(served: Served) -> None:
    kinds = {
        "image/gif": "GIF",
        "image/jpeg": "JPEG",
        "image/png": "PNG",
        "image/webp": "WEBP",
        "image/x-icon": "ICO",
    }
    for resource in served.resources.values():
        if resource.type in kinds:
            with Image.open(io.BytesIO(resource.body)) as image:
                image.load()
                assert image.format == kinds[resource.type], resource.path


def test_xml_is_well_formed_and_the_map_is_a_drawing(served: Served) -> None:
    for resource in served.resources.values():
        if "xml" in resource.type:
            etree.fromstring(resource.body)
    assert served.edition.name < "2009" or any(host == MAP_HOST for host, _ in served.resources)


def test_the_brochure_is_a_valid_pdf_with_text(served: Served) -> None:
    with pikepdf.open(io.BytesIO(served.resources[HOST, "/folder.pdf"].body)) as document:
        assert document.check_pdf_syntax() == []
        assert b"Tj" in document.pages[0].Contents.read_bytes()
        assert str(document.docinfo["/Title"])


def test_pages_are_encoded_as_was_usual_in_their_year() -> None:
    old, new = site.serve(EDITIONS[0]), site.serve(EDITIONS[-1])
    assert "Schritte hinter der Grenze" in _words(old.resources[HOST, "/de/"])
    assert "zwölf".encode("latin-1") in old.resources[HOST, "/de/"].body
    assert b"&#8364;" in old.resources[HOST, "/bezoek.html"].body
    assert "gehört".encode() in new.resources[HOST, "/de/"].body
    assert b"<FONT" in old.resources[HOST, "/"].body
    assert b"<FRAMESET" in old.resources[HOST, "/rondleiding/"].body
    assert b'type="module"' in new.resources[HOST, "/"].body


def test_news_appears_changes_and_disappears() -> None:
    titles = {edition.name: _news_titles(edition) for edition in EDITIONS}
    assert (
        titles["2003"]["/nieuws/wie-herkent-deze-mensen.html"]
        != titles["2004"]["/nieuws/wie-herkent-deze-mensen.html"]
    )
    assert "/nieuws/lezing-smokkelen.html" in titles["2003"]
    assert "/nieuws/lezing-smokkelen.html" not in titles["2004"]
    assert "/nieuws/vlasweek.html" not in titles["2004"]
    assert len({titles[year]["/nieuws/vlasweek.html"] for year in ("2009", "2016", "2024")}) == 3


def _news_titles(edition: Edition) -> dict[str, str]:
    resources = site.serve(edition).resources
    found = {
        path: body for (host, path), body in resources.items() if host == HOST and path.startswith("/nieuws/")
    }
    return {
        path: re.search(r"<title>([^<]*)", _words(body), re.IGNORECASE)[1] for path, body in found.items()
    }


def test_robots_closes_one_folder_that_pages_link_to(served: Served) -> None:
    robots = served.resources[HOST, "/robots.txt"].body.decode()
    assert f"Disallow: {CLOSED_FOLDER}" in robots
    assert any(f"{HOST}{CLOSED_FOLDER}rooster.html" in set(_addresses(page)) for page in _html(served))
    sitemap = served.resources.get((HOST, "/sitemap.xml"))
    assert sitemap is None or CLOSED_FOLDER.encode() not in sitemap.body


def test_the_collection_of_2024_names_pictures_that_exist() -> None:
    resources = site.serve(EDITIONS[-1]).resources
    pieces = json.loads(resources[HOST, "/data/collectie.json"].body)["stukken"]
    assert len(pieces) >= 5
    for piece in pieces:
        assert (HOST, piece["beeld"]) in resources
        assert (HOST, piece["pad"]) in resources


def test_markup_is_escaped_and_cut_into_blocks() -> None:
    found = blocks('## Kop <1>\n- een & *twee*\n- [drie](/x?a=1&b=2)\n\n![bij "avond"](brug)')
    assert [block.kind for block in found] == ["heading", "list", "figure"]
    assert found[0].words == "Kop &lt;1&gt;"
    assert found[1].items == ("een &amp; <i>twee</i>", '<a href="/x?a=1&amp;b=2">drie</a>')
    assert found[2].picture == "brug"
    assert '"' not in found[2].words


def _ask(
    demo: DemoSite, target: str, *, host: str = HOST, method: str = "GET", accept: str = ""
) -> tuple[int, dict[str, str], bytes]:
    connection = http.client.HTTPConnection(demo.address, timeout=10)
    try:
        connection.request(method, target, headers={"Host": host, "Accept-Encoding": accept})
        answer = connection.getresponse()
        return answer.status, dict(answer.headers), answer.read()
    finally:
        connection.close()


def test_the_server_shows_one_edition_at_a_time_by_host() -> None:
    with DemoSite() as demo:
        status, headers, first = _ask(demo, "/", host=f"{HOST}:80")
        assert (status, headers["Content-Type"]) == (200, "text/html; charset=iso-8859-1")
        assert headers["Last-Modified"] == "Mon, 05 May 2003 09:30:00 GMT"
        assert _ask(demo, "/", host=MAP_HOST)[0] == 404
        demo.show(EDITIONS[2])
        status, _, later = _ask(demo, "/?from=feed")
        assert status == 200
        assert later != first
        assert b"Veldwijk in 1832" in _ask(demo, "/", host=MAP_HOST)[2]
        assert _ask(demo, "/", host="www.other.example")[0] == 404


def test_the_server_answers_redirects_missing_pages_and_heads() -> None:
    with DemoSite(EDITIONS[-1]) as demo:
        status, headers, _ = _ask(demo, "/collectie.html")
        assert (status, headers["Location"]) == (301, "/collectie/")
        status, headers, body = _ask(demo, "/verslag/herkomst-damast.html")
        assert status == 404
        assert "Last-Modified" not in headers
        assert b"Diese Seite gibt es nicht" in body
        status, headers, body = _ask(demo, "/merk.svg", method="HEAD")
        assert (status, body) == (200, b"")
        assert int(headers["Content-Length"]) > 100


def test_later_servers_compress_text_for_clients_that_accept_it() -> None:
    with DemoSite(EDITIONS[-1]) as demo:
        _, plain_headers, plain = _ask(demo, "/huis.css")
        _, headers, packed = _ask(demo, "/huis.css", accept="gzip, br")
        assert "Content-Encoding" not in plain_headers
        assert headers["Content-Encoding"] == "gzip"
        assert gzip.decompress(packed) == plain
        assert "Content-Encoding" not in _ask(demo, "/media/vlas.webp", accept="gzip")[1]


def test_connect_to_names_every_host_of_the_site() -> None:
    with DemoSite() as demo:
        assert set(demo.connect_to) == set(HOSTS)
        assert set(demo.connect_to.values()) == {demo.address}
        assert demo.address.startswith("127.0.0.1:")
