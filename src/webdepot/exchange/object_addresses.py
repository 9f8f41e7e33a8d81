"""The web addresses in the metadata of an object: front page, transfer object, resolver."""

from dataclasses import dataclass

from webdepot.exchange.transfer_zip import TransferForm

TREE = ".tree"
"""Follows the key of an object in the address of its unpacked form."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ObjectAddresses:
    portal_url: str
    """Without a final slash."""
    institution: str = ""
    """Name of the archive."""
    code: str = ""
    """Code of the institution (ISIL)."""

    def front_page(self, key: str) -> str:
        return f"{self.portal_url}/title/{key}"

    def transfer(self, key: str, form: TransferForm) -> str:
        """The Transfer-URL. An object can have two forms, each with its own address and checksum."""
        return f"{self.portal_url}/transfer/{key}{TREE if form is TransferForm.TREE else ''}.zip"

    def resolver(self, urn: str) -> str:
        return f"{self.portal_url}/urn/{urn}"
