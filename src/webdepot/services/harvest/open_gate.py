"""What a crawl needs of an organisation. Apart from `host_gate`, so that a harvest of no organisation need
not load that.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from webdepot.harvest.fetch.addresses import LookUp
from webdepot.url import Url

if TYPE_CHECKING:
    from webdepot.services.harvest.host_gate import HostGate


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenGate:
    """Its rules, and, in a closed network, its names and authorities."""

    rules: "HostGate | None" = None
    seeds: tuple[Url, ...] = ()
    """Front pages of the hosts that are known to belong: some of them nobody links to."""
    look_up: LookUp | None = None
    ca_file: Path | None = None
