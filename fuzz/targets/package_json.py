"""package.json of a delivered package, in an object that is otherwise whole."""

from datetime import UTC, datetime
from functools import cache
from pathlib import Path

from fuzz.scratch import root
from webdepot.depot import package, package_content
from webdepot.depot.ocfl import objects
from webdepot.depot.package_content import PackageContent
from webdepot.depot.store.folder import FolderStore
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
from webdepot.url import Url

TOKENS = (
    b'"format": ', b'"format_version": 1', b'"harvest": {', b'"target": {', b'"seeds": []',
    b'"containers": [{"name": "a.warc.gz", "size_bytes": 1, "sha256": "", "records": 1}]',
    b'"verdict": {"answer": "accept", "rule": "", "reason": ""}', b'"reason_said": ', b'["code", {"a": 1}]',
    b"null", b"[]", b"{}", b"1e999", b"NaN", b"-1", b'"2020-01-01T00:00:00Z"', b'"\\ud800"', b"../",
    b'"counts": ', b'"settings": ', b'"stored_at": ', b'"0000-00-00"', b"true",
)  # fmt: skip
_AT = datetime(2020, 1, 1, tzinfo=UTC)


@cache
def _store() -> tuple[FolderStore, PackageId, Path]:
    """A store with one package, and the path of its package.json."""
    folder = root() / "package"
    folder.mkdir()
    for name in ("captures", "formats", "findings"):
        (folder / name).write_bytes(b"")
    url = Url("http://a.example/")
    target = Target(
        id=TargetId(1), name="", seeds=(url,), collection="all", purpose=Purpose.HERITAGE, created_at=_AT
    )
    harvest = Harvest(
        id=HarvestId("H-1"),
        target=target.id,
        kind=HarvestKind.HARVEST,
        state=HarvestState.FINISHED,
        seeds=(url,),
        collection="all",
        settings={},
        started_at=_AT,
    )
    content = PackageContent(
        id=package_content.id_of(harvest.id),
        urn="",
        title="",
        target=target,
        harvest=harvest,
        containers=(),
        captures=folder / "captures",
        formats=(),
        findings=folder / "findings",
        logs=(),
        verdict=Verdict(answer=Answer.ACCEPT, rule="", reason=""),
        events=(),
        descriptions={},
        agent="",
        stored_at=_AT,
    )
    store = FolderStore(root() / "depot")
    package.build(store, content)
    inventory = objects.read_inventory(store, content.id)
    return store, content.id, store.root / objects.content_key(inventory, package_content.FACTS)


def prepare() -> None:
    """Build the package before the first input, outside of its limits."""
    _store()


def one_input(data: bytes) -> None:
    store, identifier, path = _store()
    path.write_bytes(data)
    package.read(store, identifier)
