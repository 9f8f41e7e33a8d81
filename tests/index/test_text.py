"""The text of captures: encodings, HTML good and hostile, PDF, revisits."""

import gzip
import io
import os
import signal
import zipfile

import pikepdf
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from webdepot.digest import sha1
from webdepot.index import extract, page_files
from webdepot.index.content import html, text
from webdepot.index.content.documents import DocumentReader
from webdepot.index.content.language import language_of
from webdepot.index.text import near_duplicates

LANGUAGES = ("nl", "de", "en")
PAGE = """<!DOCTYPE html><html><head><title>Het archief &amp; meer</title><style>p {}</style></head><body>
<nav><ul><li><a href="/">Menu start</a></li><li><a href="/x">Menu contact</a></li></ul></nav>
<main><h1>Grote kop</h1><p>De gemeente heeft vandaag besloten dat het archief open blijft.</p><script>var geheim = 1;</script>
<h2>Kleine kop</h2><p>Alle inwoners mogen het gebouw bezoeken.</p></main><footer>Voettekst met adres</footer></body></html>"""


def pages(path, **changed):
    findings: list = []
    values = {"collection": "c", "languages": LANGUAGES, "limit_bytes": 1 << 20, **changed}
    read = text.read_container(
        path,
        path.name,
        values["collection"],
        values["languages"],
        values["limit_bytes"],
        on_finding=findings.append,
    )
    return [page for _, page in read if page is not None], findings


def one(made, body, **said):
    found, _ = pages(made.response("http://example.org/", body, **said).done())
    return found[0] if found else None


def test_a_page_has_title_headings_main_text_and_language(made):
    page = one(made, PAGE.encode())
    assert (page.title, page.headings, page.language) == ("Het archief & meer", "Grote kop\nKleine kop", "nl")
    assert "De gemeente heeft vandaag besloten" in page.text
    assert "Alle inwoners" in page.text
    assert "geheim" not in page.text
    assert "Menu contact" not in page.text
    assert (page.key, page.url, page.timestamp, page.mime, page.collection) == (
        "org,example)/",
        "http://example.org/",
        "20200101000000",
        "text/html",
        "c",
    )
    assert page.size_bytes == len(PAGE.encode())
    assert page.digest == str(sha1(PAGE.encode()))


def test_words_that_scripts_have_shown_are_found_beside_those_of_the_page(made):
    """In a few words among many, and without what the page has in its menu, which is left out on purpose."""
    shown = "Menu start\nMenu contact\nGrote kop\nDe gemeente heeft vandaag besloten dat het archief open blijft.\nGeheim: jacquard\n"
    made.record("resource", "urn:text:http://example.org/", shown.encode()).response(
        "http://example.org/", PAGE.encode()
    )
    made.response("http://example.org/other", PAGE.encode() + b" ")
    (page, other), _ = pages(made.done())
    assert page.text.endswith("\nGeheim: jacquard")
    assert "Alle inwoners" in page.text and "Menu contact" not in page.text
    assert (page.title, page.headings) == (other.title, other.headings)
    assert "jacquard" not in other.text, "it was shown on another page"


def test_the_title_that_a_browser_showed_replaces_that_of_the_page(made):
    for path, fields in (("", {"Webdepot-Page-Title": "Ballast 1"}), ("untitled", {})):
        made.record("resource", f"urn:text:http://example.org/{path}", b"Ships About", **fields)
        made.response(f"http://example.org/{path}", PAGE.encode() + path.encode())
    (page, untitled), _ = pages(made.done())
    assert (page.title, untitled.title) == ("Ballast 1", "Het archief & meer")


def test_texts_that_come_after_their_page_are_used_as_those_before_it(made, tmp_path):
    """Browsertrix writes them after it, our own harvests before it."""
    shell = b"<html><head><title>App</title></head><body><div id=root></div></body></html>"
    made.response("http://example.org/a", shell).response("http://example.org/b", shell + b" ")
    made.response("http://example.org/c", shell + b"  ")
    made.record("resource", "urn:text:http://example.org/b", b"Jacquard loom")
    made.record("resource", "urn:text:http://example.org/a", b"Water mill", **{"Webdepot-Page-Title": "Mill"})
    made.record("resource", "urn:text:http://example.org/c", b"Of the next")
    made.response("http://example.org/c", shell + b"   ")
    path = made.done()
    job = extract.Job(
        path=path, name=path.name, collection="c", languages=LANGUAGES, limit_bytes=1 << 20, folder=tmp_path
    )
    seen = []
    result = extract.run(job, on_records=seen.extend)
    found = list(page_files.pages_in(result.pages, lambda _: {}))
    assert [(page.title, page.text) for page in found] == [
        ("Mill", "Water mill"), ("App", "Jacquard loom"), ("App", ""), ("App", "Of the next")
    ]  # fmt: skip
    assert len(list(extract.captures_in(result.captures))) == 4
    assert len({record.location.offset for record in seen}) == len(seen), "the second pass is not reported"


def test_words_in_declarative_shadow_roots_are_found_but_not_those_of_other_templates(made):
    body = """<title>T</title><main><p>Outside.</p><x-y><template shadowrootmode="open"><style>q {}</style>
        <p>Jacquard <b>loom</b></p><template><p>Unseen</p></template><p>Weft</p></template></x-y>
        <template><p>Hidden</p></template></main>"""
    made.record("resource", "urn:text:http://example.org/", b"Outside.\nJacquard loom\nWeft\nWarp")
    made.response("http://example.org/", body.encode())
    (page,), _ = pages(made.done())
    assert page.text.split() == ["Outside.", "Jacquard", "loom", "Weft", "Warp"]


@pytest.mark.parametrize(
    ("body", "mime", "expected"),
    [
        ("Müller café".encode("latin-1"), "text/html; charset=iso-8859-1", "Müller café"),
        ("Müller “café”".encode("cp1252"), "text/html; charset=latin1", "Müller “café”"),
        ("Müller café".encode(), "text/html", "Müller café"),
        ("Müller café".encode(), 'text/html; charset="UTF-8"', "Müller café"),
        ("Müller café".encode("utf-16"), "text/html; charset=latin1", "Müller café"),
        (b"\xef\xbb\xbf" + "Müller".encode(), "text/html; charset=latin1", "Müller"),
        ('<meta charset="windows-1251">Привет мир'.encode("cp1251"), "text/html", "Привет мир"),
        (
            "<meta http-equiv=content-type content='text/html; charset=shift_jis'>日本語".encode("shift_jis"),
            "text/html",
            "日本語",
        ),
        ("Müller café".encode("latin-1"), "text/html; charset=utf-8", "Müller café"),
        ("Müller café".encode(), "text/html; charset=bogus", "Müller café"),
        ("Müller café".encode("latin-1"), "text/plain", "Müller café"),
    ],
)
def test_encodings(made, body, mime, expected):
    assert one(made, body, mime=mime).text == expected


def test_a_character_cut_at_the_limit_does_not_spoil_the_encoding(made):
    found, _ = pages(
        made.response("http://example.org/", "é".encode() * 600_000, mime="text/plain").done(),
        limit_bytes=1023,
    )
    assert found[0].text == "é" * 511


@pytest.mark.parametrize(
    ("mime", "body", "is_page"),
    [
        ("text/html", b"<p>x", True),
        ("application/xhtml+xml", b"<p>x", True),
        ("text/plain", b"x", True),
        ("", b"<!DOCTYPE HTML><p>x", True),
        ("application/octet-stream", b"  <html><p>x", True),
        ("application/octet-stream", b"x", False),
        ("text/css", b"p {}", False),
        ("image/png", b"\x89PNG", False),
        ("text/html", b"\x89PNG\r\n\x1a\n\0\0\0", False),
    ],
)
def test_what_has_words(made, mime, body, is_page):
    assert (one(made, body, mime=mime) is not None) == is_page


def test_only_answers_that_are_pages_have_words(made):
    made.response("http://a.org/", b"<p>gone", status="404 Not Found").response(
        "http://a.org/robots.txt", b"User-agent: *", mime="text/plain"
    )
    made.record("resource", "http://b.org/", b"<p>kept", mime="text/html").record(
        "conversion", "http://c.org/", b"<p>made", mime="text/html"
    )
    found, _ = pages(made.done())
    assert [(page.text, page.gone) for page in found] == [("", True), ("kept", False)]


def test_content_coding_is_undone_up_to_the_limit(made):
    made.response(
        "http://a.org/", gzip.compress(b"<p>" + b"word " * 1000), headers=[("Content-Encoding", "gzip")]
    )
    made.response(
        "http://bomb.org/",
        gzip.compress(b"<p>" + b"word " * 2_000_000, mtime=0),
        headers=[("Content-Encoding", "gzip")],
        digest=False,
    )
    found, _ = pages(made.done(), limit_bytes=100_000)
    assert found[0].text.split() == ["word"] * 1000
    assert 90_000 < len(found[1].text) <= 100_000
    assert found[1].digest == str(sha1(gzip.compress(b"<p>" + b"word " * 2_000_000, mtime=0)))


def test_a_page_without_main_content_keeps_its_whole_text(made):
    body = "<ul>" + "".join(f"<li><a href=/{number}>Link {number}</a></li>" for number in range(30)) + "</ul>"
    assert "Link 7" in one(made, body.encode()).text


HOSTILE = {
    "deep": "<div>" * 100_000 + "needle",
    "deep with ends": "<div>" * 50_000 + "needle" + "</div>" * 50_000,
    "attributes": "<div " + " ".join(f"a{number}=1" for number in range(60_000)) + ">needle",
    "line breaks": "x<br>" * 400_000 + "needle",
    "formatting": "<b><i><u><p>" * 40_000 + "needle",
    "open tags": "<" * 500_000 + "> needle",
    "comments": "<!--" * 300_000 + "--> needle",
    "scripts": "<script>" * 100_000 + "</script> needle",
    "entities": "&amp;" * 300_000 + " needle",
    "spaces": " " * 2_000_000 + "needle",
    "line ends": "\n" * 2_000_000 + "needle",
    "one word": "x" * 2_000_000 + " needle",
}


@pytest.mark.parametrize("name", sorted(HOSTILE))
@pytest.mark.timeout(60)  # a tree of these would take minutes
def test_mark_up_made_to_be_slow(name):
    assert text.tidy(html.words_of_html(HOSTILE[name], "http://example.org/").text).endswith("needle")


def test_real_pages_with_many_tags_get_a_tree():
    table = "<table>" + "<tr><td><p>cell<br><img src=x></td></tr>" * 3000 + "</table>"
    assert not html.is_slow(f"<html><body><div><div>{table}</div></div></body></html>")


@settings(max_examples=200)
@given(
    st.binary(max_size=300),
    st.sampled_from(["", "utf-8", "latin1", "utf-16", "x-nonsense", "shift_jis", "\u0130"]),
)
def test_any_bytes_become_text(data, charset):
    assert isinstance(text.decode(data, charset, is_html=True), str)
    found = html.words_of_html(
        text.decode(b"<html><title>x</title><p>" + data, charset, is_html=True), "http://example.org/"
    )
    for words in (found.title, found.headings, found.text, found.images):
        assert "\0" not in text.tidy(words)


def test_languages_are_distinguished_among_those_given():
    sentences = {
        "nl": "De bibliotheek is vandaag gesloten voor het publiek",
        "de": "Die Bibliothek bleibt heute geschlossen",
        "en": "The library is closed to the public today",
    }
    for language, sentence in sentences.items():
        assert language_of(sentence, LANGUAGES) == language
    long = "De raad van de gemeente heeft het voorstel voor een nieuwe brug over het water niet aangenomen, maar zal er nog naar kijken."
    assert language_of(long, LANGUAGES) == language_of(long, ("sv", "nl", "pl")) == "nl"
    assert language_of("", LANGUAGES) == language_of("123 --", LANGUAGES) == ""
    assert language_of(sentences["nl"], ("de", "en")) in ("de", "en")
    assert language_of(sentences["nl"], ("nl", "no-such-language")) == "nl"
    assert language_of(sentences["nl"], ("no-such-language",)) == ""


# --- revisits ---


def test_a_revisit_of_this_container_has_the_words_of_its_original(made):
    made.response("http://a.org/", b"<title>T</title><p>same words").revisit(
        "http://b.org/", str(sha1(b"<title>T</title><p>same words")), date="2021-01-01T00:00:00Z"
    )
    (first, second), _ = pages(made.done())
    assert (second.url, second.timestamp, second.text, second.title, second.repeats) == (
        "http://b.org/",
        "20210101000000",
        first.text,
        "T",
        False,
    )


def test_a_revisit_of_another_container_repeats(made):
    made.revisit("http://a.org/", "sha1:" + "A" * 32).revisit(
        "http://b.org/i.png", "sha1:" + "B" * 32, mime="image/png"
    )
    made.revisit("http://c.org/", "sha1:" + "C" * 32, head=False).revisit(
        "http://d.org/", "sha1:" + "D" * 32, status="404 Not Found"
    )
    found, _ = pages(made.done())
    assert [(page.url, page.digest[-1], page.text, page.repeats) for page in found] == [
        ("http://a.org/", "A", "", True),
        ("http://c.org/", "C", "", True),
    ]


# --- PDF ---


def pdf_of(*pages_of_text, title=""):
    document = pikepdf.new()
    font = document.make_indirect(
        pikepdf.Dictionary(
            Type=pikepdf.Name.Font, Subtype=pikepdf.Name.Type1, BaseFont=pikepdf.Name.Helvetica
        )
    )
    for words in pages_of_text:
        page = document.add_blank_page(page_size=(600, 800))
        page.Contents = document.make_stream(b"BT /F1 10 Tf 50 700 Td " + words + b" ET")
        page.Resources = pikepdf.Dictionary(Font=pikepdf.Dictionary(F1=font))
    if title:
        document.docinfo["/Title"] = title
    stream = io.BytesIO()
    document.save(stream)
    return stream.getvalue()


def test_words_of_a_pdf(made):
    data = pdf_of(b"(De gemeente besluit) Tj", b"(over het archief) Tj", title="Besluit 12")
    made.response("http://a.org/x.pdf", data, mime="application/pdf").response(
        "http://a.org/y", data, mime="application/octet-stream"
    )
    found, findings = pages(made.done())
    assert [(page.title, page.text.split(), page.mime, page.language) for page in found] == [
        ("Besluit 12", ["De", "gemeente", "besluit", "over", "het", "archief"], "application/pdf", "nl")
    ] * 2
    assert findings == []


def test_a_broken_pdf_is_reported_and_stops_nothing(made):
    made.response("http://a.org/x.pdf", b"%PDF-1.4 nonsense", mime="application/pdf").response(
        "http://a.org/", b"<p>fine"
    )
    found, findings = pages(made.done())
    assert [page.text for page in found] == ["fine"]
    assert [(finding.code, finding.subject) for finding in findings] == [
        ("text-unread", "http://a.org/x.pdf")
    ]


def test_a_pdf_bomb_costs_its_own_process_alone():
    bomb = pdf_of(b"(" + b"bomb " * 4_000_000 + b") Tj")
    with DocumentReader(time_s=3) as reader:
        found = reader.read_pdf(bomb, limit_chars=1000)
        assert found.error or len(found.text) <= 1000
        assert reader.read_pdf(pdf_of(b"(fine) Tj"), limit_chars=1000).text.strip() == "fine"


def test_a_process_that_was_killed_is_restarted():
    with DocumentReader() as reader:
        assert reader.read_pdf(pdf_of(b"(one) Tj"), limit_chars=10).text.strip() == "one"
        os.kill(reader._guard.pid, signal.SIGKILL)
        os.waitid(os.P_PID, reader._guard.pid, os.WEXITED | os.WNOWAIT)
        assert reader.read_pdf(pdf_of(b"(two) Tj"), limit_chars=10).text.strip() == "two"


def test_the_text_of_a_pdf_is_limited():
    with DocumentReader() as reader:
        assert (
            len(reader.read_pdf(pdf_of(b"(" + b"word " * 1000 + b") Tj", b"(more) Tj"), limit_chars=100).text)
            <= 101
        )


# --- office documents, pictures, links ---


def zipped(**parts):
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED) as document:
        for name, content in parts.items():
            document.writestr(name.replace("__", "/").replace("_", "."), content)
    return made.getvalue()


WORD = "application/vnd.openxmlformats-officedocument.wordprocessingml.document"
OFFICE = {
    WORD: {
        "word__document_xml": '<w:document xmlns:w="w"><w:body><w:p><w:r><w:t>the old</w:t></w:r><w:r><w:t> harbour</w:t></w:r></w:p>'
        "<w:p><w:r><w:t>second</w:t></w:r></w:p></w:body></w:document>",
        "docProps__core_xml": '<c xmlns:dc="http://purl.org/dc/elements/1.1/"><dc:title>A letter</dc:title></c>',
    },
    "application/vnd.openxmlformats-officedocument.presentationml.presentation": {
        "ppt__slides__slide1_xml": '<p:sld xmlns:p="p" xmlns:a="a"><a:p><a:r><a:t>the old harbour</a:t></a:r></a:p></p:sld>'
    },
    "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet": {
        "xl__sharedStrings_xml": "<sst><si><t>the old harbour</t></si><si><t>42</t></si></sst>"
    },
    "application/vnd.oasis.opendocument.text": {
        "content_xml": '<o:d xmlns:o="o" xmlns:text="t"><text:p>the <text:span>old</text:span> harbour</text:p></o:d>'
    },
}


@pytest.mark.parametrize("mime", sorted(OFFICE))
def test_words_of_office_documents(made, mime):
    made.response("http://a.org/x", zipped(**OFFICE[mime]), mime=mime)
    (found,), findings = pages(made.done())
    assert "the old harbour" in " ".join(found.text.split())
    assert (found.mime, findings) == (mime, [])
    assert found.title == ("A letter" if mime == WORD else "")


def test_office_documents_that_are_bombs_or_broken_are_bounded_and_reported(made):
    bomb = zipped(word__document_xml="<w:p xmlns:w='w'><w:t>" + "x" * 50_000_000 + "</w:t></w:p>")
    entities = (
        "<!DOCTYPE d [<!ENTITY a '"
        + "y" * 1000
        + "'><!ENTITY b '"
        + "&a;" * 1000
        + "'>]><d><t>"
        + "&b;" * 1000
        + "</t></d>"
    )
    made.response("http://a.org/1", bomb, mime=WORD).response(
        "http://a.org/2", b"PK\x03\x04 broken", mime=WORD
    )
    made.response("http://a.org/3", zipped(word__document_xml=entities), mime=WORD).response(
        "http://a.org/4", zipped(other="x"), mime=WORD
    )
    found, findings = pages(made.done(), limit_bytes=100_000)
    assert all(len(page.text) <= 100_000 for page in found)
    assert {finding.code for finding in findings} == {"text-unread"}
    assert {finding.subject for finding in findings} >= {"http://a.org/2", "http://a.org/4"}


def test_pictures_and_links_that_lead_away(made):
    body = (
        b'<p>x<img src="/img/red%20barn.jpg?w=1" alt="A barn &amp; a tree"><img src="data:image/png;base64,xx"><a href="/own.html">Own</a>'
        b'<a href="http://www.a.org/other">Same site</a><a class=x href="https://b.org/page"> The <b>best</b> page </a>'
        b'<a href="report.PDF">Report</a>'
    )
    made.response("http://a.org/", body)
    (found,), _ = pages(made.done())
    assert found.images == "A barn & a tree red barn.jpg"
    assert found.links == (("org,b)/page", "The best page"), ("org,a)/report.pdf", "Report"))


def test_likeness_tells_nearly_equal_texts():
    words = [f"word{number}" for number in range(400)]
    one, other = " ".join(words), " ".join([*words[:399], "changed"])
    assert (
        near_duplicates.likeness(one) ^ near_duplicates.likeness(other)
    ).bit_count() <= near_duplicates.FARTHEST_BITS
    assert (
        near_duplicates.likeness(one)
        ^ near_duplicates.likeness(" ".join(f"else{number}" for number in range(400)))
    ).bit_count() > 10
    assert near_duplicates.likeness("too short") == 0
