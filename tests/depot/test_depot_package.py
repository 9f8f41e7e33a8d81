"""A package is deposited, verified, and restores everything on an empty machine."""

import gzip
import hashlib
import io
import os
import re
import signal
import tracemalloc
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sqlalchemy import create_engine

import webdepot.harvest.tables
import webdepot.selection.tables  # noqa: F401 - packages refer to harvests, harvests to targets
from webdepot.database import metadata
from webdepot.depot import event_chain, fixity, holdings, package, package_content, rows
from webdepot.depot.ocfl import objects
from webdepot.depot.package_content import ContainerSource, PackageContent
from webdepot.depot.store.folder import FolderStore
from webdepot.errors import CorruptData, NotFound
from webdepot.model import (
    Answer,
    Capture,
    Finding,
    Harvest,
    HarvestId,
    HarvestKind,
    HarvestState,
    Location,
    Purpose,
    RecordKind,
    Severity,
    Target,
    TargetId,
    Verdict,
)
from webdepot.provenance import Event, Outcome
from webdepot.url import Url

WHEN = datetime(2024, 5, 17, 12, 30, 1, 123456, tzinfo=UTC)
SEEDS = (Url("https://www.example.org/"), Url("https://example.org/ü"))


def capture(number: int, **more) -> Capture:
    facts = {
        "key": f"org,example)/{number:05d}",
        "timestamp": "20240517123001",
        "url": f"https://www.example.org/{number}",
        "kind": RecordKind.RESPONSE,
        "status": 200,
        "mime": "text/html",
        "digest": "sha1:AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA",
        "location": Location(container="a.warc.gz", offset=number * 100, length=99),
    }
    return Capture(**facts | more)


CAPTURES = [
    capture(3),
    capture(
        1, kind=RecordKind.REVISIT, refers_to_url="https://x.example/", refers_to_timestamp="20200101000000"
    ),
    capture(2, status=301, redirect="https://www.example.org/ü?a=b c"),
]
FINDINGS = [
    Finding(
        code="quality.missing",
        severity=Severity.WARNING,
        subject="https://x/",
        message="“gone”",
        place="p",
        action="patch",
    )
] * 2
EVENTS = (
    Event(at=WHEN, agent="anna", action="harvested", subject_kind="harvest", subject="h1", detail={"n": 1}),
    Event(
        at=WHEN,
        agent="anna",
        action="checked",
        subject_kind="harvest",
        subject="h1",
        outcome=Outcome.WARNING,
        message="ü",
    ),
)


@pytest.fixture
def content(tmp_path) -> PackageContent:
    folder = tmp_path / "work"
    folder.mkdir()
    rows.write_captures(folder / "captures", CAPTURES)
    rows.write_findings(folder / "findings", FINDINGS)
    rows.write_rows(folder / "formats0", [{"digest": "sha256:1", "puid": "fmt/100"}])
    rows.write_rows(folder / "formats1", [{"digest": "sha256:2", "puid": "fmt/101"}])
    (folder / "crawl.log").write_text("one line\n")
    harvest = Harvest(
        id=HarvestId("20240517123000-example-abc123"),
        target=TargetId(7),
        kind=HarvestKind.HARVEST,
        state=HarvestState.FINISHED,
        seeds=SEEDS,
        collection="news",
        settings={"delay_s": 0.5, "reject": [".avi$"]},
        started_at=WHEN,
        reason="the queue is empty",
        counts={"done": 3},
    )
    target = Target(
        id=TargetId(7),
        name="Example",
        seeds=SEEDS,
        collection="news",
        purpose=Purpose.EVIDENCE,
        created_at=WHEN,
    )
    return PackageContent(
        id=package_content.id_of(harvest.id),
        urn="urn:nbn:de:example-1",
        title="Example, 17 May 2024",
        target=target,
        harvest=harvest,
        containers=(container(folder, "a.warc.gz", 2_000_000), container(folder, "b.warc.gz", 10)),
        captures=folder / "captures",
        formats=(folder / "formats0", folder / "formats1"),
        findings=folder / "findings",
        logs=(folder / "crawl.log",),
        verdict=Verdict(answer=Answer.ACCEPT, rule="quality", reason="whole"),
        events=EVENTS,
        descriptions={"dublin_core.xml": b"<dc/>"},
        agent="webdepot 0.1",
        stored_at=WHEN,
        decisions=({"question": "selection", "answer": "accept"},),
        tools={"identification": "siegfried 1"},
        surveys=({"container": "a.warc.gz", "duration_s": 0.5},),
    )


def container(folder: Path, name: str, size: int) -> ContainerSource:
    data = os.urandom(size)
    (folder / name).write_bytes(data)
    return ContainerSource(
        name=name, path=folder / name, size_bytes=size, sha256=hashlib.sha256(data).hexdigest(), records=3
    )


@pytest.fixture
def store(tmp_path):
    return FolderStore(tmp_path / "depot")


def test_everything_comes_back(store, content):
    built = package.build(store, content)
    facts = package.read(store, content.id)
    assert facts == built
    assert (facts.target, facts.harvest, facts.verdict) == (content.target, content.harvest, content.verdict)
    assert (facts.finding_counts, facts.decisions, facts.tools) == (
        {"quality.missing": 2},
        content.decisions,
        content.tools,
    )
    assert facts.surveys == content.surveys
    assert (facts.package.urn, facts.package.title, facts.package.version) == (content.urn, content.title, 1)
    assert facts.package.stored_at == WHEN
    assert [store.local_path(each.place).read_bytes() for each in facts.containers] == [
        each.path.read_bytes() for each in content.containers
    ]
    assert [(each.name, each.sha256, each.records) for each in facts.containers] == [
        (e.name, e.sha256, e.records) for e in content.containers
    ]
    assert list(package.iter_captures(store, facts)) == sorted(CAPTURES, key=lambda each: each.key)
    assert list(package.iter_findings(store, facts)) == FINDINGS
    assert [row["puid"] for row in package.iter_formats(store, facts)] == ["fmt/100", "fmt/101"]
    events = list(package.iter_events(store, facts))
    assert events[:2] == list(EVENTS)
    assert (events[2].action, events[2].subject) == ("kept", content.id)
    assert facts.package.size_bytes == sum(path.stat().st_size for path in store.root.rglob("content/*/*"))
    assert list(package.iter_packages(store)) == [content.id]
    assert list(fixity.verify_package(store, content.id)) == []


def test_keeping_again_changes_nothing(store, content):
    first = package.build(store, content)
    again = package.build(store, replace(content, stored_at=datetime(2030, 1, 1, tzinfo=UTC)))
    assert again == first


def test_a_harvest_that_grew_becomes_a_second_version(store, content, tmp_path):
    package.build(store, replace(content, containers=content.containers[:1]))
    facts = package.build(store, content)
    assert facts.package.version == 2
    assert [each.name for each in facts.containers] == ["a.warc.gz", "b.warc.gz"]
    assert facts.containers[0].place.split("/")[-4] == "v1"
    assert list(fixity.verify_package(store, content.id)) == []


def test_a_container_damaged_before_keeping_is_refused(store, content):
    content.containers[0].path.write_bytes(b"other")
    with pytest.raises(CorruptData, match=r"a\.warc\.gz is damaged"):
        package.build(store, content)
    assert list(package.iter_packages(store)) == []
    with pytest.raises(NotFound):
        package.read(store, content.id)


def test_killed_while_keeping_then_repeated(store, content):
    for at in range(3, 12):
        child = os.fork()
        if child == 0:
            deadly = FolderStore(store.root)
            left = [at]

            def put(key, source, *, overwrite=False, left=left, real=deadly.put):
                left[0] -= 1
                if left[0] < 0:
                    os.kill(os.getpid(), signal.SIGKILL)
                return real(key, source, overwrite=overwrite)

            deadly.put = put
            package.build(deadly, content)
            os._exit(0)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == -signal.SIGKILL
    facts = package.build(store, content)
    assert facts.package.version == 1
    assert list(fixity.verify_package(store, content.id)) == []


@pytest.mark.parametrize(
    "logical", ["warc/a.warc.gz", package_content.EVENTS, package_content.FACTS, package_content.CAPTURES]
)
def test_damage_is_found(store, content, logical):
    facts = package.build(store, content)
    path = store.local_path(objects.content_key(facts.inventory, logical))
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 4
    path.write_bytes(bytes(data))
    assert [finding.code for finding in fixity.verify_package(store, content.id)] == ["depot.content-damaged"]


def test_an_object_that_is_no_package_is_named(store):
    objects.put_version(store, "urn:x", {"a": b"1"}, message="", user="", created=WHEN)
    assert [finding.code for finding in fixity.verify_package(store, "urn:x")] == ["depot.package-incomplete"]


def test_rows_of_packages_in_the_database(store, content, tmp_path):
    facts = package.build(store, content)
    engine = create_engine(f"sqlite:///{tmp_path}/x.db")
    metadata.create_all(engine)
    with engine.begin() as connection:
        holdings.record(connection, facts.package, facts.inventory.sha256)
        holdings.record(connection, facts.package, facts.inventory.sha256)
        assert holdings.get(connection, content.id) == facts.package
        assert holdings.get(connection, content.urn) == facts.package
        assert holdings.find_of_harvest(connection, content.harvest.id) == facts.package
        assert holdings.find_of_harvest(connection, HarvestId("none")) is None
        assert holdings.latest(connection, 5) == [facts.package]
        assert holdings.totals(connection) == (1, facts.package.size_bytes)
        with pytest.raises(NotFound):
            holdings.get(connection, "urn:none")
    engine.dispose()


def test_each_line_vouches_for_the_one_before():
    log = event_chain.extend(b"", EVENTS)
    assert event_chain.extend(log, EVENTS) == log
    longer = event_chain.extend(log, [replace(EVENTS[0], action="audited")])
    assert longer.startswith(log)
    lines = longer.splitlines(keepends=True)
    assert list(event_chain.check(io.BytesIO(longer), subject="x")) == []
    for changed in (
        lines[1:],
        [lines[0], lines[2]],
        [lines[1], lines[0], lines[2]],
        [lines[0].replace(b"anna", b"otto"), *lines[1:]],
        [b"x\n"],
    ):
        assert list(event_chain.check(io.BytesIO(b"".join(changed)), subject="x"))


@given(
    st.lists(
        st.builds(
            Event,
            at=st.datetimes(timezones=st.just(UTC)),
            agent=st.text(),
            action=st.text(),
            subject_kind=st.text(),
            subject=st.text(),
            message=st.text(),
            outcome=st.sampled_from(Outcome),
            detail=st.dictionaries(st.text(), st.integers() | st.text()),
        ),
        unique_by=repr,
    )
)
@settings(max_examples=50, deadline=None)
def test_any_events_come_back(events):
    log = event_chain.extend(b"", events)
    assert list(event_chain.read(io.BytesIO(log), where="x")) == events
    assert list(event_chain.check(io.BytesIO(log), subject="x")) == []


text = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)


@given(
    st.lists(
        st.builds(
            capture,
            st.integers(0, 99),
            # Keys are printable ASCII by their rules, and `-` stands for nothing in this format.
            key=text.map(lambda key: re.sub(r"[^!-~]", "_", key)),
            url=text.filter(lambda url: url not in ("", "-")),
            mime=text.filter(lambda mime: mime not in ("", "-", "warc/revisit")),
            redirect=text.filter(lambda url: url != "-"),
            kind=st.sampled_from(RecordKind),
        ),
        max_size=30,
    )
)
@settings(max_examples=50, deadline=None)
def test_any_captures_come_back_sorted(tmp_path_factory, captures):
    path = tmp_path_factory.mktemp("rows") / "x.gz"
    assert rows.write_captures(path, captures, run_bytes=1500) == len(captures)
    with path.open("rb") as stream:
        read = list(rows.read_captures(stream, where="x"))
    with path.open("rb") as stream:
        lines = list(rows._lines(stream, "x"))
    assert lines == sorted(lines)
    assert sorted(map(repr, read)) == sorted(map(repr, captures))


def test_sorting_captures_takes_bounded_memory_and_few_files(tmp_path):
    """Long addresses, 24 MB of lines in many runs: more than are merged at once."""
    captures = (
        capture(number, key=f"k{number * 7919 % 6000}", url=f"http://a.example/{number}?{'x' * 4000}")
        for number in range(6000)
    )
    files = len(list(Path("/proc/self/fd").iterdir()))
    most_files = 0

    def watched():
        nonlocal most_files
        for each in captures:
            most_files = max(most_files, len(list(Path("/proc/self/fd").iterdir())))
            yield each

    tracemalloc.start()
    try:
        assert rows.write_captures(tmp_path / "x.gz", watched(), run_bytes=100_000) == 6000
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    with (tmp_path / "x.gz").open("rb") as stream:
        lines = list(rows._lines(stream, "x"))
    assert len(lines) == 6000 and lines == sorted(lines)
    assert most_files - files < 2 * rows.MOST_RUNS
    assert peak < 8_000_000  # lines alone take 24 MB; each of up to 128 files has a buffer


@given(st.binary(max_size=200))
@settings(max_examples=100, deadline=None)
def test_damaged_rows_end_in_one_error(data):
    for bad in (data, gzip.compress(data + b"\n"), gzip.compress(b"{}")[:-3]):
        for read in (rows.read_captures, rows.read_findings):
            try:
                assert list(read(io.BytesIO(bad), where="x")) == []
            except CorruptData as error:
                assert error.where == "x"
