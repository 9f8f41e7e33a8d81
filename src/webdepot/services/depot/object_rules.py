"""Access rules of objects whose record says that access is restricted: a thesis that is not public.

The rule closes the files of the object to the public, not to reading room, staff and partners. It is
an ordinary access rule, so replay, search, CDX and downloads all follow it, and staff can replace it. It
appears when an object is taken in or its record becomes restricted, and ends when the record becomes open.
Web sites have rules of their own: the record of a site says only who may fetch its packages.
"""

from collections.abc import Iterator

from sqlalchemy import Connection

from webdepot.access.policy import AccessPoint, Rule, RuleAnswer
from webdepot.archive import Archive
from webdepot.exchange import transfer_zip
from webdepot.exchange.catalogue import Access, CatalogueRecord, RecordLevel
from webdepot.exchange.transfer_zip import TransferForm
from webdepot.services.access import rules
from webdepot.times import from_iso, to_timestamp
from webdepot.url import find_canonical, key

REASON = "copyright"
NOTE = "from the rights of the object"
_WEB = (RecordLevel.SITE, RecordLevel.SLICE)


def follow(archive: Archive, connection: Connection, record: CatalogueRecord) -> None:
    """Close or open the files of an object as its record says, in the caller's transaction."""
    drafts = list(_drafts(archive, connection, record))
    if record.access is Access.RESTRICTED:
        rules.add_missing(archive, connection, drafts)
    else:
        rules.remove_same(archive, connection, drafts, why=f"{record.key} is open")


def _drafts(archive: Archive, connection: Connection, record: CatalogueRecord) -> Iterator[Rule]:
    """The rules that close an object; none for web sites and containers."""
    if record.level in _WEB or not record.is_object or not record.urn or record.withdrawn_at is not None:
        return
    known = transfer_zip.find(connection, record.key)
    if known is None or known.form is not TransferForm.FILES:
        return
    yield _draft(archive, record, key(f"{record.urn}/"))
    # The only file of an object is found at its web address, if the record has one.
    web = [url for each in record.addresses if (url := find_canonical(each)) and url.startswith("http")]
    if len(known.files) == 1 and web:
        moment = to_timestamp(from_iso(known.files[0].at))
        yield _draft(archive, record, key(web[0]), exact=True, moment=moment)


def _draft(
    archive: Archive, record: CatalogueRecord, prefix: str, *, exact: bool = False, moment: str = ""
) -> Rule:
    return Rule(
        id=0,
        prefix=prefix,
        exact=exact,
        captured_from=moment or "0" * 14,
        captured_to=moment or "9" * 14,
        access_point=AccessPoint.PUBLIC,
        answer=RuleAnswer.REFUSE,
        public_text=record.rights[:500] if " " in record.rights else "",  # not for a bare identifier
        private_note=NOTE,
        reason=REASON,
        created_by=archive.agent[:200],
        created_at=archive.clock(),
    )
