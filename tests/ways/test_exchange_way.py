"""Three depots: A harvests a site twice; B takes both slices from A, searches and replays them, and offers
them on; C takes them from B.

Same URNs, files, checksums and facts in all three. A withdraws one slice: B and C learn of it. All by the
program, over HTTP.
"""

import json
import subprocess
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from lxml import etree

from webdepot.archive import Archive
from webdepot.exchange.metadata import mab
from webdepot.exchange.metadata.lmer import FILE, OBJECT
from webdepot.exchange.metadata.regbib import METS
from webdepot.exchange.oai.protocol import OAI
from webdepot.services.admin import setup
from webdepot.services.exchange import oai_harvest, partner_admin, partner_ingest

FACTS = ("331", "412", "426", "552")
NS = {"o": OAI, "m": METS, "f": FILE, "b": OBJECT, "mab": mab.MAB}


@contextmanager
def served(program: Path, home: Path) -> Iterator[dict[str, str]]:
    command = [str(program), "--home", str(home), "serve", "--port", "0", "--replay-port", "0", "--json"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    try:
        yield json.loads(process.stdout.readline())
    finally:
        process.terminate()
        process.wait(20)
        process.stdout.close()


def fetch(url: str) -> bytes:
    with urllib.request.urlopen(url, timeout=60) as answer:
        return answer.read()


def status(url: str) -> int:
    try:
        with urllib.request.urlopen(url, timeout=60) as answer:
            return answer.status
    except urllib.error.HTTPError as error:
        with error:
            return error.code


def offered(portal: str) -> dict[str, object]:
    """What a depot tells of each object: URN to files with checksums and to the bibliographic facts of every
    level.
    """
    root = etree.fromstring(fetch(f"{portal}/oai?verb=ListRecords&metadataPrefix=oai_mets_lmer"))
    told: dict[str, object] = {}
    for document in root.iterfind(".//m:mets", NS):
        files = {
            section.findtext(".//f:name", None, NS): section.findtext(".//f:fileChecksum", None, NS)
            for section in document.iterfind(".//m:techMD", NS)
            if section.find(".//f:name", NS) is not None
        }
        levels = [
            {
                field.get("nr") + field.get("ind"): "".join(field.itertext())
                for field in record
                if field.get("nr") in ("331", "412", "552", "426")
            }
            for record in document.iterfind(".//mab:datensatz", NS)
        ]
        told[document.findtext(".//b:persistentIdentifier", None, NS)] = (
            files,
            levels,
            document.findtext(".//b:transferChecksum", None, NS),
        )
    return told


def deleted(portal: str) -> int:
    root = etree.fromstring(fetch(f"{portal}/oai?verb=ListIdentifiers&metadataPrefix=oai_mets_lmer"))
    return len(root.findall(".//o:header[@status='deleted']", NS))


def test_objects_go_from_depot_to_depot(
    program: Path, site, webdepot: Callable[..., subprocess.CompletedProcess[str]], tmp_path: Path
):
    a, b, c = (tmp_path / name for name in "abc")
    for home in (a, b, c):
        exchange = f'[exchange]\nurn_namespace = "urn:nbn:de:example:{home.name}"\n'
        setup.create(home, settings=f'{exchange}[harvest]\nprivate_networks = ["127.0.0.0/8"]\n')
    for edition in (1, 2):
        site.page(
            "/", "Town museum", f"<p>Edition {edition}: the windmill exhibition.</p><a href='/news'>News</a>"
        )
        site.page("/news", "News", f"<p>Lighthouse, report {edition}.</p>")
        report = json.loads(
            webdepot("archive", site.url, "--allow-private", "--delay", "0", "--json", home=a).stdout
        )
        assert report["state"] == "kept"
    site.close()

    with served(program, a) as at_a:
        from_a = offered(at_a["portal"])
        assert len(from_a) == 2
        webdepot("partner", "add", "a", f"{at_a['portal']}/oai", home=b)
        listed = json.loads(webdepot("partner", "harvest", "a", "--json", home=b).stdout)
        assert (listed["records"], listed["new"]) == (2, 2)
        taken = json.loads(webdepot("partner", "ingest", "a", "--json", home=b).stdout)
        assert sorted(taken["taken"]) == sorted(from_a)
        assert taken["refused"] == {}

    hits = [json.loads(line) for line in webdepot("search", "windmill", "--json", home=b).stdout.splitlines()]
    assert [(hit["title"], hit["versions"]) for hit in hits] == [("Town museum", 2)]
    again = json.loads(webdepot("partner", "ingest", "a", "--json", home=b).stdout)
    assert (again["taken"], again["known"]) == ([], 0), "a repeated run changes nothing"

    with served(program, b) as at_b:
        assert offered(at_b["portal"]) == from_a, "same URNs, files, checksums, facts"
        newest = fetch(f"{at_b['replay']}/all/2100id_/{site.url}/")
        assert b"Edition 2" in newest
        with Archive.open(c, agent="test") as depot:
            partner_admin.add(depot, "b", f"{at_b['portal']}/oai")
            oai_harvest.harvest(depot, "b")
            assert sorted(partner_ingest.ingest(depot, "b").taken) == sorted(from_a)
    with served(program, c) as at_c:
        assert offered(at_c["portal"]) == from_a

    gone = sorted(from_a)[0]
    webdepot("package", "withdraw", gone, "--reason", "court order", "--approved-by", "Bea", "--yes", home=a)
    with served(program, a) as at_a:
        assert status(f"{at_a['portal']}/urn/{gone}") == 410
        webdepot("partner", "change", "a", "--url", f"{at_a['portal']}/oai", home=b)
        assert json.loads(webdepot("partner", "harvest", "a", "--json", home=b).stdout)["deleted"] == 1
        assert len(json.loads(webdepot("partner", "ingest", "a", "--json", home=b).stdout)["withdrawn"]) == 1
    with served(program, b) as at_b:
        assert (deleted(at_b["portal"]), set(offered(at_b["portal"]))) == (1, set(from_a) - {gone})
        assert status(f"{at_b['portal']}/urn/{gone}") == 410
        first = etree.fromstring(fetch(f"{at_b['portal']}/oai?verb=Identify"))
        assert first.findtext(".//o:deletedRecord", None, NS) == "persistent"
        with Archive.open(c, agent="test") as depot:
            partner_admin.change(depot, "b", url=f"{at_b['portal']}/oai")
            oai_harvest.harvest(depot, "b")
            assert len(partner_ingest.ingest(depot, "b").withdrawn) == 1
    with served(program, c) as at_c:
        assert (deleted(at_c["portal"]), set(offered(at_c["portal"]))) == (1, set(from_a) - {gone})
