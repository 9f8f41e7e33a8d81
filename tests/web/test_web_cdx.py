"""The CDX server, TimeMaps and the TimeGate over HTTP, in both dialects, paged and resumed."""

import json
import re
from pathlib import Path
from urllib.parse import quote_plus
from xml.etree import ElementTree

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from museum import EDITIONS, SITE, Served, ask, serving

from webdepot import cdxj
from webdepot.access import cdx
from webdepot.access.cdx import Dialect
from webdepot.archive import Archive
from webdepot.errors import InputError
from webdepot.model import Capture, Location, RecordKind
from webdepot.services.admin import setup
from webdepot.web.api import timemap


def pywb(served: Served, query: str) -> list[dict]:
    answer = ask(f"{served.replay}/all/cdx?output=json&{query}")
    assert answer.status == 200, answer.text
    return [json.loads(line) for line in answer.text.splitlines()]


def stamps(served: Served, query: str) -> list[str]:
    return [row["timestamp"] for row in pywb(served, query)]


def test_pywb_lines_are_cdxj_that_can_be_read_again(served: Served):
    answer = ask(f"{served.replay}/all/cdx?url=example.org")
    assert answer.headers["Content-Type"].startswith("text/x-cdxj")
    captures = list(cdxj.read(answer.text.splitlines(), name="answer"))
    assert [capture.timestamp for capture in captures] == list(EDITIONS)
    assert {capture.url for capture in captures} == {f"{SITE}/"}


def test_period_order_and_number(served: Served):
    assert stamps(served, "url=example.org&from=2012&to=2012") == [EDITIONS[1], EDITIONS[2]]
    assert stamps(served, "url=example.org&sort=reverse&limit=2") == [EDITIONS[3], EDITIONS[2]]
    assert stamps(served, "url=example.org&limit=-2") == [EDITIONS[2], EDITIONS[3]]
    assert stamps(served, "url=example.org&closest=20120601130000") == [
        EDITIONS[1],
        EDITIONS[2],
        EDITIONS[0],
        EDITIONS[3],
    ]


def test_wildcards_and_match_types(served: Served):
    everything = pywb(served, "url=example.org/*")
    assert len(everything) == 25
    assert len(pywb(served, "url=example.org&matchType=host")) == len(pywb(served, "url=*.example.org")) == 25
    assert {row["url"] for row in pywb(served, "url=example.org/n*")} == {f"{SITE}/news.html"}
    assert ask(f"{served.replay}/all/cdx?url=example.net").status == 404
    assert len(pywb(served, "url=example.org/*&filter=mime:html")) == 8


@pytest.mark.parametrize(
    ("condition", "count"),
    [
        ("=mime:text/html", 8),
        ("!=mime:text/html", 17),
        ("~url:.*\\.(png|css)$", 8),
        ("!~url:.*\\.(png|css)$", 17),
        ("status:20", 25),
        ("=status:20", 0),
    ],
)
def test_filters_of_pywb(served: Served, condition: str, count: int):
    answer = ask(
        f"{served.replay}/all/cdx?output=json&url=example.org/*&filter={condition.replace('|', '%7C')}"
    )
    assert len(answer.text.splitlines()) == count if count else answer.status == 404


def test_fields_and_collapsing(served: Served):
    rows = pywb(served, "url=example.org&fl=timestamp,status&collapseTime=8")
    assert rows == [{"timestamp": EDITIONS[at], "status": "200"} for at in (0, 1, 3)]
    assert len(pywb(served, "url=example.org/picture.png&collapse=digest")) == 1


def test_internet_archive_dialect(served: Served):
    base = f"{served.portal}/cdx/search/cdx?url=example.org"
    text = ask(base).text.splitlines()
    assert len(text) == 4 and text[0].split(" ")[:5] == [
        "org,example)/",
        EDITIONS[0],
        f"{SITE}/",
        "text/html",
        "200",
    ]
    rows = json.loads(ask(f"{base}&output=json&fl=timestamp,original&limit=2").text)
    assert rows == [["timestamp", "original"], [EDITIONS[0], f"{SITE}/"], [EDITIONS[1], f"{SITE}/"]]
    assert json.loads(ask(f"{served.portal}/cdx/search/cdx?url=example.net&output=json").text) == []
    assert len(ask(f"{base}/*&filter=mimetype:text").text) == 0
    assert len(ask(f"{base}/*&filter=!mimetype:text/html&filter=statuscode:2..").text.splitlines()) == 17


def test_pages_and_resume_keys_give_everything_once(served: Served):
    base = f"{served.replay}/cdx/search/cdx?url=example.org/*&fl=urlkey,timestamp"
    whole = ask(base).text.splitlines()
    got, key = [], ""
    while True:
        lines = ask(
            f"{base}&limit=7&showResumeKey=true" + (f"&resumeKey={key}" if key else "")
        ).text.splitlines()
        got += [line for line in lines if " " in line]
        if "" not in lines:
            break
        key = lines[lines.index("") + 1]
    assert got == whole
    assert ask(f"{base}&showNumPages=true").text == "1\n"
    assert ask(f"{base}&page=0").text.splitlines() == whole and ask(f"{base}&page=1").status == 400


@pytest.mark.parametrize(
    "query",
    [
        "",
        "url=",
        "url=x.org&limit=x",
        "url=x.org&from=20x",
        "url=x.org&matchType=odd",
        "url=x.org&filter=(",
        "url=x.org&filter=~url:(",
        "url=x.org&fl=odd",
        "url=x.org/*&sort=reverse",
        "url=x.org&resumeKey=abc",
        "url=x.org&output=xml",
        "url=x.org&collapse=odd",
        "url=x.org&page=-1",
    ],
)
def test_wrong_queries_are_400_with_a_message(served: Served, query: str):
    answer = ask(f"{served.replay}/all/cdx?{query}")
    assert answer.status == 400 and json.loads(answer.text)["message"]


@given(
    st.lists(
        st.tuples(
            st.sampled_from(
                [
                    "url",
                    "filter",
                    "limit",
                    "from",
                    "to",
                    "fl",
                    "collapse",
                    "sort",
                    "closest",
                    "page",
                    "resumeKey",
                ]
            ),
            st.text(),
        )
    )
)
@settings(suppress_health_check=[HealthCheck.too_slow])
def test_any_parameters_are_read_or_refused(parameters):
    for dialect in Dialect:
        try:
            cdx.parse(parameters, dialect)
        except InputError as error:
            assert str(error)


def test_time_maps_in_three_forms(served: Served):
    link = ask(f"{served.replay}/all/timemap/link/{SITE}/")
    assert link.text.count('rel="memento"') == 4 and 'rel="timegate"' in link.text
    said = json.loads(ask(f"{served.replay}/all/timemap/json/{SITE}/").text)
    assert [one["datetime"][:4] for one in said["mementos"]["list"]] == [stamp[:4] for stamp in EDITIONS]
    assert said["original_uri"] == f"{SITE}/"
    lines = ask(f"{served.replay}/all/timemap/cdxj/{SITE}/").text.splitlines()
    assert [line.split(" ")[0] for line in lines if not line.startswith("!")] == list(EDITIONS)
    part = json.loads(ask(f"{served.replay}/all/timemap/json/20120601130000/{SITE}/").text)
    assert [one["uri"].split("/")[4][:14] for one in part["mementos"]["list"]] == list(EDITIONS[2:])


def test_a_time_map_of_very_many_comes_in_pages_that_lead_on(tmp_path: Path):
    setup.create(tmp_path / "home")
    made = [
        Capture(
            key="org,often)/",
            timestamp=f"20200101{at // 3600:02d}{at // 60 % 60:02d}{at % 60:02d}",
            url="http://often.org/",
            kind=RecordKind.RESPONSE,
            status=200,
            mime="text/html",
            digest="",
            location=Location(container="x.warc.gz", offset=at, length=1),
        )
        for at in range(2 * timemap.PAGE_MEMENTOS + 1)
    ]
    with Archive.open(tmp_path / "home") as archive:
        archive.captures.add("x.warc.gz", made, collection="c")
    with serving(tmp_path / "home") as running:
        seen, where = [], f"{running.replay}/all/timemap/json/http://often.org/"
        for _ in range(3):
            page = json.loads(ask(where).text)
            seen.append(len(page["mementos"]["list"]))
            where = page.get("timemap_index", [{"uri": ""}])[0]["uri"]
        assert seen == [timemap.PAGE_MEMENTOS, timemap.PAGE_MEMENTOS, 1] and not where
        lines = ask(f"{running.replay}/all/cdx?url=often.org&output=text").text.splitlines()
        assert [line.split(" ")[1] for line in lines] == [capture.timestamp for capture in made]


def test_the_time_gate_leads_to_the_nearest(served: Served):
    answer = ask(
        f"{served.replay}/all/timegate/{SITE}/", headers={"Accept-Datetime": "Fri, 01 Jun 2012 17:00:00 GMT"}
    )
    assert (
        answer.status == 302 and answer.headers["Location"] == f"{served.replay}/all/{EDITIONS[2]}id_/{SITE}/"
    )
    assert answer.headers["Vary"] == "accept-datetime, origin" and 'rel="original"' in answer.headers["Link"]
    assert (
        ask(f"{served.replay}/all/timegate/{SITE}/").headers["Location"].split("/")[4] == f"{EDITIONS[3]}id_"
    )


def test_machines_get_one_line_when_there_is_nothing(served: Served):
    for path in ("timegate", "timemap/link", "timemap/json", EDITIONS[0] + "id_"):
        answer = ask(f"{served.replay}/all/{path}/{SITE}/never")
        assert (answer.status, answer.headers["Content-Type"]) == (404, "text/plain; charset=utf-8"), path
        assert "never is not archived" in answer.text and len(answer.text.splitlines()) == 1
        assert ask(
            f"{served.replay}/all/{path}/{SITE}/never", headers={"Accept": "text/html"}
        ).text.startswith("<!doctype html>")


def test_a_page_past_the_last_one_is_refused_so_that_clients_stop(served: Served):
    for path in ("all/cdx?", "cdx/search/cdx?output=json&"):
        assert ask(f"{served.replay}/{path}url=example.org/*&page=0").status == 200
        answer = ask(f"{served.replay}/{path}url=example.org/*&page=1")
        assert answer.status == 400 and "past the last" in json.loads(answer.text)["message"]


def test_an_order_that_cannot_be_resumed_has_no_resume_key(served: Served):
    query = f"url=example.org&closest={EDITIONS[1]}&sort=closest&limit=1&showResumeKey=true"
    assert ask(f"{served.replay}/cdx/search/cdx?{query}").text.count("\n") == 1


def test_captures_collapse_across_answers(served: Served):
    query = "url=example.org/*&collapse=urlkey&fl=urlkey&limit=2&showResumeKey=true"
    keys, key = [], ""
    for _ in range(20):
        lines = ask(f"{served.replay}/cdx/search/cdx?{query}&resumeKey={key}").text.split("\n")
        keys += lines[: lines.index("")]
        if lines[-2] == "" or len(lines) < 4:
            break
        key = lines[-2]
    assert (
        len(keys)
        == len(set(keys))
        == len(set(ask(f"{served.replay}/cdx/search/cdx?url=example.org/*&fl=urlkey").text.split()))
    )


def test_the_timegate_names_the_closest_version_and_its_neighbours(served: Served):
    answer = ask(
        f"{served.replay}/all/timegate/{SITE}/",
        headers={"Accept-Datetime": "Fri, 01 Jun 2012 12:00:00 GMT"},
    )
    assert answer.status == 302
    relations = dict(re.findall(r'/all/(\d{14})id_/[^>]*>; rel="([^"]*)"', answer.headers["Link"]))
    assert relations == {
        EDITIONS[0]: "first prev memento",
        EDITIONS[1]: "memento",
        EDITIONS[2]: "next memento",
        EDITIONS[3]: "last memento",
    }
    assert answer.headers["Access-Control-Allow-Origin"] == "*"
    raw = ask(answer.headers["Location"])
    assert 'rel="memento"' in raw.headers["Link"]
    assert raw.headers["Access-Control-Allow-Origin"] == "*"


def test_a_method_that_is_not_allowed_is_answered_with_those_that_are(served: Served):
    for url in (f"{served.portal}/search", f"{served.replay}/robots.txt"):
        answer = ask(url, method="DELETE")
        assert (answer.status, "GET" in answer.headers.get("Allow", "")) == (405, True), url


def test_outbackcdx_answers_crawlers_that_deduplicate(served: Served):
    base = f"{served.replay}/outbackcdx/all"
    answer = ask(f"{base}?sort=reverse&rows=1&matchType=exact&url=http://www.example.org/")
    (line,) = answer.text.splitlines()
    columns = line.split(" ")
    assert len(columns) == 11 and columns[:2] == ["org,example)/", EDITIONS[3]]
    assert len(columns[5]) == 32 and columns[7] == "-" and columns[10].endswith(".warc.gz")
    missing = ask(f"{base}?url=http://nobody.example/")
    assert (missing.status, missing.text) == (200, "")
    refused = ask(base, "POST", body=line.encode())
    assert refused.status == 403 and "webdepot import" in refused.text


def test_xmlquery_answers_openwayback_and_pywb(served: Served):
    def query(words: str, *more: str, path: str = "/outbackcdx/all") -> ElementTree.Element:
        answer = ask(f"{served.replay}{path}?{'&'.join(['q=' + quote_plus(words), *more])}")
        assert (answer.status, answer.headers["content-type"]) == (200, "application/xml")
        return ElementTree.fromstring(answer.text)

    address = f"url:{quote_plus('http://www.example.org/')}"
    root = query(f"type:urlquery {address}", path="/all/xmlquery")
    dates = [result.findtext("capturedate") for result in root.iter("result")]
    assert dates == list(EDITIONS) and root.findtext("request/numresults") == "4"
    first = root.find("results/result")
    assert first.findtext("urlkey") == "org,example)/" and first.findtext("file").endswith(".warc.gz")
    second = query(f"type:urlquery {address}", "count=1", "start_page=2")
    assert [one.findtext("capturedate") for one in second.iter("result")] == [EDITIONS[1]]
    assert second.findtext("request/numresults") == "4" and second.findtext("request/numreturned") == "1"
    later = query(f"type:urlquery startdate:{EDITIONS[3]} {address}")
    assert [one.findtext("capturedate") for one in later.iter("result")] == [EDITIONS[3]]
    pages = query(f"type:prefixquery {address}")
    counts = {one.findtext("urlkey"): one.findtext("numcaptures") for one in pages.iter("result")}
    assert counts["org,example)/"] == "4" and len(counts) > 1
    assert query("type:urlquery url:http%3A%2F%2Fnobody.example%2F%3Fa%3C").findtext("error/title")
    for wrong in ("q=type:capturequery", "q=url:", "q=type:urlquery+url:x.example&count=many"):
        assert ask(f"{served.replay}/all/xmlquery?{wrong}").status == 400, wrong


def test_availability_and_the_timemap_of_the_internet_archive(served: Served):
    answer = json.loads(ask(f"{served.portal}/wayback/available?url=example.org&timestamp=2012").text)
    closest = answer["archived_snapshots"]["closest"]
    assert (closest["timestamp"], closest["status"]) == (EDITIONS[1], "200")
    assert json.loads(ask(f"{served.portal}/wayback/available?url=nobody.example").text) == {
        "url": "nobody.example",
        "archived_snapshots": {},
    }
    assert ask(f"{served.portal}/wayback/available?url=example.org&timestamp=abc").status == 400
    assert ask(f"{served.portal}/wayback/available").status == 400
    line = ask(f"{served.replay}/web/timemap/cdx?url=http://www.example.org/&limit=-1").text
    assert line.split(" ")[1] == EDITIONS[3]
