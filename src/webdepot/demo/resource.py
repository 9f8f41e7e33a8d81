"""The nouns of the demonstration: an edition of the sample site, and one thing it serves."""

from dataclasses import dataclass
from datetime import datetime

HOST = "www.museum-veldwijk.example"
MAP_HOST = "kaart.museum-veldwijk.example"
HOSTS = (HOST, MAP_HOST)


@dataclass(frozen=True, slots=True, kw_only=True)
class Edition:
    """The site as it stood on one day."""

    name: str
    """The year; editions follow each other in the order of their names."""
    date: datetime
    """When the demonstration harvests it."""
    label: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Resource:
    """What the server answers for one address."""

    path: str
    type: str
    """Content-Type as sent, with its parameters."""
    changed: datetime
    body: bytes = b""
    host: str = HOST
    status: int = 200
    location: str = ""
    """Where a redirect leads."""

    @property
    def url(self) -> str:
        return f"http://{self.host}{self.path}"
