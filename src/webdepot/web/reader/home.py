"""Home, about, help and the choice of a language."""

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from webdepot.config.settings import ArchiveConfig
from webdepot.services.admin import archive_status
from webdepot.web import language
from webdepot.web.site import LANGUAGE_COOKIE, WebOrigin, here, local_path, reader_of, render, site_of

YEAR_S = 365 * 24 * 3600


def home(request: Request) -> Response:
    return render(
        request, "home.html", home=archive_status.home(site_of(request).archive, reader=reader_of(request))
    )


def about(request: Request) -> Response:
    archive = site_of(request).archive
    has_purpose = archive.config.archive.purpose != ArchiveConfig().purpose
    return render(
        request,
        "about.html",
        home=archive_status.home(archive, reader=reader_of(request), limit=1),
        has_purpose=has_purpose,
    )


def help_page(request: Request) -> Response:
    return render(request, "help.html")


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
