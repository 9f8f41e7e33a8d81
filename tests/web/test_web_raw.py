"""Raw replay and Memento: exact bytes, the archived status, nothing that leads to the live web."""

import gzip
import json
import zlib
from urllib.parse import urlsplit

import brotli
import pytest
from museum import EDITIONS, PICTURE, SITE, Served, Warc, ask, edition, make_home, serving

ODD = "http://odd.example"
STAMP = "20150101000000"
LONG = b"The quick brown fox. " * 50_000
PAGE = b"<title>Page</title><h1>Page</h1>"
SENT_INSTEAD = {100: 200, 103: 200, 204: 204, 205: 205, 304: 304, 600: 500, 999: 500}
"""Status codes of captures, and what can be said of them today."""
ODD_CODES = list(SENT_INSTEAD)


@pytest.fixture(scope="module")
def odd(tmp_path_factory: pytest.TempPathFactory):
    """An archive of awkward captures."""
    folder = tmp_path_factory.mktemp("odd")
    first = Warc(folder / "first.warc.gz")
    first.response(f"{ODD}/gzip", STAMP, gzip.compress(PAGE, mtime=0), headers=[("Content-Encoding", "gzip")])
    first.response(f"{ODD}/br", STAMP, brotli.compress(PAGE), headers=[("Content-Encoding", "br")])
    first.response(f"{ODD}/deflate", STAMP, zlib.compress(PAGE), headers=[("Content-Encoding", "deflate")])
    first.response(f"{ODD}/liar", STAMP, PAGE, headers=[("Content-Encoding", "gzip")])
    first.response(f"{ODD}/br-liar", STAMP, PAGE, headers=[("Content-Encoding", "br")])
    first.response(
        f"{ODD}/chunked",
        STAMP,
        b"5\r\nhello\r\n6\r\n world\r\n0\r\n\r\n",
        headers=[("Transfer-Encoding", "chunked")],
    )
    first.response(f"{ODD}/chunk-liar", STAMP, PAGE, headers=[("Transfer-Encoding", "chunked")])
    first.response(
        f"{ODD}/long",
        STAMP,
        LONG,
        mime="video/mp4",
        headers=[("Content-Length", "7"), ("Accept-Ranges", "none")],
    )
    first.response(f"{ODD}/missing", STAMP, b"gone for good", status="410 Gone")
    first.response(f"{ODD}/broken", STAMP, b"server error page", status="503 Service Unavailable")
    first.response(f"{ODD}/empty", STAMP, b"", status="204 No Content")
    for code in ODD_CODES:
        first.response(f"{ODD}/code-{code}", STAMP, b"words all the same", status=f"{code} Odd")
    first.response(
        f"{ODD}/moved", STAMP, b"", status="301 Moved", headers=[("Location", "/target?a=1&b=%20")]
    )
    first.response(
        f"{ODD}/out", STAMP, b"", status="302 Found", headers=[("Location", "https://live.example.net/x")]
    )
    first.response(f"{ODD}/target?a=1&b=%20", STAMP, b"arrived")
    first.response(
        "http://www.self.example/",
        STAMP,
        b"",
        status="301 Moved",
        headers=[("Location", "https://self.example/")],
    )
    first.response("https://self.example/", "20150101000005", b"the page itself")
    first.response(
        "http://only-self.example/",
        STAMP,
        b"",
        status="301 Moved",
        headers=[("Location", "https://only-self.example/")],
    )
    first.response(
        f"{ODD}/headers",
        STAMP,
        PAGE,
        headers=[
            ("Set-Cookie", "session=stolen; Path=/"),
            ("Content-Security-Policy", "default-src https:"),
            ("Strict-Transport-Security", "max-age=9"),
            ("Refresh", "0; url=https://live.example.net/"),
            ("Link", "<https://live.example.net/x.css>; rel=preload"),
            ("Clear-Site-Data", '"*"'),
            ("Service-Worker-Allowed", "/"),
            ("X-Frame-Options", "DENY"),
            ("X-Redirect-Status", "500"),
            ("X-Custom", "kept"),
            ("X-Latin", "caf\xe9"),
            ("Bad Name", "x"),
            ("Content-Language", "nl"),
        ],
    )
    first.response(f"{ODD}/page", STAMP, PAGE)
    first.response(f"{ODD}/post", STAMP, b"posted")
    second = Warc(folder / "second.warc.gz")
    second.revisit(f"{ODD}/again", "20160101000000", PAGE, of_url=f"{ODD}/page", of_stamp=STAMP)
    second.revisit(f"{ODD}/page", "20170101000000", PAGE, of_url="http://nowhere.example/", of_stamp=STAMP)
    second.revisit(
        f"{ODD}/orphan", "20160101000000", b"bytes that nobody has", of_url=f"{ODD}/orphan", of_stamp=STAMP
    )
    lost = Warc(folder / "lost.warc.gz").response(f"{ODD}/lost", STAMP, PAGE)
    torn = Warc(folder / "torn.warc.gz").response(f"{ODD}/torn", STAMP, LONG)
    home = make_home(folder / "home", first.write(), second.write(), lost.write(), torn.write())
    for path in home.rglob("*lost*.warc.gz"):
        path.unlink()
    for path in home.rglob("*torn*.warc.gz"):
        path.write_bytes(path.read_bytes()[:300])
    with serving(home) as running:
        yield running


def raw(served: Served, path: str, stamp: str = STAMP, modifier: str = "id_", **given):
    return ask(f"{served.replay}/all/{stamp}{modifier}/{path if '://' in path else ODD + path}", **given)


def test_a_capture_has_its_status_its_headers_and_its_bytes(served: Served):
    answer = ask(f"{served.replay}/all/{EDITIONS[1]}id_/{SITE}/")
    assert (answer.status, answer.headers["Content-Type"], answer.body) == (
        200,
        "text/html",
        edition(2, EDITIONS[1]),
    )
    assert answer.headers["Memento-Datetime"] == "Fri, 01 Jun 2012 12:00:00 GMT"
    link = answer.headers["Link"]
    assert f'<{SITE}/>; rel="original"' in link
    assert f'<{served.replay}/all/{SITE}/>; rel="timegate"' in link
    assert f'<{served.replay}/all/timemap/link/{SITE}/>; rel="timemap"' in link
    assert ask(f"{served.replay}/all/{EDITIONS[1]}id_/{SITE}/picture.png").body == PICTURE


def test_the_nearest_version_is_given_and_says_which_it_is(served: Served):
    answer = ask(f"{served.replay}/all/20120601130000id_/{SITE}/")
    assert answer.body == edition(2, EDITIONS[1])
    assert answer.headers["Content-Location"] == f"/all/{EDITIONS[1]}id_/{SITE}/"


@pytest.mark.parametrize(("asked", "found"), [("2009", 0), ("201206", 1), ("", 3), ("9999", 3)])
def test_short_timestamps_lead_to_the_nearest(served: Served, asked, found):
    answer = ask(f"{served.replay}/all/{asked}id_/{SITE}/")
    assert (answer.status, answer.headers["Location"]) == (302, f"/all/{EDITIONS[found]}id_/{SITE}/")


def test_missing_captures_are_404_with_a_page_for_people_and_a_line_for_machines(served: Served):
    page = ask(
        f"{served.replay}/all/{EDITIONS[1]}id_/{SITE}/nowhere",
        headers={"Accept": "text/html", "Accept-Language": "nl"},
    )
    assert page.status == 404 and "Niet in het archief" in page.text
    line = ask(f"{served.replay}/all/{EDITIONS[1]}id_/{SITE}/nowhere")
    assert (
        line.status == 404
        and line.headers["Content-Type"].startswith("text/plain")
        and "is not archived" in line.text
    )


@pytest.mark.parametrize(
    "path",
    [
        "/all/20x9id_/http://www.example.org/",
        "/all/2019id_/http://[bad/",
        "/-x/2019id_/http://www.example.org/",
    ],
)
def test_malformed_addresses_are_400(served: Served, path):
    answer = ask(served.replay + path)
    assert answer.status == 400 and "<h1>" in answer.text


def test_a_url_of_100_kb_is_414(served: Served):
    assert ask(f"{served.replay}/all/2019id_/http://www.example.org/{'a' * 100_000}").status == 414


@pytest.mark.parametrize(
    ("path", "coding", "archived"),
    [("/gzip", "gzip", gzip.compress(PAGE, mtime=0)), ("/br", "br", brotli.compress(PAGE))],
)
def test_content_coding_is_kept_for_clients_that_accept_it_and_undone_for_others(odd, path, coding, archived):
    for accept in ({}, {"Accept-Encoding": f"{coding}, zstd"}, {"Accept-Encoding": "*"}):
        kept = raw(odd, path, headers=accept)
        assert (kept.headers["Content-Encoding"], kept.body) == (coding, archived)
    for accept in ("identity", f"{coding};q=0", "zstd"):
        undone = raw(odd, path, headers={"Accept-Encoding": accept})
        assert (undone.headers.get("Content-Encoding"), undone.body) == (None, PAGE)


@pytest.mark.parametrize("path", ["/deflate", "/liar", "/br-liar", "/chunk-liar"])
def test_codings_that_are_ambiguous_or_a_lie_are_undone_or_dropped(odd, path):
    answer = raw(odd, path, headers={"Accept-Encoding": "gzip, deflate, br"})
    assert (answer.status, answer.headers.get("Content-Encoding"), answer.body) == (200, None, PAGE)


def test_chunks_are_taken_away(odd):
    answer = raw(odd, "/chunked")
    assert answer.body == b"hello world" and answer.headers.get("Transfer-Encoding") is None


def test_a_long_body_comes_whole_whatever_its_head_says(odd):
    assert raw(odd, "/long").body == LONG
    assert raw(odd, "/long", method="HEAD").body == b""


@pytest.mark.parametrize(
    ("asked", "first", "last"),
    [
        ("bytes=0-99", 0, 99),
        ("bytes=1000000-", 1_000_000, len(LONG) - 1),
        ("bytes=-10", len(LONG) - 10, len(LONG) - 1),
        ("bytes=5-9999999", 5, len(LONG) - 1),
    ],
)
def test_parts_of_media(odd, asked, first, last):
    answer = raw(odd, "/long", headers={"Range": asked})
    assert answer.status == 206
    assert answer.headers["Content-Range"] == f"bytes {first}-{last}/{len(LONG)}"
    assert answer.body == LONG[first : last + 1]


@pytest.mark.parametrize(
    "asked", ["bytes=9-1", "bytes=99999999-", "lines=1-2", "bytes=1-2,5-6", "bytes=-", "bytes=-0"]
)
def test_ranges_that_make_no_sense_get_everything(odd, asked):
    answer = raw(odd, "/long", headers={"Range": asked})
    assert (answer.status, answer.body) == (200, LONG)


@pytest.mark.parametrize(("path", "status"), [("/missing", 410), ("/broken", 503), ("/empty", 204)])
def test_archived_status_is_given_again(odd, path, status):
    assert raw(odd, path).status == status
    for_worker = raw(odd, path, modifier="sw_")
    assert (for_worker.status, for_worker.headers["X-Redirect-Status"]) == (200, str(status))


@pytest.mark.parametrize("code", ODD_CODES)
@pytest.mark.parametrize("accept", ["*/*", "text/html"])
def test_an_archived_status_that_http_cannot_send_is_in_a_header(odd, code, accept):
    answer = raw(odd, f"/code-{code}", headers={"Accept": accept})
    told = None if code == SENT_INSTEAD[code] else str(code)
    assert (answer.status, answer.headers["X-Archive-Orig-Status"]) == (SENT_INSTEAD[code], told)
    assert answer.body == (b"" if SENT_INSTEAD[code] in (204, 205, 304) else b"words all the same")
    for_worker = raw(odd, f"/code-{code}", modifier="sw_")
    assert (for_worker.status, for_worker.headers["X-Redirect-Status"]) == (200, str(SENT_INSTEAD[code]))
    assert for_worker.body == answer.body
    assert raw(odd, f"/code-{code}", modifier="ns_").status == SENT_INSTEAD[code]
    framed = ask(f"{odd.frame}/all/{STAMP}/{ODD}/code-{code}")
    assert framed.status == (500 if code >= 600 else 200)


def test_archived_redirects_stay_in_the_archive(odd):
    moved = raw(odd, "/moved")
    assert (moved.status, moved.headers["Location"]) == (301, f"/all/{STAMP}id_/{ODD}/target?a=1&b=%20")
    assert moved.headers["X-Archive-Orig-Location"] == "/target?a=1&b=%20"
    assert ask(odd.replay + moved.headers["Location"]).body == b"arrived"
    assert raw(odd, "/out").headers["Location"] == f"/all/{STAMP}id_/https://live.example.net/x"
    for_worker = raw(odd, "/out", modifier="sw_")
    assert "Location" not in for_worker.headers
    assert (for_worker.headers["X-Orig-Location"], for_worker.headers["X-Redirect-Status"]) == (
        "https://live.example.net/x",
        "302",
    )


def test_redirects_to_the_same_page_are_passed_over(odd):
    assert raw(odd, "http://www.self.example/").body == b"the page itself"
    only = raw(odd, "http://only-self.example/")
    assert only.status == 404 and "only as a redirect to itself" in only.text


def test_headers_are_renamed_but_those_that_show_the_body(odd):
    headers = raw(odd, "/headers").headers
    assert "stolen" not in str(headers)
    for name in (
        "Strict-Transport-Security",
        "Refresh",
        "Clear-Site-Data",
        "Service-Worker-Allowed",
        "X-Frame-Options",
    ):
        assert name not in headers and f"X-Archive-Orig-{name}" in headers, name
    assert headers.get_all("Content-Security-Policy") == [headers["Content-Security-Policy"]]
    assert "sandbox" in headers["Content-Security-Policy"]
    assert "preload" not in headers["Link"] and "X-Redirect-Status" not in headers
    assert headers["X-Archive-Orig-X-Custom"] == "kept" and headers["Content-Language"] == "nl"
    assert headers["X-Archive-Orig-X-Latin"].encode("latin-1", "surrogateescape") in (
        b"caf\xe9",
        b"caf\xc3\xa9",
    )
    assert headers["Referrer-Policy"] == "no-referrer"


def test_revisits_are_resolved_across_addresses_containers_and_by_digest(odd):
    by_reference = raw(odd, "/again", stamp="20160101000000")
    assert (by_reference.body, by_reference.headers["X-Archive-Orig-X-Edition"]) == (
        PAGE,
        "revisit",
    )
    assert by_reference.headers["Memento-Datetime"] == "Fri, 01 Jan 2016 00:00:00 GMT"
    assert raw(odd, "/page", stamp="20170101000000").body == PAGE


def test_a_revisit_without_its_original_says_so(odd):
    answer = raw(odd, "/orphan", stamp="20160101000000")
    assert answer.status == 404 and "unchanged since an earlier version" in answer.text
    frame = ask(f"{odd.frame}/all/20160101000000/{ODD}/orphan")
    assert frame.status == 404 and "cannot be read at the moment" in frame.text


def test_a_missing_container_is_an_error_of_the_archive_with_a_message(odd):
    answer = raw(odd, "/lost")
    assert answer.status == 500 and "its container" in answer.text and "cannot be opened" in answer.text
    assert "Traceback" not in answer.text


def test_a_truncated_container_is_an_error_of_the_archive_with_a_message(odd):
    answer = raw(odd, "/torn")
    assert answer.status == 500 and "torn" in answer.text and "Traceback" not in answer.text


def test_no_archived_script_becomes_a_worker(served: Served):
    headers = {"Service-Worker": "script"}
    assert ask(f"{served.replay}/all/{EDITIONS[1]}id_/{SITE}/app.js", headers=headers).status == 403
    worker = ask(f"{served.replay}/sw.js?replayPrefix=", headers=headers)
    assert worker.status == 200 and "connect-src 'self'" in worker.headers["Content-Security-Policy"]


def test_frames_opened_directly_lead_to_the_portal(served: Served):
    for path, expected in (
        (f"/all/{EDITIONS[1]}/{SITE}/?a=1", f"/all/{EDITIONS[1]}/{SITE}/?a=1"),
        (f"/all/*/{SITE}/", f"/all/*/{SITE}/"),
        (f"/all/{SITE}/", f"/all/{SITE}/"),
        ("/", "/"),
    ):
        answer = ask(served.replay + path)
        assert (answer.status, answer.headers["Location"]) == (302, served.portal + expected)
    page = ask(f"{served.replay}/all/{EDITIONS[1]}mp_/{SITE}/", headers={"Sec-Fetch-Dest": "document"})
    assert page.headers["Location"] == f"{served.portal}/all/{EDITIONS[1]}/{SITE}/"


def test_old_links_with_modifiers_on_the_portal_lead_to_replay(served: Served):
    answer = ask(f"{served.portal}/all/{EDITIONS[1]}id_/{SITE}/")
    assert (answer.status, answer.headers["Location"]) == (
        307,
        f"{served.replay}/all/{EDITIONS[1]}id_/{SITE}/",
    )


def test_time_gate_and_time_map(served: Served):
    gate = ask(f"{served.replay}/all/{SITE}/", headers={"Accept-Datetime": "Sat, 02 Jun 2012 00:00:00 GMT"})
    assert (gate.status, gate.headers["Location"]) == (302, f"{served.replay}/all/{EDITIONS[2]}id_/{SITE}/")
    assert "accept-datetime" in gate.headers["Vary"].lower()
    assert ask(f"{served.replay}/all/{SITE}/", headers={"Accept-Datetime": "yesterday"}).status == 400
    time_map = ask(f"{served.replay}/all/timemap/link/{SITE}/")
    assert time_map.headers["Content-Type"].startswith("application/link-format")
    assert time_map.text.count('rel="memento"') == 4 and time_map.text.count('rel="original"') == 1
    assert ask(f"{served.replay}/all/timemap/link/{SITE}/nowhere").status == 404


def test_the_worker_has_a_policy_for_pages_that_lets_nothing_out(served: Served):
    text = ask(f"{served.pages(SITE)}/-/start/all/{EDITIONS[1]}mp_/{SITE}/").text
    assert f'data-target="/all/{EDITIONS[1]}mp_/{SITE}/"' in text
    settings = ask(f"{served.replay}/sw.js").text.partition("\n")[0]
    headers = dict(json.loads(settings.removeprefix("self.webdepot = ").removesuffix(";"))["headers"])
    policy = headers["Content-Security-Policy"]
    assert "ws:" not in policy and "wss:" not in policy and "https:" not in policy and "*" not in policy
    assert "form-action 'self'" in policy and f"frame-ancestors 'self' {served.frame}" in policy
    assert headers["Connection-Allowlist"] == "(response-origin);redirects=allow"


def test_a_page_starts_on_the_host_of_its_site_only(served: Served):
    path = f"/all/{EDITIONS[1]}mp_/{SITE}/"
    own = served.pages(SITE)
    policy = ask(f"{own}/-/start{path}").headers["Content-Security-Policy"]
    assert f"worker-src {own}/sw.js;" in policy and f"frame-ancestors 'self' {served.frame}" in policy
    for other in (served.replay, served.pages("http://other.example/")):
        for asked in (f"/-/start{path}", path):
            answer = ask(other + asked, headers={"Sec-Fetch-Dest": "iframe"})
            assert (answer.status, answer.headers["Location"]) == (307, f"{own}/-/start{path}")
    page = ask(own + path, headers={"Sec-Fetch-Dest": "document"})
    assert page.headers["Location"] == f"{served.portal}/all/{EDITIONS[1]}/{SITE}/"


@pytest.mark.parametrize("label", ["x", "www-example-org", "a.www-example-org-0123456789abcdef", "0123", ""])
def test_other_names_below_are_refused(served: Served, label: str):
    host = urlsplit(served.replay).netloc.replace("localhost", f"{label}.webdepot.localhost")
    for path in ("/sw.js", f"/all/{EDITIONS[1]}id_/{SITE}/"):
        assert ask(served.replay + path, headers={"Host": host}).status == 421


def test_replay_answers_to_its_own_name_alone(served: Served):
    by_number = served.replay.replace("localhost", "127.0.0.1")
    answer = ask(f"{by_number}/all/{EDITIONS[1]}id_/{SITE}/")
    assert (answer.status, answer.headers["Location"]) == (
        307,
        f"{served.replay}/all/{EDITIONS[1]}id_/{SITE}/",
    )


def test_awkward_captures_without_scripts_have_a_message_and_the_right_status(odd):
    """Rewritten on the server: wrong content codings, orphans, lost and truncated containers, odd headers."""
    for path in (
        "/gzip",
        "/br",
        "/deflate",
        "/liar",
        "/br-liar",
        "/chunk-liar",
        "/page",
        "/headers",
        "/chunked",
    ):
        answer = raw(odd, path, modifier="ns_")
        assert (answer.status, "Content-Encoding" in answer.headers) == (200, False), path
        assert answer.body == (b"hello world" if path == "/chunked" else PAGE)
        assert (
            "Set-Cookie" not in answer.headers
            and "script-src 'none'" in answer.headers["Content-Security-Policy"]
        )
    assert raw(odd, "/again", "20160101000000", modifier="ns_").body == PAGE
    assert raw(odd, "/moved", modifier="ns_").headers["Location"] == f"/all/{STAMP}ns_/{ODD}/target?a=1&b=%20"
    for path, status in (
        ("/missing", 410),
        ("/broken", 503),
        ("/orphan", 404),
        ("/lost", 500),
        ("/torn", 500),
        ("/never", 404),
    ):
        answer = raw(odd, path, modifier="ns_")
        assert answer.status == status and answer.body and b"Traceback" not in answer.body, path
    assert raw(odd, f"http://www.example.org/{'a' * 100_000}", modifier="ns_").status == 414
    assert ask(f"{odd.replay}/all/20151399000000ns_/{ODD}/page").status == 400
