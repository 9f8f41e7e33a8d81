"""Sample packages with real containers, built directly so that a test has one in milliseconds."""

from datetime import datetime
from pathlib import Path

from small_warcs import WHEN as WHEN
from small_warcs import write_warc as write_warc
from webdepot import digest
from webdepot.depot import package_content, rows
from webdepot.depot.ocfl import layout
from webdepot.depot.package_content import ContainerSource, PackageContent
from webdepot.index import capture_from_record
from webdepot.model import (
    Answer,
    Harvest,
    HarvestId,
    HarvestKind,
    HarvestState,
    PackageId,
    Purpose,
    Target,
    TargetId,
    Verdict,
)
from webdepot.provenance import Event
from webdepot.url import Url


def content_of(
    folder: Path, number: int, *, when: datetime = WHEN, collection: str = "news"
) -> PackageContent:
    """The content of a package, with one container of a few pages."""
    folder = folder / f"work-{number}"
    folder.mkdir(parents=True)
    site = f"https://site-{number}.example/"
    name = f"site-{number}.warc.gz"
    pages = {
        f"{site}{page}": f"<!doctype html><title>Site {number}</title><p>page {page} of {number}".encode()
        for page in range(3)
    }
    path = write_warc(folder / name, pages, when=when)
    rows.write_captures(
        folder / "captures", capture_from_record.of_container(path, name, on_finding=lambda _: None)
    )
    rows.write_findings(folder / "findings", [])
    rows.write_rows(folder / "formats", [])
    harvest = Harvest(
        id=HarvestId(f"{when:%Y%m%d%H%M%S}-site-{number}"),
        target=TargetId(number),
        kind=HarvestKind.HARVEST,
        state=HarvestState.FINISHED,
        seeds=(Url(site),),
        collection=collection,
        settings={},
        started_at=when,
        reason="the queue is empty",
        counts={"fetched": 3},
    )
    target = Target(
        id=harvest.target,
        name=f"Site {number}",
        seeds=harvest.seeds,
        collection=collection,
        purpose=Purpose.HERITAGE,
        created_at=when,
    )
    container = ContainerSource(
        name=name,
        path=path,
        size_bytes=path.stat().st_size,
        sha256=digest.of_file(path).value.hex(),
        records=len(pages),
    )
    return PackageContent(
        id=package_content.id_of(harvest.id),
        urn=f"urn:nbn:de:0000-{number}",
        title=f"Site {number}, {when:%Y-%m-%d}",
        target=target,
        harvest=harvest,
        containers=(container,),
        captures=folder / "captures",
        formats=(folder / "formats",),
        findings=folder / "findings",
        logs=(),
        verdict=Verdict(answer=Answer.ACCEPT, rule="quality", reason="whole"),
        events=(
            Event(at=when, agent="anna", action="harvested", subject_kind="harvest", subject=harvest.id),
        ),
        descriptions={"dublin_core.xml": b"<dc/>"},
        agent="anna",
        stored_at=when,
        decisions=(
            {
                "question": "selection",
                "answer": "accept",
                "rule": "heritage",
                "reason": "ours",
                "agent": "anna",
                "at": when.isoformat(),
            },
        ),
    )


def files_of(store_root: Path, identifier: PackageId) -> list[Path]:
    """Every file of a package in a folder, content and frame."""
    return sorted(path for path in (store_root / layout.folder_of(identifier)).rglob("*") if path.is_file())
