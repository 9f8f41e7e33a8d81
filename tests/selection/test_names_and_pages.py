"""Names of organisations, imprints and pages: which operator a site names."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from webdepot.container.http import parse_head
from webdepot.selection.domains import imprint, names, page_facts
from webdepot.selection.domains.names import Kinship, Rarity, compare, folded, similarity


@pytest.mark.parametrize(
    ("name", "kinship"),
    [
        ("Universitaet Konstanz, Rechenzentrum", Kinship.UNIT),
        ("University of Konstanz", Kinship.SAME),
        ("University of Constance", Kinship.SAME),
        ("Uni Konstanz", Kinship.SAME),
        ("UNIVERSITÄT KONSTANZ", Kinship.SAME),
        ("Univresität Konstanz", Kinship.SAME),
        ("Universität Konstnaz", Kinship.SAME),
        ("Institut für Physik der Universität Konstanz", Kinship.UNIT),
        ("Universitätsbibliothek Konstanz", Kinship.UNIT),
        ("Universität Koblenz", Kinship.OTHER),
        ("HTWG Konstanz", Kinship.OTHER),
        ("Hochschule Konstanz", Kinship.OTHER),
        ("Stadt Konstanz", Kinship.OTHER),
        ("Universitätsklinikum Konstanz", Kinship.OTHER),
        ("Technische Universität Konstanz", Kinship.BESIDE),
        ("Freunde der Universität Konstanz e.V.", Kinship.BESIDE),
        ("Max Mustermann", Kinship.OTHER),
        ("", Kinship.UNKNOWN),
        ("GmbH & Co. KG", Kinship.UNKNOWN),
    ],
)
def test_kinship_with_the_university_of_konstanz(name: str, kinship: Kinship) -> None:
    assert compare(name, "Universität Konstanz").kinship is kinship


@pytest.mark.parametrize(
    ("name", "known", "is_same"),
    [
        ("KIT", "Karlsruher Institut für Technologie (KIT)", True),
        ("Karlsruhe Institute of Technology", "Karlsruher Institut für Technologie (KIT)", True),
        ("TU München", "Technische Universität München", True),
        ("Universität München", "Technische Universität München", False),
        ("Stichting Museum Boijmans", "Museum Boijmans", True),
        ("ACME Verlag", "Acme Verlag GmbH", True),
        ("Acme Druckerei", "Acme Verlag GmbH", False),
    ],
)
def test_other_organisations(name: str, known: str, is_same: bool) -> None:
    assert (compare(name, known).kinship is Kinship.SAME) is is_same


def test_plain_levenshtein_cannot_tell() -> None:
    """The similarity of the registrant rule: the wrong town is closer than the right unit."""
    assert similarity("Universität Koblenz", "Universität Konstanz") > 0.75
    assert similarity("Universitaet Konstanz, Rechenzentrum", "Universität Konstanz") < 0.65
    assert similarity("Universität Straße", "universitaet strasse") == 1.0


def test_rare_words_say_more() -> None:
    rarity = Rarity()
    for number in range(50):
        rarity.note(f"Firma {number} Neustadt")
    assert (
        compare("Universität Neustadt", "Uni Neustadt", rarity).rarity
        < compare("Universität Konstanz", "Uni Konstanz", rarity).rarity
    )


@given(st.text(max_size=80), st.text(max_size=80))
def test_names_of_any_letters_can_be_compared(one: str, other: str) -> None:
    assert compare(one, other).kinship in Kinship
    assert folded(folded(one)) == folded(one)
    assert compare(one, one).kinship in (Kinship.SAME, Kinship.UNKNOWN)
    names.looks_like_organisation(one)


OWN = """Impressum
Angaben gemäß § 5 DDG
Universität Konstanz
Universitätsstraße 10
78464 Konstanz
Vertreten durch die Rektorin Prof. Dr. Erika Muster
Die Universität Konstanz ist eine Körperschaft des öffentlichen Rechts.
E-Mail: info (at) uni-konstanz [dot] example
USt-IdNr.: DE 142 319 234
Aufsichtsbehörde
Ministerium für Wissenschaft, Forschung und Kunst
Design
Agentur Blau GmbH, Berlin
Gefördert durch die Deutsche Forschungsgemeinschaft"""


def test_an_imprint_names_its_operator_and_not_the_others() -> None:
    found = imprint.read(OWN.splitlines())
    assert found.operators == ("Universität Konstanz",)
    assert {"Ministerium für Wissenschaft, Forschung und Kunst", "Agentur Blau GmbH, Berlin"} <= set(
        found.others
    )
    assert found.mail_domains == ("uni-konstanz.example",)
    assert found.vat_ids == ("DE142319234",)
    assert found.addresses == ("78464 Konstanz",)


@pytest.mark.parametrize(
    ("text", "operators"),
    [
        (
            "Impressum\nBetreiber: Freunde der Kunst e.V., Hauptstr. 3, 10115 Berlin\nProjektpartner: "
            "Universität Konstanz",
            ("Freunde der Kunst e.V",),
        ),
        (
            "Imprint\nThis website is operated by University of Konstanz, Department of Physics",
            ("University of Konstanz, Department of Physics",),
        ),
        ("Impressum\nDesign & Partner GmbH\nWeg 1", ("Design & Partner GmbH",)),
        (
            "Kontakt\nLehrstuhl für Physik\nUniversität Konstanz",
            ("Lehrstuhl für Physik", "Universität Konstanz"),
        ),
        ("Gefördert durch:\nUniversität Konstanz\nImpressum\nHotel am See GmbH", ("Hotel am See GmbH",)),
    ],
)
def test_operators_in_several_forms(text: str, operators: tuple[str, ...]) -> None:
    assert imprint.read(text.splitlines()).operators == operators


def test_a_private_person_is_told_but_not_named() -> None:
    found = imprint.read(["Impressum", "Erika Mustermann", "Hauptstr. 1", "12345 Berlin"])
    assert found.persons
    assert "Erika" not in str(found)


PAGE = """<html><head><title>Seen | Universität Konstanz</title>
<script type="application/ld+json">{"@graph": [{"@type": "CollegeOrUniversity", "name": "Universität Konstanz", "alternateName": "Uni KN",
 "department": [{"name": "Limnologisches Institut"}], "parentOrganization": {"name": "Land"}, "vatID": "DE142319234"}]}</script>
<script>gtag('config', 'G-ABCDEFGH12')</script></head>
<body><a href="https://other.example/x">x</a><a href="https://other.example/y">y</a><a href="/a">a</a><a href="mailto:a@b.example">m</a>
<footer>© 2026 Universität Konstanz. All rights reserved <a href="/legal/impressum.html">Impressum</a></footer></body></html>"""


def test_a_page_tells_about_its_owner() -> None:
    found = page_facts.parse_html("https://www.seen.example/", PAGE)
    assert found.title == "Seen | Universität Konstanz"
    assert found.structured == ("Universität Konstanz",)
    assert found.aliases == ("Uni KN",)
    assert found.units == ("Limnologisches Institut",)
    assert found.parents == ("Land",)
    assert found.trackers == ("G-ABCDEFGH12",)
    assert found.copyright == ("Universität Konstanz",)
    assert found.imprint == "https://www.seen.example/legal/impressum.html"
    assert [link for link in found.links if "other" in link] == ["https://other.example/x"]


def test_redirects_and_other_types() -> None:
    from io import BytesIO

    moved = page_facts.read(
        "http://a.example/",
        parse_head(b"HTTP/1.1 301 Moved\r\nLocation: https://b.example/\r\n\r\n"),
        BytesIO(),
    )
    assert moved.redirect == "https://b.example/"
    picture = page_facts.read(
        "http://a.example/",
        parse_head(b"HTTP/1.1 200 OK\r\nContent-Type: image/png\r\n\r\n"),
        BytesIO(b"\x89PNG"),
    )
    assert (picture.title, picture.links) == ("", ())
    contact = b"Contact: mailto:cert@uni.example\nContact: https://form.uni.example/x\nExpires: 2030"
    text = page_facts.read(
        "http://a.example/x",
        parse_head(b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n\r\n"),
        BytesIO(contact),
    )
    assert text.mail_domains == ("uni.example", "form.uni.example")


@given(st.text(max_size=2000))
def test_no_page_breaks_the_reader(text: str) -> None:
    page_facts.parse_html(
        "http://a.example/", f"<html>{text}<a href='http://b.example'>Impressum</a>", as_imprint=True
    )


def test_hostile_pages_stay_small() -> None:
    many = "".join(f"<a href='http://h{number}.example/'>x</a>" for number in range(5000))
    assert (
        len(page_facts.parse_html("http://a.example/", many).links)
        <= page_facts.MOST_LINKS + page_facts.MOST_NEAR
    )
    deep = '<script type="application/ld+json">' + "[" * 50_000 + "</script>"
    assert page_facts.parse_html("http://a.example/", deep).structured == ()
