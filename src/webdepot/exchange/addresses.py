"""Addresses of what is described: front page, transfer object, resolver. All records of a depot are built
with the same ones.
"""

from dataclasses import dataclass

from webdepot.exchange.transfer import TransferForm

TREE = ".tree"
"""Behind the key of an object in the address of its unpacked form."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Addresses:
    portal_url: str
    """Without a final slash."""
    institution: str = ""
    """Name of the archive."""
    code: str = ""
    """Code of the institution (ISIL)."""

    def front_page(self, key: str) -> str:
        return f"{self.portal_url}/title/{key}"

    def transfer(self, key: str, form: TransferForm) -> str:
        """An object may be there in two forms, each with an address and a checksum of its own."""
        return f"{self.portal_url}/transfer/{key}{TREE if form is TransferForm.TREE else ''}.zip"

    def resolver(self, urn: str) -> str:
        return f"{self.portal_url}/urn/{urn}"
