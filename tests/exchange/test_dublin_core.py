"""oai_dc records: structure always, the schema itself where WEBDEPOT_SCHEMAS names a folder with it."""

import os
from dataclasses import fields
from datetime import UTC, datetime
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from lxml import etree

from webdepot.errors import InputError
from webdepot.exchange.catalogue import CatalogueRecord, RecordLevel
from webdepot.exchange.metadata import dublin_core, markup
from webdepot.exchange.metadata.dublin_core import DC, OAI_DC, DublinCore

ELEMENTS = [item.name for item in fields(DublinCore)]


def schema() -> etree.XMLSchema | None:
    folder = os.environ.get("WEBDEPOT_SCHEMAS")
    if not folder:
        return None
    oai = Path(folder) / "oai"
    parser = etree.XMLParser(no_network=True)
    parser.resolvers.add(Local(oai))
    return etree.XMLSchema(etree.parse(str(oai / "oai_dc.xsd"), parser))


class Local(etree.Resolver):
    def __init__(self, folder):
        self.folder = folder

    def resolve(self, url, public_id, context):
        for place in (self.folder, self.folder.parent / "w3"):
            if (found := place / url.rpartition("/")[2]).exists():
                return self.resolve_filename(str(found), context)
        return None


def check(data: bytes) -> etree._Element:
    root = etree.fromstring(data)
    assert root.tag == f"{{{OAI_DC}}}dc"
    assert all(
        child.tag in {f"{{{DC}}}{name}" for name in ELEMENTS} and len(child) == 0 and child.text
        for child in root
    )
    if known := schema():
        known.assertValid(root)
    return root


def test_a_slice_has_from_its_site_what_it_does_not_say_itself():
    at = datetime(2024, 5, 17, 23, 59, tzinfo=UTC)
    site = CatalogueRecord(
        key="s",
        level=RecordLevel.SITE,
        urn="urn:nbn:de:example-1",
        title="Rathaus",
        publisher="City",
        languages=("de",),
        created_at=at,
        changed_at=at,
    )
    slice_ = CatalogueRecord(
        key="t",
        level=RecordLevel.SLICE,
        parent="s",
        urn="urn:nbn:de:example-2",
        title="Rathaus <Musterstadt> & Umgebung\x00\x0b",
        date="2024-05-17",
        addresses=("https://www.example.org/", "https://example.org/?a=1&b=2"),
        created_at=at,
        changed_at=at,
    )
    root = check(dublin_core.to_xml(dublin_core.of_levels((site, slice_))))
    values = [(child.tag.partition("}")[2], child.text) for child in root]
    assert ("title", "Rathaus <Musterstadt> & Umgebung") in values
    assert ("date", "2024-05-17") in values
    assert ("identifier", "urn:nbn:de:example-2") in values
    assert ("relation", "urn:nbn:de:example-1") in values
    assert ("publisher", "City") in values
    assert ("type", "doc-type:Website") in values
    assert [text for name, text in values if name == "source"] == [
        "https://www.example.org/",
        "https://example.org/?a=1&b=2",
    ]
    assert not [name for name, _ in values if name == "rights"]


def read(data: bytes) -> DublinCore:
    return dublin_core.from_element(markup.parse(data, what="The record"))


@given(
    st.fixed_dictionaries(
        {}, optional={name: st.lists(st.text(max_size=12), max_size=3).map(tuple) for name in ELEMENTS}
    )
)
def test_any_values_are_safe_and_come_back(values):
    data = dublin_core.to_xml(DublinCore(**values))
    check(data)
    again = read(data)
    assert dublin_core.to_xml(again) == data


@pytest.mark.parametrize(
    "bad", [b"", b"<oai_dc:dc/>", b"\xff\xfe<", b'<!DOCTYPE d [<!ENTITY x "y">]><d>&x;</d>']
)
def test_what_is_no_record(bad):
    with pytest.raises(InputError):
        read(bad)


def test_entities_are_not_followed(tmp_path):
    secret = tmp_path / "secret"
    secret.write_text("secret")
    entity = f'<!DOCTYPE d [<!ENTITY x SYSTEM "file://{secret}">]>'
    data = f'{entity}<oai_dc:dc xmlns:oai_dc="{OAI_DC}" xmlns:dc="{DC}"><dc:title>a&x;</dc:title></oai_dc:dc>'
    with pytest.raises(InputError, match="document type"):
        read(data.encode())


@given(st.binary(max_size=200))
def test_any_bytes_have_an_answer(data):
    try:
        read(data)
    except InputError:
        return
