"""xepicur: registration of URNs by OAI harvest. The URN resolver reads these records and learns the addresses
of each URN.

Namespace urn:nbn:de:1111-2004033116, prefix `epicur`. Each record lists all valid addresses of its URN, since
the resolver removes addresses that are no longer listed; of the update types, only `urn_new` is safe today.
"""

from lxml import etree

from webdepot.exchange.catalogue import CatalogueRecord
from webdepot.exchange.metadata.markup import XSI, add
from webdepot.exchange.object_addresses import ObjectAddresses
from webdepot.exchange.transfer_zip import Transfer

EPICUR = "urn:nbn:de:1111-2004033116"
SCHEMA = "http://www.persistent-identifier.de/xepicur/version1.0/xepicur.xsd"


def to_element(
    record: CatalogueRecord, transfer: Transfer | None, *, addresses: ObjectAddresses
) -> etree._Element:
    root = etree.Element(f"{{{EPICUR}}}epicur", nsmap={None: EPICUR, "xsi": XSI})
    root.set(f"{{{XSI}}}schemaLocation", f"{EPICUR} {SCHEMA}")
    delivery = add(add(root, f"{{{EPICUR}}}administrative_data"), f"{{{EPICUR}}}delivery")
    add(delivery, f"{{{EPICUR}}}update_status", None, type="urn_new")
    entry = add(root, f"{{{EPICUR}}}record")
    scheme = ":".join(record.urn.split("-")[0].split(":")[:3])
    add(entry, f"{{{EPICUR}}}identifier", record.urn, scheme=scheme)
    _resource(entry, addresses.front_page(record.key), "text/html", role="primary", type="frontpage")
    if transfer is not None:
        _resource(entry, addresses.transfer(record.key, transfer.form), "application/zip", target="transfer")
    return root


def _resource(parent: etree._Element, url: str, mime: str, **attributes: str) -> None:
    resource = add(parent, f"{{{EPICUR}}}resource")
    add(resource, f"{{{EPICUR}}}identifier", url, scheme="url", **attributes)
    add(resource, f"{{{EPICUR}}}format", mime, scheme="imt")
