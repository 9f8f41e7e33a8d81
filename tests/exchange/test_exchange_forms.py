"""Objects exported and imported as UOF; the same OAI answers from a depot that was rebuilt; ZIP64."""

import hashlib
import io
import os
import zipfile
from pathlib import Path

import pytest
from exchange_samples import Warc, transfer_of
from lxml import etree
from oai_rules import METS, schema

from webdepot.archive import Archive
from webdepot.exchange import transfer_zip
from webdepot.exchange.catalogue import RecordLevel
from webdepot.exchange.metadata import lmer
from webdepot.exchange.transfer_zip import Layout, TransferFile, TransferForm
from webdepot.services import pipeline
from webdepot.services.admin import rebuild, setup
from webdepot.services.catalogue import records
from webdepot.services.depot import export, withdrawal
from webdepot.services.exchange import oai_provider, object_delivery
from webdepot.services.intake import submissions

M = {"m": METS, "x": "http://www.w3.org/1999/xlink"}


@pytest.fixture
def kept(archive: Archive, tmp_path: Path):
    warc = (
        Warc(tmp_path / "one.warc.gz")
        .response("http://a.example/", "20260301093000", b"<title>Uhren</title>")
        .write()
    )
    taken = pipeline.import_files(archive, [warc], collection="museums").taken
    assert taken is not None
    own = records.find_of_harvest(archive, taken.harvest.id)
    records.write(
        archive, own.parent, {"title": "Uhrenmuseum", "publisher": "Stadt", "creators": ["Huygens, C."]}
    )
    return records.get(archive, own.key)


def test_uof_out_and_in_again_elsewhere(archive, kept, tmp_path):
    target = tmp_path / "object.zip"
    done = export.export(archive, kept.urn, export.PackageForm.UOF, target)
    with zipfile.ZipFile(target) as packed:
        names = packed.namelist()
        root = etree.fromstring(packed.read("mets.xml"))
        files = {
            name.removeprefix("content/"): hashlib.sha256(packed.read(name)).hexdigest() for name in names[1:]
        }
    assert names[0] == "mets.xml"
    if known := schema():
        known.assertValid(root)
    assert root.get("OBJID") == done.package.id
    groups = root.findall(".//m:fileGrp", M)
    assert len(groups) == 1
    listed = {each.find("m:FLocat", M).get(f"{{{M['x']}}}href"): each.get("CHECKSUM") for each in groups[0]}
    assert listed == {f"file://./content/{name}": value for name, value in files.items()}
    assets = root.findall("m:structMap[@TYPE='ASSET']/m:div", M)
    assert (len(assets), assets[0].get("DMDID").split()) == (
        1,
        [each.get("ID") for each in root.findall("m:dmdSec", M)],
    )
    assert root.findtext(f".//{{{lmer.OBJECT}}}persistentIdentifier") == kept.urn
    told = {etree.QName(element).localname for element in root.iterfind(f".//{{{lmer.FILE}}}*")}
    assert told == {"format"}, "what METS says itself is left out"
    setup.create(tmp_path / "elsewhere")
    with Archive.open(tmp_path / "elsewhere", agent="test") as other:
        received = submissions.receive(other, target, collection="from-a-partner")
        assert received.receipt.reasons == ()
        own = records.get(other, kept.urn)
        seen = records.view(other, own.key)
        assert [level.level for level in seen.levels] == [RecordLevel.SITE, RecordLevel.SLICE]
        assert (seen.levels[0].title, seen.levels[0].publisher, seen.levels[0].creators) == (
            "Uhrenmuseum",
            "Stadt",
            ("Huygens, C.",),
        )
        assert received.package.urn == kept.urn
        assert [file.sha256 for file in records.find_transfer(other, own.key).files] == list(files.values())
        assert submissions.receive(other, target, collection="from-a-partner").is_known


def test_the_same_answers_from_a_depot_that_was_rebuilt(archive, kept, tmp_path):
    gone = pipeline.import_files(
        archive,
        [
            Warc(tmp_path / "two.warc.gz")
            .response("http://b.example/", "20260301093000", b"<title>B</title>")
            .write()
        ],
        collection="other",
    ).taken
    withdrawal.withdraw(archive, gone.package.urn, reason="court order", approved_by="Bea")
    records.write(archive, kept.parent, {"abstract": "Nach der Rücknahme geschrieben."})

    def answers(of: Archive) -> dict[str, bytes]:
        lists = {}
        for prefix in ("oai_dc", "oai_mets_lmer", "marc21", "epicur", "mets_premis"):
            data = oai_provider.answer(
                of, [("verb", "ListRecords"), ("metadataPrefix", prefix)], portal_url="http://a.example"
            )
            root = etree.fromstring(data)
            root.find("{*}responseDate").text = ""
            lists[prefix] = etree.tostring(root)
        sets = oai_provider.answer(of, [("verb", "ListSets")], portal_url="http://a.example")
        return lists | {"sets": etree.tostring(etree.fromstring(sets).find("{*}ListSets"))}

    before = answers(archive)
    assert b"deleted" in before["oai_dc"]
    found = object_delivery.hand_over(archive, kept.key, reader=_anyone())
    whole = b"".join(found.pieces(0, found.layout.size_bytes))
    rebuild.rebuild(tmp_path / "again", archive.depot_address)
    with Archive.open(tmp_path / "again") as again:
        assert answers(again) == before
        found = object_delivery.hand_over(again, kept.key, reader=_anyone())
        assert b"".join(found.pieces(0, found.layout.size_bytes)) == whole


def _anyone():
    from webdepot.access.policy import ANYONE

    return ANYONE


class Zeros(io.RawIOBase):
    """A file of so many zero bytes that nobody stores."""

    def __init__(self, size: int) -> None:
        self._size, self._at = size, 0

    def seek(self, offset: int, whence: int = 0) -> int:
        self._at = offset
        return offset

    def read(self, size: int = -1) -> bytes:
        size = min(size, self._size - self._at)
        self._at += size
        return bytes(size)


def test_more_than_four_gigabytes_are_laid_out_as_zip64():
    """Headers and ends alone: the layout of a large object is right byte for byte, as an independent reader
    sees it.
    """
    sizes = (10, (4 << 30) + 5, 7)
    files = [
        TransferFile(
            path="/größe/",
            name=f"{number}.bin",
            size_bytes=size,
            sha256="0" * 64,
            crc32=number,
            mime="x/y",
            format="BIN",
            at="2026-03-01T09:30:00Z",
            container=str(number),
        )
        for number, size in enumerate(sizes)
    ]
    layout = Layout(files)
    assert layout.size_bytes > sum(sizes)

    class Window(io.RawIOBase):
        """The ZIP as a file: any part of it comes from the layout."""

        def __init__(self) -> None:
            self._at = 0

        def seekable(self) -> bool:
            return True

        def readable(self) -> bool:
            return True

        def tell(self) -> int:
            return self._at

        def seek(self, offset: int, whence: int = 0) -> int:
            self._at = offset + {0: 0, 1: self._at, 2: layout.size_bytes}[whence]
            return self._at

        def read(self, size: int = -1) -> bytes:
            stop = layout.size_bytes if size < 0 else min(self._at + size, layout.size_bytes)
            data = b"".join(layout.pieces(self._at, stop, lambda name: Zeros(sizes[int(name)])))
            self._at = stop
            return data

    with zipfile.ZipFile(Window()) as packed:
        assert [(info.filename, info.file_size, info.CRC) for info in packed.infolist()] == [
            (f"größe/{number}.bin", size, number) for number, size in enumerate(sizes)
        ]
        assert packed.infolist()[2].header_offset > 4 << 30


def test_a_file_that_changed_is_not_handed_over(tmp_path):
    path = tmp_path / "a"
    path.write_bytes(os.urandom(1000))
    file = transfer_of(1).files[0]
    with pytest.raises(Exception, match="is damaged"):
        transfer_zip.measure(
            TransferForm.FILES, [file.__class__(**_values(file, path))], "x", lambda name: path.open("rb")
        )


def _values(file: TransferFile, path: Path) -> dict[str, object]:
    from dataclasses import asdict

    return asdict(file) | {"size_bytes": path.stat().st_size, "sha256": "0" * 64}
