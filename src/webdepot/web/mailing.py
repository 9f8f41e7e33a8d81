"""Letters that are sent while the portal runs."""

from starlette.requests import Request

from webdepot.services.permission.delivery import LetterSender
from webdepot.web.site import of_app, site_of


def start_sending(request: Request) -> None:
    """Send waiting letters in the background, if a mail server is configured."""
    archive = site_of(request).archive
    if archive.config.mail.host:
        of_app(request, LetterSender).start(archive)
