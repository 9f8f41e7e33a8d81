"""A harvest compared with the last ones: numbers, sizes, types and times that differ; files that are new,
gone or changed; wrong digests.
"""

import gzip
import uuid

import pytest
from container_facts import facts_of

from webdepot.digest import sha1
from webdepot.model import Capture, Location, RecordKind
from webdepot.quality import checks, compare
from webdepot.quality.checks import HarvestTraces
from webdepot.quality.compare import HarvestMeasures
from webdepot.url import key

USUAL = HarvestMeasures(
    documents=100, size_bytes=1_000_000, duration_s=600.0, types={"text/html": 60, "image/png": 40}
)


def told(now, earlier=(USUAL, USUAL, USUAL)):
    return {
        each.code.removeprefix("quality."): each.message
        for each in compare.against(now, earlier, subject="h")
    }


def like(**changed):
    facts = {"documents": 100, "size_bytes": 1_000_000, "duration_s": 600.0, "types": USUAL.types, **changed}
    return HarvestMeasures(**facts)


@pytest.mark.parametrize(
    ("changed", "code"),
    [
        ({"documents": 49}, "count-differs"),
        ({"documents": 201}, "count-differs"),
        ({"size_bytes": 499_000}, "size-differs"),
        ({"size_bytes": 0}, "size-differs"),
        ({"duration_s": 1300.0}, "duration-differs"),
        ({"types": {"text/html": 95, "image/png": 5}}, "types-differ"),
        ({"types": {"application/pdf": 100}}, "types-differ"),
    ],
)
def test_what_is_far_from_usual_is_told(changed, code):
    assert list(told(like(**changed))) == [code]


@pytest.mark.parametrize(
    "changed",
    [{}, {"documents": 60}, {"size_bytes": 1_900_000}, {"types": {"text/html": 75, "image/png": 25}}],
)
def test_what_is_near_is_not(changed):
    assert told(like(**changed)) == {}


def test_the_median_counts_and_small_sites_are_left_alone():
    odd = like(documents=5000, size_bytes=50_000_000)
    assert told(like(), (USUAL, odd, USUAL)) == {}
    assert told(odd, ()) == {}
    tiny = HarvestMeasures(documents=2, size_bytes=10, duration_s=1.0, types={})
    assert told(HarvestMeasures(documents=9, size_bytes=5000, duration_s=9.0, types={}), (tiny,)) == {}
    assert "0.4 times the usual" in told(like(documents=40))["count-differs"]


def response(url, body, **fields):
    """One WARC record as a gzip member."""
    block = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n" + body
    named = {
        "WARC-Type": "response",
        "WARC-Target-URI": url,
        "WARC-Date": "2024-05-17T12:30:00Z",
        "WARC-Record-ID": uuid.uuid4().urn,
        **fields,
    }
    named |= {"Content-Type": "application/http; msgtype=response", "Content-Length": str(len(block))}
    lines = [f"{name}: {value}" for name, value in named.items()]
    return gzip.compress("\r\n".join(["WARC/1.0", *lines, "", ""]).encode() + block + b"\r\n\r\n", mtime=0)


def capture(url, body):
    place = Location(container="old.warc.gz", offset=0, length=1)
    return Capture(
        key=key(url),
        timestamp="20200101000000",
        url=url,
        kind=RecordKind.RESPONSE,
        status=200,
        mime="text/html",
        digest=str(sha1(body)),
        location=place,
    )


def traces(tmp_path, *records, **more):
    path = tmp_path / "x.warc.gz"
    path.write_bytes(b"".join(records))
    return HarvestTraces(
        harvest="h2",
        seeds=("http://a.example/",),
        records=facts_of(path),
        log=None,
        **more,
    )


def test_new_gone_and_changed(tmp_path):
    now = [
        response(f"http://a.example/{name}", body)
        for name, body in (("", b"start"), ("same", b"same"), ("other", b"now"), ("new", b"new"))
    ]
    before = [
        capture(f"http://a.example/{name}", body)
        for name, body in (("", b"start"), ("same", b"same"), ("other", b"then"), ("gone", b"g"))
    ]
    found = list(checks.check(traces(tmp_path, *now, before=before, before_name="h1")))
    of = {
        code: [each.subject for each in found if each.code == f"quality.file-{code}"]
        for code in ("new", "gone", "changed")
    }
    assert of == {
        "new": ["http://a.example/new"],
        "gone": ["http://a.example/gone"],
        "changed": ["http://a.example/other"],
    }
    summary = next(each for each in found if each.code == "quality.since-before")
    assert summary.message == "Since h1: 1 new, 1 gone, 1 changed, 2 unchanged."


def test_a_digest_that_does_not_match(tmp_path):
    good = response("http://a.example/", b"right", **{"WARC-Payload-Digest": str(sha1(b"right"))})
    bad = response("http://a.example/bad", b"wrong", **{"WARC-Payload-Digest": str(sha1(b"right"))})
    found = [
        each for each in checks.check(traces(tmp_path, good, bad)) if each.code == "quality.digest-differs"
    ]
    assert [(each.subject, each.action) for each in found] == [("http://a.example/bad", "patch")]
    assert str(sha1(b"wrong")) in found[0].message
