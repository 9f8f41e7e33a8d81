"""Format identification: single files, containers, newer signatures, packages identified again and rebuilt,
registry and watch list.
"""

import gzip
import json
import os
import shutil
import uuid
import zlib
from importlib.metadata import files
from pathlib import Path

import pytest
from typer.testing import CliRunner

from databases import copy_home, save_database
from webdepot.archive import Archive
from webdepot.cli.main import build_app
from webdepot.depot import copies, holdings, package, package_content
from webdepot.errors import InputError, NotFound
from webdepot.formats import registry, report, results
from webdepot.formats.registry import RegistryEntry, Risk, Software
from webdepot.model import HarvestState
from webdepot.provenance import iter_of
from webdepot.quality import finding_rows
from webdepot.services import pipeline
from webdepot.services.admin import setup
from webdepot.services.admin.doctor import doctor
from webdepot.services.depot import audit, deposit, examination, storage_places, withdrawal
from webdepot.services.harvest import harvests
from webdepot.services.quality import format_watch, harvest_check, identification

FIELDS = [
    "path",
    "size",
    "puid",
    "format",
    "version",
    "mime",
    "basis",
    "verdict",
    "warning",
    "validity",
    "findings",
    "properties",
]
HTML = b'<!DOCTYPE html><html lang="en"><head><title>A page</title></head><body><p>Words</p></body></html>'
FLASH = b"CWS\x06" + (200).to_bytes(4, "little") + zlib.compress(bytes(200))
FILES = {
    "a.html": HTML,
    "b.json": b'{"a": 1,}',
    "c.gif": b"GIF89a" + bytes(7) + b"\x3b",
    "d.txt": b"plain words",
}


def warc(path: Path, payloads: dict[str, tuple[str, bytes]]) -> Path:
    with path.open("wb") as out:
        for url, (mime, body) in payloads.items():
            block = f"HTTP/1.1 200 OK\r\nContent-Type: {mime}\r\n\r\n".encode() + body
            head = f"WARC/1.1\r\nWARC-Type: response\r\nWARC-Record-ID: <{uuid.uuid4().urn}>\r\n"
            head += "WARC-Date: 2024-05-17T12:30:00Z\r\n"
            head += f"WARC-Target-URI: {url}\r\nContent-Type: application/http; msgtype=response\r\n"
            head += f"Content-Length: {len(block)}\r\n\r\n"
            out.write(gzip.compress(head.encode() + block + b"\r\n\r\n"))
    return path


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "files" / "deeper").mkdir(parents=True)
    for name, data in FILES.items():
        (tmp_path / "files" / ("deeper" if name == "d.txt" else "") / name).write_bytes(data)
    os.mkfifo(tmp_path / "files" / "pipe")
    (tmp_path / "files" / "link").symlink_to("/etc")
    return tmp_path / "files"


@pytest.fixture
def home(kept, tmp_path):
    """A copy of it for each test."""
    place, harvest = kept
    copy_home(place, tmp_path / "home")
    return tmp_path / "home", harvest


@pytest.fixture(scope="module")
def kept(tmp_path_factory):
    """A kept import with a page, a truncated image, a Flash film and a file with a wrong media type."""
    base = tmp_path_factory.mktemp("formats")
    container = warc(
        base / "x.warc.gz",
        {
            "http://a.example/": ("text/html", HTML),
            "http://a.example/c.gif": ("image/gif", FILES["c.gif"]),
            "http://a.example/lie.jpg": ("image/jpeg", HTML + b"<!-- -->"),
            "http://a.example/film.swf": ("application/x-shockwave-flash", FLASH),
            "http://a.example/what": ("", bytes(range(1, 255))),
        },
    )
    setup.create(base / "home")
    with Archive.open(base / "home") as archive:
        taken = pipeline.import_files(archive, [container], collection="films").taken
    return base / "home", taken.harvest.id


def run(*arguments: object, status: int = 0) -> list[dict]:
    done = CliRunner().invoke(build_app(), list(map(str, arguments)))
    assert done.exit_code == status, (done.output, done.exception)
    return [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]


def test_loose_files(folder, tmp_path):
    lines = run("--home", tmp_path / "none", "formats", "validate", folder, "--json", status=1)
    assert [list(line) for line in lines] == [FIELDS] * 4
    told = {Path(line["path"]).name: (line["puid"], line["verdict"], line["validity"]) for line in lines}
    assert told == {
        "a.html": ("fmt/471", "recognised", "valid"),
        "b.json": ("fmt/817", "uncertain", "not valid"),
        "c.gif": ("fmt/4", "recognised", "not valid"),
        "d.txt": ("x-fmt/111", "recognised", "valid"),
    }
    assert lines[1]["findings"][0]["place"] == "line 1, column 9"
    assert lines[0]["properties"]["words"] > 0
    lines = run("--home", tmp_path / "none", "formats", "identify", folder / "a.html", "--json")
    assert (lines[0]["validity"], lines[0]["findings"]) == ("not checked", [])


def test_what_is_not_there(tmp_path, folder):
    with pytest.raises(InputError, match="no file"):
        list(identification.examine_files([tmp_path / "nothing"], checked=True))
    with pytest.raises(InputError, match="neither"):
        list(identification.examine_files([folder / "pipe"], checked=True))


def test_a_container_of_nobody(tmp_path):
    path = warc(
        tmp_path / "y.warc.gz",
        {f"http://a.example/{name}": ("text/plain", data) for name, data in FILES.items()},
    )
    (line,) = run("--home", tmp_path / "none", "formats", "report", path, "--json")
    assert (line["files"], line["checked"], line["recognised"]["count"], line["mismatches"]) == (4, 4, 3, 2)
    assert sum(each["uri_share"] for each in line["formats"]) == pytest.approx(1, abs=0.01)
    assert line["files_per_s"] > 0


def other_signatures(path: Path) -> Path:
    """The second signature set of the library, as a file."""
    library = next(each.locate() for each in files("pygfried") or () if each.name.endswith(".so"))
    data = Path(library).read_bytes()
    at = -1
    while (at := data.find(b"sf\x00\xff", at + 1)) >= 0:
        unpacker = zlib.decompressobj(-15)
        try:
            unpacker.decompress(data[at + 6 :])
        except zlib.error:
            continue
        path.write_bytes(data[at : len(data) - len(unpacker.unused_data)])
        return path
    pytest.skip("this binding holds its signatures otherwise")


def test_newer_signatures_add_to_what_was_said(home, tmp_path):
    place, harvest = home
    with pytest.raises(InputError, match="is not a signature file"), Archive.open(place) as archive:
        identification.update_signatures(archive, tmp_path / "nothing.sig")
    (tmp_path / "bad.sig").write_bytes(b"no signatures at all")
    with Archive.open(place) as archive:
        with pytest.raises(InputError, match="cannot be loaded"):
            identification.update_signatures(archive, tmp_path / "bad.sig")
        found, is_new = identification.update_signatures(archive, other_signatures(tmp_path / "other.sig"))
        assert (is_new, archive.signatures()) == (True, archive.signatures_folder / found.file_name)
        assert identification.update_signatures(archive, tmp_path / "other.sig")[1] is False
        with archive.database.reading() as connection:
            before = results.facts_of(connection, harvest)
    (line,) = run("--home", place, "formats", "again", "--json")
    assert (line["harvest"], line["files"]) == (harvest, 5)
    assert run("--home", place, "formats", "again", "--json") == []
    with Archive.open(place) as archive, archive.database.reading() as connection:
        after = results.facts_of(connection, harvest)
        assert {each["engine"] for each in before} | {each["engine"] for each in after} == {
            before[0]["engine"],
            found.engine,
        }
        table, shares = report.of_harvest(connection, harvest), report.shares(connection, [harvest])
        assert (
            table.files == sum(each.uris for each in shares) == 5
        )  # counted once, although two engines identified it
        flash = next(share for share in shares if "flash" in share.mime)
        assert flash.uris == 1


def test_the_depot_gives_it_all_back(home):
    place, harvest = home
    with Archive.open(place) as archive:
        identification.update_signatures(archive, other_signatures(place.with_name("other.sig")))
        assert len(list(examination.identify_again(archive, [harvest]))) == 1
        examination.check_again(archive, harvests.get(archive, harvest))
        told = harvest_check.last_check(archive, harvest)
        watched = format_watch.watch_list(archive)
        shares = formats_of(archive, harvest)[1]
        with archive.database.reading() as connection:
            said = {row["engine"] for row in _identifications(connection)}
    elsewhere = place.with_name("elsewhere")
    setup.create(elsewhere)
    shutil.copytree(place / "depot", elsewhere / "depot", dirs_exist_ok=True)
    with Archive.open(elsewhere) as archive:
        deposit.adopt(archive)
        assert harvests.get(archive, harvest).state is HarvestState.KEPT
        again = harvest_check.last_check(archive, harvest)
        assert (again.verdict, again.counts) == (told.verdict, told.counts)
        assert formats_of(archive, harvest)[1] == shares
        assert [each.name for each in format_watch.watch_list(archive)] == [each.name for each in watched]
        with archive.database.reading() as connection:
            assert {row["engine"] for row in _identifications(connection)} == said
            assert len(said) == 2


def test_a_withdrawn_harvest_leaves_the_reports(home):
    place, harvest = home
    with Archive.open(place) as archive:
        assert format_watch.watch_list(archive) != []
        withdrawal.withdraw(archive, package_content.id_of(harvest), reason="Court order", approved_by="Piet")
        assert format_watch.watch_list(archive) == []
        assert formats_of(archive, harvest)[0].files == 0


@pytest.fixture
def copied(home, tmp_path):
    """The harvest with a copy of its package in a second place, and newer signatures."""
    place, harvest = home
    with Archive.open(place) as archive:
        storage_places.add_place(archive, "second", str(tmp_path / "second"))
        storage_places.fill(archive)
        identification.update_signatures(archive, other_signatures(tmp_path / "other.sig"))
    return place, harvest


def examine_again(archive, harvest, kind):
    if kind == "check":
        examination.check_again(archive, harvests.get(archive, harvest))
    else:
        assert [each.id for each, _ in examination.identify_again(archive, [])] == [harvest]


def assert_all_agree(place, harvest, version):
    """Row, depot and copies have this version, and the events of the package are in the database."""
    identifier = package_content.id_of(harvest)
    with Archive.open(place) as archive:
        assert {
            name: package.read(store, identifier).package.version for name, store in archive.stores().items()
        } == {
            "main": version,
            "second": version,
        }
        with archive.database.reading() as connection:
            facts = package.read(archive.store, identifier)
            assert holdings.find(connection, identifier) == facts.package
            assert holdings.inventory_sha256(connection, identifier) == facts.inventory.sha256
            known = copies.of_package(connection, identifier)
            assert {(each.place, each.version, each.state.value) for each in known} == {
                ("main", version, "whole"),
                ("second", version, "whole"),
            }
            logged = [each for each in package.iter_events(archive.store, facts) if each.subject == harvest]
            assert [(each.at, each.action) for each in iter_of(connection, "harvest", harvest)] == [
                (each.at, each.action) for each in logged
            ]
            assert finding_rows.find_verdict(connection, harvest) == facts.verdict
            surveys = sorted(results.facts_of(connection, harvest), key=str)
            assert surveys == sorted(facts.surveys, key=str)
        audited = audit.audit(archive, older_than_days=0)
        assert (audited.problems, audited.alarms, audited.filled.failed) == ([], [], {})
    assert [each.message for each in doctor.examine(place) if each.name == "depot"] == ["1 packages"]


@pytest.mark.parametrize("kind", ["check", "identify"])
def test_after_a_new_examination_database_depot_and_copies_agree(copied, kind):
    place, harvest = copied
    with Archive.open(place) as archive:
        examine_again(archive, harvest, kind)
    assert_all_agree(place, harvest, 2)


@pytest.mark.parametrize(
    ("kind", "repair", "version"),
    [("check", "doctor", 2), ("identify", "doctor", 2), ("check", "repeat", 3), ("identify", "repeat", 2)],
)
def test_an_examination_killed_before_its_rows_were_written_is_finished(
    copied, tmp_path, kind, repair, version
):
    place, harvest = copied
    shutil.copytree(tmp_path / "second", tmp_path / "second.before")
    restore_database = save_database(place, tmp_path)
    with Archive.open(place) as archive:
        examine_again(archive, harvest, kind)
        table = report_of(archive, harvest)
    # As after a kill between the depot and the database: the depot has the version, nothing else does.
    restore_database()
    shutil.rmtree(tmp_path / "second")
    (tmp_path / "second.before").rename(tmp_path / "second")
    (told,) = [each for each in doctor.examine(place) if each.name == "depot"]
    assert (told.state, told.remedy) == ("warning", "webdepot doctor --mend")
    if repair == "doctor":
        doctor.examine(place, repair=True)
    else:
        with Archive.open(place) as archive:
            examine_again(archive, harvest, kind)
    assert_all_agree(place, harvest, version)
    with Archive.open(place) as archive:
        assert report_of(archive, harvest) == table
        assert list(examination.identify_again(archive, [harvest])) == [] or kind == "check"


def formats_of(archive, harvest):
    """The table of a harvest, and the formats in it."""
    with archive.database.reading() as connection:
        return report.of_harvest(connection, harvest), report.shares(connection, [harvest])


def report_of(archive, harvest):
    table, shares = formats_of(archive, harvest)
    return table.files, table.recognised, shares


def _identifications(connection) -> list[dict[str, object]]:
    """All identifications of the first payload, by any engine."""
    from sqlalchemy import func, select

    from webdepot.formats.tables import identifications

    first = select(func.min(identifications.c.digest)).scalar_subquery()
    chosen = select(identifications).where(identifications.c.digest == first)
    return [dict(row) for row in connection.execute(chosen).mappings()]


def test_watch_list(home):
    place, _ = home
    with Archive.open(place) as archive:
        watched = {each.mime: each for each in format_watch.watch_list(archive)}
        flash = next(each for mime, each in watched.items() if "flash" in mime)
        assert (flash.flag.risk, flash.uris, flash.collections, flash.samples) == (
            Risk.AT_RISK,
            1,
            ["films"],
            ["http://a.example/film.swf"],
        )
        assert "plug-in" in flash.flag.reason
        assert "text/html" not in watched
        found = format_watch.collection(archive, "films")
        assert found.mismatches[0][:3] == ("image/jpeg", "text/html", 1)
        assert [url for url, _, _ in found.unknown] == ["http://a.example/what"]
        assert {each.year for each in found.years} == {found.years[0].year}
        assert format_watch.watch_list(archive, "films") == format_watch.watch_list(archive)
        other = format_watch.collection(archive, "other")
        assert (other.shares, other.mismatches, other.unknown, format_watch.watch_list(archive, "other")) == (
            [],
            [],
            [],
            [],
        )


def test_the_registry_is_edited_and_given_out(tmp_path):
    setup.create(tmp_path / "home")
    with Archive.open(tmp_path / "home") as archive:
        supplied = format_watch.load_registry(archive)
        assert registry.from_document(json.loads(json.dumps(registry.to_document(supplied)))) == supplied
        assert supplied.flag("fmt/471", "text/html").risk is Risk.NONE
        assert supplied.flag("fmt/9999", "x/y").risk is Risk.WATCH
        viewer = Software(id="x", name="X viewer", kind="viewer", versions="1", is_current=False)
        format_watch.change_software(archive, viewer, by="anna")
        entry = RegistryEntry(puid="x/y", name="X", risk=Risk.NONE, reason="", note="", software=("x",))
        format_watch.change_entry(archive, entry, by="anna")
        known = format_watch.load_registry(archive)
        assert known.flag("", "x/y").risk is Risk.AT_RISK  # no current software shows it
        assert set(known.entries) == {*supplied.entries, "x/y"}
        with pytest.raises(NotFound, match="nobody"):
            format_watch.change_entry(
                archive,
                RegistryEntry(puid="q", name="Q", risk=Risk.NONE, reason="", note="", software=("nobody",)),
                by="",
            )
        with pytest.raises(InputError):
            registry.from_document({"software": [], "formats": [{"puid": "x"}]})
