"""The software of a site is recognised by its pages, and its rules distinguish content from what the software adds."""

import re
from dataclasses import dataclass
from pathlib import Path

import pytest
from harvest_crawl import kept, lines, run
from harvest_site import Asked, Site, whole

from webdepot.errors import ConfigError
from webdepot.harvest.links.bodies import LinkLimits
from webdepot.harvest.scope import software_rules
from webdepot.harvest.scope.mazes import MAZES
from webdepot.harvest.scope.site_software import FIRST_PAGES, SiteSoftware
from webdepot.model import Candidate
from webdepot.url import Url

CATALOGUE = software_rules.of_package()
SITE = "http://site.example"
COMMIT = "d0032c545769b7ff490513b9846f87b545c66859"


@dataclass(frozen=True)
class Product:
    """A page with the product's marks, and addresses of its content and of what it adds, by kind."""

    head: str
    body: str
    content: tuple[str, ...]
    added: dict[str, tuple[str, ...]]

    @property
    def page(self) -> str:
        return f"<!doctype html><head><title>Sea</title>{self.head}</head>{self.body}"


PRODUCTS = {
    "mediawiki": Product(
        '<meta name="generator" content="MediaWiki 1.39.17"/>',
        '<script>RLCONF={"wgPageName":"Anchor"};</script><body class="mediawiki ns-0"><div id="mw-content-text">',
        ("/wiki/Anchor", "/index.php/Talk:Anchor", "/index.php?title=Category:Ships&pagefrom=M", "/wiki/File:A.png"),
        {
            "edits": ("/index.php?title=Anchor&action=edit", "/w/index.php?title=A&veaction=edit&section=1",
                      "/index.php?title=Missing&action=edit&redlink=1"),
            "histories": ("/index.php?title=Anchor&action=history", "/w/index.php?title=A&oldid=12",
                          "/index.php?title=A&diff=3&oldid=2"),
            "logins": ("/index.php?title=Special:UserLogin&returnto=Anchor", "/wiki/Spezial:Anmelden"),
            "prints": ("/index.php?title=Anchor&printable=yes",),
            "apis": ("/api.php?action=rsd", "/w/load.php?modules=startup", "/rest.php/v1/page/A"),
            "tools": ("/wiki/Special:WhatLinksHere/Anchor", "/index.php?title=Anchor&action=info",
                      "/wiki/Sp%C3%A9cial:Pages_li%C3%A9es/A", "/wiki/%E7%89%B9%E5%88%A5:x"),
            "feeds": ("/index.php?title=Special:RecentChanges&feed=atom",),
            "listings": ("/wiki/Special:AllPages",),
        },
    ),
    "dokuwiki": Product(
        '<meta name="generator" content="DokuWiki"/>',
        "<script>var JSINFO = {\"id\":\"start\"};</script><div id=\"dokuwiki__content\">",
        ("/doku.php?id=ships:anchor", "/ships/anchor", "/lib/exe/fetch.php?media=a.pdf",
         "/lib/exe/detail.php?id=a&media=b.png"),
        {
            "edits": ("/doku.php?id=a&do=edit", "/a?do=edit&rev=12345"[:10]),
            "histories": ("/doku.php?id=a&do=revisions", "/doku.php?id=a&rev=1700000000",
                          "/doku.php?id=a&rev2%5B0%5D=1&rev2%5B1%5D=2&do=diff", "/doku.php?id=a&do=recent"),
            "logins": ("/doku.php?id=a&do=login&sectok=", "/doku.php?id=a&do=register"),
            "exports": ("/doku.php?do=export_xhtml&id=a", "/_export/raw/a"),
            "searches": ("/doku.php?id=a&do=backlink",),
            "tools": ("/doku.php?id=a&do=media&ns=b",),
            "counters": ("/lib/exe/taskrunner.php?id=a&1700000000",),
            "feeds": ("/feed.php?mode=list&ns=a",),
            "listings": ("/doku.php?id=a&do=index",),
        },
    ),
    "trac": Product(
        '<link rel="stylesheet" href="/trac/chrome/common/css/trac.css" type="text/css" />',
        '<div id="footer"><a id="tracpowered" href="https://trac.edgewall.org/"></a></div>',
        ("/trac/wiki/Anchor", "/ticket/12", "/roadmap", "/report/3", "/browser/trunk/a.c", "/changeset/7",
         "/attachment/wiki/Anchor/a.png", "/wiki/search", "/wiki/Anchor?redirectedfrom=Bower"),
        {
            "histories": ("/wiki/Anchor?action=history", "/trac/wiki/Anchor?action=diff&version=2",
                          "/wiki/Anchor?version=1", "/ticket/12?action=comment-history&cnum=1", "/log/trunk/a.c?rev=7"),
            "edits": ("/wiki/Anchor?action=edit", "/newticket?component=x", "/ticket/12?replyto=3#comment"),
            "feeds": ("/timeline?daysback=90&format=rss",),
            "exports": ("/wiki/Anchor?format=txt", "/ticket/12?format=csv"),
            "logins": ("/trac/login", "/prefs/userinterface"),
            "searches": ("/search?q=tide", "/search/opensearch"),
            "orders": ("/report/1?sort=ticket&asc=1",),
            "listings": ("/timeline?from=2026-01-01T10%3A00%3A00Z&precision=second", "/query?status=!closed"),
        },
    ),
    "otterwiki": Product(
        '<link href="/static/css/otterwiki.css" rel="stylesheet" media="screen" />',
        '<link rel="stylesheet" href="/static/css/otterwiki.css?1763"/>',
        ("/", "/Home", "/Ships/Anchor", "/Ships/Anchor/a/plan.pdf", "/History", "/The-source", "/edit"),
        {
            "histories": ("/Ships/Anchor/history", "/Home/blame/adc1e2", "/Home?revision=adc1e2", "/-/commit/adc1e2",
                          "/-/changelog/576778", "/Home/view/adc1e2"),
            "edits": ("/Home/edit", "/-/create", "/Home/delete/", "/-/revert/adc1e2"),
            "exports": ("/Ships/Anchor/source",),
            "logins": ("/-/login", "/-/register"),
            "searches": ("/-/search/tide", "/-/search?query=tide"),
            "tools": ("/-/help/syntax", "/-/about"),
            "feeds": ("/-/changelog/feed.rss",),
            "listings": ("/-/index", "/-/changelog", "/Home/attachments"),
        },
    ),
    "gitweb": Product(
        '<meta name="generator" content="gitweb/2.39.5 git/2.39.5"/>',
        "<!-- git web interface version 2.39.5, (C) 2005-2006, Kay Sievers -->",
        ("/", "/?p=sea.git", "/?p=sea.git;a=summary", "/?p=sea.git;a=tree", "/?p=sea.git;a=tag;h=" + COMMIT,
         f"/?p=sea.git;a=tree;f=src;h={COMMIT};hb=HEAD", f"/?p=sea.git;a=blob;f=commit/a.c;h={COMMIT};hb=HEAD",
         "/sea.git/summary", "/gitweb.cgi/sea.git/blob/HEAD:/log/a.c"),
        {
            "exports": (f"/?p=sea.git;a=snapshot;h={COMMIT};sf=tgz", "/?p=sea.git;a=blob_plain;f=a.c;hb=HEAD",
                        f"/sea.git/commitdiff_plain/{COMMIT}", "/?a=project_index"),
            "feeds": ("/?p=sea.git;a=rss;opt=--no-merges", "/?p=sea.git&a=atom", "/sea.git/atom", "/?a=opml"),
            "searches": ("/?p=sea.git;a=search;s=Ann;st=author", "/?p=sea.git;a=search_help"),
            "histories": (f"/?p=sea.git;a=commit;h={COMMIT}", f"/?p=sea.git;a=commitdiff;h={COMMIT}",
                          f"/?p=sea.git;a=blob;f=a.c;h={COMMIT};hb={COMMIT}", "/?p=sea.git;a=shortlog;pg=2",
                          f"/?p=sea.git;a=tree;h={COMMIT}", f"/?p=sea.git;a=log;h={COMMIT}",
                          "/?p=sea.git;a=blame;f=a.c;hb=HEAD", f"/sea.git/tree/{COMMIT}:/src"),
            "duplicates": (f"/?p=sea.git;a=blob;f=a.c;h={COMMIT};hb=refs/heads/main", "/sea.git/tree/refs/tags/v1",
                           "/?p=sea.git;a=blob;f=a.c;hb=HEAD", "/?p=sea.git;a=tree;hb=HEAD",
                           f"/?p=sea.git;a=tree;h={COMMIT};hb=HEAD", "/?p=sea.git;a=commit;h=HEAD", "/sea.git/commit/HEAD"),
            "listings": ("/?p=sea.git;a=shortlog", "/?p=sea.git;a=log;h=refs/heads/main", "/sea.git/tags"),
            "orders": ("/?o=age",),
        },
    ),
    "cgit": Product(
        "<meta name=\"generator\" content=\"cgit v1.2.3\"/>",
        "<div id='cgit'><table id='header'>",
        ("/", "/sea.git/", "/sea/tree/", "/sea/tree/src/log/a.c", "/sea/about/", "/sea/tag/?h=v1"),
        {
            "searches": ("/?q=root", "/sea/log/?qt=grep&q=tide"),
            "orders": ("/?s=idle", "/sea/log/?showmsg=1"),
            "histories": (f"/sea/commit/?id={COMMIT}", f"/sea/tree/a.c?id={COMMIT}", f"/sea/refs/?id={COMMIT}",
                          "/sea/log/?ofs=50", "/sea/log/a.c", "/sea/commit/a.c", "/sea/diff/", "/sea/blame/a.c"),
            "duplicates": ("/sea/tree/a.c?h=next", f"/sea/commit/?h=next&id={COMMIT}"),
            "exports": ("/sea/plain/a.c", "/sea/snapshot/sea-1.tar.gz", f"/sea/patch/?id={COMMIT}"),
            "feeds": ("/sea/atom/?h=main", "/sea/atom/a.c?h=main"),
            "tools": ("/sea/stats/a.c",),
            "listings": ("/sea/log/", "/sea/refs/heads"),
        },
    ),
    "wordpress": Product(
        '<meta name="generator" content="WordPress 6.1.9" />',
        "<link rel='https://api.w.org/' href='/wp-json/'><img src=/wp-content/a.png><script src=/wp-includes/b.js>",
        ("/2025/01/05/post-0/", "/?p=12", "/about/", "/wp-content/uploads/a.pdf", "/feedback/"),
        {
            "apis": ("/wp-json/", "/wp-json/wp/v2/comments/4", "/xmlrpc.php?rsd", "/?rest_route=/wp/v2"),
            "replies": ("/2025/01/05/post-0/?replytocom=7", "/post/?share=twitter", "/post/trackback/"),
            "logins": ("/wp-login.php?redirect_to=x", "/wp-admin/"),
            "feeds": ("/feed/", "/2025/01/05/post-0/feed/", "/?feed=rss2", "/comments/feed/"),
            "exports": ("/2025/01/05/post-0/embed/",),
            "searches": ("/?s=anchor",),
            "calendars": ("/2025/01/05/", "/events/?tribe-bar-date=2026-01-01"),
            "listings": ("/2025/01/", "/2025/01/page/2/", "/tag/rope/", "/tag/rope/page/2/", "/author/a/page/2/",
                         "/category/ships/", "/category/ships/page/2/", "/page/3/"),
        },
    ),
    "drupal": Product(
        '<meta name="Generator" content="Drupal 10 (https://www.drupal.org)" />',
        '<script type="application/json" data-drupal-selector="drupal-settings-json">{}</script>',
        ("/node/12", "/news/anchor", "/node?page=2", "/search-and-rescue", "/flag/history", "/crew/admin",
         "/?q=node/12", "/user/7", "/users/ann", "/contact", "/forum/2", "/taxonomy/term/3?page=1"),
        {
            "logins": ("/user/login?destination=/node/12", "/?q=user/register", "/user", "/user/7/cancel/confirm/1/x"),
            "replies": ("/comment/reply/node/12/comment", "/comment/7/edit", "/?q=comment/reply/12", "/comment/12/reply"),
            "duplicates": ("/comment/7", "/?q=comment/7"),
            "edits": ("/node/12/edit", "/node/add/article", "/node/preview/abc/full"),
            "tools": ("/filter/tips", "/?q=filter/tips"),
            "histories": ("/node/12/revisions/3/view",),
            "prints": ("/print/12/",),
            "apis": ("/jsonapi/node/article", "/node/12?_format=json", "/views/ajax?view_name=x", "/big_pipe/no-js?d=x",
                     "/media/oembed?url=x"),
            "feeds": ("/rss.xml", "/taxonomy/term/3/feed"),
            "orders": ("/list?order=title&sort=asc",),
            "searches": ("/search/node?keys=x",),
            "calendars": ("/calendar/2026-05",),
        },
    ),
    "phpbb": Product(
        "",
        '<body id="phpbb" class="nojs notouch section-index ltr"><a href="./viewforum.php?f=2">Sea</a>',
        ("/viewtopic.php?f=2&t=7", "/viewforum.php?f=2&start=25", "/download/file.php?id=3", "/index.php",
         "/ucp.php?mode=privacy", "/ucp.php?mode=terms"),
        {
            "logins": ("/ucp.php?mode=login&redirect=index.php", "/user/forgot_password", "/app.php/user/delete_cookies",
                       "/memberlist.php?mode=contactadmin"),
            "replies": ("/posting.php?mode=reply&f=2&t=7", "/viewforum.php?hash=1a&f=2&mark=topics&mark_time=1",
                        "/app.php/post/7/report", "/post/7/report"),
            "duplicates": ("/viewtopic.php?p=31#p31", "/viewtopic.php?f=2&t=7&view=next"),
            "prints": ("/viewtopic.php?f=2&t=7&view=print",),
            "orders": ("/viewforum.php?f=2&st=0&sk=t&sd=d",),
            "searches": ("/search.php?search_id=active_topics",),
            "counters": ("/cron.php?cron_type=cron.task.core.tidy_cache",),
            "tools": ("/memberlist.php?mode=viewprofile&u=2", "/app.php/help/faq", "/viewonline.php"),
            "feeds": ("/app.php/feed/forum/2", "/feed/topic/7", "/feed?mode=news"),
        },
    ),
    "discourse": Product(
        '<meta name="generator" content="Discourse 3.2.0 - https://github.com/discourse/discourse">',
        '<meta id="data-discourse-setup" data-base-uri="">',
        ("/t/anchors-and-chains/12", "/t/anchors-and-chains/12?page=2", "/c/ships/5", "/c/ships/5?page=2",
         "/tag/rope", "/pub/handbook", "/categories-of-sails", "/about"),
        {
            "duplicates": ("/t/anchors-and-chains/12/4", "/posts/31"),
            "apis": ("/t/anchors-and-chains/12.json", "/site/statistics"),
            "listings": ("/latest?page=2", "/top/monthly", "/c/ships/5/l/top", "/tag/rope/l/latest", "/categories"),
            "feeds": ("/latest.rss", "/t/anchors/12.rss"),
            "logins": ("/login", "/session/sso"),
            "replies": ("/t/anchors-and-chains/12?u=ann",),
            "orders": ("/latest?order=views",),
            "searches": ("/search?q=a",),
            "tools": ("/u/ann/activity", "/badges"),
        },
    ),
    "joomla": Product(
        '<meta name="generator" content="Joomla! - Open Source Content Management" />',
        '<script type="application/json" class="joomla-script-options new">{}</script>',
        ("/index.php/news/12-anchor", "/index.php?option=com_content&view=article&id=12", "/news?start=10"),
        {
            "feeds": ("/news?format=feed&type=rss",),
            "prints": ("/news/12-anchor?tmpl=component&print=1",),
            "replies": ("/component/mailto/?tmpl=x&link=abc",),
            "logins": ("/index.php?option=com_users&view=login", "/component/users/?view=reset",
                       "/index.php?option=com_privacy&view=request", "/component/config/"),
            "edits": ("/index.php?option=com_content&task=article.edit&a_id=3",),
            "searches": ("/component/search/?areas=x",),
            "orders": ("/news?filter_order=title&filter_order_Dir=asc", "/news?limit=50"),
            "apis": ("/index.php?option=com_finder&view=search&format=opensearch",),
            "calendars": ("/index.php?option=com_jevents&task=month.calendar&year=2026",),
        },
    ),
    "typo3": Product(
        '<meta name="generator" content="TYPO3 CMS" />',
        "<!-- This website is powered by TYPO3 - inspiring people to share! -->",
        ("/museum/anchor", "/index.php?id=12&cHash=abc", "/news?tx_news_pi1%5Bnews%5D=4&cHash=a",
         "/index.php?eID=dumpFile&f=2"),
        {
            "prints": ("/index.php?id=12&type=98",),
            "feeds": ("/index.php?id=12&type=100",),
            "logins": ("/typo3/index.php", "/intern?logintype=logout"),
            "apis": ("/index.php?eID=geo&q=2",),
            "searches": ("/suche?tx_indexedsearch%5Bsword%5D=a",),
            "calendars": ("/?tx_cal_controller%5Bview%5D=month&cHash=1",),
            "duplicates": ("/index.php?id=12&no_cache=1",),
        },
    ),
    "storybook": Product(
        "",
        '<link href="./sb-manager/runtime.js" rel="modulepreload"><div id="root"></div>',
        ("/?path=/story/ship--afloat", "/?path=/docs/ship--docs", "/iframe.html?viewMode=story&id=ship--afloat",
         "/iframe.html?args=&globals=&id=ship--afloat"),
        {"duplicates": ("/iframe.html?args=&globals=&id=ship--afloat&viewMode=story",), "orders": ("/?path=/story/ship--afloat&globals=outline:!true", "/?path=/story/ship--afloat&args=size:large",
                    "/?path=/story/ship--afloat&full=1",
                    "/iframe.html?globals=outline:!true&id=ship--afloat", "/iframe.html?id=a--b&viewMode=story&args=a:1")},
    ),
    "calendar": Product(
        "",
        '<div class="tribe-events-calendar"><a rel="next" href="?tribe-bar-date=2026-05">May</a></div>',
        ("/event/launch-of-a-ship/", "/2026/05/12/launch/"),
        {"calendars": ("/events/month/", "/agenda?month=5&year=2026"), "exports": ("/events/?ical=1", "/a.ics")},
    ),
    "autoindex": Product(
        "", "<title>Index of /pub</title><a href='?C=N;O=D'>Name</a>", ("/pub/", "/pub/a.txt"),
        {"orders": ("/pub/?C=N;O=D", "/pub/?C=S;O=A")},
    ),
}  # fmt: skip


def test_every_software_is_tried_here() -> None:
    assert set(PRODUCTS) == set(CATALOGUE.software)
    tried = {kind for product in PRODUCTS.values() for kind in product.added}
    assert tried | {MAZES} == set(CATALOGUE.kinds), "mazes are recognised without rules"


@pytest.mark.parametrize("id", PRODUCTS)
def test_it_is_recognised_by_its_own_signs(id: str) -> None:
    product = PRODUCTS[id]
    generator = re.search(r'(?i)name="generator" content="([^"]+)', product.head)
    assert CATALOGUE.recognise("", product.page) >= {id}
    if generator:
        assert CATALOGUE.recognise(generator[1], "") == {id}
    assert CATALOGUE.recognise("Hugo 0.120", "<p>We moved from MediaWiki and WordPress.") == frozenset()


@pytest.mark.parametrize("id", PRODUCTS)
def test_content_is_told_from_what_is_added(id: str) -> None:
    product = PRODUCTS[id]
    assert {address: CATALOGUE.find_rule([id], SITE + address) for address in product.content} == (
        dict.fromkeys(product.content)
    )
    for kind, addresses in product.added.items():
        rules = {address: CATALOGUE.find_rule([id], SITE + address) for address in addresses}
        assert {address: rule and rule.kind for address, rule in rules.items()} == dict.fromkeys(
            addresses, kind
        )


def _settings(**more: object) -> dict[str, object]:
    return {"software": CATALOGUE, "links": LinkLimits(software=CATALOGUE), **more}


def _fill_wiki(site: Site, articles: int) -> None:
    """A wiki as MediaWiki writes it: each article has its part, and links to all that is not content."""
    product = PRODUCTS["mediawiki"]

    def page(asked: Asked) -> bytes | None:
        number = asked.path.rpartition("_")[2]
        if asked.path.startswith("/load.php"):
            return whole("p {color: green}", mime="text/css")
        if not asked.path.startswith(("/wiki/", "/index.php")):
            return None
        name = f"Ship_{number}" if number.isdigit() else "Main"
        links = [f"/wiki/Ship_{(int(number) if number.isdigit() else 0) % articles + 1}"]
        links += [f"/index.php?title={name}&action={action}" for action in ("edit", "history", "info")]
        links += [f"/index.php?title=Special:RecentChanges&feed={feed}" for feed in ("atom", "rss")]
        links += [f"/index.php?title={name}&oldid={len(asked.target)}", "/wiki/Special:AllPages"]
        anchors = "".join(f'<a href="{link}">x</a>' for link in links)
        return whole(
            f"{product.page}<link rel=stylesheet href='/load.php?modules={name}&amp;only=styles'>{anchors}"
            f"<p>{'sail ' * len(asked.target)}"
        )

    site.page("/robots.txt", status="404 Not Found")
    site.fallback = page


def test_a_wiki_is_harvested_content_first_and_the_rest_is_counted(site: Site, tmp_path: Path) -> None:
    _fill_wiki(site, 5)
    result = run(tmp_path, [f"{site.url}/wiki/Main"], **_settings())  # type: ignore[arg-type]
    asked = [path for path in site.paths() if not path.startswith("/load.php")]
    content = ["/wiki/Main", *(f"/wiki/Ship_{number}" for number in range(1, 6))]
    last = {"/wiki/Special:AllPages", "/index.php?title=Special:RecentChanges&feed=atom"}
    pages = [path for path in asked if path.startswith(("/wiki/", "/index.php"))]
    assert (pages[:6], set(pages[6:])) == (content, last)
    assert len([path for path in site.paths() if path.startswith("/load.php")]) >= 6
    left_out = {name: count for name, count in result.counts.items() if name.startswith("left_out_")}
    assert left_out == {
        "left_out_edits": 6,
        "left_out_histories": 14,
        "left_out_tools": 6,
        "left_out_feeds": 1,
    }
    by_url = {str(line["url"]).removeprefix(site.url): line for line in lines(tmp_path)}
    assert by_url["/wiki/Main"]["note"] == "software:mediawiki"
    refused = by_url["/index.php?title=Ship_1&action=edit"]
    assert (refused["rule"], str(refused["reason"])[:24]) == ("edits", "MediaWiki rule 2 (edits)")


@pytest.mark.parametrize(
    ("include", "taken"), [(("histories",), {"histories"}), (("all",), {"histories", "edits"})]
)
def test_kinds_can_be_included_and_come_last(
    site: Site, tmp_path: Path, include: tuple[str, ...], taken: set[str]
) -> None:
    _fill_wiki(site, 2)
    run(tmp_path, [f"{site.url}/wiki/Main"], **_settings(include=include))  # type: ignore[arg-type]
    pages = [path for path in site.paths() if path.startswith(("/wiki/", "/index.php"))]
    assert pages[:3] == ["/wiki/Main", "/wiki/Ship_1", "/wiki/Ship_2"]
    assert any("action=history" in path for path in pages) is ("histories" in taken)
    assert any("action=edit" in path for path in pages) is ("edits" in taken)


def test_markup_is_looked_at_in_the_first_pages_and_the_generator_in_all(site: Site, tmp_path: Path) -> None:
    """A forum without a generator is recognised early; a wiki deep in a large site by its generator."""
    late = FIRST_PAGES + 5
    site.page("/robots.txt", status="404 Not Found")
    site.page("/", "<p>0<a href=/1>x</a>")
    for number in range(1, late):
        site.page(f"/{number}", f"<p>{'wave ' * number}<a href=/{number + 1}>x</a>")
    site.page(f"/{late}", PRODUCTS["mediawiki"].page + PRODUCTS["phpbb"].body)
    run(tmp_path, [f"{site.url}/"], **_settings())  # type: ignore[arg-type]
    assert [line["note"] for line in lines(tmp_path) if "software" in str(line["note"])] == [
        "software:mediawiki"
    ]


def test_a_site_of_another_software_keeps_such_addresses(site: Site, tmp_path: Path) -> None:
    site.page("/", "<p>Of MediaWiki we say nothing.<a href='/page?action=history'>x</a>")
    site.page("/page", "<p>a page")
    run(tmp_path, [f"{site.url}/"], **_settings())  # type: ignore[arg-type]
    assert "/page?action=history" in site.paths()


def test_what_was_queued_before_is_judged_again(site: Site, tmp_path: Path) -> None:
    """The first page shows no sign; the second one does, before its sister is asked for."""
    site.page("/", "<p>Welcome<a href=/a>x</a><a href=/b?replytocom=1>x</a><a href=/b>x</a>")
    site.page("/a", PRODUCTS["wordpress"].page)
    site.page("/b", "<p>b")
    run(tmp_path, [f"{site.url}/"], **_settings())  # type: ignore[arg-type]
    assert "/b" in site.paths()
    assert "/b?replytocom=1" not in site.paths()
    assert f"{site.url}/b?replytocom=1" not in kept(tmp_path)


def test_what_is_known_about_a_site_survives_a_restart(site: Site, tmp_path: Path) -> None:
    _fill_wiki(site, 4)
    settings = _settings()
    run(tmp_path, [f"{site.url}/wiki/Main"], limit_pages=2, **settings)  # type: ignore[arg-type]
    run(tmp_path, [f"{site.url}/wiki/Main"], **settings)  # type: ignore[arg-type]
    notes = [str(line["note"]) for line in lines(tmp_path)]
    assert sum("software:mediawiki" in note for note in notes) == 1
    assert len([path for path in site.paths() if "feed=" in path]) == 1
    assert not any("action=" in path for path in site.paths())


def test_parts_and_seeds_pass_and_counters_do_not() -> None:
    sites = SiteSoftware()
    sites.follow(CATALOGUE, ())
    assert sites.learn("site.example", frozenset({"dokuwiki"})) == ["dokuwiki"]
    assert sites.learn("site.example", frozenset({"dokuwiki"})) == []

    def answer(address: str, path: str) -> str:
        return sites.rule(Candidate(url=Url(SITE + address), path=path)).answer.value

    assert answer("/doku.php?id=a&do=edit", "L") == "reject"
    assert answer("/doku.php?id=a&do=edit", "") == "pass"
    assert answer("/doku.php?id=a&do=edit", "R") == "pass"
    assert answer("/lib/exe/css.php?t=a", "LE") == "pass"
    assert answer("/lib/exe/css.php", "EX") == "reject"
    assert answer("/lib/exe/indexer.php?id=a", "LE") == "reject"


def test_an_archive_adds_rules_of_its_own_which_are_asked_first(tmp_path: Path) -> None:
    (tmp_path / "software.toml").write_text(
        """
        [kinds]
        drafts = "drafts"
        [software.mediawiki]
        [[software.mediawiki.rules]]
        kind = "histories"
        parameters = ["action=history"]
        take = "first"
        [software.boatyard]
        name = "Boatyard CMS"
        markup = [["by-content"]]
        [[software.boatyard.rules]]
        kind = "drafts"
        address = '^/draft/'
        """
    )
    catalogue = software_rules.of_archive(tmp_path)
    assert catalogue.find_rule(["mediawiki"], f"{SITE}/index.php?title=A&action=history") is None
    edit = catalogue.find_rule(["mediawiki"], f"{SITE}/index.php?title=A&action=edit")
    assert edit is not None and edit.kind == "edits"
    assert catalogue.recognise("", "<div id=by-content>") == {"boatyard"}
    draft = catalogue.find_rule(["boatyard"], f"{SITE}/draft/1")
    assert draft is not None and draft.kind == "drafts"
    assert software_rules.check_kinds(["drafts", "all"], catalogue) == ""
    assert "'nonsense'" in software_rules.check_kinds(["nonsense"], catalogue)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("x = [", "is not valid TOML"),
        ("[other]", "has tables other than"),
        ("[kinds]\nall = 'x'", "stands for every kind"),
        ("[software.a]\nname = 'A'", "needs a sign"),
        ("[software.a]\nmarkup = [[]]", "every page would match"),
        ("[software.a]\nmarkup = ['x']", "must be a list of strings"),
        ("[software.a]\ngenerator = ['A']\nwhat = 1", "has no key `what`"),
        ("[software.a]\ngenerator = ['A']\n[[software.a.rules]]\nkind = 'x'", "needs a kind"),
        (
            "[software.a]\ngenerator = ['A']\n[[software.a.rules]]\nkind = 'edits'",
            "needs parameters or address",
        ),
        (
            "[software.a]\ngenerator = ['A']\n[[software.a.rules]]\nkind = 'edits'\naddress = '('",
            "not a usable regular expression",
        ),
        (
            "[software.a]\ngenerator = ['A']\n[[software.a.rules]]\nkind = 'edits'\naddress = 'x'\nmost = 3",
            'needs take = "last"',
        ),
    ],
)
def test_a_wrong_file_is_reported(tmp_path: Path, text: str, message: str) -> None:
    (tmp_path / "software.toml").write_text(text)
    with pytest.raises(ConfigError, match=re.escape(message)) as raised:
        software_rules.of_archive(tmp_path)
    assert str(tmp_path / "software.toml") in str(raised.value)
