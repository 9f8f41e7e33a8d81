"""Text of pages for the index: decoding, words, pictures, language, meta tags."""

from fuzz.targets.html_links import TOKENS as _HTML
from webdepot.exchange.metadata import meta_tags
from webdepot.index.content import text as content
from webdepot.index.content.html import pictures_of_html, shown_by_scripts, words_of_html
from webdepot.index.content.language import language_of

TOKENS = (
    *_HTML,
    b"<title>",
    b"<html lang=",
    b"<meta name=description content=",
    b"<p>",
    b"<table><tr><td>",
    b"<select>",
    b"<math>",
    b"<plaintext>",
)


def one_input(data: bytes) -> None:
    for charset in ("", "iso-2022-jp", "utf-7"):
        text = content.decode(data, charset, is_html=True)
    content.tidy(text)
    words = words_of_html(text, "http://a.example/")
    pictures_of_html(text)
    shown_by_scripts(text, text[:200])
    language_of(text, ("en", "de", "nl"))
    meta_tags.read(text)
    assert words is not None
