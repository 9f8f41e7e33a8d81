"""A container surveyed: one row per payload, from there into the database and the report."""

import gzip
import json
import pickle
import threading
import zlib
from datetime import UTC, datetime

import brotli
import pytest
from format_samples import HTML, good_files, image, record, response

import webdepot.harvest.tables
import webdepot.selection.tables  # noqa: F401 - other tables refer to these two
from webdepot import digest
from webdepot.database import Database, metadata
from webdepot.errors import InputError
from webdepot.formats import report, results, survey, survey_queue, survey_rows
from webdepot.formats.payload import SurveyLimits
from webdepot.formats.survey import SurveyTask
from webdepot.model import FormatVerdict, HarvestId

WHEN = datetime(2024, 5, 17, tzinfo=UTC)
A = "https://www.example.org/"
PNG = image("PNG")


@pytest.fixture
def surveyed(tmp_path):
    def run(*records: bytes, **options):
        path = tmp_path / "x.warc.gz"
        path.write_bytes(b"".join(records))
        result = survey.of_container(
            path, "x.warc.gz", rows=tmp_path / "rows.gz", temporary=tmp_path, **options
        )
        assert sorted(each.name for each in tmp_path.iterdir()) == ["rows.gz", "x.warc.gz"]
        return result, {row["url"]: row for row in survey.read_rows(result.rows)}

    return run


def test_each_payload_once(surveyed):
    result, rows = surveyed(
        response(f"{A}a.png", PNG, "image/png"),
        response(f"{A}b.png", PNG, "image/png"),
        response(f"{A}c.jpg", image("GIF", mode="P"), "image/jpeg"),
        response(A, HTML, "text/html; charset=utf-8"),
        response(f"{A}moved", b"", "text/html"),
        record("dns:www.example.org", b"20240517 www.example.org 127.0.0.1", content_type="text/dns"),
        record(f"{A}note", b"outlink: x", kind="metadata", content_type="application/warc-fields"),
        record(f"{A}r.txt", b"a resource", kind="resource", content_type="text/plain"),
        record(f"urn:view:{A}", image("PNG"), kind="resource", content_type="image/png"),
        record(f"urn:pageinfo:{A}", b"{}", kind="resource", content_type="application/json"),
        record(f"urn:text:{A}", b"as the browser showed it", kind="resource", content_type="text/plain"),
        record(
            f"{A}q",
            b"GET / HTTP/1.1\r\n\r\n",
            kind="request",
            content_type="application/http; msgtype=request",
        ),
    )
    assert list(rows) == [f"{A}a.png", f"{A}c.jpg", A, f"{A}r.txt"]
    assert rows[f"{A}a.png"]["uris"] == 2
    assert rows[f"{A}a.png"]["digest"] == str(digest.sha1(PNG))
    facts = [
        rows[A][name] for name in ("puid", "server_mime", "verdict", "validity", "size_bytes", "warning")
    ]
    assert facts == ["fmt/471", "text/html", "recognised", "valid", len(HTML), ""]
    assert rows[f"{A}c.jpg"]["warning"] == "the server said image/jpeg"
    counts = result.counts
    assert (counts.files, counts.checked, counts.distinct, counts.recognised, counts.uncertain) == (
        5,
        5,
        4,
        5,
        0,
    )
    assert counts.size_bytes == sum(row["size_bytes"] * row["uris"] for row in rows.values())
    assert result.findings == ()
    assert rows[A]["engine"] == result.engine


def test_more_payloads_than_stay_in_memory(surveyed, monkeypatch):
    """The same rows and counts, whether a payload comes again while its row is in memory, or in the database,
    or not put yet.
    """
    texts = {f"{A}{number}.txt": b"text %d" % number for number in range(7)}
    once = [response(url, body, "text/plain") for url, body in texts.items()]
    _, rows = surveyed(*once, *once[:3], once[0])
    monkeypatch.setattr(survey_rows, "MOST_IN_MEMORY", 2)
    monkeypatch.setattr(survey_queue, "BUNDLE_FILES", 3)
    again, few = surveyed(*once, *once[:3], once[0])
    assert list(few) == list(texts)
    assert [row["uris"] for row in few.values()] == [3, 2, 2, 1, 1, 1, 1]
    assert few == rows
    assert (again.counts.files, again.counts.distinct, again.counts.recognised) == (11, 7, 11)


def test_two_guards_find_what_one_finds_in_the_same_order(surveyed, monkeypatch):
    many = [response(f"{A}{number}.html", HTML + b"<p>%d" % number, "text/html") for number in range(60)]
    _, rows = surveyed(*many)
    monkeypatch.setattr(survey, "SMALL_BYTES", 0)
    monkeypatch.setattr(survey_queue, "BUNDLE_FILES", 5)
    result, again = surveyed(*many, workers=2)
    assert again == rows and list(again) == [f"{A}{number}.html" for number in range(60)]
    assert result.counts.recognised == 60


def test_when_reading_fails_nothing_goes_on(surveyed, monkeypatch, tmp_path):
    def broken(stream, name, on_finding):
        for number, each in enumerate(iter_records(stream, name, on_finding=on_finding)):
            if number == 50:
                raise OSError(5, "the disk is gone")
            yield each

    iter_records = survey.iter_records
    monkeypatch.setattr(survey, "iter_records", broken)
    monkeypatch.setattr(survey, "SMALL_BYTES", 0)
    with pytest.raises(OSError, match="the disk is gone"):
        surveyed(
            *(response(f"{A}{number}.html", HTML + b"<p>%d" % number, "text/html") for number in range(60)),
            workers=2,
        )
    assert [each.name for each in tmp_path.iterdir()] == ["x.warc.gz"]
    assert not [each for each in threading.enumerate() if each.name == "survey"]


@pytest.mark.parametrize(
    ("coding", "pack"),
    [
        ("gzip", gzip.compress),
        ("x-gzip", gzip.compress),
        ("deflate", zlib.compress),
        ("br", brotli.compress),
        ("gzip", lambda data: data),
        ("identity", lambda data: data),
    ],
)
def test_content_coding_is_undone(surveyed, coding, pack):
    packed = pack(HTML)
    _, rows = surveyed(response(A, packed, "text/html", f"Content-Encoding: {coding}"))
    assert (rows[A]["puid"], rows[A]["size_bytes"], rows[A]["validity"]) == ("fmt/471", len(HTML), "valid")
    assert rows[A]["digest"] == str(digest.sha1(packed))


def test_chunks_are_taken_away(surveyed):
    chunked = b"".join(b"%x\r\n%s\r\n" % (len(part), part) for part in (HTML[:50], HTML[50:])) + b"0\r\n\r\n"
    _, rows = surveyed(response(A, chunked, "text/html", "Transfer-Encoding: chunked"))
    assert (rows[A]["puid"], rows[A]["digest"]) == ("fmt/471", str(digest.sha1(HTML)))


def test_large_payloads_go_through_files(surveyed):
    limits = SurveyLimits(memory_bytes=1000)
    noise = image("PNG", size=(400, 400))
    _, rows = surveyed(
        response(f"{A}n.png", noise, "image/png"),
        response(A, gzip.compress(HTML * 40), "text/html", "Content-Encoding: gzip"),
        limits=limits,
    )
    assert (rows[f"{A}n.png"]["puid"], rows[f"{A}n.png"]["validity"], rows[f"{A}n.png"]["size_bytes"]) == (
        "fmt/11",
        "valid",
        len(noise),
    )
    assert rows[A]["size_bytes"] == len(HTML) * 40


def test_a_bomb_costs_no_more_than_the_limit(surveyed):
    limits = SurveyLimits(memory_bytes=1000, content_bytes=100_000)
    result, rows = surveyed(
        response(A, gzip.compress(b"x" * 50_000_000), "text/plain", "Content-Encoding: gzip"), limits=limits
    )
    assert rows[A]["size_bytes"] == 100_000
    assert [each.code for each in result.findings] == ["formats.content-cut"]


def test_findings_are_kept_with_their_rows(surveyed):
    result, rows = surveyed(
        response(f"{A}x.png", PNG[:-30], "image/png"),
        response(f"{A}y.xml", b"<?xml version='1.0'?><a>", "text/xml"),
    )
    assert rows[f"{A}x.png"]["validity"] == "not valid"
    assert [each["code"] for each in rows[f"{A}x.png"]["findings"]] == ["formats.image-cut-off"]
    assert result.counts.findings == {"formats.image-cut-off": 1, "formats.xml-not-well-formed": 1}
    assert {each.subject for each in result.findings} == {f"{A}x.png", f"{A}y.xml"}


def test_a_digest_that_does_not_match(surveyed):
    result, _ = surveyed(
        response(A, HTML, "text/html", **{"WARC-Payload-Digest": str(digest.sha1(b"other"))})
    )
    assert [(each.code, each.place) for each in result.findings] == [
        ("formats.digest-differs", "x.warc.gz byte 0")
    ]
    result, _ = surveyed(response(A, HTML, "text/html", **{"WARC-Payload-Digest": str(digest.sha1(HTML))}))
    assert result.findings == ()


def test_damage_is_told_and_passed(surveyed):
    torn = bytearray(response(f"{A}torn", b"x" * 500, "text/plain"))
    torn[len(torn) // 2] ^= 255
    result, rows = surveyed(
        response(A, HTML, "text/html"), bytes(torn), response(f"{A}a.png", PNG, "image/png")
    )
    assert list(rows) == [A, f"{A}a.png"]
    assert len(result.findings) == 1


def test_what_is_no_container(tmp_path):
    path = tmp_path / "x"
    path.write_bytes(b"no container at all")
    with pytest.raises(InputError):
        survey.of_container(path, "x", rows=tmp_path / "rows.gz")
    assert not (tmp_path / "rows.gz").exists()


@pytest.fixture
def database(tmp_path):
    opened = Database.in_file(tmp_path / "x.db")
    metadata.create_all(opened.engine)
    yield opened
    opened.close()


def test_into_the_database_and_back(tmp_path, database):
    files = good_files()
    path = tmp_path / "x.warc.gz"
    records = [response(f"{A}{name}", data) for name, (data, _, _) in files.items()]
    path.write_bytes(
        b"".join(
            [
                *records,
                response(f"{A}unknown", bytes(range(256))),
                response(f"{A}again.png", files["a.png"][0]),
            ]
        )
    )
    task = pickle.loads(
        pickle.dumps(
            SurveyTask(
                path=path,
                name="x.warc.gz",
                rows=tmp_path / "rows.gz",
                already=results.KnownResults(database.url),
            )
        )
    )
    first = survey.run(task)
    harvest = HarvestId("h1")
    for _ in range(2):  # repeatable
        with database.transaction() as connection:
            results.record(connection, harvest, first, at=WHEN)
    with database.reading() as connection:
        assert results.surveyed(connection, harvest) == {"x.warc.gz"}
        table = report.of_harvest(connection, harvest)
        assert (table.files, table.checked, table.distinct) == (
            len(files) + 2,
            len(files) + 2,
            len(files) + 1,
        )
        assert (table.recognised, table.uncertain, table.not_recognised) == (len(files) + 1, 0, 1)
        assert table.checked_share == 1
        assert table.share(FormatVerdict.NOT_RECOGNISED) == 1 / (len(files) + 2)
        assert table.files_per_s > 0
        shares = {(each.puid, each.mime): each for each in report.shares(connection, [harvest])}
        png = shares[("fmt/11", "image/png")]
        assert png.uris == 3
        assert png.size_bytes == 2 * len(files["a.png"][0]) + len(files["palette.png"][0])
        assert sum(each.uri_share for each in shares.values()) == pytest.approx(1)
        assert sum(each.byte_share for each in shares.values()) == pytest.approx(1)
        assert report.shares(connection) == report.shares(connection, [harvest])
        assert report.shares(connection, [HarvestId("other")]) == []
        assert report.of_harvest(connection, HarvestId("other")).checked_share == 0
        told = results.facts_of(connection, harvest)
        png = str(digest.sha1(files["a.png"][0]))
        assert results.puids(connection, [png]) == {png: "fmt/11"}
    assert json.loads(json.dumps(told))[0]["container"] == "x.warc.gz"
    empty = Database.in_file(tmp_path / "empty.db")
    metadata.create_all(empty.engine)
    with empty.transaction() as connection:
        results.restore(connection, harvest, survey.read_rows(first.rows), told, at=WHEN)
    with empty.reading() as connection, database.reading() as before:
        assert report.of_harvest(connection, harvest) == report.of_harvest(before, harvest) == table
        assert report.shares(connection) == report.shares(before)
        assert results.facts_of(connection, harvest) == told
    empty.close()


def test_known_payloads_are_not_looked_at_again(tmp_path, database):
    path = tmp_path / "x.warc.gz"
    path.write_bytes(response(f"{A}a.xml", b"<a>", "text/xml"))
    known = results.KnownResults(database.url)
    first = survey.of_container(path, "x.warc.gz", rows=tmp_path / "rows.gz", already=known)
    with database.transaction() as connection:
        results.record(connection, HarvestId("h1"), first, at=WHEN)
    (row,) = survey.read_rows(first.rows)
    path.write_bytes(response(f"{A}elsewhere", b"<a>", "text/plain"))
    second = survey.of_container(path, "y.warc.gz", rows=tmp_path / "rows2.gz", already=known)
    (again,) = survey.read_rows(second.rows)
    assert again == row | {"container": "y.warc.gz"}
    assert second.counts.findings == first.counts.findings


def test_known_payloads_among_new_ones_keep_their_place(tmp_path, database):
    path, known = tmp_path / "x.warc.gz", results.KnownResults(database.url)
    bodies = [f"<a><!-- {number} --></a>".encode() for number in range(9)]
    path.write_bytes(
        b"".join(response(f"{A}{number}", bodies[number], "text/xml") for number in (1, 2, 4, 7))
    )
    first = survey.of_container(path, "x.warc.gz", rows=tmp_path / "rows.gz", already=known)
    with database.transaction() as connection:
        results.record(connection, HarvestId("h1"), first, at=WHEN)
    path.write_bytes(
        b"".join(response(f"{A}new/{number}", body, "text/xml") for number, body in enumerate(bodies))
    )
    second = survey.of_container(path, "y.warc.gz", rows=tmp_path / "rows2.gz", already=known)
    rows = list(survey.read_rows(second.rows))
    assert [row["digest"] for row in rows] == [str(digest.sha1(body)) for body in bodies]
    # The row of an earlier survey has the address under which the payload was examined.
    assert [row["url"] for row in rows] == [
        f"{A}{number}" if number in (1, 2, 4, 7) else f"{A}new/{number}" for number in range(9)
    ]
    assert {row["puid"] for row in rows} == {"fmt/101"}
    assert {row["container"] for row in rows} == {"y.warc.gz"}
