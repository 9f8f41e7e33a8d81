"""The page of evidence, its PDF file and its signed document, as readers get them."""

import json
from dataclasses import replace
from io import BytesIO
from pathlib import Path

import pikepdf
import pypdfium2
import pytest
from museum import EDITIONS, SITE, Served, ask

from webdepot.access.policy import ANYONE
from webdepot.services.access import evidence
from webdepot.web.language.language import load
from webdepot.web.reader import evidence_pdf, evidence_sheet
from webdepot.web.reader.evidence_sheet import SheetRow, SheetSection

QUERY = f"/evidence?url={SITE}/&at={EDITIONS[1]}"


def test_the_page_has_the_facts_and_is_linked_from_banner_and_versions(served: Served):
    page = ask(served.portal + QUERY)
    assert page.status == 200
    for fact in (f"{SITE}/", "1 June 2012, 12:00:00 UTC", "museum.warc.gz", "sha256:", "HTTP/1.1 200 OK"):
        assert fact in page.text
    banner = ask(f"{served.frame}/-/banner/all/{EDITIONS[1]}/{SITE}/").text
    assert "/evidence?url=http%3A%2F%2Fwww.example.org%2F&amp;at=20120601120000" in banner
    assert f"at={EDITIONS[3]}" in ask(f"{served.portal}/all/2019*/{SITE}/").text


@pytest.mark.parametrize("code, words", [("nl", "Bewijs van een opname"), ("de", "Nachweis einer Aufnahme")])
def test_page_and_file_are_in_the_language_of_the_reader(served: Served, code: str, words: str):
    assert words in ask(f"{served.portal}{QUERY}&lang={code}").text
    assert words in text_of(ask(f"{served.portal}{QUERY}&form=pdf&lang={code}").body)


VALUES = {
    "robots": ("obey: as asked", "obey-but-embeds", "ignore"),
    "tls": ("certificates were not verified",),
    "description": ("Demonstration: the dates are invented.", "A crawl of others"),
    "isPartOf": ("20120601-example",),
}


@pytest.mark.parametrize(
    "code, robots, tls, kind",
    [
        ("nl", "nageleefd: as asked", "certificaten", "antwoord"),
        ("de", "befolgt: as asked", "Zertif", "Antwort"),
    ],
)
def test_values_of_ours_are_words_and_those_of_others_stay(served: Served, code, robots, tls, kind):
    with served.archive() as archive:
        facts = evidence.collect(archive, f"{SITE}/", EDITIONS[1], collection="all", reader=ANYONE)
    about = tuple((name, value) for name, values in VALUES.items() for value in values)
    facts = replace(facts, container=replace(facts.container, about=about))
    sheet = evidence_sheet.sections(facts, load(code))
    shown = " | ".join(row.value for section in sheet for row in section.rows)
    assert robots in shown and tls in shown and f"{kind} (response)" in shown
    assert "obey" not in shown and "ignore" not in shown and "invented" not in shown
    assert "A crawl of others" in shown and "20120601-example" in shown
    page = ask(f"{served.portal}{QUERY}&lang={code}").text
    assert f"{kind} (response)" in page
    assert f"{kind} (response)" in text_of(ask(f"{served.portal}{QUERY}&form=pdf&lang={code}").body)
    assert json.loads(ask(f"{served.portal}{QUERY}&form=json").body)["report"]["record"]["kind"] == "response"


def text_of(data: bytes) -> str:
    document = pypdfium2.PdfDocument(data)
    return "\n".join(page.get_textpage().get_text_range() for page in document)


def test_the_file_carries_the_signed_document(served: Served):
    answer = ask(f"{served.portal}{QUERY}&form=pdf")
    name = f"evidence-www.example.org-{EDITIONS[1]}"
    assert answer.headers["Content-Disposition"] == f'attachment; filename="{name}.pdf"'
    assert "1 June 2012, 12:00:00 UTC" in text_of(answer.body)
    with pikepdf.open(BytesIO(answer.body)) as pdf:
        signed = pdf.attachments[f"{name}.json"].get_file().read_bytes()
    assert evidence.check(signed)[1]["url"] == f"{SITE}/"


def test_the_document_is_signed_with_the_published_key(served: Served, tmp_path):
    key = tmp_path / "key.pem"
    key.write_bytes(ask(f"{served.portal}/evidence/key.pem").body)
    data = ask(f"{served.portal}{QUERY}&form=json").body
    assert evidence.check(data, key=str(key))[1]["timestamp"] == EDITIONS[1]
    assert json.loads(data)["report"]["record"]["is_intact"]


@pytest.mark.parametrize(
    "query, status", [("", 400), (f"url={SITE}/&form=doc", 400), (f"url={SITE}/never", 404)]
)
def test_bad_questions_get_clear_answers(served: Served, query: str, status: int):
    answer = ask(f"{served.portal}/evidence?{query}")
    assert answer.status == status and "Traceback" not in answer.text


def test_a_file_can_be_written_whatever_the_values_are():
    from datetime import UTC, datetime

    rows = tuple(SheetRow(f"X-{'Long' * 60}", f"Ж\x00\ud800{'a' * 5000}", code) for code in (True, False)) * 3
    data = evidence_pdf.write(
        title="Ж “title”",
        lead="lead",
        source="source " * 90,
        sections=[SheetSection("one", "One", rows)],
        language="nl",
        made_at=datetime(2026, 1, 1, tzinfo=UTC),
        attached=b"{}",
        attached_name="a.json",
        fonts=Path("/no/such/folder"),
    )
    assert "\\u{416} “title”" in text_of(data)


@pytest.mark.skipif(not evidence_pdf.FONTS.is_dir(), reason="needs fonts-dejavu-core")
def test_other_scripts_are_written_as_they_are_and_what_no_font_has_by_its_code():
    from datetime import UTC, datetime

    rows = tuple(SheetRow("Server", "Журнал ελληνικά ქართული “x” 日 א", code) for code in (True, False))
    data = evidence_pdf.write(
        title="Журнал",
        lead="lead",
        source="http://пример.example/",
        sections=[SheetSection("one", "Один", rows)],
        language="nl",
        made_at=datetime(2026, 1, 1, tzinfo=UTC),
        attached=b"{}",
        attached_name="a.json",
    )
    text = text_of(data)
    assert (
        text.count("Журнал ελληνικά ქართული “x” \\u{65e5} \\u{5d0}") == 2 and "http://пример.example/" in text
    )
    assert len(data) < 150_000, "only the characters that are needed are in the file"
