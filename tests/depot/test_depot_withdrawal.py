"""Withdrawal with its tombstone, holds, migration: what may change and what must stay."""

import io

import pytest
from depot_samples import write_warc
from PIL import Image
from warcio.archiveiterator import ArchiveIterator

from portal_client import ask
from webdepot.access.policy import ANYONE
from webdepot.archive import Archive
from webdepot.depot import copies, fixity, holdings, migration_tools, package, tombstone
from webdepot.depot.holds import HoldKind, HoldScope
from webdepot.depot.ocfl import layout
from webdepot.depot.store.folder import FolderStore
from webdepot.errors import ConfigError, InputError, NotFound, NotPermitted
from webdepot.provenance import iter_of
from webdepot.services import pipeline
from webdepot.services.access import lookup, search
from webdepot.services.access.replay import replay
from webdepot.services.admin import rebuild
from webdepot.services.depot import format_migration, storage_places, withdrawal
from webdepot.services.intake import submissions
from webdepot.web.app import build_portal, build_replay

XBM = (
    b"#define x_width 8\n#define x_height 8\n"
    b"static char x_bits[] = {0x01, 0x02, 0x04, 0x08, 0x10, 0x20, 0x40, 0x80};\n"
)
PAGES = {"https://x.example/": b"<!doctype html><title>X</title><p>The windmill <img src=a.xbm>."}


@pytest.fixture
def kept(archive, tmp_path):
    """A real package with searchable text, in two places."""
    storage_places.add_place(archive, "second", str(tmp_path / "second"))
    write_warc(tmp_path / "x.warc.gz", PAGES)
    report = pipeline.import_files(archive, [tmp_path / "x.warc.gz"], collection="news")
    assert report.taken is not None
    assert report.taken.package is not None
    return report.taken.package


def test_a_withdrawn_package_is_gone_everywhere_but_for_its_tombstone(archive, kept, tmp_path):
    digests = set(package.read(archive.store, kept.id).inventory.files().values())
    assert search.search(archive, "windmill", reader=ANYONE).pages == 1
    done = withdrawal.withdraw(archive, kept.urn, reason="Court order 12/34", approved_by="Piet")
    assert done.waiting == ()
    assert set(done.stone.files.values()) == digests
    for root in (archive.home / "depot", tmp_path / "second"):
        assert not list((root / layout.folder_of(kept.id)).rglob("*"))
        assert b"windmill" not in b"".join(path.read_bytes() for path in root.rglob("*.warc.gz"))
        stone = tombstone.read(FolderStore(root), kept.id)
        assert (stone.reason, stone.approved_by, stone.agent) == ("Court order 12/34", "Piet", "test")
    assert search.search(archive, "windmill", reader=ANYONE).pages == 0
    assert archive.captures.total() == 0
    with pytest.raises(NotFound):
        replay.open_capture(archive, "https://x.example/", "2024", collection="all", reader=ANYONE)
    with archive.database.reading() as connection:
        assert holdings.totals(connection) == (0, 0)
        assert copies.of_package(connection, kept.id) == []
        assert [event.action for event in iter_of(connection, "package", kept.id)][-2:] == [
            "withdrawn",
            "removed",
        ]
    again = withdrawal.withdraw(archive, kept.id, reason="x", approved_by="y")
    assert again.stone == done.stone


def test_a_rebuild_and_a_partner_do_not_bring_it_back(archive, kept, tmp_path):
    from webdepot.services.depot import export

    export.export(archive, kept.id, export.PackageForm.BAGIT, tmp_path / "bag")
    withdrawal.withdraw(archive, kept.id, reason="Court order", approved_by="Piet")
    refused = submissions.receive(archive, tmp_path / "bag", collection="x")
    assert "was withdrawn" in refused.receipt.reasons[0]
    done = rebuild.rebuild(tmp_path / "new", str(tmp_path / "second"))
    assert (done.packages, done.tombstones) == (0, 1)
    with Archive.open(tmp_path / "new") as new, new.database.reading() as connection:
        assert tombstone.find(connection, kept.id) is not None


def test_two_people_are_needed(archive, kept):
    for approved_by in ("", "test", "TEST"):
        with pytest.raises(NotPermitted):
            withdrawal.withdraw(archive, kept.id, reason="x", approved_by=approved_by)
    with pytest.raises(InputError):
        withdrawal.withdraw(archive, kept.id, reason=" ", approved_by="Piet")
    assert not list(fixity.verify_package(archive.store, kept.id))


def test_a_place_that_is_away_is_cleared_by_the_next_audit(archive, kept, tmp_path):
    (tmp_path / "second").rename(tmp_path / "unmounted")
    assert withdrawal.withdraw(archive, kept.id, reason="x", approved_by="Piet").waiting == ("second",)
    (tmp_path / "unmounted").rename(tmp_path / "second")
    assert withdrawal.finish_waiting(archive) == 0
    assert not list((tmp_path / "second" / layout.folder_of(kept.id)).rglob("*"))
    storage_places.fill(archive)
    assert tombstone.read(FolderStore(tmp_path / "second"), kept.id).reason == "x"


@pytest.mark.parametrize("scope", list(HoldScope))
def test_a_hold_forbids_it_until_it_is_released(archive, kept, scope):
    subject = kept.id if scope is HoldScope.PACKAGE else "news"
    hold = withdrawal.place_hold(archive, HoldKind.LEGAL, scope, subject, reason="Case 12")
    with pytest.raises(NotPermitted, match="Case 12"):
        withdrawal.withdraw(archive, kept.id, reason="x", approved_by="Piet")
    withdrawal.release_hold(archive, hold.id)
    with pytest.raises(NotFound):
        withdrawal.release_hold(archive, hold.id)
    assert withdrawal.withdraw(archive, kept.id, reason="x", approved_by="Piet").waiting == ()


def test_retention_and_dated_holds_end_by_themselves(archive, keep_site, clock):
    kept = keep_site(1, when=clock())
    withdrawal.place_hold(archive, HoldKind.RETENTION, HoldScope.COLLECTION, "news", reason="Law", years=10)
    clock.pass_days(9 * 365)
    with pytest.raises(NotPermitted, match="Law"):
        withdrawal.withdraw(archive, kept.id, reason="x", approved_by="Piet")
    clock.pass_days(2 * 365)
    with archive.database.reading() as connection:
        from webdepot.depot import holds

        assert (
            holds.active(
                connection, package=kept.id, collection="news", stored_at=kept.stored_at, now=clock()
            )
            == []
        )
    with pytest.raises(InputError):
        withdrawal.place_hold(archive, HoldKind.RETENTION, HoldScope.COLLECTION, "news", reason="Law")


def test_an_old_picture_is_kept_as_png_too(archive, tmp_path):
    storage_places.add_place(archive, "second", str(tmp_path / "second"))
    write_warc(
        tmp_path / "x.warc.gz",
        {"https://x.example/a.xbm": XBM, "https://x.example/b.xbm": b"#define broken"},
        mime="image/x-xbitmap",
    )
    report = pipeline.import_files(archive, [tmp_path / "x.warc.gz"], collection="news")
    assert report.taken is not None
    kept = report.taken.package
    assert kept is not None
    done = format_migration.migrate(archive, kept.id, "xbitmap-to-png")
    assert (done.converted, done.package.version) == (1, 2)
    assert list(done.failed) == ["https://x.example/b.xbm"]
    for store in (archive.store, FolderStore(tmp_path / "second")):
        assert not list(fixity.verify_package(store, kept.id))
        facts = package.read(store, kept.id)
        assert len(facts.containers) == 2
    (container,) = [each for each in facts.containers if "migration" in each.name]
    with archive.containers.open(container.name) as stream:
        records = [
            (
                record.rec_type,
                record.rec_headers["WARC-Target-URI"],
                record.rec_headers["WARC-Refers-To-Target-URI"],
                record.content_stream().read(),
            )
            for record in ArchiveIterator(stream)
        ]
    assert [record[:3] for record in records if record[0] == "conversion"] == [
        ("conversion", "https://x.example/a.xbm", None)  # the standard has no such field there
    ]
    with Image.open(io.BytesIO(records[-1][3])) as picture:
        assert (picture.format, picture.size) == ("PNG", (8, 8))
        black = {(x, y) for x in range(8) for y in range(8) if picture.getpixel((x, y)) == 0}
        assert black == {(number, number) for number in range(8)}, "a diagonal"
    capture = lookup.find_closest(archive, "https://x.example/a.xbm", "2024", collection="all", reader=ANYONE)
    assert capture.mime == "image/x-xbitmap", "a conversion is no other version of the address"
    assert archive.captures.count(capture.key) == 1
    opened = replay.open_conversion(
        archive, "https://x.example/a.xbm", capture.timestamp, collection="all", reader=ANYONE
    )
    assert opened.payload.read().startswith(b"\x89PNG")
    opened.close()
    answer = ask(
        build_replay(archive, portal_url="http://p.test", replay_url="http://r.test"),
        f"/-/migrated/all/{capture.timestamp}/{capture.url}",
    )
    assert (answer.status_code, answer.headers["content-type"]) == (200, "image/png")
    assert answer.content.startswith(b"\x89PNG")
    banner = ask(
        build_portal(archive, portal_url="http://p.test", replay_url="http://r.test"),
        f"/all/{capture.timestamp}/{capture.url}",
    ).text
    assert f"http://r.test/-/migrated/all/{capture.timestamp}/{capture.url}" in banner
    with archive.database.reading() as connection:
        assert [event.action for event in iter_of(connection, "package", kept.id)].count("migrated") == 1
    again = format_migration.migrate(archive, kept.id, "xbitmap-to-png")
    assert (again.converted, again.known, again.package.version) == (0, 1, 2)
    rebuild.rebuild(tmp_path / "new", str(tmp_path / "second"))
    with Archive.open(tmp_path / "new") as new:
        opened = replay.open_conversion(
            new, "https://x.example/a.xbm", capture.timestamp, collection="all", reader=ANYONE
        )
        assert opened.payload.read().startswith(b"\x89PNG")
        opened.close()


def test_tools_of_the_configuration_are_checked(tmp_path):
    made = migration_tools.tools({"upper": "text/x-old text/plain tr-a {input} {output}"})
    assert made["upper"].command == ("tr-a", "{input}", "{output}")
    for wrong in ("", "text/x", "a/b c/d no-placeholders", "x y {input} {output}"):
        with pytest.raises(ConfigError):
            migration_tools.tools({"wrong": wrong})
    with pytest.raises(NotFound):
        migration_tools.get_tool("none", {})
    (tmp_path / "in").write_bytes(b"x")
    for command, words in (("false", "exit 1"), ("true", "no file"), ("/nowhere", "No such file")):
        tool = migration_tools.Tool(
            name="t", source="a/b", target="c/d", command=(command, "{input}", "{output}")
        )
        assert words in migration_tools.run(tool, tmp_path / "in", tmp_path / "out")
