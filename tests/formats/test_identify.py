"""Identification: good files of many kinds, lying servers, cut-off files, hostile bytes."""

import pytest
from format_samples import HTML, good_files, image
from hypothesis import given, settings
from hypothesis import strategies as st

from webdepot.formats import media, sniff
from webdepot.formats.identify import SiegfriedIdentifier, ending_of
from webdepot.model import Basis, FormatVerdict

GOOD = good_files()


@pytest.mark.parametrize("name", GOOD)
def test_good_files(identifier, name):
    data, puid, _ = GOOD[name]
    found = identifier.identify(data, name=f"https://www.example.org/x/{name}?a=b#c", mime="")
    assert (found.puid, found.verdict, found.warning) == (puid, FormatVerdict.RECOGNISED, "")


@pytest.mark.parametrize("name", ["a.png", "a.html", "a.json", "a.css"])
def test_from_a_path(identifier, tmp_path, name):
    path = tmp_path / "without an extension"
    path.write_bytes(GOOD[name][0])
    assert identifier.identify(path, name=name, mime="") == identifier.identify(
        GOOD[name][0], name=name, mime=""
    )


@pytest.mark.parametrize(
    ("name", "said", "data", "puid", "basis"),
    [
        ("/news", "text/css", b"a{}", "x-fmt/224", Basis.TEXT),
        ("/news", "application/x-javascript", b"alert(1);", "x-fmt/423", Basis.TEXT),
        ("/index.php", "text/html", b"<p>hello</p>", "fmt/96", Basis.TEXT),
        ("/style.php", "text/css", b"p { margin: 0 }", "x-fmt/224", Basis.TEXT),
        ("/api", "application/ld+json; charset=utf-8", b'[{"@id": 1}]', "fmt/817", Basis.TEXT),
        ("/feed", "application/rss+xml", b"<rss><channel/></rss>", "fmt/101", Basis.TEXT),
        ("/x", "text/plain", b"hello", "x-fmt/111", Basis.TEXT),
        ("/a.js", "text/javascript", b"<!-- old habit\nvar a = 1;\n//-->", "x-fmt/423", Basis.TEXT),
        ("/a.js", "text/javascript", b"var a = '" + b"x" * 2000 + b"\x1e';", "x-fmt/423", Basis.TEXT),
        (
            "/page",
            "text/html",
            b"<!-- " + b"long comment " * 400 + b"--><html><body>x</body></html>",
            "fmt/96",
            Basis.TEXT,
        ),
    ],
)
def test_text_that_pronom_does_not_know(identifier, name, said, data, puid, basis):
    found = identifier.identify(data, name=f"https://www.example.org{name}", mime=said)
    assert (found.puid, found.basis, found.verdict, found.warning) == (
        puid,
        basis,
        FormatVerdict.RECOGNISED,
        "",
    )


@pytest.mark.parametrize(
    ("name", "said", "data", "puid"),
    [
        ("a.jpg", "image/jpeg", image("PNG"), "fmt/11"),
        ("a.js", "application/javascript", HTML, "fmt/471"),
        ("a.css", "text/css", HTML, "fmt/471"),
        ("a", "text/plain", HTML, "fmt/471"),
        ("a.txt", "text/html", image("GIF", mode="P"), "fmt/3"),
    ],
)
def test_a_server_that_is_wrong(identifier, name, said, data, puid):
    found = identifier.identify(data, name=name, mime=said)
    assert (found.puid, found.warning) == (puid, f"the server said {said}")


def test_a_name_that_is_wrong(identifier):
    found = identifier.identify(image("PNG"), name="a.jpg", mime="")
    assert (found.puid, found.verdict) == ("fmt/11", FormatVerdict.RECOGNISED)
    assert found.warning == "its name is that of JPEG"
    assert identifier.identify(image("PNG"), name="a.jpg", mime="image/png").warning == "", (
        "a server that is right is enough"
    )
    assert identifier.identify(image("PNG"), name="picture.php", mime="").warning == "", (
        "a program's name says nothing"
    )


@pytest.mark.parametrize(
    ("kind", "mode", "puid"), [("PNG", "RGB", "fmt/11"), ("JPEG", "RGB", "fmt/43"), ("GIF", "P", "fmt/3")]
)
def test_cut_off_images_are_uncertain_with_a_reason(identifier, kind, mode, puid):
    found = identifier.identify(image(kind, mode=mode)[:-20], name="x", mime="")
    assert (found.puid, found.verdict) == (puid, FormatVerdict.UNCERTAIN)
    assert "its end is missing" in found.warning


@pytest.mark.parametrize(
    ("data", "name", "said", "verdict", "basis"),
    [
        (b"", "a.html", "text/html", FormatVerdict.NOT_RECOGNISED, Basis.NOTHING),
        (bytes(range(256)), "x", "", FormatVerdict.NOT_RECOGNISED, Basis.NOTHING),
        (bytes(range(256)), "x", "image/x-new", FormatVerdict.UNCERTAIN, Basis.SERVER),
        (bytes(range(256)), "x", "application/octet-stream", FormatVerdict.NOT_RECOGNISED, Basis.NOTHING),
        (b"just words", "x", "", FormatVerdict.UNCERTAIN, Basis.TEXT),
        (b"just words", "x.css", "", FormatVerdict.UNCERTAIN, Basis.EXTENSION),
        (b"just words", "x", "text/css", FormatVerdict.UNCERTAIN, Basis.SERVER),
    ],
)
def test_what_is_not_sure(identifier, data, name, said, verdict, basis):
    found = identifier.identify(data, name=name, mime=said)
    assert (found.verdict, found.basis) == (verdict, basis)
    assert found.warning


def test_a_disk_image_says_what_it_is_far_inside(identifier):
    """Of large files only the beginning and the end are shown to the signatures."""
    volume = b"\x01CD001\x01\0" + b"LINUX".ljust(32) + b"MUSEUM 2003".ljust(32)
    image = bytes(32_768) + volume.ljust(2048, b"\0") + b"\xffCD001\x01".ljust(2048, b"\0") + bytes(300_000)
    assert identifier.identify(image, name="museum.iso", mime="").puid == "fmt/468"
    plain = identifier.identify(image.replace(b"CD001", b"xxxxx"), name="museum.bin", mime="")
    assert plain.puid != "fmt/468"


def test_the_engine_names_its_signatures(identifier):
    assert "siegfried" in identifier.engine
    assert "DROID_SignatureFile" in identifier.engine
    assert "resolver" in identifier.engine


def test_closing_removes_the_folder():
    with SiegfriedIdentifier() as opened:
        opened.identify(b"x", name="x", mime="")
        folder = opened._slots[0]._folder
        assert folder.is_dir()
    assert not folder.exists()


@pytest.mark.parametrize(
    ("name", "ending"),
    [
        ("https://a.example/x/y.PDF?z=1.png#k", ".pdf"),
        ("https://a.example/x.y/z.PDF", ".pdf"),
        ("https://a.example/", ""),
        ("https://a.example", ""),
        ("y.tar.gz", ".tar.gz"),
        ("https://a.example/v1.2/x", ""),
        ("https://a.example/v1.2.js", ".js"),
        ("https://[bad/x.png", ".png"),
        ("x.with space", ".with space"),
        ("x.and a sentence that is not an extension", ""),
        ("folder.d/.DS_Store", ".ds_store"),
        ('x.a"b', ""),
        ("x.\ud800", ""),
        (".htaccess", ".htaccess"),
    ],
)
def test_endings(name, ending):
    assert ending_of(name) == ending


@given(st.binary(max_size=400), st.text(max_size=30), st.text(max_size=30))
@settings(max_examples=150, deadline=None)
def test_any_bytes_have_an_answer(identifier, data, name, said):
    found = identifier.identify(data, name=name, mime=said)
    assert (found.verdict is FormatVerdict.RECOGNISED) <= bool(found.mime or found.puid)


@given(st.text(st.sampled_from("<>!-?/ =\"'[]{}()ahtmlsvgxDOCTYPE:;@*\n"), max_size=300))
@settings(max_examples=300, deadline=None)
def test_any_markup_has_an_answer(text):
    sniff.markup(text)
    sniff.markup(text, expects_xml=True)
    sniff.is_css(text)
    sniff.is_javascript(text)
    sniff.json_text(text, is_all=True)
    sniff.json_text(text, is_all=False)


def test_html_behind_an_xml_declaration_is_what_its_server_calls_it():
    text = "<?xml version='1.0'?><html><body/></html>"
    assert sniff.markup(text).mime == "text/html"
    assert sniff.markup(text, expects_xml=True).mime == "application/xml"


@pytest.mark.parametrize(
    "piece", ["<!--", "<a ", "a(", "a = ", "{", "@", "/*", "<!DOCTYPE html [", "a" * 50, '{"a', " ", "<?x"]
)
def test_hostile_repetition_takes_linear_time(piece):
    """Without bounds in the patterns one of these would take minutes; the suite's time limit is the judge."""
    text = piece * (sniff.HEAD_BYTES // len(piece))
    for look in (
        sniff.markup,
        sniff.is_css,
        sniff.is_javascript,
        lambda each: sniff.json_text(each, is_all=False),
    ):
        look(text)


@pytest.mark.parametrize(
    ("said", "found", "agree"),
    [
        ("text/javascript", "application/javascript", True),
        ("text/xml", "application/rss+xml", True),
        ("application/xhtml+xml", "text/html", True),
        ("", "image/png", True),
        ("application/octet-stream", "image/png", True),
        ("text/plain", "text/csv", True),
        ("text/plain", "application/json", True),
        ("text/plain", "text/css", False),
        ("text/html", "application/json", False),
        ("image/svg+xml", "application/xml", False),
        ("image/jpeg", "image/png", False),
    ],
)
def test_media_types_that_agree(said, found, agree):
    assert media.agree(said, found) is agree


@pytest.mark.parametrize(
    ("header", "mime"),
    [
        ("Text/HTML; charset=x", "text/html"),
        ("", ""),
        ("html", ""),
        ("a/b/c", ""),
        ("text/html, text/plain", "text/html"),
    ],
)
def test_essence(header, mime):
    assert media.essence(header) == mime
