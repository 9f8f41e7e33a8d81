"""Crawls of endless sites, checked by the log of the server; and policies that the crawl log must show."""

import re
from calendar import month_name
from collections.abc import Collection
from datetime import UTC, date, datetime
from pathlib import Path
from urllib.parse import parse_qsl, quote, urlencode

import pytest
from harvest_crawl import kept, lines, run
from harvest_site import Asked, Site, whole

from webdepot.harvest.links.bodies import LinkLimits
from webdepot.harvest.politeness.robots import RobotsPolicy
from webdepot.harvest.report.result import HostSettings
from webdepot.harvest.scope import profile_rules
from webdepot.harvest.scope.address_traps import endless_dates
from webdepot.harvest.scope.conditions import ScopeFacts
from webdepot.harvest.scope.limits import ScopeLimits
from webdepot.model import Answer, Candidate
from webdepot.url import Url

FACTS = ScopeFacts(now=datetime(2026, 11, 15, tzinfo=UTC))


def rule_lines(folder: Path) -> dict[str, list[str]]:
    """Addresses by the rule that rejected them."""
    found: dict[str, list[str]] = {}
    for line in lines(folder):
        if int(str(line["status"])) <= -4000:
            assert line["reason"], line
            found.setdefault(str(line["rule"]), []).append(str(line["url"]))
    return found


@pytest.mark.parametrize("path", ["iso-8859-1-meta.html", "item-0042-7/", "a_9000_1_x"])
def test_codes_are_not_dates(path: str) -> None:
    rule = endless_dates(2026, 5)
    assert rule(Candidate(url=Url(f"http://a.example/{path}"), path="L")).answer is Answer.PASS
    assert rule(Candidate(url=Url("http://a.example/x-2044-01-05/"), path="L")).answer is Answer.REJECT


def test_a_calendar_ends(site: Site, tmp_path: Path) -> None:
    def calendar(asked: Asked) -> bytes | None:
        if not (match := re.fullmatch(r"/cal/(\d{4})/(\d\d)/", asked.path)):
            return None
        year, month = int(match[1]), int(match[2])
        later = (year + month // 12, month % 12 + 1)
        walks = "walk " * (12 * year + month)  # each month has news
        return whole(f"<a href=/cal/{later[0]}/{later[1]:02d}/>next</a> {year} {month} {walks}")

    site.fallback = calendar
    site.page("/", "<a href=/cal/2026/10/>calendar</a>")
    run(tmp_path, [f"{site.url}/"], facts=FACTS)
    months = [path for path in site.paths() if re.fullmatch(r"/cal/\d{4}/\d\d/", path)]
    assert months[-1] == "/cal/2031/12/"
    assert len(months) == 63
    assert rule_lines(tmp_path)["calendar"] == [f"{site.url}/cal/2032/01/"]


def _month_page(asked: Asked) -> bytes | None:
    """A calendar plugin: months forwards and backwards without end, some days with a page; few have events."""
    values = dict(parse_qsl(asked.target.partition("?")[2]))
    frame = f"<h1>Town hall</h1><a href='/login?return={quote(asked.target, safe='')}'>Sign in</a>"
    if asked.path == "/day" and len(values["date"]) == 10:
        day = date.fromisoformat(values["date"])
        event = EVENTS.get(day, "No events on this day")
        return whole(f"{frame}<h2>{day:%A}, {day.day} {day:%B} {day.year}</h2><p>{event}</p>")
    if asked.path != "/month" or len(values["year"]) > 4:
        return None
    year, month = int(values["year"]), int(values["month"])
    links = ((year - (month == 1), (month - 2) % 12 + 1), (year + month // 12, month % 12 + 1))
    around = "".join(f"<a href='/month?year={y}&month={m}'>{month_name[m]}</a>" for y, m in links)
    days = "".join(
        f"<td><a href='/day?date={year}-{month:02}-{day:02}'>{day}</a>"
        f"<br>{EVENTS.get(date(year, month, day), '')}"
        for day in (2, 12, 22)
    )
    return whole(f"{frame}{around}<h2>{month_name[month]} {year}</h2><table><tr>{days}</table>")


EVENTS = {date(2026, month, 12): f"Council meeting {'about water ' * month}" for month in range(1, 13)}


def test_months_without_events_end(site: Site, tmp_path: Path) -> None:
    """The years do not end it: it may go back to the year 1000, and months have pages for their days."""
    site.fallback = _month_page
    site.page("/", "<a href='/month?year=2026&month=11'>calendar</a>")
    run(tmp_path, [f"{site.url}/"], facts=FACTS, scope_limits=ScopeLimits(hops=10_000))
    months = [path for path in site.paths() if path.startswith("/month")]
    days = [path for path in site.paths() if path.startswith("/day")]
    assert {f"/day?date={day}" for day in EVENTS} <= set(days)
    assert len(months) < 500 and len(days) < 2_500
    assert len(rule_lines(tmp_path)["same answers"]) > 100


def test_sort_orders_and_filters_end(site: Site, tmp_path: Path) -> None:
    """All items are found; combinations of filters, orders and views that show only known items are not."""
    facets = {"colour": ["red", "blue", "green", "grey"], "size": ["s", "m", "l"], "maker": list("abcd")}
    orders = {"sort": ["price", "name", "newest"], "view": ["list", "grid"], "show": ["10", "20", "50"]}
    choices = facets | orders
    items = [
        (f"Lamp {word} {number}", {name: values[number % len(values)] for name, values in facets.items()})
        for number, word in enumerate(f"{a}{b}" for a in ["north", "south", "east", "west"] for b in range(6))
    ]

    def shop(asked: Asked) -> bytes | None:
        if asked.path.startswith("/lamp/"):
            return whole(f"<h1>{asked.path}</h1>")
        if asked.path != "/shop":
            return None
        chosen = dict(parse_qsl(asked.target.partition("?")[2]))
        shown = [
            (name, has) for name, has in items if all(chosen.get(key, has[key]) == has[key] for key in has)
        ]
        shown.sort(reverse=chosen.get("sort") == "name")
        links = "".join(
            f"<a href='/shop?{urlencode(sorted((chosen | {name: value}).items()))}'>{value}</a>"
            for name, values in choices.items()
            for value in values
        )
        lamps = "".join(f"<li><a href=/lamp/{name.split()[1]}>{name}</a>" for name, _ in shown)
        return whole(f"<h1>Lamps</h1>{links}<p>{len(shown)} lamps</p><ul>{lamps}</ul>")

    site.fallback = shop
    site.page("/", "<a href=/shop>shop</a>")
    run(tmp_path, [f"{site.url}/"])
    lists = [path for path in site.paths() if path.startswith("/shop")]
    assert len({path for path in site.paths() if path.startswith("/lamp/")}) == len(items)
    assert len(lists) < 1_000  # of 5 * 4 * 5 * 4 * 3 * 4 = 4,800


def test_pages_that_only_look_alike_are_no_trap(site: Site, tmp_path: Path) -> None:
    """A gallery whose pages differ by their picture, and tables of numbers."""

    def page(asked: Asked) -> bytes | None:
        number = asked.target.partition("=")[2]
        if asked.path == "/photo":
            return whole(f"<h1>Photo {number} of 150</h1><img src=/photos/{number}.jpg><p>Back to all photos")
        if asked.path == "/station":
            cells = "".join(f"<td>{(int(number) * hour) % 37}.{hour % 10}" for hour in range(24))
            return whole(f"<h1>Temperatures</h1><table><tr>{cells}</table>")
        return whole("x", mime="image/jpeg") if asked.path.startswith("/photos/") else None

    site.fallback = page
    numbers = range(1, 151)
    site.page("/", "".join(f"<a href=/photo?n={n}>{n}</a><a href=/station?day={n}>{n}</a>" for n in numbers))
    run(tmp_path, [f"{site.url}/"])
    wanted = {f"/photo?n={n}" for n in numbers} | {f"/station?day={n}" for n in numbers}
    assert wanted <= set(site.paths())


def test_relative_links_gone_wrong_end(site: Site, tmp_path: Path) -> None:
    site.fallback = lambda asked: whole("<a href=a/b/>deeper</a>") if asked.path.endswith("/") else None
    run(tmp_path, [f"{site.url}/"])
    assert len(site.paths()) < 10
    assert list(rule_lines(tmp_path)) == ["repeating"]


def test_ever_deeper_paths_end(site: Site, tmp_path: Path) -> None:
    site.fallback = lambda asked: whole(f"<a href=x{len(asked.path)}/>") if asked.path.endswith("/") else None
    run(tmp_path, [f"{site.url}/"])
    assert len(site.paths()) < 25
    assert list(rule_lines(tmp_path)) == ["path depth"]


def test_endless_redirects_end(site: Site, tmp_path: Path) -> None:
    def onwards(asked: Asked) -> bytes | None:
        number = asked.path.removeprefix("/r")
        return whole("", status="302 Found", Location=f"/r{int(number) + 1}") if number.isdigit() else None

    site.fallback = onwards
    site.page("/", "<a href=/r0>")
    run(tmp_path, [f"{site.url}/"])
    assert len([path for path in site.paths() if path.startswith("/r") and path != "/robots.txt"]) == 11
    assert rule_lines(tmp_path)["redirects"] == [f"{site.url}/r11"]


def test_session_ids_in_the_query_are_one_page(site: Site, tmp_path: Path) -> None:
    def page(asked: Asked) -> bytes | None:
        number = len(site.log)
        return whole(f"<a href='/page?PHPSESSID={number:032x}'>again</a>") if asked.path == "/page" else None

    site.fallback = page
    site.page("/", f"<a href='/page?PHPSESSID={7:032x}'>")
    run(tmp_path, [f"{site.url}/"])
    assert len([path for path in site.paths() if path.startswith("/page")]) == 1


def test_session_ids_in_the_path_end(site: Site, tmp_path: Path) -> None:
    def page(asked: Asked) -> bytes | None:
        if not asked.path.startswith("/s/"):
            return None
        token, new = asked.path.split("/")[2], len(site.log)
        return whole(f"<p>the page</p><a href=/s/{token}/page>self</a><a href=/s/x{new:015x}/page>")

    site.fallback = page
    site.page("/", f"<a href=/s/x{1:015x}/page>")
    run(tmp_path, [f"{site.url}/"], scope_limits=ScopeLimits(hops=500))
    assert len([path for path in site.paths() if path.startswith("/s/")]) < 120
    assert "same answers" in rule_lines(tmp_path)


def test_one_page_for_every_session_ends(site: Site, tmp_path: Path) -> None:
    def page(asked: Asked) -> bytes | None:
        return whole("<p>the only page</p>") if asked.path.startswith("/s/") else None

    site.fallback = page
    site.page("/", "".join(f"<a href=/s/{number:012x}d0c5/page>" for number in range(2, 400)))
    run(tmp_path, [f"{site.url}/"])
    assert len([path for path in site.paths() if path.startswith("/s/")]) < 120
    assert len(rule_lines(tmp_path)["same answers"]) > 250


@pytest.mark.parametrize(
    ("policy", "asked"),
    [
        (RobotsPolicy.OBEY, set()),
        (RobotsPolicy.OBEY_BUT_EMBEDS, {"/private/a.css"}),
        (RobotsPolicy.IGNORE, {"/private/a.css", "/private/page"}),
    ],
)
def test_policies_of_robots_and_what_the_log_says(
    site: Site, tmp_path: Path, policy: RobotsPolicy, asked: set[str]
) -> None:
    site.page("/robots.txt", "User-agent: *\nDisallow: /private/", mime="text/plain")
    site.page("/", "<link rel=stylesheet href=/private/a.css><a href=/private/page>")
    site.page("/private/a.css", "p{}", mime="text/css")
    site.page("/private/page", "page")
    run(tmp_path, [f"{site.url}/"], robots=policy)
    assert {path for path in site.paths() if path.startswith("/private/")} == asked
    by_url = {str(line["url"]).removeprefix(site.url): line for line in lines(tmp_path)}
    for path in ("/private/a.css", "/private/page"):
        line = by_url[path]
        assert "Disallow: /private/" in str(line["reason"])
        expected = {
            RobotsPolicy.OBEY: "robots",
            RobotsPolicy.OBEY_BUT_EMBEDS: "robots but embeds",
            RobotsPolicy.IGNORE: "robots ignored",
        }[policy]
        assert line["rule"] == (expected if path in asked else "robots")
    assert by_url["/"]["rule"] == "seed"


def test_nofollow_by_page_header_and_link(site: Site, tmp_path: Path) -> None:
    site.page(
        "/",
        "<a href=/meta><a href=/header><a rel='x NoFollow' href=/link>"
        "<a href=/both><a rel=nofollow href=/both>",
    )
    site.page("/meta", "<meta name=Robots content='noindex, NOFOLLOW'><a href=/m><img src=/m.png>")
    site.page("/header", "<a href=/h>", X_Robots_Tag="webdepot: nofollow")
    for path in ("/link", "/both", "/m", "/h", "/m.png"):
        site.page(path, "x", mime="text/plain")
    run(tmp_path / "obey", [f"{site.url}/"], links=LinkLimits(agent="Webdepot"))
    assert {"/both", "/m.png"} <= set(site.paths())
    assert {"/link", "/m", "/h"}.isdisjoint(site.paths())
    assert len(rule_lines(tmp_path / "obey")["nofollow"]) == 3
    site.log.clear()
    run(tmp_path / "none", [f"{site.url}/"], nofollow="none")
    assert {"/link", "/m", "/h"} <= set(site.paths())


def test_rules_of_a_profile_in_a_crawl(site: Site, tmp_path: Path) -> None:
    site.page("/", "<a href=/film.avi><a href=/clip><a href=/page><img src=//b.example/x.png>")
    site.page("/clip", "mp4", mime="video/mp4")
    site.page("/page", "page")
    tables = [{"reject": "extension", "of": "avi"}, {"reject": "mime", "of": "video/*"}]
    specs = tuple(profile_rules.from_table(table, "test") for table in tables)
    result = run(tmp_path, [f"{site.url}/"], rules=specs, connect_to={"b.example": f"127.0.0.1:{site.port}"})
    assert "/film.avi" not in site.paths()
    assert f"{site.url}/clip" not in kept(tmp_path)
    assert f"{site.url}/page" in kept(tmp_path)
    found = rule_lines(tmp_path)
    assert (found["extension"], found["mime"]) == ([f"{site.url}/film.avi"], [f"{site.url}/clip"])
    assert result.counts["rejected"] == 2
    by_url = {str(line["url"]): line for line in lines(tmp_path)}
    assert by_url[f"{site.url}/page"]["rule"] == "host"
    assert by_url["http://b.example/x.png"]["rule"] == "embedded"


def test_limits_of_a_host_leave_the_others_alone(site: Site, tmp_path: Path) -> None:
    pages = "".join(f"<a href=http://{host}.example/{number}>" for host in "ab" for number in range(10))
    site.page("/", pages)
    site.fallback = lambda asked: whole("page")
    of_host = {"a.example": HostSettings(limit_pages=3)}
    place = f"127.0.0.1:{site.port}"
    run(
        tmp_path,
        [f"{site.url}/", "http://a.example/0", "http://b.example/0"],
        connect_to={"a.example": place, "b.example": place},
        of_host=lambda host: of_host.get(host, HostSettings()),
    )
    assert len([path for path in site.paths("a.example") if path not in ("/robots.txt", "/sitemap.xml")]) == 3
    assert (
        len([path for path in site.paths("b.example") if path not in ("/robots.txt", "/sitemap.xml")]) == 10
    )
    assert len(rule_lines(tmp_path)["host limit"]) == 7


def test_hosts_are_looked_up_before_links_to_them_are_judged(site: Site, tmp_path: Path) -> None:
    """A network range decides about a host that nothing else connects with the seed."""
    site.page("/", "<a href=http://in.example/x><a href=http://out.example/x>")
    site.fallback = lambda asked: whole("page") if asked.path == "/x" else None
    known: dict[str, tuple[str, ...]] = {}

    async def look_up(hosts: Collection[str]) -> None:
        known.update({host: ("192.0.2.7" if host == "in.example" else "198.51.100.1",) for host in hosts})

    place = f"127.0.0.1:{site.port}"
    run(
        tmp_path,
        [f"{site.url}/"],
        rules=(profile_rules.from_table({"accept": "ip_range", "of": ["192.0.2.0/24"]}, "test"),),
        facts=ScopeFacts(addresses_of=lambda host: known.get(host, ())),
        look_up=look_up,
        connect_to={"in.example": place, "out.example": place},
    )
    assert site.paths("in.example") == ["/robots.txt", "/x"]
    assert site.paths("out.example") == []
    by_url = {str(line["url"]): line for line in lines(tmp_path)}
    assert by_url["http://in.example/x"]["rule"] == "ip_range"
    assert "192.0.2.7" in str(by_url["http://in.example/x"]["reason"])


def test_a_sitemap_is_asked_for_where_none_is_named(site: Site, tmp_path: Path) -> None:
    site.page("/", "home")
    site.page("/sitemap.xml", f"<urlset><url><loc>{site.url}/only-here</loc></url></urlset>", mime="text/xml")
    site.page("/only-here", "page")
    run(tmp_path, [f"{site.url}/"], find_sitemaps=True)
    assert "/only-here" in site.paths()
