"""Where the files of an object that is not a web site can be replayed."""

from collections.abc import Sequence

from webdepot.exchange import incoming
from webdepot.exchange.catalogue import CatalogueRecord, RecordLevel
from webdepot.exchange.transfer_zip import Transfer, TransferForm
from webdepot.times import from_iso, to_timestamp


def shown_at(levels: Sequence[CatalogueRecord], transfer_object: Transfer) -> dict[str, tuple[str, str]]:
    """Member to address and timestamp; empty for a web site. `levels` are the record and all above it."""
    own = levels[-1]
    files = transfer_object.files
    if transfer_object.form is not TransferForm.FILES or levels[0].level is RecordLevel.SITE:
        return {}
    addresses = [
        each
        for level in reversed(levels)
        for each in level.addresses
        if each.startswith(("http://", "https://"))
    ]
    return {
        file.member: (
            file.url or incoming.address_without_site(own.urn, file.member, addresses, count=len(files)),
            to_timestamp(from_iso(file.at)),
        )
        for file in files
    }
