"""Objects that are not what the record says: each is refused with its own reason, and nothing of it stays."""

import io
import warnings
import zipfile
from dataclasses import replace

import pytest
from lxml import etree
from partner_doubles import Desk, put
from partner_offers import add, article, checksum, no_wait, refused, state, website

from webdepot.archive import Archive
from webdepot.exchange import urn
from webdepot.exchange.metadata import lmer
from webdepot.exchange.metadata.regbib import METS
from webdepot.exchange.partners import UrnCheck
from webdepot.services.exchange import oai_harvest, partner_admin, partner_ingest


def packed(files: list[tuple[str, bytes]]) -> bytes:
    buffer = io.BytesIO()
    with warnings.catch_warnings(), zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as made:
        warnings.simplefilter("ignore", UserWarning)  # a name twice is what is wanted
        for name, data in files:
            member = zipfile.ZipInfo(name)
            member.compress_type = zipfile.ZIP_DEFLATED
            made.writestr(member, data)
    return buffer.getvalue()


def without_checksum(root: etree._Element) -> None:
    found = root.find(f".//{{{lmer.OBJECT}}}transferChecksum")
    found.getparent().remove(found)


FILES = list(website().files.items())


BAD_ZIPS = {
    "missing": (packed(FILES[:-1]), "is missing from the ZIP"),
    "extra": (packed([*FILES, ("more.txt", b"x")]), "is in the ZIP but not in the record"),
    "duplicate": (packed([*FILES, FILES[0]]), "is in it twice"),
    "traversing": (packed([*FILES[:-1], ("../evil.pdf", FILES[-1][1])]), "is not a path inside the file"),
    "absolute": (packed([*FILES[:-1], ("/etc/passwd", FILES[-1][1])]), "is not a path inside the file"),
    "backslash": (packed([*FILES[:-1], ("..\\evil.pdf", FILES[-1][1])]), "is not a path inside the file"),
    "no files": (packed([]), "contains no files"),
    "other bytes": (packed([*FILES[:-1], (FILES[-1][0], b"x" * len(FILES[-1][1]))]), "is damaged"),
    "other size": (packed([*FILES[:-1], (FILES[-1][0], b"x")]), "in the record"),
    "truncated": (packed(FILES)[:-50], "cannot be unpacked"),
    "no zip": (b"<html>sorry</html>", "cannot be unpacked"),
}


@pytest.mark.parametrize("kind", BAD_ZIPS)
def test_objects_that_are_not_what_the_record_says(archive, partner, kind):
    data, words = BAD_ZIPS[kind]
    assert words in refused(archive, [website()], partner, change=without_checksum, zips={"WD1-1": data})


def test_a_wrong_checksum(archive, partner):
    assert "the ZIP is damaged: expected SHA-256" in refused(
        archive, [website()], partner, change=checksum("0" * 64)
    )


def test_a_zip_bomb(archive, partner):
    bomb = packed([("index.html", bytes(80 << 20)), *FILES[1:]])
    offer = replace(website(), files={**website().files, "index.html": bytes(80 << 20)})
    assert "would unpack to" in refused(
        archive, [offer], partner, zips={"WD1-1": bomb}, change=without_checksum
    )
    assert "is larger than the files" in refused_size(archive, partner)


def refused_size(archive: Archive, partner: Desk) -> str:
    """An answer without end."""
    put(partner, [website(2)], change=without_checksum, zips={"WD1-2": bytes(3 << 20)})
    oai_harvest.harvest(archive, "p", from_the_beginning=True)
    return partner_ingest.ingest(archive, "p", wait=no_wait).refused["oai:p.example:WD1-2"]


def number_of_files(root: etree._Element) -> None:
    root.find(f".//{{{lmer.OBJECT}}}numberOfFiles").text = "7"


def no_structure(root: etree._Element) -> None:
    root.remove(root.find(f"{{{METS}}}structMap"))


def no_level(root: etree._Element) -> None:
    for section in root.findall(f"{{{METS}}}dmdSec"):
        root.remove(section)


def no_urn(root: etree._Element) -> None:
    root.find(f".//{{{lmer.OBJECT}}}persistentIdentifier").text = "http://example.org/1"


def dangling(root: etree._Element) -> None:
    root.find(f".//{{{METS}}}fptr").set("FILEID", "nowhere")


def two_objects(root: etree._Element) -> None:
    amd = root.find(f"{{{METS}}}amdSec")
    amd.append(etree.fromstring(etree.tostring(amd[0])))


@pytest.mark.parametrize(
    ("change", "rule"),
    [
        (number_of_files, "P10"),
        (no_structure, "P7"),
        (no_level, "P1"),
        (no_urn, "P9"),
        (dangling, "P7"),
        (two_objects, "P8"),
    ],
    ids=lambda value: getattr(value, "__name__", value),
)
def test_records_against_the_profile(archive, partner, change, rule):
    assert f"profile: {rule}" in refused(archive, [website()], partner, change=change)
    assert not [path for path, _, _ in partner.asked if path.startswith("/transfer")], (
        "the object is not even asked for"
    )


@pytest.mark.parametrize("check", UrnCheck)
def test_a_wrong_digit_is_a_warning_or_a_refusal(archive, partner, check):
    offer = article()
    wrong = urn.mint("urn:nbn:de:example", "j1-3-7")
    wrong = wrong[:-1] + str((int(wrong[-1]) + 1) % 10)
    offer.levels[-1] = replace(offer.levels[-1], urn=wrong)
    add(archive, partner, urn_check=check)
    if check is UrnCheck.REFUSE:
        assert f"the check digit of {wrong} is wrong" in refused(archive, [offer], partner)
    else:
        put(partner, [offer])
        oai_harvest.harvest(archive, "p")
        done = partner_ingest.ingest(archive, "p")
        assert done.taken == [wrong]
        assert "check digit" in done.warnings[0]


@pytest.mark.parametrize(
    ("status", "words"),
    [
        (404, "returned status 404"),
        (401, "requires a token"),
        (403, "Access was denied"),
        (503, "returned status 503"),
    ],
)
def test_a_transfer_url_that_gives_nothing(archive, partner, status, words):
    put(partner, [website()])
    partner.answers["/transfer/WD1-1.zip"] = lambda arguments, headers: (status, {}, b"no")
    add(archive, partner)
    oai_harvest.harvest(archive, "p")
    done = partner_ingest.ingest(archive, "p", wait=no_wait)
    assert words in done.refused["oai:p.example:WD1-1"]
    assert state(archive) == ({"refused": 1}, 0, 0)
    put(partner, [website()])
    assert partner_admin.retry(archive, "p") == 1


def test_a_partner_cannot_send_us_into_the_intranet(archive, partner):
    def elsewhere(root: etree._Element) -> None:
        root.find(f".//{{{lmer.OBJECT}}}transferURL").text = "http://10.1.2.3/secret.zip"

    assert "not a public address" in refused(archive, [website()], partner, change=elsewhere)

    def local_file(root: etree._Element) -> None:
        root.find(f".//{{{lmer.OBJECT}}}transferURL").text = "file:///etc/passwd"

    put(partner, [website(2)], change=local_file)
    oai_harvest.harvest(archive, "p", from_the_beginning=True)
    assert "is not a web address" in partner_ingest.ingest(archive, "p").refused["oai:p.example:WD1-2"]
