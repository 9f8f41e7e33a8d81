"""The tables of texts have the same keys and the same placeholders; and how one of them is chosen."""

import re
import tomllib
from datetime import date
from importlib.resources import files
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from museum import Served, ask

from webdepot.model import Failure, HarvestState
from webdepot.provenance import Outcome
from webdepot.web.language.language import CODES, choose, load


@pytest.mark.parametrize("code", CODES)
def test_every_language_has_every_text_with_the_same_gaps(code):
    english, other = load("en"), load(code)
    assert set(other.texts) == set(english.texts)
    for key, text in english.texts.items():
        assert set(re.findall(r"{\w+}", other.texts[key])) == set(re.findall(r"{\w+}", text)), key
    assert len(other.months) == len(other.short_months) == 12 and len(other.days) == 7


@pytest.mark.parametrize("code", CODES)
def test_every_text_that_a_template_names_exists(code):
    texts = load(code).texts
    for template in (files("webdepot.web") / "templates").iterdir():
        source = template.read_text(encoding="utf-8")
        for call, key in re.findall(r"""\b(tn?)\(["']([a-z_.0-9]+)["']\s*[,)]""", source):
            assert (f"{key}.one" if call == "tn" else key) in texts, f"{template.name}: {key}"


def test_every_state_and_outcome_has_its_text():
    for code in CODES:
        texts = load(code).texts
        assert not [state for state in HarvestState if f"status.state_{state}" not in texts]
        assert not [outcome for outcome in Outcome if f"status.outcome_{outcome}" not in texts]


def test_every_reason_without_a_response_has_its_text():
    for code in CODES:
        texts = load(code).texts
        assert not [each for each in Failure if f"harvests.status_{each.replace('-', '_')}" not in texts]


def test_dates_where_there_is_little_room():
    day = date(2026, 3, 7)
    assert [load(code).short_day(day) for code in CODES] == ["7 Mar", "7 mrt", "7. März"]
    assert [load(code).short_month("2026-10") for code in CODES] == ["Oct 2026", "okt 2026", "Okt. 2026"]
    titles = [load("nl").dated_title(title) for title in ("A, b, 2024-04-18", "A, b", "2024-04-18", "")]
    assert titles == ["A, b, 18 april 2024", "A, b", "18 april 2024", ""]


def test_no_text_is_left_unused():
    sources = [path.read_text(encoding="utf-8") for path in (files("webdepot.web") / "templates").iterdir()]
    for package in ("webdepot.web", "webdepot.quality"):  # the latter has the keys of its details
        sources += [path.read_text(encoding="utf-8") for path in Path(str(files(package))).rglob("*.py")]
    everything = "\n".join(sources)
    # Keys built from a prefix and a value: t("depot.state_" ~ state) in templates,
    # f"depot.state_{state}" in code.
    joined = re.findall(r"""["']([a-z_]+\.[a-z_.]*)["']\s*~""", everything) + re.findall(
        r"""f["']([a-z_]+\.[a-z_.]*)\{""", everything
    )
    joined += re.findall(
        r"""["']([a-z_]+\.[a-z_]*_)["']""", everything
    )  # passed to a macro that builds the key
    made = tuple({*joined, "help.", "language.", "harvests.delay_s", "harvests.workers"})
    unused = [
        key
        for key in load("en").texts
        if not key.startswith(made) and key.removesuffix(".one").removesuffix(".other") not in everything
    ]
    assert unused == []


@pytest.mark.parametrize(
    ("asked", "cookie", "accept", "expected"),
    [
        (None, None, None, "en"),
        (None, None, "nl", "nl"),
        (None, None, "fr, de;q=0.5, nl;q=0.9", "nl"),
        (None, None, "de-AT,en;q=0.8", "de"),
        (None, "de", "nl", "de"),
        ("en", "de", "nl", "en"),
        ("xx", "yy", "zz", "en"),
        (None, None, "nl;q=0, de", "de"),
    ],
)
def test_choice(asked, cookie, accept, expected):
    assert choose(asked=asked, cookie=cookie, accept=accept).code == expected


@given(st.text())
def test_any_header_gives_a_language(accept):
    assert choose(asked=None, cookie=None, accept=accept).code in CODES


TERMS = {"depot.place": "place", "kinds.place": "place", "fields.place": "place", "depot.places": "place"}
TERMS |= {"cases.words": "complaint", "complain.button": "complaint", "letters.kind_received": "complaint"}


def test_pages_use_the_terms_of_the_glossary():
    glossary = Path(__file__).parents[2] / "docs" / "glossary.md"
    rows = re.findall(r"^\| ([^|]+) \| ([^|]+) \| ([^|]+) \|", glossary.read_text(encoding="utf-8"), re.M)
    terms = {english: {"de": german, "nl": dutch} for english, german, dutch in rows}
    for key, term in TERMS.items():
        for code in ("de", "nl"):
            assert terms[term][code].lower() in load(code).texts[key].lower(), (key, code)


def test_templates_write_no_decimals_themselves():
    """Only in the coordinates of a drawing; what people read goes through `language.decimal`."""
    for template in (files("webdepot.web") / "templates").iterdir():
        source = re.sub(r"""\b[a-z0-9]+="[^"]*'%\.[12]f'[^"]*\"""", "", template.read_text(encoding="utf-8"))
        assert not re.search(r"%\.[1-9]f", source), template.name


def test_numbers_sizes_and_dates_are_said_the_languages_way():
    assert load("en").number(1234567) == "1,234,567"
    assert load("de").number(1234567) == "1.234.567"
    assert load("nl").size(1536000) == "1,5\u00a0MB"
    assert load("en").size(999) == "999\u00a0B"
    assert load("de").moment("20190304050607") == "4. März 2019, 05:06 UTC"
    assert load("nl").date("20190304050607") == "4 maart 2019"
    assert load("en").count("common.harvests", 1) == "1 harvest"
    assert load("en").count("common.harvests", 2000) == "2,000 harvests"


def test_pages_speak_the_language_of_the_browser_the_cookie_and_the_link(served: Served):
    assert 'lang="de"' in ask(f"{served.portal}/", headers={"Accept-Language": "de"}).text
    assert (
        'lang="nl"'
        in ask(f"{served.portal}/", headers={"Accept-Language": "de", "Cookie": "language=nl"}).text
    )
    assert (
        'lang="en"'
        in ask(f"{served.portal}/?lang=en", headers={"Accept-Language": "de", "Cookie": "language=nl"}).text
    )
    chosen = ask(f"{served.portal}/-/language?lang=nl&to=/about")
    assert (chosen.status, chosen.headers["Location"]) == (303, "/about")
    assert "language=nl" in chosen.headers["Set-Cookie"] and "HttpOnly" in chosen.headers["Set-Cookie"]


@pytest.mark.parametrize(
    "to", ["//evil.example/", "https://evil.example/", "/\\evil.example", "javascript:alert(1)", ""]
)
def test_a_language_link_never_leads_to_another_site(served: Served, to):
    assert ask(f"{served.portal}/-/language?lang=nl&to={to}").headers["Location"] == "/"


def test_tables_are_valid_toml():
    for code in CODES:
        tomllib.loads((files("webdepot.web") / "texts" / f"{code}.toml").read_text(encoding="utf-8"))


def test_a_public_form_explains_errors_in_the_readers_language(served: Served):
    headers = {"Accept-Language": "nl", "Content-Type": "application/x-www-form-urlencoded"}
    answer = ask(f"{served.portal}/suggest", "POST", headers=headers, body=b"address=geen+adres")
    assert answer.status == 400 and "&#39;geen adres&#39; is geen webadres." in answer.text
    answer = ask(f"{served.portal}/complain", "POST", headers=headers, body=b"url=example.org&words=")
    assert answer.status == 400 and "Beschrijf wat er mis is met de pagina" in answer.text
