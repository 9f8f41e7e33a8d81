"""The evidence of a capture: a page, a PDF file, a signed JSON document; and the key that signs them."""

import re
from enum import StrEnum
from typing import Any

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from webdepot.access.capture_evidence import CaptureEvidence
from webdepot.errors import InputError
from webdepot.model import EVERYTHING
from webdepot.services.access import evidence as evidence_service
from webdepot.url import host_of
from webdepot.web.api.openapi_parts import NOT_KEPT, parameter
from webdepot.web.reader import evidence_pdf, evidence_sheet
from webdepot.web.replay import address
from webdepot.web.site import Site, language_of, reader_of, render, site_of

KEY_PATH = "/evidence/key.pem"


class EvidenceForm(StrEnum):
    PAGE = "page"
    PDF = "pdf"
    JSON = "json"


def show(request: Request) -> Response:
    """`/evidence?url=…&at=…&collection=…&form=page|pdf|json`"""
    site, query = site_of(request), request.query_params
    collection = query.get("collection", EVERYTHING).lower()
    try:
        form = EvidenceForm(query.get("form", "page"))
        asked = address.find_address(
            f"/{collection}/{query.get('at', '')}/{query.get('url', '')}".encode(), b""
        )
    except ValueError:
        raise HTTPException(400) from None
    if asked is None or asked.modifier:
        raise InputError("Evidence needs an address (url) and a timestamp (at).")
    facts = evidence_service.collect(
        site.archive,
        asked.url,
        address.nearest_stamp(asked.timestamp, site.archive.clock()),
        collection=asked.collection,
        reader=reader_of(request),
        address=site.portal_url + address.path_of(asked.collection, "{timestamp}", asked.url),
    )
    if form is EvidenceForm.PDF:
        return _send_pdf(request, facts)
    if form is EvidenceForm.JSON:
        return _download(evidence_service.sign(site.archive, facts), "application/json", _name(facts, "json"))
    return render(
        request,
        "evidence.html",
        facts=facts,
        collection=asked.collection,
        sections=evidence_sheet.sections(facts, language_of(request)),
        made_at=evidence_sheet.exact(language_of(request), facts.made_at),
        key_path=KEY_PATH,
    )


def send_key(request: Request) -> Response:
    """The public key with which evidence is signed."""
    key = evidence_service.public_key(site_of(request).archive)
    headers = {"Cache-Control": "no-cache", "Access-Control-Allow-Origin": "*"}
    return Response(key, media_type="application/x-pem-file", headers=headers)


def _send_pdf(request: Request, facts: CaptureEvidence) -> Response:
    site, spoken = site_of(request), language_of(request)
    lead = spoken.say(
        "evidence.pdf_lead",
        archive=facts.archive,
        date=evidence_sheet.exact(spoken, facts.made_at),
        software=facts.software,
        key_address=site.portal_url + KEY_PATH,
    )
    data = evidence_pdf.write(
        title=spoken.say("evidence.title"),
        lead=lead,
        source=f"{facts.archive} · {facts.address}",
        sections=evidence_sheet.sections(facts, spoken),
        language=spoken.code,
        made_at=facts.made_at,
        attached=evidence_service.sign(site.archive, facts),
        attached_name=_name(facts, "json"),
    )
    return _download(data, "application/pdf", _name(facts, "pdf"))


def _name(facts: CaptureEvidence, extension: str) -> str:
    host = re.sub(r"[^a-z0-9.-]+", "-", host_of(facts.url).lower())[:80] or "capture"
    return f"evidence-{host}-{facts.timestamp}.{extension}"


def _download(data: bytes, mime: str, name: str) -> Response:
    headers = {
        "Content-Disposition": f'attachment; filename="{name}"',
        "Cache-Control": "no-cache, private",
    }
    return Response(data, media_type=mime, headers=headers)


def describe_api(site: Site) -> dict[str, Any]:
    """The paths of this module in OpenAPI."""
    document = {"description": "Evidence signed by the archive.", "content": {"application/json": {}}}
    key = {"description": "An Ed25519 public key.", "content": {"application/x-pem-file": {}}}
    return {
        "/evidence": {
            "get": {
                "summary": "The facts about a capture that prove what was archived and when.",
                "parameters": [
                    parameter("url", "The archived address.", required=True),
                    parameter("at", "A timestamp; the closest version is taken. Default: now."),
                    parameter("collection", "Name of a collection. Default: all."),
                    parameter("form", "json (signed), pdf, or page for people."),
                ],
                "responses": {"200": document, **NOT_KEPT},
            }
        },
        KEY_PATH: {
            "get": {"summary": "The public key of the archive.", "responses": {"200": key}},
        },
    }
