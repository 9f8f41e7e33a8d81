"""Targets, plans and works are found by words, the same on SQLite and on PostgreSQL."""

from collections.abc import Iterator
from datetime import UTC, datetime

import pytest
from sqlalchemy import delete, update

from webdepot.database import Database, metadata
from webdepot.exchange import catalogue, catalogue_search, catalogue_words
from webdepot.exchange.catalogue import CatalogueRecord, RecordLevel
from webdepot.reasons import Reason, said, together
from webdepot.selection import plan_dates, plans, target_list, target_words, targets
from webdepot.selection import tables as selection_tables
from webdepot.selection.permission_basis import Ground
from webdepot.selection.plan_dates import Plan
from webdepot.selection.states import TargetState
from webdepot.selection.target_list import TargetFilter, TargetSort
from webdepot.selection.targets import Nomination
from webdepot.url import from_typed

NOW = datetime(2026, 5, 1, 12, tzinfo=UTC)
SITES = {
    "Klokkenmuseum Asten": "https://www.klokkenmuseum.nl/asten/",
    "Café de Straße": "http://xn--caf-dma.example/",
    "Museum 9": "https://museum9.example.org/",
    "Museum 10": "https://museum10.example.org/",
    "100% wool_en": "https://wool.example/",
}


@pytest.fixture(scope="module", params=["sqlite", "postgresql"])
def migrated(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Database]:
    """A database with the schema that the migrations make."""
    if request.param == "sqlite":
        made = Database.in_file(tmp_path_factory.mktemp("words") / "webdepot.db")
    else:
        made = Database(request.getfixturevalue("postgres"))
    made.upgrade()
    yield made
    made.close()


@pytest.fixture
def database(migrated: Database) -> Iterator[Database]:
    """The same, empty."""
    yield migrated
    with migrated.transaction() as connection:
        for name in (
            "schedules",
            "target_seeds",
            "targets",
            "catalogue",
            "catalogue_words",
            "catalogue_sets",
        ):
            connection.execute(delete(metadata.tables[name]))


@pytest.fixture
def filled(database: Database) -> Database:
    with database.transaction() as connection:
        for name, address in SITES.items():
            targets.nominate(
                connection, Nomination(seeds=(from_typed(address),), name=name, collection="c"), now=NOW
            )
    return database


def found(database: Database, words: str, **asked) -> list[str]:
    with database.reading() as connection:
        listing = target_list.listing(connection, TargetFilter(words=words, **asked))
        assert listing.total == len(listing.rows)
        return [one.name for one in listing.rows]


@pytest.mark.parametrize(
    ("words", "names"),
    [
        ("museum", ["Klokkenmuseum Asten", "Museum 10", "Museum 9"]),
        ("KKENMUS", ["Klokkenmuseum Asten"]),
        ("museum 9", ["Museum 9"]),
        ("https://www.klokkenmuseum.nl/", ["Klokkenmuseum Asten"]),
        ("klokkenmuseum.nl/ast", ["Klokkenmuseum Asten"]),
        ("cafe", ["Café de Straße"]),
        ("CAFÉ.example", ["Café de Straße"]),
        ("strasse", ["Café de Straße"]),
        ("100%", ["100% wool_en"]),
        ("l_e", ["100% wool_en"]),
        ("%", ["100% wool_en"]),
        ("nothing here", []),
        ("http:// www.", list(SITES)),
    ],
)
def test_parts_of_words_and_addresses_are_found(filled: Database, words: str, names: list[str]):
    assert sorted(found(filled, words)) == sorted(names)


def test_words_follow_every_change_of_a_target(filled: Database):
    with filled.transaction() as connection:
        number = target_list.listing(connection, TargetFilter(words="wool")).rows[0].id
        targets.change(connection, number, {"name": "Flax"})
    assert (
        found(filled, "flax") == ["Flax"]
        and found(filled, "woolen") == []
        and found(filled, "wool.example") == ["Flax"]
    )
    with filled.transaction() as connection:
        connection.execute(update(selection_tables.targets).values(words=""))
        assert target_list.listing(connection, TargetFilter(words="flax")).total == 0
        target_words.restore_words(connection)
    assert found(filled, "flax") == ["Flax"] and len(found(filled, "museum")) == 3


def test_many_and_few_are_listed_in_the_same_order(filled: Database, monkeypatch: pytest.MonkeyPatch):
    asked = {"sort": TargetSort.HOST, "descending": True}
    few = found(filled, "museum", **asked)
    monkeypatch.setattr(target_list, "FEW", 0)
    assert found(filled, "museum", **asked) == few == ["Museum 9", "Museum 10", "Klokkenmuseum Asten"]
    assert (
        found(filled, "museum", state=TargetState.CLEARED) == []
        and found(filled, "museum", collection="other") == []
    )


def test_plans_are_found_like_their_targets(filled: Database):
    with filled.transaction() as connection:
        dates = plan_dates.read_dates("monthly", first_on="2026-06-01")
        for one in target_list.listing(connection, TargetFilter()).rows:
            plan = Plan(target=one.id, dates=dates, next_at=NOW, changed_by="Ada", changed_at=NOW)
            plans.save(connection, plan)
        asked = plans.PlanFilter(words="seum.nl")
        assert [row.name for row in plans.listing(connection, asked).rows] == ["Klokkenmuseum Asten"]


def test_works_with_all_words_are_found_from_the_rarest(database: Database, monkeypatch: pytest.MonkeyPatch):
    with database.transaction() as connection:
        for number in range(12):
            facts = {
                "title": f"Museum {number:02d}",
                "creators": ("Ada Byron" if number % 2 else "J. Uurwerk",),
                "genre": "museum",
            }
            key = f"site-{number:02d}"
            record = CatalogueRecord(
                key=key,
                level=RecordLevel.SITE,
                urn=f"urn:nbn:de:{key}",
                created_at=NOW,
                changed_at=NOW,
                **facts,
            )
            catalogue.put(connection, record)

    def listed(**asked) -> list[str]:
        with database.reading() as connection:
            return [record.title for record in catalogue_search.find_works(connection, **asked)]

    both = [f"Museum {number:02d}" for number in (1, 3, 5, 7, 9, 11)]
    # All rare, some, none; the first works have them, or they have to be found otherwise: the same works in
    # the same order.
    for few, looked_at in ((2000, (9,)), (3, (3000,)), (0, (3000,)), (0, (2, 12)), (0, (2, 5))):
        monkeypatch.setattr(catalogue_words, "FEW", few)
        monkeypatch.setattr(catalogue_search, "EXAMINED", looked_at)
        assert listed(words=["museum", "byr"]) == both
        assert listed(words=["museum"], creator="ada", genre="museum", limit=2) == both[:2]
        assert listed(words=["museum"], creator="ada", after="site-03") == both[2:]
        assert listed(words=["museum", "11"]) == ["Museum 11"]
        assert listed(words=["uurwerk", "11"]) == [] and listed(words=["nothing", "museum"]) == []


def test_works_are_browsed_by_letter_and_by_subject(database: Database):
    works = {
        "zuider Zee": ("Zee", "vis"),
        "Zoo": ("vis",),
        "Asten": ("zee", "Zee"),
        "1900": (),
    }
    with database.transaction() as connection:
        for number, (title, keywords) in enumerate(works.items()):
            record = CatalogueRecord(
                key=f"w{number}",
                level=RecordLevel.SITE,
                urn=f"urn:nbn:de:w{number}",
                title=title,
                keywords=keywords,
                created_at=NOW,
                changed_at=NOW,
            )
            catalogue.put(connection, record)
    with database.reading() as connection:

        def listed(**asked) -> set[str]:
            return {record.title for record in catalogue_search.find_works(connection, **asked)}

        assert listed(initial="Z") == {"zuider Zee", "Zoo"} and listed(initial="A") == {"Asten"}
        assert listed(initial="0") == {"1900"} and listed(initial="B") == set()
        assert listed(subject="Zee") == {"zuider Zee", "Asten"}, "the whole subject, as it is written"
        assert listed(subject="Zee", initial="A") == {"Asten"}
        assert set(catalogue_words.subjects(connection, limit=9)) == {("Zee", 2), ("vis", 2), ("zee", 1)}
        assert catalogue_words.subjects(connection, initial="V", limit=9) == [("vis", 2)]
    with database.transaction() as connection:
        catalogue_words.put_subjects(connection, "w1", ["ape"])
        assert ("vis", 1) in catalogue_words.subjects(connection, limit=9)


def test_reasons_are_kept_with_what_they_say(database: Database):
    day = NOW.date()
    inner = said("no_answer", "no answer to {letter} by {day}", letter="L-1", day=day)
    reason = said("ground_because", "{ground}: {reason}", ground=Ground.IMPLIED_CONSENT, reason=inner)
    typed = 'typed\x1f{"key": "always", "values": {}}'
    with database.transaction() as connection:
        made, _ = targets.nominate(
            connection, Nomination(seeds=(from_typed("https://a.example/"),), collection="c"), now=NOW
        )
        for words, plain in ((reason, False), (together([inner, "and more"]), False), (typed, True)):
            moved = targets.move(
                connection, targets.dossier_of(connection, made.id), "judge", reason=words, now=NOW
            )
            connection.execute(update(selection_tables.targets).values(state="nominated"))
            again = targets.dossier_of(connection, made.id).reason
            assert again == moved.reason and isinstance(again, Reason) is not plain
            assert again == (typed.replace("\x1f", " ") if plain else words)
            if not plain:
                assert again.key == words.key
        connection.execute(update(selection_tables.targets).values(state_reason=reason))
        again = targets.dossier_of(connection, made.id).reason
        assert (
            again.values["reason"].values == {"letter": "L-1", "day": day}
            and again.values["ground"].name == "IMPLIED_CONSENT"
        )
