"""METS and PREMIS of packages: valid, complete, and of limited size however many records there are."""

import hashlib
import os
from pathlib import Path
from urllib.parse import unquote

import pytest
from depot_samples import WHEN, content_of, write_warc
from hypothesis import given
from hypothesis import strategies as st
from lxml import etree

from webdepot import digest
from webdepot.depot import fixity, mets, package, package_content, premis
from webdepot.depot.package_content import ContainerSource
from webdepot.depot.store.folder import FolderStore
from webdepot.provenance import Event, Outcome

NS = {"mets": mets.METS, "premis": premis.PREMIS, "xlink": mets.XLINK}


def schema(name: str) -> etree.XMLSchema | None:
    """From the folder in WEBDEPOT_SCHEMAS; the project has no copy of the schemas."""
    folder = os.environ.get("WEBDEPOT_SCHEMAS")
    if not folder:
        return None
    imports = {
        "mets": ("mets/xlink.xsd", "mets/mets.xsd"),
        "premis": ("mets/xlink.xsd", "premis/premis-v3-0.xsd"),
    }[name]
    spaces = {
        "mets/xlink.xsd": mets.XLINK,
        "mets/mets.xsd": mets.METS,
        "premis/premis-v3-0.xsd": premis.PREMIS,
    }
    lines = "".join(
        f'<xs:import namespace="{spaces[path]}" schemaLocation="{Path(folder, path).absolute().as_uri()}"/>'
        for path in imports
    )
    driver = f'<xs:schema xmlns:xs="http://www.w3.org/2001/XMLSchema">{lines}</xs:schema>'
    return etree.XMLSchema(etree.fromstring(driver, etree.XMLParser(no_network=True)))


def check(name: str, data: bytes) -> etree._Element:
    root = etree.fromstring(data)
    rules = schema(name)
    if rules is not None:
        rules.assertValid(root)
    return root


@pytest.fixture
def store(tmp_path) -> FolderStore:
    return FolderStore(tmp_path / "depot")


def read(store, facts, path: str) -> bytes:
    with package.open_file(store, facts, path) as stream:
        return stream.read()


def check_package(store, facts) -> tuple[etree._Element, etree._Element]:
    """Both are valid, and list every file of the package with its size and digest."""
    contents, objects = (
        check("mets", read(store, facts, package_content.METS)),
        check("premis", read(store, facts, package_content.PREMIS)),
    )
    listed = {}
    for file in contents.iterfind(".//mets:file", NS):
        href = file.find("mets:FLocat", NS).get(f"{{{mets.XLINK}}}href")
        listed[unquote(href).removeprefix("../")] = (int(file.get("SIZE")), file.get("CHECKSUM"))
    expected = {}
    for path in facts.inventory.files():
        data = read(store, facts, path)
        if path != package_content.METS:
            expected[path] = (len(data), hashlib.sha256(data).hexdigest())
    assert listed == expected
    described = {
        found.findtext("premis:originalName", namespaces=NS): found.findtext(
            ".//premis:messageDigest", namespaces=NS
        )
        for found in objects.iterfind("premis:object", NS)
    }
    assert {
        path: sha256 for path, (_, sha256) in expected.items() if path != package_content.PREMIS
    }.items() <= described.items()
    ids = [found.get("ID") for found in contents.iter() if found.get("ID")]
    assert len(set(ids)) == len(ids)
    assert {found.get("FILEID") for found in contents.iterfind(".//mets:fptr", NS)} <= set(ids)
    return contents, objects


def test_a_package_has_both_and_they_are_true(store, tmp_path):
    facts = package.build(store, content_of(tmp_path, 1))
    contents, objects = check_package(store, facts)
    assert contents.get("OBJID") == facts.package.id
    assert [
        found.findtext("premis:eventType", namespaces=NS) for found in objects.iterfind("premis:event", NS)
    ] == [
        "capture",
        "ingestion end",
    ]
    assert (
        contents.find(".//mets:fileGrp[@USE='container']/mets:file", NS).get("MIMETYPE") == "application/warc"
    )


def test_a_new_version_describes_old_and_new_and_copies_nothing(store, tmp_path):
    content = content_of(tmp_path, 1)
    package.build(store, content)
    path = write_warc(tmp_path / "more.warc.gz", {"https://x.example/": b"more"})
    more = ContainerSource(
        name=path.name,
        path=path,
        size_bytes=path.stat().st_size,
        sha256=digest.of_file(path).value.hex(),
        records=1,
    )
    event = Event(
        at=WHEN,
        agent="anna",
        action="migrated",
        subject_kind="package",
        subject=content.id,
        outcome=Outcome.WARNING,
        message="1 of 2",
    )
    facts = package.extend(
        store,
        content.id,
        {"index/more.jsonl.gz": b"x"},
        containers=(more,),
        events=(event,),
        message="More",
        agent="anna",
        created=WHEN,
    )
    assert facts.package.version == 2
    assert [container.name for container in facts.containers] == ["site-1.warc.gz", "more.warc.gz"]
    check_package(store, facts)
    assert len(list(store.root.rglob("site-1.warc.gz"))) == 1
    assert list(fixity.verify_package(store, content.id)) == []
    again = package.extend(
        store,
        content.id,
        {"index/more.jsonl.gz": b"x"},
        containers=(more,),
        events=(event,),
        message="More",
        agent="anna",
        created=WHEN,
    )
    assert again.package.version == 2


texts = st.text(max_size=30)
events = st.builds(
    Event,
    at=st.just(WHEN),
    agent=texts,
    action=texts,
    subject_kind=texts,
    subject=texts,
    outcome=st.sampled_from(Outcome),
    message=texts,
)
names = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=20)
entries = st.builds(
    premis.FileEntry,
    path=names,
    size_bytes=st.integers(0, 2**60),
    sha256=st.just("0" * 64),
    mime=st.just("application/warc"),
    format=names,
    puid=st.sampled_from(["", "fmt/289"]),
    use=st.sampled_from(["container", "index", "log", "metadata"]),
)


@given(
    title=texts,
    files=st.lists(entries, max_size=5),
    happened=st.lists(events, max_size=5),
    inside=st.one_of(st.just(b"<dc/>"), st.binary(max_size=50)),
)
def test_whatever_the_texts_are_the_documents_are_well_formed_and_valid(title, files, happened, inside):
    check("premis", premis.to_xml("urn:uuid:1", title, files, happened))
    check(
        "mets",
        mets.to_xml(
            "urn:uuid:1",
            title,
            files,
            created=WHEN,
            agent="anna",
            dublin_core=b"" if inside != b"<dc/>" else inside,
        ),
    )
    mets.to_xml("urn:uuid:1", title, files, created=WHEN, agent="anna", dublin_core=inside)


def test_entities_in_a_description_are_not_resolved(tmp_path):
    secret = tmp_path / "secret"
    secret.write_text("hidden")
    evil = f'<!DOCTYPE x [<!ENTITY e SYSTEM "{secret.as_uri()}">]><dc>&e;</dc>'.encode()
    assert b"hidden" not in mets.to_xml("urn:x", "t", [], created=WHEN, agent="a", dublin_core=evil)
