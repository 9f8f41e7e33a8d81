"""Home, about, help and the choice of a language."""

from starlette.requests import Request
from starlette.responses import PlainTextResponse, RedirectResponse, Response

from webdepot.config.sections.portal import ArchiveConfig
from webdepot.services.admin import archive_status
from webdepot.web import charts
from webdepot.web.language import language
from webdepot.web.reader import page_pictures
from webdepot.web.site import (
    LANGUAGE_COOKIE,
    WebOrigin,
    here,
    language_of,
    local_path,
    reader_of,
    render,
    site_of,
)

YEAR_S = 365 * 24 * 3600
_NO_ROBOTS = "User-agent: *\nDisallow: /\n"
_ROBOTS = """\
User-agent: *
Disallow: /*/http
Disallow: /*/urn:
Disallow: /search
Disallow: /versions
Disallow: /compare
Disallow: /evidence
Disallow: /-/
Allow: /-/static/
"""
"""Archived pages are at `/{collection}/{timestamp}/http…`: search engines find the live ones."""


def home(request: Request) -> Response:
    home = archive_status.home(site_of(request).archive, reader=reader_of(request))
    bars = charts.of_years(home.years, spoken=language_of(request))
    return render(request, "home.html", home=home, bars=bars, picture_path=page_pictures.path_of)


def about(request: Request) -> Response:
    archive = site_of(request).archive
    has_purpose = archive.config.archive.purpose != ArchiveConfig().purpose
    return render(
        request,
        "about.html",
        figures=archive_status.figures(archive),
        has_purpose=has_purpose,
    )


def help_page(request: Request) -> Response:
    return render(request, "help.html")


def robots(request: Request) -> Response:
    """Which pages other crawlers may fetch (RFC 9309): those about the archive, but neither archived pages
    nor lists that have no end.
    """
    is_portal = site_of(request).origin is WebOrigin.PORTAL
    return PlainTextResponse(_ROBOTS if is_portal else _NO_ROBOTS, headers={"Cache-Control": "max-age=3600"})


def icon(request: Request) -> Response:
    """For browsers that ask without reading the page."""
    return RedirectResponse("/-/static/icon.svg", status_code=301)


def to_portal(request: Request) -> Response:
    """Redirect a request for the portal that has the host name of the frame."""
    return RedirectResponse(site_of(request).portal_url + here(request), status_code=307)


def set_language(request: Request) -> Response:
    """A link of the footer: remember the language in a cookie and return to the page."""
    response = RedirectResponse(local_path(request.query_params.get("to")), status_code=303)
    code = request.query_params.get("lang")
    if code in language.CODES:
        site = site_of(request)
        response.set_cookie(
            site.cookie_name(LANGUAGE_COOKIE),
            code,
            # The frame gets it from the portal again.
            max_age=None if site.origin is WebOrigin.FRAME else YEAR_S,
            httponly=True,
            samesite="lax",
            secure=site.archive.config.web.secure_cookies,
        )
    return response
