"""The citation of a version as a file for programs that keep literature."""

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from webdepot.access.citation import CitationForm, write
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
    asked = request.query_params
    collection = asked.get("collection", EVERYTHING).lower()
    try:
        form = CitationForm(asked.get("form", "bibtex"))
        found = address.find_address(
            f"/{collection}/{asked.get('at', '')}/{asked.get('url', '')}".encode(), b""
        )
    except ValueError:
        raise HTTPException(400) from None
    if found is None or found.modifier:
        raise InputError("A citation needs an address (url) and a moment (at).")
    site = site_of(request)
    stamp = address.nearest_stamp(found.timestamp, site.archive.clock())
    where = site.portal_url + address.path_of(collection, stamp, found.url)
    citation = citation_service.cite(
        site.archive, found.url, stamp, collection=found.collection, reader=reader_of(request), address=where
    )
    mime, extension = TYPES[form]
    headers = {
        "Content-Disposition": f'attachment; filename="citation.{extension}"',
        "Cache-Control": "no-cache, private",
    }
    return Response(write(citation, form), media_type=f"{mime}; charset=utf-8", headers=headers)
