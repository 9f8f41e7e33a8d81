"""Texts of office documents: the input is the XML of one part, or a whole ZIP file."""

import zipfile
from io import BytesIO

from webdepot.index.content import office

TOKENS = (
    b"<w:document xmlns:w='http://schemas.openxmlformats.org/wordprocessingml/2006/main'>",
    b"<w:p><w:r><w:t>", b"</w:t></w:r></w:p>", b"<office:text>", b"<text:p>",
    b"<!DOCTYPE a [<!ENTITY x 'y'>]>", b"&x;", b"<![CDATA[", b"PK\x03\x04",
    b"<dc:title xmlns:dc='http://purl.org/dc/elements/1.1/'>", b"encoding='utf-16'", b"<?pi?>", b"<!-- -->",
    b"<a:p>",
)  # fmt: skip


def one_input(data: bytes) -> None:
    for form in (data, _document(data)):
        try:
            _, text = office.words_of_office(form, limit_chars=10_000)
            assert len(text) <= 10_100
        except office.Unread:
            continue


def _document(xml: bytes) -> bytes:
    archive = BytesIO()
    with zipfile.ZipFile(archive, "w") as packed:
        for name in (
            "word/document.xml",
            "content.xml",
            "ppt/slides/slide1.xml",
            "docProps/core.xml",
            "meta.xml",
        ):
            packed.writestr(name, xml)
    return archive.getvalue()
