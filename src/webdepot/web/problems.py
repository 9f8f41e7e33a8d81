"""Error pages: the right status and a text in the reader's language, never a traceback. Programs that call
the API get problem details instead (RFC 9457, https://www.rfc-editor.org/rfc/rfc9457).
"""

import logging
from http import HTTPStatus

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from webdepot.access.replay.headers import RAW_POLICY
from webdepot.errors import (
    Closed,
    ConfigError,
    Conflict,
    CorruptData,
    InputError,
    NoSpace,
    NotFound,
    NotPermitted,
    RemoteError,
    TooExpensive,
    WebdepotError,
    Withdrawn,
)
from webdepot.services.access.lending import InUse
from webdepot.url import host_of
from webdepot.web.language import wording
from webdepot.web.language.language import Language
from webdepot.web.replay.address import BadAddress, ReplayAddress, find_address
from webdepot.web.site import WebOrigin, is_api, language_of, render, site_of

log = logging.getLogger(__name__)
PROBLEM_TYPE = "application/problem+json"
_CODES = {
    401: "not-signed-in",
    403: "not-permitted",
    404: "not-found",
    405: "method-not-allowed",
    413: "too-large",
    415: "not-json",
    503: "busy",
}
"""The codes of errors that are not a `WebdepotError`."""
PROBLEM_CODES = {
    **{
        error.code: error.http_status
        for error in (InputError, TooExpensive, NotFound, Withdrawn, NotPermitted, Closed, Conflict)
    },
    **{code: status for status, code in _CODES.items()},
    **{error.code: error.http_status for error in (RemoteError, CorruptData, NoSpace, ConfigError)},
    WebdepotError.code: WebdepotError.http_status,
}
"""All codes of the API, each with its status."""


def problem(
    request: Request, status: int, text: str, *, asked: ReplayAddress | None = None, code: str = ""
) -> Response:
    """A page that explains the error; with the archived address that was asked for, and links to its
    versions. For the API the same as problem details, with the stable code of the error.
    """
    spoken = language_of(request)
    title = heading(spoken, status)
    if is_api(request):
        return _details(request, status, title, text, code)
    if site_of(request).origin is WebOrigin.REPLAY:
        headers = {"Content-Security-Policy": RAW_POLICY}
        return render(
            request,
            "inside.html",
            status=status,
            headers=headers,
            heading=title,
            words=text,
            url=asked.url if asked else "",
            bare=None,
        )
    return render(
        request,
        "problem.html",
        status=status,
        heading=title,
        words=text,
        code=status,
        asked=asked,
        host_of=host_of,
    )


def _details(request: Request, status: int, title: str, text: str, code: str) -> Response:
    code = code or _CODES.get(status, "input" if status < 500 else "error")
    content = {
        "type": f"{site_of(request).portal_url}/developers#problem-{code}",
        "title": title,
        "status": status,
        "detail": text,
        "code": code,
    }
    headers = {
        "Cache-Control": "no-store",
        "Content-Language": language_of(request).code,
        "Vary": "Accept-Language",
    }
    return JSONResponse(content, status_code=status, headers=headers, media_type=PROBLEM_TYPE)


def heading(spoken: Language, status: int) -> str:
    """The title of the error page for a status."""
    known = f"errors.title_{status}"
    if known in spoken.texts:
        return spoken.texts[known]
    return spoken.texts["errors.title_400" if status < 500 else "errors.title_500"]


def explain(request: Request, error: WebdepotError) -> str:
    """The message of an error in the reader's language."""
    if isinstance(error, (BadAddress, InUse)):
        return language_of(request).say(error.key, **error.values)
    spoken = language_of(request)
    sentence = wording.of_reason(spoken, error.args[0]) if error.args else str(error)
    return wording.of_said(spoken, "public" if isinstance(error, Closed) else "error", sentence)


def on_webdepot_error(request: Request, error: Exception) -> Response:
    assert isinstance(error, WebdepotError)  # noqa: S101 - registered for this class
    if error.http_status >= 500:
        log.error("request failed", extra={"path": request.url.path[:500], "error": str(error)})
    asked = _find_asked(request) if isinstance(error, (Closed, InUse)) else None
    return problem(request, error.http_status, explain(request, error), asked=asked, code=error.code)


def _find_asked(request: Request) -> ReplayAddress | None:
    try:
        return find_address(
            request.scope.get("raw_path") or request.url.path.encode(), request.scope["query_string"]
        )
    except BadAddress:
        return None


def on_http_error(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)  # noqa: S101 - registered for this class
    texts = language_of(request).texts
    text = texts.get(f"errors.text_{error.status_code}") or error.detail
    response = problem(request, error.status_code, text or HTTPStatus(error.status_code).phrase)
    response.headers.update(error.headers or {})
    return response


def on_any_error(request: Request, error: Exception) -> Response:
    """Starlette logs the traceback after this."""
    return problem(request, 500, language_of(request).texts["errors.text_500"])


HANDLERS = {
    WebdepotError: on_webdepot_error,
    HTTPException: on_http_error,
    Exception: on_any_error,
}
