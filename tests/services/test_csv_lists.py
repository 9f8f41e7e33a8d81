"""Lists of sites: preview, import of all lines or none, export; harmless in a spreadsheet."""

import csv
import io

import pytest

from webdepot.archive import Archive
from webdepot.errors import Conflict, InputError, NotFound
from webdepot.exchange.catalogue import Source
from webdepot.selection.target_list import TargetFilter
from webdepot.selection.targets import Nomination
from webdepot.services.catalogue import described_lists, records
from webdepot.services.selection import contacts, csv_lists, targets
from webdepot.text.csv_text import harmless, read_cell
from webdepot.url import Url


def test_five_thousand_rows_are_previewed_and_imported(archive: Archive):
    text = "address,name,contact_mail\n" + "".join(
        f"https://www.site{number}.example/,Site {number},owner@site{number}.example\n"
        for number in range(5000)
    )
    seen = csv_lists.preview(archive, text.encode())
    assert (len(seen.new), len(seen.known), list(seen.bad)) == (5000, 0, [])
    assert targets.list_targets(archive, TargetFilter()).total == 0, "a preview enters nothing"
    csv_lists.import_(archive, seen.token)
    assert targets.list_targets(archive, TargetFilter()).total == 5000
    [found] = targets.list_targets(archive, TargetFilter(words="site4999.example")).rows
    assert contacts.contacts_of(archive, found.id)[0].mail == "owner@site4999.example"
    with pytest.raises(NotFound):
        csv_lists.import_(archive, seen.token)


def test_each_bad_line_is_named_and_nothing_is_imported(archive: Archive):
    targets.enter(archive, Nomination(seeds=(Url("https://known.example/"),), collection="all"))
    text = (
        "address;name;purpose;contact_mail\n"
        "https://good.example/;Good;heritage;\n"
        "not an address at all;Bad;;\n"
        '"https://multi.example/\nhttps://line.example/";Two;;\n'
        "http://www.KNOWN.example/index.html;Known;;\n"
        "good.example;Again;;\n"
        "https://purpose.example/;P;fun;\n"
        "https://mail.example/;M;;no mail\n"
        "a;b;c;d;e\n"
        ";;;\n"
    )
    seen = csv_lists.preview(archive, text.encode())
    assert [line for line, _ in seen.bad] == [3, 7, 8, 9, 10]
    words = dict(seen.bad)
    assert (
        "same site as in line 2" in words[7]
        and "purpose" in words[8]
        and "mail address" in words[9]
        and "5 cells" in words[10]
    )
    assert [row.line for row in seen.known] == [6]
    with pytest.raises(Conflict, match=r"5 lines are bad\. Line 3"):
        csv_lists.import_(archive, seen.token)
    assert targets.list_targets(archive, TargetFilter()).total == 1


@pytest.mark.parametrize(
    "raw",
    [
        b"",
        b"name\nx\n",
        b"address\n",
        b"\xff\xfe\x00",
        b"address\n\xe9\n",
        b"address\nhttps://a.example/\x00\n",
        b"address\n" * 30_000,
        b"x" * (9 << 20),
    ],
)
def test_what_is_no_list_is_refused_in_words(archive: Archive, raw: bytes):
    with pytest.raises(InputError):
        seen = csv_lists.preview(archive, raw)
        assert not seen.bad, "bad lines are no list"


def test_a_list_belongs_to_who_uploaded_it(archive: Archive):
    seen = csv_lists.preview(archive, b"address\nhttps://a.example/\n", by="Ada")
    with pytest.raises(NotFound):
        csv_lists.import_(archive, seen.token, by="Eve")
    csv_lists.import_(archive, seen.token, by="Ada")
    assert targets.list_targets(archive, TargetFilter()).rows[0].nominated_by == "Ada"


FORMULAS = ['=HYPERLINK("http://evil.example","x")', "+1+1", "-2+3", "@SUM(A1)", "\t=1", "=cmd|' /C calc'!A0"]


@pytest.mark.parametrize("name", FORMULAS)
def test_no_cell_of_an_export_is_a_formula_and_the_list_comes_back_as_it_was(archive: Archive, name: str):
    targets.enter(
        archive,
        Nomination(seeds=(Url("https://a.example/"),), name=name, collection="all", note=name, by=name),
    )
    text = "".join(csv_lists.export(archive, TargetFilter()))
    for row in csv.reader(io.StringIO(text)):
        assert not [cell for cell in row if cell[:1] in ("=", "+", "-", "@", "\t", "\r")]
    [exported] = csv.DictReader(io.StringIO(text))
    assert read_cell(exported["name"]) == name
    assert csv_lists.preview(archive, text.encode()).known


def test_numbers_stay_numbers():
    assert [harmless(value) for value in (-1, "-1.5", 3, None, "- a", "x")] == [
        "-1",
        "-1.5",
        "3",
        "",
        "'- a",
        "x",
    ]


def test_a_list_of_archive_it_becomes_sites_with_records(archive: Archive):
    text = (
        "URL,Title,Creator,Subject,Subject,Description,Language,Frequency,Collector\n"
        "https://mill.example/,The Mill,J. Molen,mills,wind,Turns.,nl,MONTHLY,Library\n"
        "https://known.example/,Other,,,,,,,\n"
    )
    targets.enter(archive, Nomination(seeds=(Url("https://known.example/"),), collection="all"))
    seen = csv_lists.import_file(archive, text.encode())
    assert list(seen.ignored) == ["Frequency", "Collector"] and (len(seen.new), len(seen.known)) == (1, 1)
    assert described_lists.describe(archive, seen.rows) == []
    mill = targets.find(archive, "mill.example")
    assert mill.name == "The Mill"
    record = records.site_record(archive, mill.target)
    assert (record.title, record.creators, record.keywords) == ("The Mill", ("J. Molen",), ("mills", "wind"))
    assert (record.abstract, record.languages, record.sources["creators"]) == (
        "Turns.",
        ("nl",),
        Source.PERSON,
    )
    records.write(archive, record.key, {"title": "Our mill"})
    long = text.replace("The Mill", "A mill").replace("Turns.", "x" * 100_000)
    remarks = described_lists.describe(archive, csv_lists.preview(archive, long.encode(), keep=False).rows)
    assert remarks == [], "what a person wrote stays, so nothing is written twice"
    assert records.site_record(archive, mill.target).title == "Our mill"
    bad = described_lists.describe(
        archive,
        csv_lists.preview(
            archive, b"url,publisher\nhttps://mill.example/," + b"x" * 100_000, keep=False
        ).rows,
    )
    assert [line for line, _ in bad] == [2] and "publisher" in bad[0][1]
