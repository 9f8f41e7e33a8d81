"""The portal's pages: what they show, to whom, with which headers; and the answers to bad input."""

import http.client
import socket
from urllib.parse import urlsplit

import pytest
from museum import EDITIONS, PASSWORD, SITE, Answer, Served, ask, sign_in
from protego import Protego

from webdepot.accounts.roles import STAFF, Role
from webdepot.web.app import PORTAL_ROUTES

PUBLIC = ["/", "/search", "/search?q=clock", "/about", "/help", "/sign-in", f"/all/*/{SITE}/"]


def name_of(role: Role) -> str:
    return role.value.replace(" ", "-")


@pytest.fixture(scope="module")
def cookies(served: Served) -> dict[Role | None, str]:
    return {None: "", **{role: sign_in(served, name_of(role)) for role in Role}}


def test_home_shows_the_name_the_box_the_newest_and_the_collections(served: Served):
    text = ask(f"{served.portal}/").text
    assert "<h1>Archive of Clocks</h1>" in text
    assert 'action="/search"' in text and 'name="q"' in text
    assert f'href="/all/{EDITIONS[3]}/{SITE}/"' in text
    assert "museums" in text and "Demonstration" not in text


def test_other_crawlers_fetch_neither_archived_pages_nor_endless_lists(served: Served):
    robots = Protego.parse(ask(f"{served.portal}/robots.txt").text)
    for path in ("/", "/about", "/catalogue", "/-/static/site.css"):
        assert robots.can_fetch(served.portal + path, "SomeBot"), path
    for path in (f"/all/{EDITIONS[0]}/{SITE}/", f"/all/*/{SITE}/", "/search?q=x", "/-/banner/all/2012/"):
        assert not robots.can_fetch(served.portal + path, "SomeBot"), path
    for origin in (served.frame, served.replay):
        assert not Protego.parse(ask(f"{origin}/robots.txt").text).can_fetch(f"{origin}/", "SomeBot")
    assert ask(f"{served.portal}/favicon.ico").headers["Location"] == "/-/static/icon.svg"
    about = ask(f"{served.portal}/about").text
    assert 'href="/complain"' in about


def test_search_marks_words_and_leads_to_versions(served: Served):
    text = ask(f"{served.portal}/search?q=clock").text
    assert "<mark>" in text
    assert f'/all/*/{SITE}/"' in text
    assert "site%3Awww.example.org" in text


@pytest.mark.parametrize(
    "typed", ["www.example.org", "http://example.org/", "https://www.EXAMPLE.org", "example.org/news.html"]
)
def test_an_address_in_the_search_box_leads_to_its_versions(served: Served, typed):
    answer = ask(f"{served.portal}/search?q={typed}")
    assert answer.status == 303
    assert answer.headers["Location"].startswith(f"/all/*/{SITE}/")


def test_a_word_with_a_dot_that_is_not_kept_is_searched_as_words(served: Served):
    assert ask(f"{served.portal}/search?q=unknown.example").status == 200


@pytest.mark.parametrize(
    "typed", ["www.example.org", "example.org/?", "HTTPS://www.example.org:443/", "//example.org"]
)
def test_versions_of_any_spelling(served: Served, typed):
    form = ask(f"{served.portal}/versions?url={typed}")
    assert form.status == 303
    text = ask(served.portal + form.headers["Location"]).text
    assert "Archived 4 times between 12 March 2009 and 11 September 2019." in text
    assert f'href="/all/{EDITIONS[3]}/{SITE}/"' in text
    assert f'href="/all/2012*/{SITE}/"' in text


def test_versions_of_a_year_are_in_the_list_and_in_the_calendar(served: Served):
    text = ask(f"{served.portal}/all/2012*/{SITE}/").text
    assert "Calendar for 2012" in text
    assert "1 June 2012: 2 captures" in text
    assert (
        text.count(f'<td><a href="/all/{EDITIONS[1]}/') == 1
        and text.count(f'<td><a href="/all/{EDITIONS[2]}/') == 1
    )
    assert EDITIONS[3] not in text.split("Calendar for 2012")[1]


def test_a_collection_has_its_own_versions(served: Served):
    assert ask(f"{served.portal}/museums/*/{SITE}/").status == 200
    assert ask(f"{served.portal}/other/*/{SITE}/").status == 404


def test_a_collection_is_chosen_among_those_that_have_the_address(served: Served):
    text = ask(f"{served.portal}/museums/2012*/{SITE}/").text
    assert '<option value="all">' in text and "<option selected>museums</option>" in text
    assert '<select name="collection">' not in ask(f"{served.portal}/all/*/{SITE}/").text, "there is but one"
    chosen = ask(f"{served.portal}/versions?url={SITE}/&collection=museums&year=2012&status=")
    assert (chosen.status, chosen.headers["Location"]) == (303, f"/museums/2012*/{SITE}/")


def test_the_frame_is_on_the_site_of_replay_and_not_on_the_portals(served: Served):
    answer = ask(f"{served.portal}/all/{EDITIONS[1]}/{SITE}/")
    assert (answer.status, answer.headers["Location"]) == (302, f"{served.frame}/all/{EDITIONS[1]}/{SITE}/")
    answer = ask(f"{served.portal}/all/{EDITIONS[1]}/{SITE}/", headers={"Cookie": "language=nl"})
    assert answer.headers["Location"].startswith(
        f"{served.frame}/-/language?lang=nl&to=%2Fall%2F{EDITIONS[1]}"
    )


def test_the_frame_has_banner_time_bar_and_a_sandboxed_page(served: Served):
    answer = ask(f"{served.frame}/all/{EDITIONS[1]}/{SITE}/")
    policy, text = answer.headers["Content-Security-Policy"], answer.text
    assert policy.endswith(f"frame-src {served.pages(SITE)}"), "no page of another site"
    assert "Museum of clocks 2012" in text and "1 June 2012, 12:00" in text and "version 2 of 4" in text
    for step in (EDITIONS[0], EDITIONS[2], EDITIONS[3]):
        assert f'href="/all/{step}/{SITE}/"' in text
    assert f'src="{served.pages(SITE)}/-/start/all/{EDITIONS[1]}mp_/{SITE}/"' in text
    assert (
        'sandbox="allow-scripts allow-same-origin' in text
        and "allow-top-navigation" not in text
        and "allow-popups" not in text
    )
    assert '<noscript><p class="no-script">Without JavaScript, an archived page is shown ' in text
    assert f'<a href="{served.replay}/all/{EDITIONS[1]}id_/{SITE}/">' in text
    assert f'href="{served.portal}/all/*/{SITE}/"' in text
    assert "The archive is not responsible for its content" in text


@pytest.mark.parametrize(
    ("asked", "found"),
    [("2012", 1), ("201206011500", 1), ("20120601155959", 2), ("", 3), ("1999", 0), ("20991231", 3)],
)
def test_any_timestamp_leads_to_the_nearest_version(served: Served, asked, found):
    path = f"/all/{asked}/{SITE}/" if asked else f"/all/{SITE}/"
    answer = ask(served.frame + path)
    assert (answer.status, answer.headers["Location"]) == (302, f"/all/{EDITIONS[found]}/{SITE}/")


def test_a_missing_page_is_404_and_offers_pages_of_the_same_site(served: Served):
    for base in (served.portal, served.frame):
        answer = ask(f"{base}/all/2012/{SITE}/nowhere")
        assert answer.status == 404
        assert "This address is not in the archive" in answer.text
        assert f"{SITE}/news.html" in answer.text and "style.css" not in answer.text


def test_the_banner_alone_follows_a_link(served: Served):
    answer = ask(f"{served.frame}/-/banner/all/{EDITIONS[1]}/{SITE}/news.html")
    assert answer.status == 200 and "News of 2012" in answer.text and "<html" not in answer.text
    assert ask(f"{served.frame}/-/banner/all/{EDITIONS[1]}/{SITE}/nowhere").status == 404


BAD = [
    ("/all/20x9/http://www.example.org/", 400, "is not a date"),
    ("/all/20191399/http://www.example.org/", 400, "is not a date"),
    ("/all/201909110800001/http://www.example.org/", 400, "is not a date"),
    ("/all/123/http://www.example.org/", 400, "is not a date"),
    ("/all/2019/http://[bad/", 400, "is not a web address"),
    ("/all/2019/javascript:/alert.js", 400, "is not a web address"),
    ("/-bad-/2019/http://www.example.org/", 400, "is not the name of a collection"),
    ("/all/2019/http://www.example.org/\xe9\xff?q=\xe9", 400, "characters outside ASCII must be escaped"),
    ("/all/2019/http://www.example.org/%c3%a9%ff?q=%e9", 404, "not in the archive"),
    ("/all/2019/http://www.example.org/%ff%fe%00", 404, "not in the archive"),
    ("/all/2019/http://www.example.org/" + "a" * 100_000, 414, "too long to be archived"),
    ("/nothing", 404, "This page does not exist"),
    ("/nothing/here", 404, "This page does not exist"),
    ("/all/2019/http://www.example.org/" + "a" * 65_400, 404, "not in the archive"),
    ("/search?q=" + "a" * 2000, 400, "longer than"),
    ("/search?q=x&collection=%2e%2e/", 400, "is not the name of a collection"),
    ("/versions?url=http://[bad", 400, "is not a web address"),
    ("/-/banner/all/nonsense/http://www.example.org/", 400, "is not a date"),
    ("/-/static/../app.py", 404, ""),
    ("/-/static/nothing.css", 404, "This page does not exist"),
]


@pytest.mark.parametrize(("path", "status", "words"), BAD, ids=[path[:40] for path, _, _ in BAD])
def test_bad_input_gets_the_right_status_and_message(served: Served, path, status, words):
    answer = raw_ask(served.portal, path)
    assert answer.status == status
    assert words in answer.text and "Traceback" not in answer.text
    assert answer.headers["Content-Security-Policy"]


def raw_ask(base: str, path: str, headers: str = "") -> Answer:
    """As `ask`, for paths that no client library would send."""
    parts = urlsplit(base)
    with socket.create_connection((parts.hostname, parts.port), timeout=30) as link:
        link.sendall(
            f"GET {path} HTTP/1.1\r\nHost: {parts.netloc}\r\n{headers}Connection: close\r\n\r\n".encode(
                "latin-1"
            )
        )
        got = http.client.HTTPResponse(link)
        try:
            got.begin()
            return Answer(got.status, got.headers, got.read())
        finally:
            got.close()


def test_endless_headers_are_refused(served: Served):
    answer = raw_ask(served.portal, "/", "X-Long: " + "a" * 70_000 + "\r\n")
    assert answer.status == 431 and "larger than" in answer.text


def test_odd_parameters_of_a_search_are_taken_as_their_defaults(served: Served):
    for query in (
        "q=clock&page=0",
        "q=clock&page=-1",
        "q=clock&page=x",
        "q=clock&sort=x",
        "q=clock&from=19&to=abcd",
        "q=%00",
        "q=",
    ):
        assert ask(f"{served.portal}/search?{query}").status in (200, 400)


def test_other_methods_are_refused_with_a_message(served: Served):
    answer = ask(f"{served.portal}/about", "DELETE")
    assert answer.status == 405 and "does not accept this kind of request" in answer.text


# --- who may see what ---


def test_the_status_page_is_for_staff_and_says_what_there_is(served: Served, cookies):
    assert next(page for page in PORTAL_ROUTES if page.path == "/status").roles == STAFF
    text = ask(f"{served.portal}/status", headers={"Cookie": cookies[Role.CURATOR]}).text
    assert "Archive status" in text and "imported" in text and ">27<" in text
    assert 'href="/status"' in ask(f"{served.portal}/", headers={"Cookie": cookies[Role.CURATOR]}).text
    assert 'href="/status"' not in ask(f"{served.portal}/").text


def test_signing_in_and_out(served: Served):
    wrong = ask(f"{served.portal}/sign-in", "POST", body=b"name=curator&password=wrong&to=/status")
    assert (
        wrong.status == 401 and "Set-Cookie" not in wrong.headers and "Wrong name or password" in wrong.text
    )
    body = f"name=curator&password={PASSWORD.replace(' ', '+')}&to=/status".encode()
    right = ask(f"{served.portal}/sign-in", "POST", body=body)
    assert (right.status, right.headers["Location"]) == (303, "/status")
    cookie = right.headers["Set-Cookie"]
    assert "HttpOnly" in cookie and "SameSite=lax" in cookie and "Path=/" in cookie and "Domain" not in cookie
    session = cookie.partition(";")[0]
    assert ask(f"{served.portal}/status", headers={"Cookie": session}).status == 200
    assert ask(f"{served.portal}/sign-out", "POST", headers={"Cookie": session}).status == 303
    assert ask(f"{served.portal}/status", headers={"Cookie": session}).status == 303


def test_a_session_means_nothing_to_the_other_origins(served: Served, cookies):
    headers = {"Cookie": cookies[Role.ADMINISTRATOR]}
    assert ask(f"{served.frame}/status", headers=headers).headers["Location"] == f"{served.portal}/status"
    assert (
        "administrator" not in ask(f"{served.frame}/all/{EDITIONS[1]}/{SITE}/nowhere", headers=headers).text
    )


def test_forms_are_bounded(served: Served):
    answer = ask(f"{served.portal}/sign-in", "POST", body=b"name=" + b"a" * 20_000)
    assert answer.status == 413
    assert ask(f"{served.portal}/sign-in", "POST", body=b"\xff\xfe=1").status == 400


@pytest.mark.parametrize(
    ("headers", "is_own"),
    [
        ({}, True),
        ({"Sec-Fetch-Site": "same-origin"}, True),
        ({"Sec-Fetch-Site": "none"}, True),
        ({"Sec-Fetch-Site": "same-site"}, False),
        ({"Sec-Fetch-Site": "cross-site"}, False),
        ({"Origin": "http://evil.example"}, False),
        ({"Origin": "null"}, False),
        ({"Origin": "PORTAL"}, True),
        ({"Origin": "PORTAL", "Sec-Fetch-Site": "cross-site"}, False),
    ],
)
def test_changing_requests_from_other_sites_are_refused(served: Served, headers, is_own):
    sent = {name: value.replace("PORTAL", served.portal) for name, value in headers.items()}
    answer = ask(f"{served.portal}/sign-out", "POST", headers=sent)
    assert answer.status == (303 if is_own else 403)
    assert is_own or "came from another site" in answer.text


@pytest.mark.parametrize("path", [*PUBLIC, "/nothing"])
def test_every_answer_has_the_security_headers(served: Served, path):
    headers = ask(served.portal + path).headers
    policy = headers["Content-Security-Policy"]
    assert (
        "default-src 'none'" in policy and "frame-ancestors 'none'" in policy and "frame-src 'none'" in policy
    )
    assert "unsafe" not in policy
    assert headers["X-Content-Type-Options"] == "nosniff"
    assert headers["Referrer-Policy"] == "no-referrer"
    assert "server" not in headers


def test_no_page_has_inline_script_or_style(served: Served):
    for path in PUBLIC:
        text = ask(served.portal + path).text
        assert "<style" not in text and " style=" not in text and " onclick" not in text
        assert text.count("<script") == text.count("<script src=")


def test_a_request_with_another_name_of_the_machine_is_redirected_to_the_right_one(served: Served):
    answer = ask(f"{served.portal}/about", headers={"Host": "evil.example"})
    assert (answer.status, answer.headers["Location"]) == (307, f"{served.portal}/about")
    assert ask(f"{served.portal}/sign-out", "POST", headers={"Host": "evil.example"}).status == 421


def test_the_frame_redirects_to_the_portal_for_everything_else(served: Served):
    for path in ("/", "/search?q=clock", "/sign-in"):
        answer = ask(served.frame + path)
        assert (answer.status, answer.headers["Location"]) == (307, served.portal + path)
    text = ask(f"{served.frame}/all/2012/{SITE}/nowhere").text
    assert f'href="{served.portal}/about"' in text


def test_a_star_lists_addresses_with_their_versions(served: Served):
    there = ask(f"{served.portal}/all/*/http://www.example.org/n*")
    assert there.status == 302 and there.headers["Location"].startswith("/versions?url=")
    text = ask(f"{served.portal}/versions?url=example.org/n*").text
    assert f"/all/*/{SITE}/news.html" in text and "style.css" not in text and "<td>4</td>" in text
    assert "No matching addresses in the archive." in ask(f"{served.portal}/versions?url=*.example.net").text


def test_the_list_of_versions_is_narrowed(served: Served):
    everything = ask(f"{served.portal}/versions?url={SITE}/picture.png&year=2012&status=2").text
    assert everything.count("unchanged</span>") == 2 and "<td>first ·" not in everything, "since 2009"
    assert "<td>first ·" in ask(f"{served.portal}/versions?url={SITE}/picture.png&year=2009&status=2").text
    changed = ask(f"{served.portal}/versions?url={SITE}/picture.png&year=2012&changed=1").text
    assert changed.count("unchanged</span>") == 0 and "1 June 2012, 12:00" in changed
    assert (
        "1 June 2012, 12:00"
        not in ask(
            f"{served.portal}/versions?url={SITE}/picture.png&year=2012&type=text/html"
        ).text.partition('id="list"')[2]
    )
