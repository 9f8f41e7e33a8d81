"""The catalogue: records on deposit, edits by people, in the package and back, sets, datestamps, withdrawal."""

import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from catalogue_records import all_records
from webdepot.archive import Archive
from webdepot.depot import package
from webdepot.depot.ocfl import objects
from webdepot.errors import CorruptData, InputError, NotFound
from webdepot.exchange import catalogue, transfer_zip, urn
from webdepot.exchange.catalogue import Access, CatalogueRecord, RecordLevel, Source
from webdepot.model import Answer, Verdict
from webdepot.selection import target_verdicts, targets
from webdepot.services import pipeline
from webdepot.services.admin import rebuild
from webdepot.services.catalogue import records as records_service
from webdepot.services.depot import withdrawal


def records(archive: Archive) -> dict[str, CatalogueRecord]:
    with archive.database.reading() as connection:
        return {record.key: record for record in all_records(connection)}


@pytest.fixture
def kept(archive: Archive, tmp_path, write_warc):
    """One harvest of a site in the depot."""
    taken = pipeline.import_files(archive, [write_warc(tmp_path / "one.warc.gz")], collection="museums").taken
    assert taken is not None
    assert taken.package is not None
    return taken


def test_a_deposit_makes_site_and_slice_with_their_urns(archive, kept):
    own = records_service.find_of_harvest(archive, kept.harvest.id)
    seen = records_service.view(archive, own.urn.upper())
    site, slice_ = seen.levels
    assert (site.level, slice_.level, slice_.parent) == (RecordLevel.SITE, RecordLevel.SLICE, site.key)
    assert urn.is_valid(site.urn)
    assert urn.is_valid(slice_.urn)
    assert slice_.urn == kept.package.urn == seen.package.urn
    assert slice_.is_object
    assert not site.is_object
    with archive.database.reading() as connection:
        made = transfer_zip.find(connection, slice_.key)
    assert [file.sha256 for file in made.files] == [each.sha256 for each in _containers(archive, kept)]
    assert [file.format for file in made.files] == ["WARC 1.1"]


def test_another_harvest_changes_no_record_but_its_own(archive, kept, tmp_path, write_warc):
    """Otherwise each harvest of a site costs more than the one before."""
    before = records(archive)
    with archive.database.transaction() as connection:
        # Older than that of its site: a deposit that looks at this record updates it.
        old = replace(before[kept.harvest.id], changed_at=datetime(2000, 1, 1, tzinfo=UTC))
        connection.execute(catalogue.catalogue.delete().where(catalogue.catalogue.c.key == old.key))
        catalogue.put(connection, old)
    pipeline.import_files(
        archive, [write_warc(tmp_path / "two.warc.gz", words="bells")], collection="museums"
    )
    after = records(archive)
    assert after[old.key] == old
    assert after[old.parent] == before[old.parent]
    assert len(after) == len(before) + 1


def test_records_below_a_changed_one_follow_with_their_sets(archive, kept, tmp_path, write_warc):
    second = pipeline.import_files(
        archive, [write_warc(tmp_path / "two.warc.gz", words="bells")], collection="museums"
    ).taken
    own, other = (records_service.find_of_harvest(archive, each.harvest.id) for each in (kept, second))
    later = max(own.changed_at, other.changed_at) + timedelta(days=1)
    with archive.database.transaction() as connection:
        catalogue.put(connection, replace(other, title="Its own", sources={"title": Source.PERSON.value}))
        site = catalogue.put(
            connection, replace(catalogue.get(connection, own.parent), title="New name", changed_at=later)
        )
        assert catalogue.touch_below(connection, site.key, later) == 2
        assert catalogue.touch_below(connection, site.key, later) == 0
    after = records(archive)
    assert after[own.key] == replace(own, title="New name", changed_at=later)
    assert (after[other.key].title, after[other.key].changed_at) == ("Its own", later)
    with archive.database.reading() as connection:
        sets = connection.execute(catalogue.catalogue_sets.select()).mappings().all()
    assert {row["changed_at"] for row in sets if row["key"] in (own.key, other.key)} == {later}
    assert {row["spec"] for row in sets if row["key"] == own.key} == set(catalogue.sets_of(own))


def test_a_verdict_that_repeats_the_last_is_kept_once(archive, kept, tmp_path, write_warc):
    second = pipeline.import_files(
        archive, [write_warc(tmp_path / "two.warc.gz", words="bells")], collection="museums"
    ).taken
    first, latest = (package.read(archive.store, each.package.id).decisions for each in (kept, second))
    assert [each["answer"] for each in first] == ["accept"]
    assert latest == first
    refused = Verdict(answer=Answer.REJECT, rule="refusal", reason="The owner refused.")
    with archive.database.transaction() as connection:
        for verdict in (refused, refused):
            target_verdicts.keep_verdict(
                connection, kept.harvest.target, "may harvest", verdict, agent="test", now=archive.clock()
            )
        stored = list(target_verdicts.iter_verdicts(connection, kept.harvest.target))
    assert [each["answer"] for each in stored] == ["accept", "reject"]


def _containers(archive, kept):
    return package.read(archive.store, kept.package.id).containers


def test_records_are_in_the_package_and_come_back_on_an_empty_machine(archive, kept, tmp_path):
    own = records_service.find_of_harvest(archive, kept.harvest.id)
    records_service.write(
        archive,
        own.parent,
        {"title": "Klokkenmuseum", "creators": ["Jansen, A."], "genre": "Museum"},
        by="Anna",
    )
    before = records(archive)
    assert before[own.parent].sources["title"] == Source.PERSON
    assert before[own.key].changed_at >= before[own.parent].changed_at, (
        "a change above is a change of what is delivered"
    )
    rebuild.rebuild(tmp_path / "again", archive.depot_address)
    with Archive.open(tmp_path / "again") as again:
        after = records(again)
        assert {key: replace(record, target=None) for key, record in after.items()} == {
            key: replace(record, target=None) for key, record in before.items()
        }
        with again.database.reading() as connection:
            assert targets.get(connection, after[own.parent].target)
            assert transfer_zip.find(connection, own.key)


def test_a_machine_does_not_write_over_a_person(archive, kept):
    key = records_service.find_of_harvest(archive, kept.harvest.id).parent
    records_service.write(archive, key, {"publisher": "Town"}, source=Source.SITE)
    records_service.write(archive, key, {"publisher": "Town of Veldwijk"})
    after = records_service.write(
        archive, key, {"publisher": "Somebody", "abstract": "Clocks"}, source=Source.SITE
    )
    assert (after.publisher, after.abstract) == ("Town of Veldwijk", "Clocks")
    head = objects.read_inventory(archive.store, kept.package.id).head
    assert records_service.write(archive, key, {"abstract": "Clocks"}) == after
    assert objects.read_inventory(archive.store, kept.package.id).head == head, "no change, no version"


@pytest.mark.parametrize(
    "changes",
    [
        {"title": ""},
        {"urn": "urn:nbn:de:example-1"},
        {"country": "Netherlands"},
        {"access": "secret"},
        {"title": "x" * 30_000},
    ],
)
def test_what_cannot_be_written(archive, kept, changes):
    key = records_service.find_of_harvest(archive, kept.harvest.id).parent
    before = records(archive)
    with pytest.raises(InputError):
        records_service.write(archive, key, changes)
    assert records(archive) == before


def test_a_withdrawn_slice_keeps_its_urn_and_nothing_else(archive, kept, tmp_path):
    own = records_service.find_of_harvest(archive, kept.harvest.id)
    withdrawal.withdraw(archive, own.urn, reason="court order", approved_by="Bea")
    after = records_service.get(archive, own.urn)
    assert after.withdrawn_at is not None
    assert (after.title, after.addresses, after.key, after.urn) == ("", (), own.key, own.urn)
    assert after.changed_at > own.changed_at
    assert catalogue.sets_of(after) == catalogue.sets_of(own)
    with pytest.raises(InputError, match="withdrawn"):
        records_service.write(archive, own.key, {"title": "again"})
    rebuild.rebuild(tmp_path / "again", archive.depot_address)
    with Archive.open(tmp_path / "again") as again:
        assert replace(records_service.get(again, own.urn), target=None) == replace(after, target=None)


def test_listing_by_words_creator_genre_keyword(archive, kept):
    key = records_service.find_of_harvest(archive, kept.harvest.id).parent
    records_service.write(
        archive,
        key,
        {"title": "Über Uhren", "creators": ["Müller, Eva"], "keywords": ["Uhr", "Zeit"], "genre": "Museum"},
    )
    assert [each.key for each in records_service.list_records(archive, words="uhren müller")] == [key]
    assert [
        each.key
        for each in records_service.list_records(archive, creator="Müller", keyword="zeit", genre="Museum")
    ] == [key]
    assert records_service.list_records(archive, words="windmill") == []
    assert records_service.list_records(archive, collection="other") == []
    assert records_service.list_records(archive, after=key) == []


def test_the_publishers_own_urn_is_kept_before_the_first_deposit(archive, tmp_path, write_warc):
    from webdepot.services.selection import targets as targets_service
    from webdepot.url import Url

    target = targets_service.nominate(archive, [Url("http://www.example.org/")], collection="museums")
    site = records_service.site_record(archive, target)
    assert records_service.site_record(archive, target) == site
    given = records_service.assign_urn(archive, site.key, "urn:nbn:de:hbz:385-2902")
    assert given.urn == "urn:nbn:de:hbz:385-2902"
    with pytest.raises(InputError):
        records_service.assign_urn(archive, site.key, "https://example.org/")
    with pytest.raises(NotFound):
        records_service.get(archive, site.urn)


def test_once_a_slice_is_kept_the_urn_of_its_site_stays(archive, kept):
    site = records_service.find_of_harvest(archive, kept.harvest.id).parent
    with pytest.raises(InputError, match="can no longer be changed"):
        records_service.assign_urn(archive, site, "urn:nbn:de:hbz:385-2902")
    same = records_service.get(archive, site)
    assert records_service.assign_urn(archive, site, same.urn.upper()) == same


def test_who_may_fetch_a_site_counts_for_its_slices(archive, kept):
    from webdepot.access.policy import ANYONE
    from webdepot.exchange.catalogue import Access
    from webdepot.services.catalogue import description
    from webdepot.services.exchange import object_delivery

    own = records_service.find_of_harvest(archive, kept.harvest.id)
    description.save(
        archive, own.target, {"title": "Clocks", "ddc": ("529.7",), "access": "restricted"}, by="anna"
    )
    site, own = records_service.get(archive, own.parent), records_service.get(archive, own.key)
    assert (site.access, own.access, site.ddc) == (Access.RESTRICTED, Access.RESTRICTED, ("529.7",))
    assert ("ddc:529" in catalogue.sets_of(site), "open_access" in catalogue.sets_of(own)) == (True, False)
    with pytest.raises(object_delivery.TokenNeeded):
        object_delivery.hand_over(archive, own.key, reader=ANYONE)
    description.save(archive, own.target, {"title": "Clocks", "access": "open"}, by="anna")
    assert object_delivery.hand_over(archive, own.key, reader=ANYONE).record.access is Access.OPEN


def test_sets_have_their_parents():
    at = datetime(2026, 1, 1, tzinfo=UTC)
    record = CatalogueRecord(
        key="k",
        level=RecordLevel.SLICE,
        parent="s",
        urn="urn:nbn:de:example-1",
        title="t",
        ddc=("712.5",),
        collection="Clocks & more",
        created_at=at,
        changed_at=at,
        origin={"partner": "b"},
    )
    specs = catalogue.sets_of(record)
    assert {
        "collection:Clocks___more",
        "collection",
        "ddc:712",
        "ddc",
        "doc-type:Website",
        "open_access",
        "site:s",
        "partner:b",
    } <= set(specs)
    assert "open_access" not in catalogue.sets_of(replace(record, access=Access.RESTRICTED))


def test_a_datestamp_is_never_older_than_what_others_can_see(archive):
    now = datetime(2026, 1, 1, 12, 0, 0, 999_999, tzinfo=UTC)
    assert catalogue.stamp(now) > now - timedelta(seconds=1)
    assert catalogue.stamp(now).microsecond == 0
    assert catalogue.stamp(now, size_bytes=10**11) > now + timedelta(minutes=30)
    record = CatalogueRecord(
        key="k", level=RecordLevel.SITE, urn="urn:nbn:de:example-1", title="t", created_at=now, changed_at=now
    )
    with archive.database.transaction() as connection:
        catalogue.put(connection, record)
        again = catalogue.put(connection, replace(record, title="u", changed_at=now - timedelta(days=1)))
    assert (again.title, again.changed_at) == ("u", now)


@pytest.mark.parametrize(
    "bad", [b"", b"{}", b'{"format": "webdepot-catalogue", "format_version": 9}', b"[1]", b'{"records": 1}']
)
def test_a_damaged_document_is_told(bad):
    with pytest.raises(CorruptData):
        catalogue.from_document(bad, where="here")


def test_a_document_gives_back_what_was_put_in():
    at = datetime(2026, 1, 1, 1, 2, 3, 4, tzinfo=UTC)
    record = CatalogueRecord(
        key="k",
        level=RecordLevel.ARTICLE,
        urn="urn:nbn:de:example-1",
        title="t",
        creators=("a", "b"),
        foreign=({"kind": "mab", "xml": "<datensatz/>"},),
        origin={"partner": "p"},
        created_at=at,
        changed_at=at,
    )
    data = catalogue.to_document([record], {"form": "files"})
    assert json.loads(data)["format_version"] == 1
    assert catalogue.from_document(data, where="") == ((record,), {"form": "files"})
