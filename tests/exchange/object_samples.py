"""Objects for tests: their descriptions, and how they are put together, taken in and handed on."""

import io
import os
import wave
import zipfile
from datetime import UTC, datetime
from pathlib import Path

from PIL import Image

from webdepot.access.policy import ANYONE, Reader
from webdepot.archive import Archive
from webdepot.depot import package
from webdepot.services.catalogue import records
from webdepot.services.exchange import (
    object_delivery,
)
from webdepot.services.intake import submissions

PAGE = b"<!doctype html><title>Clocks</title><p>The escapement of Huygens, with cycloidal cheeks.</p>"
NOTES = b"Tower clocks of Friesland, a list."
WRITTEN = datetime(2004, 9, 24, 10, tzinfo=UTC)
DC = """<oai_dc:dc xmlns:oai_dc="http://www.openarchives.org/OAI/2.0/oai_dc/" xmlns:dc="http://purl.org/dc/elements/1.1/">
<dc:title>Pendulum clocks</dc:title><dc:creator>Huygens, Christiaan</dc:creator><dc:type>doctoralThesis</dc:type>
<dc:date>2004</dc:date><dc:rights>info:eu-repo/semantics/restrictedAccess</dc:rights></oai_dc:dc>"""
OPEN = DC.replace("info:eu-repo/semantics/restrictedAccess", "CC BY 4.0")
DSPACE = """<dublin_core schema="dc"><dcvalue element="title" qualifier="none">Pendulum clocks</dcvalue>
<dcvalue element="contributor" qualifier="author">Huygens, Christiaan</dcvalue>
<dcvalue element="date" qualifier="available">2020-01-01</dcvalue><dcvalue element="date" qualifier="issued">2004</dcvalue>
<dcvalue element="type" qualifier="none">Thesis or dissertation</dcvalue></dublin_core>"""
MARC = """<collection xmlns="http://www.loc.gov/MARC21/slim"><record><leader>00000naa a2200000uu 4500</leader>
<datafield tag="100" ind1="1" ind2=" "><subfield code="a">Huygens, Christiaan,</subfield></datafield>
<datafield tag="245" ind1="1" ind2="0"><subfield code="a">On cheeks /</subfield></datafield>
<datafield tag="773" ind1="0" ind2=" "><subfield code="t">Horology.</subfield><subfield code="x">1234-5679</subfield>
<subfield code="g">Vol. 12, no. 3 (2004), p. 1-9</subfield></datafield></record></collection>"""
MODS = """<mods xmlns="http://www.loc.gov/mods/v3"><titleInfo><nonSort>The</nonSort><title>pendulum</title></titleInfo>
<name type="personal"><namePart type="family">Huygens</namePart><namePart type="given">Christiaan</namePart>
<role><roleTerm type="code">aut</roleTerm></role></name><name><namePart>A printer</namePart><role><roleTerm>prt</roleTerm></role></name>
<genre>thesis</genre><originInfo><publisher>Leiden</publisher><dateIssued>2004-05</dateIssued></originInfo>
<language><languageTerm type="code">eng</languageTerm></language><identifier type="doi">10.1000/1</identifier>
<accessCondition>CC BY</accessCondition></mods>"""
JATS = """<?xml version="1.0"?><!DOCTYPE article PUBLIC "-//NLM//DTD JATS (Z39.96) Journal Publishing DTD v1.2//EN" "JATS.dtd">
<article xml:lang="en"><front><journal-meta><journal-title-group><journal-title>Horology</journal-title></journal-title-group>
<issn>1234-5679</issn></journal-meta><article-meta><article-id pub-id-type="doi">10.1000/2</article-id>
<title-group><article-title>On the <italic>verge</italic></article-title></title-group><contrib-group>
<contrib contrib-type="author"><name><surname>Fromanteel</surname><given-names>Ahasuerus</given-names></name></contrib></contrib-group>
<pub-date><day>5</day><month>3</month><year>2004</year></pub-date><volume>12</volume><issue>3</issue></article-meta></front>
<body><p>The verge and its crown wheel.</p></body></article>"""


def folder_of(path: Path, files: dict[str, bytes | str]) -> Path:
    path.mkdir(parents=True, exist_ok=True)
    for name, data in files.items():
        (path / name).parent.mkdir(parents=True, exist_ok=True)
        (path / name).write_bytes(data if isinstance(data, bytes) else data.encode())
        os.utime(path / name, (WRITTEN.timestamp(), WRITTEN.timestamp()))
    return path


def take(archive: Archive, path: Path):
    done = submissions.receive(archive, path, collection="theses")
    assert done.receipt.reasons == ()
    assert done.package is not None
    return done, records.get(archive, done.package.urn)


def delivered(archive: Archive, key: str, *, reader: Reader = ANYONE) -> dict[str, bytes]:
    """The files that a partner fetches."""
    found = object_delivery.hand_over(archive, key, reader=reader)
    with zipfile.ZipFile(io.BytesIO(b"".join(found.pieces(0, found.layout.size_bytes)))) as packed:
        return {name: packed.read(name) for name in packed.namelist()}


def kept(archive: Archive, identifier: str) -> dict[str, bytes]:
    facts = package.read(archive.store, identifier)
    files = {}
    for name in facts.inventory.files():
        with package.open_file(archive.store, facts, name) as stream:
            files[name] = stream.read()
    return files


def picture(colour: str) -> bytes:
    file = io.BytesIO()
    Image.new("RGB", (40, 30), colour).save(file, "PNG")
    return file.getvalue()


def sound() -> bytes:
    file = io.BytesIO()
    with wave.open(file, "wb") as writer:
        writer.setnchannels(1)
        writer.setsampwidth(2)
        writer.setframerate(8000)
        writer.writeframes(b"\0\1" * 800)
    return file.getvalue()
