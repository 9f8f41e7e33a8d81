"""Read an object in UOF (kopal): a thesis, an article, the files of a web site, containers.

Every file that `mets.xml` lists must be present with the listed size and checksum, and there must be no other
file.
"""

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace

from webdepot.depot.bundle import submission
from webdepot.depot.bundle.submission import Submission
from webdepot.errors import InputError
from webdepot.exchange import incoming, uof
from webdepot.exchange.incoming import CheckedFile, RefusedObject
from webdepot.exchange.metadata.lmer import LmerFile
from webdepot.exchange.metadata.regbib import DeliveredObject
from webdepot.exchange.transfer_zip import UNKNOWN_FORMAT
from webdepot.services.intake.loose_objects import UNKNOWN_MIME, ReadObject
from webdepot.times import from_iso, to_iso

_MOST_REASONS = 50


def read(opened: Submission) -> ReadObject:
    """The description of an object and its files; RefusedObject if they do not match."""
    described = (opened.root / submission.UOF_METS).read_bytes()
    delivered, files = _verify(opened, described)
    return ReadObject(delivered=delivered, files=files, around={submission.UOF_METS: described}, mark="uof")


def _verify(opened: Submission, described: bytes) -> tuple[DeliveredObject, list[CheckedFile]]:
    """The description of an object and its files; RefusedObject if they do not match."""
    try:
        delivered = uof.read(described)
    except InputError as error:
        raise RefusedObject(str(error)) from error
    reasons = list(_iter_mismatches(opened, delivered))
    checked: list[CheckedFile] = []
    if not reasons:
        reasons = list(incoming.check_files(opened.root, delivered, checked))
    if reasons:
        raise RefusedObject(*reasons[:_MOST_REASONS])
    is_below = all(file.path.startswith(f"/{uof.CONTENT}/") for file in delivered.files)
    files = [_complete(file, delivered, strip=is_below) for file in checked]
    return replace(delivered, files=tuple(file.facts for file in files)), files


def _iter_mismatches(opened: Submission, delivered: DeliveredObject) -> Iterator[str]:
    """One message for each file that is missing, listed twice, not listed, or has another size."""
    there = {path.relative_to(opened.root).as_posix(): path for path in submission.contents_of(opened)}
    listed = [incoming.member_of(file) for file in delivered.files]
    yield from (
        f"{name[:200]} is listed twice" for name, count in sorted(Counter(listed).items()) if count > 1
    )
    yield from (
        f"{name[:200]} is listed but not in the package" for name in sorted(set(listed) - there.keys())
    )
    yield from (
        f"{name[:200]} is in the package but not listed" for name in sorted(there.keys() - set(listed))
    )
    for name, file in zip(listed, delivered.files, strict=True):
        if name in there and file.size and file.size != str(there[name].stat().st_size):
            yield f"{name[:200]} has {there[name].stat().st_size} bytes, but {file.size[:30]} are listed"


def _complete(file: CheckedFile, delivered: DeliveredObject, *, strip: bool) -> CheckedFile:
    """Fill in what METS may leave out; `strip` removes the folder `content/` from the path."""
    facts = file.facts
    try:
        at = to_iso(from_iso(facts.file_date_time))
    except ValueError:
        at = delivered.object.master_creation_date
    complete: LmerFile = replace(
        facts,
        path=facts.path.removeprefix(f"/{uof.CONTENT}") if strip else facts.path,
        size=str(file.size_bytes),
        file_date_time=at,
        mime_type=facts.mime_type or UNKNOWN_MIME,
        format=facts.format or UNKNOWN_FORMAT,
    )
    return replace(file, facts=complete)
