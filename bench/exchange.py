"""How fast are OAI-PMH lists of a large depot? Is the thousandth page as fast as the first? How much memory
does a transfer need?

    python -m bench.exchange [--quick] [--part lists] [--part transfer] [--json PATH]

lists     100,000 records in the catalogue (10,000 with --quick); ListRecords oai_mets_lmer, 100 per page:
          page 1, page 2 and the last page, medians of several alternating tries, and records per second over
          the whole list
transfer  an object of 2 GB (200 MB with --quick) is sent by one depot over HTTP and ingested by another: peak
          memory of both processes above their idle memory
"""

import argparse
import json
import os
import platform
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path

from bench.portal import served
from sqlalchemy import insert

from webdepot.archive import Archive
from webdepot.exchange import catalogue, transfer_zip, urn
from webdepot.exchange.catalogue import CatalogueRecord, RecordLevel, sets_of
from webdepot.exchange.oai import provider
from webdepot.exchange.tables import catalogue as catalogue_table
from webdepot.exchange.tables import catalogue_sets, transfers
from webdepot.exchange.transfer_zip import Transfer, TransferFile, TransferForm
from webdepot.services.admin import setup
from webdepot.services.exchange import oai_provider

PAGE = 100
TAKE = """
import json, resource, sys
from pathlib import Path
from webdepot.archive import Archive
from webdepot.exchange import partners
from webdepot.exchange.metadata import markup, regbib
from webdepot.services.exchange import oai_harvest, partner_admin, partner_ingest, transfer_download
from webdepot.services.intake import objects
with Archive.open(Path(sys.argv[1]), agent="bench") as archive:
    partner_admin.add(archive, "a", sys.argv[2] + "/oai")
    import time
    while not oai_harvest.harvest(archive, "a").new:  # a large object can be seen when its datestamp has come
        time.sleep(2)
    with archive.database.reading() as connection:
        partner = partners.get(connection, "a")
        (record,) = partners.in_state(connection, "a", partners.RecordState.NEW, limit=1)
    delivered = regbib.read(markup.parse(record.xml.encode(), what="record"))
    idle = int(next(line for line in open("/proc/self/status") if line.startswith("VmRSS")).split()[1])
    import tempfile, time
    started = time.monotonic()
    packed = transfer_download.fetch(archive, partner, delivered, lambda progress: None, time.sleep)
    fetched = time.monotonic()
    with tempfile.TemporaryDirectory(dir=archive.home) as folder:
        files = transfer_download.unpack(packed, delivered, Path(folder) / "files", most_members=archive.config.depot.import_members)
        objects.load(archive, partner_ingest._sender(partner, record), delivered, files, Path(folder))
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    print(json.dumps({"idle_kb": idle, "peak_kb": peak, "fetch_s": fetched - started, "load_s": time.monotonic() - fetched}))
"""


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--part", action="append", choices=("lists", "transfer"))
    parser.add_argument("--json", type=Path, help="write the figures to this file")
    chosen = parser.parse_args()
    parts = chosen.part or ["lists", "transfer"]
    result: dict[str, object] = {
        "machine": platform.platform(),
        "cores": os.cpu_count(),
        "python": platform.python_version(),
    }
    result["load"] = os.getloadavg()
    with tempfile.TemporaryDirectory(prefix="webdepot-bench-") as folder:
        if "lists" in parts:
            result["lists"] = lists(Path(folder), 10_000 if chosen.quick else 100_000)
        if "transfer" in parts:
            result["transfer"] = transferring(Path(folder), 200_000_000 if chosen.quick else 2_000_000_000)
    words = json.dumps(result, indent=1)
    print(words)
    if chosen.json:
        chosen.json.write_text(words + "\n")


def lists(folder: Path, records: int) -> dict[str, object]:
    home = folder / "lists"
    setup.create(home)
    with Archive.open(home) as archive:
        fill(archive, records)
        repository = oai_provider.repository_of(archive, "http://depot.example.org")
        now = archive.clock()

        def page(token: str) -> tuple[float, str]:
            arguments = [("verb", "ListRecords"), ("resumptionToken", token)] if token else FIRST
            started = time.perf_counter()
            with archive.database.reading() as connection:
                data = provider.respond(arguments, repository, connection, now)
            took = time.perf_counter() - started
            next_token = (
                data.rpartition(b"</resumptionToken>")[0].rpartition(b">")[2].decode()
                if b"</resumptionToken>" in data
                else ""
            )
            return took, next_token

        page("")
        first_s, token = page("")
        begun, tokens, times = time.perf_counter(), [""], [first_s]
        while token:
            tokens.append(token)
            took, token = page(token)
            times.append(took)
        whole_s = time.perf_counter() - begun
        # Alternating, so that other load on the machine affects both equally.
        tries = [(page("")[0], page(tokens[1])[0], page(tokens[-1])[0]) for _ in range(15)]
        first, second, last = (statistics.median(each) for each in zip(*tries, strict=True))
    return {
        "records": records,
        "pages": len(times),
        "records_per_s": round(records / whole_s),
        "page_1_ms": round(first * 1000, 1),
        "page_2_ms": round(second * 1000, 1),
        f"page_{len(tokens)}_ms": round(last * 1000, 1),
        "ratio_last_to_first": round(last / first, 3),
    }


FIRST = [("verb", "ListRecords"), ("metadataPrefix", "oai_mets_lmer")]


def fill(archive: Archive, count: int) -> None:
    """Fill the catalogue: sites with a hundred slices (harvests) each, two containers per slice."""
    at = datetime(2020, 1, 1, tzinfo=UTC)
    with archive.database.transaction() as connection:
        for start in range(0, count, 1000):
            rows, sets, made = [], [], []
            for number in range(start, start + 1000):
                site = f"site-{number // 100:06d}"
                if number % 100 == 0:
                    rows.append(
                        _record(
                            site,
                            RecordLevel.SITE,
                            "",
                            at,
                            addresses=(f"http://www{number}.example/",),
                            publisher="Stadt",
                        )
                    )
                own = _record(
                    f"slice-{number:08d}",
                    RecordLevel.SLICE,
                    site,
                    at + timedelta(seconds=number // 3),
                    is_object=True,
                    date="2026-01-01",
                )
                rows.append(own)
                made.append({"key": own.key, "made_at": at, **transfer_zip.to_document(_transfer(number))})
            sets = [
                {"spec": spec, "changed_at": each.changed_at, "key": each.key}
                for each in rows
                for spec in sets_of(each)
            ]
            connection.execute(insert(catalogue_table), [catalogue._values(each) for each in rows])
            connection.execute(insert(catalogue_sets), sets)
            connection.execute(insert(transfers), made)


def _record(key: str, level: RecordLevel, parent: str, at: datetime, **more: object) -> CatalogueRecord:
    return CatalogueRecord(
        key=key,
        level=level,
        parent=parent,
        urn=urn.mint("urn:nbn:de:example", key),
        title=f"Die Gartenschau {key}",
        collection="gardens",
        created_at=at,
        changed_at=at,
        **more,
    )


def _transfer(number: int) -> Transfer:
    files = tuple(
        TransferFile(
            path="/",
            name=f"{number:08d}-{part}.warc.gz",
            size_bytes=100_000_000,
            sha256=f"{number:064d}",
            mime="application/warc",
            format="WARC 1.1",
            puid="fmt/1281",
            at="2026-01-01T00:00:00Z",
            container=f"{number:08d}-{part}.warc.gz",
        )
        for part in range(2)
    )
    return Transfer(
        form=TransferForm.CONTAINERS,
        files=files,
        start=files[0].member,
        size_bytes=200_000_000,
        sha256=f"{number:064d}",
    )


def transferring(folder: Path, size_bytes: int) -> dict[str, object]:
    """Transfer one plain WARC with incompressible bytes from A to B."""
    from webdepot.services.depot import deposit_records  # noqa: F401 - loads everything a deposit needs
    from webdepot.services.intake import warc_files
    from webdepot.services.progress import unwatched

    a, b = folder / "a", folder / "b"
    for home in (a, b):
        setup.create(home, settings="[harvest]\nallow_private = true\n")
    warc = folder / "large.warc"
    _write_warc(warc, size_bytes)
    with Archive.open(a, agent="bench") as archive:
        taken = warc_files.take_files(archive, [warc], collection="c", watch=unwatched)
        warc.unlink()
        assert taken.harvest is not None
        from webdepot.services.depot import deposit
        from webdepot.services.quality import harvest_check

        harvest_check.findings_file(archive, taken.harvest).touch()
        _empty_rows(harvest_check.findings_file(archive, taken.harvest))
        deposit.keep(archive, taken.harvest)
    with served(a) as server:
        url = server.portal
        subprocess.run(["curl", "-s", "-o", "/dev/null", f"{url}/oai?verb=Identify"], check=True)
        idle = _memory(server.process, "VmRSS")
        done = subprocess.run(
            [sys.executable, "-c", TAKE, str(b), url], stdout=subprocess.PIPE, text=True, check=True
        )
        peak = _memory(server.process, "VmHWM")
    taking = json.loads(done.stdout)
    return {
        "size_bytes": size_bytes,
        "out_mb_above_idle": round((peak - idle) / 1000, 1),
        "in_mb_above_idle": round((taking["peak_kb"] - taking["idle_kb"]) / 1000, 1),
        "fetch_mb_per_s": round(size_bytes / 1e6 / taking["fetch_s"]),
        "verify_and_load_mb_per_s": round(size_bytes / 1e6 / taking["load_s"]),
    }


def _empty_rows(path: Path) -> None:
    from webdepot.depot import rows

    rows.write_findings(path, ())


def _write_warc(path: Path, size_bytes: int) -> None:
    block = os.urandom(1 << 20)
    count = size_bytes // len(block)
    with path.open("wb") as sink:
        for number in range(max(count // 100, 1)):
            length = len(block) * min(100, count)
            head = (
                f"WARC/1.1\r\nWARC-Type: resource\r\nWARC-Record-ID: "
                f"<urn:uuid:00000000-0000-4000-8000-{number:012d}>\r\n"
                f"WARC-Date: 2026-01-01T00:00:00Z\r\nWARC-Target-URI: http://large.example/{number}\r\n"
                f"Content-Type: application/octet-stream\r\nContent-Length: {length}\r\n\r\n"
            )
            sink.write(head.encode())
            for _ in range(min(100, count)):
                sink.write(block)
            sink.write(b"\r\n\r\n")


def _memory(pid: int, name: str) -> int:
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith(name):
            return int(line.split()[1])
    return resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss


if __name__ == "__main__":
    main()
