"""Host names of archived sites.

Browsers keep storage, channels, workers and pages apart by host name. So each archived host is shown on a
name of its own, below one parent:

    https://www.example.org/  ->  www-example-org-5f5d6bb29e7aa5cf.replay.archive.example.org

The label is readable and ends with a checksum, because `a-b.example` and `a.b.example` look alike otherwise.
Archived pages choose neither label nor parent: the portal says where a page is opened. Frames of other sites
in a page have the host name of that page.

Machines (CDX, TimeMaps, Memento, raw captures) use the replay server's own name, which shows no pages then.
"""

import hashlib
import re
from dataclasses import dataclass
from urllib.parse import urlsplit

from webdepot.url import host_of

_LONGEST_NAME = 46
_LABEL = re.compile(r"(?:[a-z0-9][a-z0-9-]{0,45}-)?[0-9a-f]{16}\Z")
_NOT_IN_LABELS = re.compile(r"[^a-z0-9]+")


def label_of(url: str) -> str:
    """The label for pages of this archived address: a valid DNS label, the same for all pages of a host."""
    host = host_of(url).lower()
    name = _NOT_IN_LABELS.sub("-", host)[:_LONGEST_NAME].strip("-")
    checksum = hashlib.sha256(host.encode("utf-8", "surrogatepass")).hexdigest()[:16]
    return f"{name}-{checksum}" if name else checksum


@dataclass(frozen=True, slots=True, kw_only=True)
class SiteHosts:
    """Where archived pages are shown. Addresses have no final slash."""

    replay_url: str
    parent_url: str = ""
    """Labels go before its host name; empty if all archived sites share `replay_url`."""

    def url_for(self, url: str) -> str:
        """The origin on which this archived address is shown."""
        return self._labelled(label_of(url)) if self.parent_url and host_of(url) else self.replay_url

    def find_asked(self, host: str) -> str | None:
        """The origin that a Host header names: that of an archived site, or the replay server's own for every
        name that is not below the parent; None for a name below it that is not a label.
        """
        parent = urlsplit(self.parent_url).hostname if self.parent_url else None
        name = host.lower().partition(":")[0]
        if parent is None or not name.endswith("." + parent):
            return self.replay_url
        label = name.removesuffix("." + parent)
        return self._labelled(label) if _LABEL.match(label) else None

    def _labelled(self, label: str) -> str:
        scheme, _, rest = self.parent_url.partition("://")
        return f"{scheme}://{label}.{rest}"
