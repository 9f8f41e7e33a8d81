"""Small good files of many kinds, made here, and containers to put them in."""

import gzip
import io
import json
import uuid
import wave
import zipfile

import pikepdf
from PIL import Image

HTML = b"""<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8"><title>A page</title></head><body><h1>A page</h1><p>Words &amp; more &euro;</p></body></html>
"""
XHTML = (
    b'<?xml version="1.0" encoding="UTF-8"?>\n<!DOCTYPE html PUBLIC "-//W3C//DTD XHTML 1.0 Strict//EN" '
    b'"http://www.w3.org/TR/xhtml1/DTD/xhtml1-strict.dtd">\n<html xmlns="http://www.w3.org/1999/xhtml"><head><title>x</title></head>'
    b"<body><p>&nbsp;x</p></body></html>"
)


def image(
    kind: str, *, size: tuple[int, int] = (32, 24), mode: str = "RGB", frames: int = 1, **options
) -> bytes:
    first, *more = [Image.effect_noise(size, 40 + number).convert(mode) for number in range(frames)]
    buffer = io.BytesIO()
    first.save(buffer, kind, **options, **({"save_all": True, "append_images": more} if more else {}))
    return buffer.getvalue()


def pdf(pages: int = 2, **options) -> bytes:
    buffer = io.BytesIO()
    with pikepdf.new() as document:
        for _ in range(pages):
            document.add_blank_page()
        document.save(buffer, **options)
    return buffer.getvalue()


def zipped(members: dict[str, bytes]) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in members.items():
            archive.writestr(name, data)
    return buffer.getvalue()


def slow_zip() -> bytes:
    """A ZIP file whose check takes over half a second of CPU time: each of its members costs some steps."""
    return zipped({str(number): b"x" * 200 for number in range(40_000)})


def docx(
    body: bytes = b"<w:document xmlns:w='http://schemas.openxmlformats.org/wordprocessingml/2006/main'/>",
) -> bytes:
    types = (
        b'<?xml version="1.0" encoding="UTF-8" standalone="yes"?><Types xmlns="http://schemas.openxmlformats.org/package/2006/content-types">'
        b'<Override PartName="/word/document.xml" '
        b'ContentType="application/vnd.openxmlformats-officedocument.wordprocessingml.document.main+xml"/>'
        b"</Types>"
    )
    return zipped({"[Content_Types].xml": types, "word/document.xml": b'<?xml version="1.0"?>' + body})


def wav() -> bytes:
    buffer = io.BytesIO()
    with wave.open(buffer, "wb") as sound:
        sound.setnchannels(2)
        sound.setsampwidth(2)
        sound.setframerate(8000)
        sound.writeframes(bytes(range(200)) * 2)
    return buffer.getvalue()


def good_files() -> dict[str, tuple[bytes, str, str]]:
    """Name to bytes, PRONOM identifier and the validity to be found."""
    return {
        "a.png": (image("PNG"), "fmt/11", "valid"),
        "palette.png": (image("PNG", mode="P"), "fmt/11", "valid"),
        "a.jpg": (image("JPEG"), "fmt/43", "valid"),
        "progressive.jpg": (image("JPEG", progressive=True), "fmt/43", "valid"),
        "a.gif": (image("GIF", mode="P"), "fmt/3", "valid"),
        "moving.gif": (image("GIF", mode="P", frames=3, loop=0), "fmt/4", "valid"),
        "a.webp": (image("WEBP"), "fmt/566", "valid"),
        "a.tif": (image("TIFF"), "fmt/353", "valid"),
        "packed.tif": (image("TIFF", compression="tiff_lzw"), "fmt/353", "valid"),
        "a.bmp": (image("BMP"), "fmt/116", "valid"),
        "a.ico": (image("ICO"), "x-fmt/418", "valid"),
        "a.pdf": (pdf(), "fmt/17", "valid"),
        "streams.pdf": (pdf(object_stream_mode=pikepdf.ObjectStreamMode.generate), "fmt/19", "valid"),
        "a.zip": (zipped({"a.txt": b"x" * 500, "ü/b": b""}), "x-fmt/263", "valid"),
        "a.docx": (docx(), "fmt/412", "valid"),
        "a.gz": (gzip.compress(b"hello" * 100), "x-fmt/266", "valid"),
        "two.gz": (gzip.compress(b"one") + gzip.compress(b"two"), "x-fmt/266", "valid"),
        "a.wav": (wav(), "fmt/141", "valid"),
        "a.html": (HTML, "fmt/471", "valid"),
        "latin.html": ("<!DOCTYPE html><html><title>ü</title><p>ü".encode("latin-1"), "fmt/471", "valid"),
        "a.xhtml": (XHTML, "fmt/102", "well-formed"),
        "a.xml": (b'<?xml version="1.0"?><a><b c="d">e</b></a>', "fmt/101", "well-formed"),
        "bare.xml": (b"<link><a/></link>", "fmt/101", "well-formed"),
        "rss.xml": (b'<?xml version="1.0"?><rss version="2.0"><channel/></rss>', "fmt/101", "well-formed"),
        "utf16.xml": (
            '<?xml version="1.0" encoding="utf-16"?><a>ü</a>'.encode("utf-16"),
            "fmt/101",
            "well-formed",
        ),
        "a.svg": (b'<svg xmlns="http://www.w3.org/2000/svg"><g/></svg>', "fmt/92", "well-formed"),
        "one.svg": (
            b'<?xml version="1.0"?><!-- x --><svg xmlns="http://www.w3.org/2000/svg" version="1.0"/>',
            "fmt/91",
            "well-formed",
        ),
        "a.css": (b"@charset 'utf-8';\nbody > p { color: #fff }\n", "x-fmt/224", "valid"),
        "variables.css": (b":root{--a:1px}", "x-fmt/224", "valid"),
        "a.js": (b"(function(){ 'use strict'; var a = 1; })();", "x-fmt/423", "valid"),
        "module.js": (b"import x from './y.js'", "x-fmt/423", "valid"),
        "a.json": (json.dumps({"a": [1, 2.5, None, "ü"]}).encode(), "fmt/817", "valid"),
        "a.txt": ("Grüße aus Köln".encode(), "x-fmt/111", "valid"),
        "ascii.txt": (b"plain words\r\n", "x-fmt/111", "valid"),
        "latin.txt": ("Grüße aus Köln".encode("latin-1"), "x-fmt/111", "well-formed"),
        "utf16.txt": ("Grüße".encode("utf-16"), "x-fmt/111", "valid"),
    }


def record(
    url: str,
    block: bytes,
    *,
    kind: str = "response",
    content_type: str = "application/http; msgtype=response",
    **fields: str,
) -> bytes:
    """One WARC record as a gzip member."""
    named = {
        "WARC-Type": kind,
        "WARC-Target-URI": url,
        "WARC-Date": "2024-05-17T12:30:00Z",
        "WARC-Record-ID": uuid.uuid4().urn,
        **fields,
    }
    lines = [f"{name}: {value}" for name, value in named.items()] + [
        f"Content-Type: {content_type}",
        f"Content-Length: {len(block)}",
    ]
    return gzip.compress("\r\n".join(["WARC/1.0", *lines, "", ""]).encode() + block + b"\r\n\r\n", 1, mtime=0)


def response(url: str, body: bytes, mime: str = "", *headers: str, **fields: str) -> bytes:
    lines = ["HTTP/1.1 200 OK", *([f"Content-Type: {mime}"] if mime else []), *headers, "", ""]
    return record(url, "\r\n".join(lines).encode() + body, **fields)
