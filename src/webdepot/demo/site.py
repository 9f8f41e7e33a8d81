"""The sample site: its editions, and everything an edition serves."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime

from webdepot.demo import render
from webdepot.demo.editions import boxes, modules, responsive, tables
from webdepot.demo.render import Look
from webdepot.demo.resource import HOST, Edition, Resource

SEED = f"http://{HOST}/"
INSTITUTION = "Streekarchief Veldwijk"

EDITIONS = (
    Edition(
        name="2003",
        date=datetime(2003, 5, 14, 9, 30, tzinfo=UTC),
        label="tables, frames and a visitor counter",
    ),
    Edition(
        name="2004",
        date=datetime(2004, 11, 3, 14, 10, tzinfo=UTC),
        label="the same site after the flood in the cellar",
    ),
    Edition(
        name="2009",
        date=datetime(2009, 6, 18, 8, 45, tzinfo=UTC),
        label="boxes, a weblog, a town plan in tiles",
    ),
    Edition(
        name="2016",
        date=datetime(2016, 9, 10, 11, 20, tzinfo=UTC),
        label="responsive, wide pictures in several sizes",
    ),
    Edition(
        name="2024",
        date=datetime(2024, 4, 18, 7, 5, tzinfo=UTC),
        label="script modules, drawings, data fetched by script",
    ),
)
"""In the order of time."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Served:
    """An edition ready to be served: resources by host and path, and the page for everything else."""

    edition: Edition
    resources: Mapping[tuple[str, str], Resource]
    missing: Resource


def serve(edition: Edition) -> Served:
    """Build every resource of an edition; the same edition always gives the same bytes."""
    build, look = _MAKERS[edition.name]
    resources = {(resource.host, resource.path): resource for resource in build(edition)}
    return Served(edition=edition, resources=resources, missing=render.missing_page(edition, look))


_MAKERS: Mapping[str, tuple[Callable[[Edition], Iterator[Resource]], Look]] = {
    "2003": (tables.build, tables.LOOK),
    "2004": (tables.build, tables.LOOK),
    "2009": (boxes.build, boxes.LOOK),
    "2016": (responsive.build, responsive.LOOK),
    "2024": (modules.build, modules.LOOK),
}
