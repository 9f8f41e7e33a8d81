"""Slices unpacked into trees: names, bytes, ranges; offered to those who want them, taken in and replayed at
their own addresses.
"""

import base64
import gzip
import hashlib
import io
import zipfile
from pathlib import Path

import pytest
from exchange_samples import Warc, ask, portal
from hypothesis import given
from hypothesis import strategies as st
from lxml import etree
from oai_rules import checked, schema

from webdepot.access.policy import ANYONE, AccessPoint, RuleAnswer
from webdepot.archive import Archive
from webdepot.depot.store.keys import is_key
from webdepot.errors import NotFound, NotPermitted, Withdrawn
from webdepot.exchange import unpacked
from webdepot.exchange.metadata import lmer, regbib
from webdepot.exchange.metadata.regbib import METS
from webdepot.exchange.transfer_zip import TransferForm
from webdepot.services import pipeline
from webdepot.services.access import rules
from webdepot.services.access.replay import replay
from webdepot.services.admin import setup
from webdepot.services.catalogue import records
from webdepot.services.depot import unpacked as unpacked_service
from webdepot.services.depot import withdrawal
from webdepot.services.exchange import (
    oai_harvest,
    oai_provider,
    object_delivery,
    partner_admin,
    partner_ingest,
)

HOST = "http://www.uhren.example"
HOME = b"<!doctype html><title>Uhren</title><h1>Tulpen und Uhren</h1><a href=/news>News</a>"
STYLE = b"h1 { color: red }"
OLD = "<!doctype html><title>Größe</title><p>Größe".encode("latin-1")
LARGE = bytes(range(256)) * 3000
FILES = {
    f"{HOST}/": (HOME, "text/html"),
    f"{HOST}/style.css": (STYLE, "text/css"),
    f"{HOST}/news": (b"<title>News</title>", "text/html"),
    f"{HOST}/news/3.html?a=1&b=2": (b"<title>Three</title>", "text/html"),
    f"{HOST}/alt.html": (OLD, "text/html; charset=ISO-8859-1"),
    f"{HOST}/large.bin": (LARGE, "application/octet-stream"),
}


def write(path: Path, stamp: str = "20260301093000") -> Path:
    warc = Warc(path)
    for number, (url, (body, mime)) in enumerate(FILES.items()):
        packed = number % 2 == 0  # the server packs every second file
        more = f"{mime}\r\nContent-Encoding: gzip" if packed else mime
        warc.response(
            url, f"{stamp[:-2]}{number:02d}", gzip.compress(body, mtime=0) if packed else body, mime=more
        )
    warc.response(f"{HOST}/moved", stamp, b"", status="302 Found").response(
        f"{HOST}/none", stamp, b"no", status="404 Not Found"
    )
    warc.response(f"{HOST}/style.css", "20260301092900", b"an older answer", mime="text/css")
    return warc.write()


def revisit(path: Path) -> Path:
    """A second harvest in which nothing but one page is new; the style sheet is told to be the same."""
    warc = Warc(path).response(f"{HOST}/", "20260401093000", b"<title>April</title>")
    digest = "sha1:" + base64.b32encode(hashlib.sha1(STYLE).digest()).decode()
    block = b"HTTP/1.1 200 OK\r\nContent-Type: text/css\r\n\r\n"
    head = (
        f"WARC/1.1\r\nWARC-Type: revisit\r\nWARC-Record-ID: <urn:uuid:00000000-0000-4000-8000-000000000001>\r\n"
        f"WARC-Target-URI: {HOST}/style.css\r\nWARC-Date: 2026-04-01T09:30:01Z\r\nWARC-Payload-Digest: {digest}\r\n"
        "WARC-Profile: http://netpreserve.org/warc/1.1/revisit/identical-payload-digest\r\n"
        f"WARC-Refers-To-Target-URI: {HOST}/style.css\r\nWARC-Refers-To-Date: 2026-03-01T09:30:01Z\r\n"
        f"Content-Type: application/http; msgtype=response\r\nContent-Length: {len(block)}\r\n\r\n"
    )
    warc.records.append(gzip.compress(head.encode() + block + b"\r\n\r\n"))
    return warc.write()


def keep(archive: Archive, path: Path):
    taken = pipeline.import_files(archive, [path], collection="uhren").taken
    return records.find_of_harvest(archive, taken.harvest.id)


def zip_of(archive: Archive, key: str) -> bytes:
    found = object_delivery.hand_over(archive, key, reader=ANYONE, unpacked=True)
    return b"".join(found.pieces(0, found.layout.size_bytes))


def listed(archive: Archive, token: str = "") -> list[etree._Element]:
    data = oai_provider.answer(
        archive,
        [("verb", "ListRecords"), ("metadataPrefix", "oai_mets_lmer")],
        portal_url="http://a.example",
        token=token,
    )
    root = checked(data)
    return root.findall(f".//{{{METS}}}mets")


def test_a_tree_has_the_last_good_answers_byte_for_byte_and_any_range_of_it_can_be_had(archive, tmp_path):
    own = keep(archive, write(tmp_path / "a.warc.gz"))
    with pytest.raises(NotFound):
        zip_of(archive, own.key)
    assert unpacked_service.prepare(archive).made == [own.key]
    tree = records.find_tree(archive, own.key)
    data = zip_of(archive, own.key)
    assert (len(data), hashlib.sha256(data).hexdigest()) == (tree.size_bytes, tree.sha256)
    with zipfile.ZipFile(io.BytesIO(data)) as packed:
        assert packed.testzip() is None
        found = {name: packed.read(name) for name in packed.namelist()}
    assert {file.url: found[file.member] for file in tree.files} == {
        url: body for url, (body, _) in FILES.items()
    }
    assert {file.member: file.sha256 for file in tree.files} == {
        name: hashlib.sha256(body).hexdigest() for name, body in found.items()
    }
    assert tree.start == "www.uhren.example/index.html"
    assert {"www.uhren.example/style.css", "www.uhren.example/news/3@a=1&b=2.html"} <= found.keys()
    handed = object_delivery.hand_over(archive, own.key, reader=ANYONE, unpacked=True)
    middle = data.index(LARGE) + 100_003
    for first, stop in (
        (0, 1),
        (middle, middle + 5),
        (middle, len(data)),
        (1000, 1000),
        (len(data) - 3, len(data)),
        (77, 5001),
    ):
        assert b"".join(handed.pieces(first, stop)) == data[first:stop]
    assert unpacked_service.prepare(archive).made == [], "made once"


def test_who_wants_files_gets_them_when_they_are_ready(archive, tmp_path):
    partner_admin.add(archive, "f", "http://f.example/oai", transfer="files")
    token = partner_admin.issue_token(archive, "f")
    keys = [keep(archive, write(tmp_path / "a.warc.gz")).key]
    (packed,), (loose,) = listed(archive), listed(archive, token)
    assert (len(regbib.read(packed).files), len(regbib.read(loose).files)) == (1, len(FILES))
    for root in (packed, loose):
        assert regbib.check(root) == []
        if known := schema():
            known.assertValid(root)
    told = regbib.read(loose)
    assert set(told.urls.values()) == set(FILES)
    assert told.object.transfer_url == f"http://a.example/transfer/{keys[0]}.tree.zip"
    assert told.object.transfer_checksum == hashlib.sha256(zip_of(archive, keys[0])).hexdigest()
    assert {file.mime_type for file in told.files} >= {"text/html; charset=iso-8859-1", "text/css"}
    assert {file.registry for file in told.files} <= {lmer.PRONOM, lmer.OWN_REGISTRY}
    for prefix in ("marc21", "mets_premis"):
        asked = [("verb", "ListRecords"), ("metadataPrefix", prefix)]
        data = oai_provider.answer(archive, asked, portal_url="http://a.example", token=token)
        checked(data)
        assert f"/transfer/{keys[0]}.tree.zip".encode() in data


def test_the_record_of_a_tree_names_no_address_that_a_rule_hides(archive, tmp_path):
    partner_admin.add(archive, "f", "http://f.example/oai", transfer="files")
    token = partner_admin.issue_token(archive, "f")
    own = keep(archive, write(tmp_path / "a.warc.gz"))
    (refused,) = rules.add(archive, f"{HOST}/news", answer=RuleAnswer.REFUSE)
    assert len(regbib.read(listed(archive, token)[0]).files) == len(FILES), "what is refused may be known"
    rules.remove(archive, refused.id)
    rules.add(archive, f"{HOST}/news", answer=RuleAnswer.HIDE)
    told = regbib.read(listed(archive, token)[0])
    assert (len(told.files), told.object.transfer_url) == (1, f"http://a.example/transfer/{own.key}.zip")
    assert not told.urls
    rules.add(archive, f"{HOST}/news", answer=RuleAnswer.SHOW, access_point=AccessPoint.PARTNER)
    assert len(regbib.read(listed(archive, token)[0]).files) == len(FILES), "partners may see it"


def test_a_page_that_another_process_hides_is_not_in_the_next_answer(archive, tmp_path):
    partner_admin.add(archive, "f", "http://f.example/oai", transfer="files")
    token = partner_admin.issue_token(archive, "f")
    own = keep(archive, write(tmp_path / "a.warc.gz"))
    assert len(regbib.read(listed(archive, token)[0]).files) == len(FILES)
    assert object_delivery.is_open(archive, own, ANYONE)
    with Archive.open(archive.home, agent="test") as other:
        rules.add(other, f"{HOST}/news", answer=RuleAnswer.HIDE)
    assert len(regbib.read(listed(archive, token)[0]).files) == 1
    assert not object_delivery.is_open(archive, own, ANYONE)


def test_too_many_files_stay_in_containers_and_are_offered_so(tmp_path):
    setup.create(tmp_path / "home", settings='[exchange]\ntransfer = "files"\nmost_tree_files = 3\n')
    with Archive.open(tmp_path / "home", agent="test") as archive:
        own = keep(archive, write(tmp_path / "a.warc.gz"))
        (root,) = listed(archive)
        assert regbib.read(root).object.transfer_url.endswith(f"/transfer/{own.key}.zip")
        with pytest.raises(NotFound):
            zip_of(archive, own.key)


def test_rules_and_withdrawals_hold_for_trees_too(archive, tmp_path):
    partner_admin.add(archive, "f", "http://f.example/oai", transfer="files")
    token = partner_admin.issue_token(archive, "f")
    first = keep(archive, write(tmp_path / "a.warc.gz"))
    second = keep(archive, revisit(tmp_path / "b.warc.gz"))
    tree = records.find_tree(archive, second.key)
    assert [file.url for file in tree.files] == [f"{HOST}/", f"{HOST}/style.css"]
    with zipfile.ZipFile(io.BytesIO(zip_of(archive, second.key))) as packed:
        assert packed.read("www.uhren.example/style.css") == STYLE, (
            "a revisit leads to the bytes of the first harvest"
        )
    (rule,) = rules.add(archive, f"{HOST}/news", answer=RuleAnswer.REFUSE)
    with pytest.raises(NotPermitted):
        zip_of(archive, first.key)
    rules.remove(archive, rule.id)
    withdrawal.withdraw(archive, first.urn, reason="court order", approved_by="Bea")
    with pytest.raises(Withdrawn):
        zip_of(archive, first.key)
    with pytest.raises(NotFound):
        zip_of(archive, second.key)
    assert listed(archive, token) == [], "a tree whose bytes went is not offered"
    assert unpacked_service.prepare(archive).made == [second.key]
    assert [file.url for file in records.find_tree(archive, second.key).files] == [f"{HOST}/"]


def test_a_tree_goes_from_depot_to_depot_and_is_replayed_at_its_addresses(tmp_path):
    homes = {name: tmp_path / name for name in "abc"}
    for home in homes.values():
        setup.create(home)
    with Archive.open(homes["a"], agent="test") as a:
        partner_admin.add(a, "b", "http://b.example/oai", transfer="files")
        token = partner_admin.issue_token(a, "b")
        own = keep(a, write(tmp_path / "a.warc.gz"))
        sent = {file.member: file.sha256 for file in records.find_tree(a, own.key).files}
    with portal(homes["a"]) as url, Archive.open(homes["b"], agent="test") as b:
        page = ask(f"{url}/title/{own.key}").text
        assert f"/transfer/{own.key}.tree.zip" in page
        partner_admin.add(b, "a", f"{url}/oai", token=token)
        oai_harvest.harvest(b, "a")
        assert partner_ingest.ingest(b, "a").taken == [own.urn]
    with Archive.open(homes["b"], agent="test") as b:
        for number, (address, (body, mime)) in enumerate(FILES.items()):
            opened = replay.open_capture(b, address, "2026", collection="all", reader=ANYONE)
            assert (opened.payload.read(), opened.capture.timestamp) == (body, f"202603010930{number:02d}")
            assert opened.capture.mime == mime.partition(";")[0]
            opened.close()
        taken = records.find_transfer(b, records.get(b, own.urn).key)
        assert (taken.form, {file.member: file.sha256 for file in taken.files}) == (TransferForm.FILES, sent)
    with portal(homes["b"]) as url, Archive.open(homes["c"], agent="test") as c:
        partner_admin.add(c, "b", f"{url}/oai")
        oai_harvest.harvest(c, "b")
        assert partner_ingest.ingest(c, "b").taken == [own.urn]
        taken = records.find_transfer(c, records.get(c, own.urn).key)
        assert {file.member: file.sha256 for file in taken.files} == sent
        opened = replay.open_capture(
            c, f"{HOST}/news/3.html?a=1&b=2", "2026", collection="all", reader=ANYONE
        )
        assert (opened.payload.read(), opened.capture.timestamp) == (
            b"<title>Three</title>",
            "20260301093003",
        )
        opened.close()


def test_names_of_files():
    urls = [
        "http://a.example/",
        "http://a.example/index.html",
        "http://a.example/news",
        "http://a.example/news/",
        "http://a.example/News/",
        "http://a.example/x.php?q=" + "ä" * 300,
        "http://a.example/%2e%2e/%2e%2e/etc/passwd",
        "http://a.example/a%2Fb//c%5Cd",
        "http://a.example:8080/con.txt",
        "http://a.example/.part-x",
    ]
    places = unpacked.place(urls)
    assert places["http://a.example/"] == "a.example/index.html"
    assert places["http://a.example/news/"] == "a.example/news/index.html"
    assert places["http://a.example:8080/con.txt"] == "a.example_8080/_con.txt"
    _sound(places)


@given(st.lists(st.text(max_size=30), max_size=20, unique=True))
def test_whatever_addresses_are_like_no_two_files_meet(paths):
    _sound(unpacked.place([f"http://a.example/{path}" for path in paths]))


def _sound(places: dict[str, str]) -> None:
    members = [member.lower() for member in places.values()]
    assert len(set(members)) == len(members)
    folders = {
        "/".join(member.split("/")[: number + 1]) for member in members for number in range(member.count("/"))
    }
    assert not folders & set(members)
    assert all(
        is_key(member) and len(member.rpartition("/")[2].encode()) <= 140 for member in places.values()
    )
