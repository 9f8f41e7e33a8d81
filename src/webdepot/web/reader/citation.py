"""The citation of a version as a file for reference managers."""

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from webdepot.access.citation import CitationForm
from webdepot.errors import InputError
from webdepot.model import EVERYTHING
from webdepot.services.access import citation as citation_service
from webdepot.web.replay import address
from webdepot.web.site import reader_of, site_of

TYPES = {
    CitationForm.BIBTEX: ("application/x-bibtex", "bib"),
    CitationForm.RIS: ("application/x-research-info-systems", "ris"),
}


def cite(request: Request) -> Response:
    """`/cite?url=…&at=…&collection=…&form=bibtex|ris`"""
    query = request.query_params
    collection = query.get("collection", EVERYTHING).lower()
    try:
        form = CitationForm(query.get("form", "bibtex"))
        place = address.find_address(
            f"/{collection}/{query.get('at', '')}/{query.get('url', '')}".encode(), b""
        )
    except ValueError:
        raise HTTPException(400) from None
    if place is None or place.modifier:
        raise InputError("A citation needs an address (url) and a timestamp (at).")
    site = site_of(request)
    stamp = address.nearest_stamp(place.timestamp, site.archive.clock())
    text = citation_service.cite_as(
        site.archive,
        place.url,
        stamp,
        form,
        collection=place.collection,
        reader=reader_of(request),
        # The version that is cited, not the moment asked for: a later harvest may be closer to that one day.
        address_of=lambda capture: (
            site.portal_url + address.path_of(collection, capture.timestamp, capture.url)
        ),
    )
    mime, extension = TYPES[form]
    headers = {
        "Content-Disposition": f'attachment; filename="citation.{extension}"',
        "Cache-Control": "no-cache, private",
    }
    return Response(text, media_type=f"{mime}; charset=utf-8", headers=headers)
