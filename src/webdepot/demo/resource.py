"""An edition of the sample site, and a resource it serves."""

from dataclasses import dataclass
from datetime import datetime

HOST = "www.museum-veldwijk.example"
MAP_HOST = "kaart.museum-veldwijk.example"
HOSTS = (HOST, MAP_HOST)


@dataclass(frozen=True, slots=True, kw_only=True)
class Edition:
    """The site as it was on one day."""

    name: str
    """The year; editions are ordered by name."""
    date: datetime
    """When the demonstration harvests it."""
    label: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Resource:
    """The response of the server for one address."""

    path: str
    type: str
    """Content-Type as sent, with its parameters."""
    changed: datetime
    body: bytes = b""
    host: str = HOST
    status: int = 200
    location: str = ""
    """Target of a redirect."""

    @property
    def url(self) -> str:
        return f"http://{self.host}{self.path}"
