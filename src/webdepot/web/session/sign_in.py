"""Signing in and out. Failed attempts are slowed down; accounts are never locked.

Failures are counted for a name *from one network*, and for a network: nobody can lock another person out from
elsewhere. A browser in which a person has signed in before carries a cookie that says so; its failures are
counted apart, so that it gets in even if somebody guesses in the same network.
https://owasp.org/www-community/Slow_Down_Online_Guessing_Attacks_with_Device_Cookies
"""

from functools import partial

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from webdepot.accounts import sessions
from webdepot.accounts.roles import STAFF, Role
from webdepot.services.admin import demo_accounts
from webdepot.web.client_address import wider_network_of
from webdepot.web.forms import SHORT_FORM, read_form, sender_of
from webdepot.web.request_turns import Turns
from webdepot.web.session.sign_in_brake import (
    MOST_FAILURES,
    MOST_FAILURES_NEAR_BY,
    MOST_FAILURES_OF_NETWORK,
    SignInBrake,
)
from webdepot.web.site import language_of, local_path, of_app, person_of, render, session_token, site_of
from webdepot.web.staff.dashboard import start_counting

_PASSWORDS_AT_ONCE = 2
"""Each takes 64 MB and much of a processor, and anybody can ask for it."""
_DEVICE_S = 365 * 24 * 3600


class PasswordQueue:
    """Passwords are compared in few threads of their own: sign-ins wait for each other, networks taking
    turns, and readers do not wait.
    """

    def __init__(self) -> None:
        self.turns = Turns(_PASSWORDS_AT_ONCE)


def sign_in_form(request: Request) -> Response:
    to = local_path(request.query_params.get("to"))
    if person_of(request) is not None:
        return RedirectResponse(to, status_code=303)
    start_counting(request)
    return page(request, to=to)


def page(request: Request, *, status: int = 200, to: str = "/", wrong: str = "", name: str = "") -> Response:
    """The sign-in form."""
    oidc = site_of(request).archive.config.oidc
    return render(
        request,
        "sign_in.html",
        status=status,
        to=to,
        wrong=wrong,
        name=name,
        elsewhere=oidc.label if oidc.issuer else "",
        demo_people=list(demo_accounts.PEOPLE),
        demo_password=demo_accounts.PASSWORD,
    )


async def sign_in(request: Request) -> Response:
    form = await read_form(request, limits=SHORT_FORM)
    start_counting(request)
    turns = of_app(request, PasswordQueue).turns
    return await turns.run(sender_of(request), partial(_signed_in, request, form))


def _signed_in(request: Request, form: dict[str, str]) -> Response:
    site, spoken = site_of(request), language_of(request)
    brake, database = SignInBrake(site.archive.database), site.archive.database
    name, to = form.get("name", "")[:100], local_path(form.get("to"))
    device = sessions.find_device(database, name, request.cookies.get(site.device_cookie, "")[:200])
    limits = {f"device {device}": MOST_FAILURES} if device else {}
    if not device or brake.is_on(limits):
        limits = _limits(request, name)
    if brake.is_on(limits):
        return page(request, status=429, to=to, wrong=spoken.texts["sign_in.too_many"], name=name)
    client = request.client.host if request.client else ""
    if site.archive.config.archive.demo and not demo_accounts.may_sign_in(client):
        return page(request, status=403, to=to, wrong=spoken.texts["sign_in.demo_elsewhere"], name=name)
    token = sessions.sign_in(
        database,
        name,
        form.get("password", ""),
        site.archive.clock(),
        hours=site.archive.config.web.session_hours,
        device=request.headers.get("user-agent", ""),
        address=client,
        instead_of=session_token(request),
    )
    if token is None:
        brake.note_failure(limits)
        return page(request, status=401, to=to, wrong=spoken.texts["sign_in.wrong"], name=name)
    response = signed_in(request, token, to)
    response.set_cookie(
        site.device_cookie,
        sessions.make_device(database, name),
        max_age=_DEVICE_S,
        path="/",
        httponly=True,
        samesite="lax",
        secure=site.archive.config.web.secure_cookies,
    )
    return response


def _limits(request: Request, name: str) -> dict[str, int]:
    network = sender_of(request)
    wider = wider_network_of(request.client.host if request.client else "")
    return {
        f"name {name.strip()} from {network}": MOST_FAILURES,
        f"network {network}": MOST_FAILURES_OF_NETWORK,
        f"near {wider}": MOST_FAILURES_NEAR_BY,
    }


def signed_in(request: Request, token: str, to: str) -> Response:
    """Redirect to where the person wanted to go, with the cookie of the new session. Without a
    destination, staff go to the dashboard and partners to their nominations.
    """
    site = site_of(request)
    config = site.archive.config.web
    person = sessions.find_session(site.archive.database, token, site.archive.clock())
    if to == "/" and person is not None and person.roles & STAFF:
        to = "/dashboard"
    elif to == "/" and person is not None and Role.PARTNER in person.roles:
        to = "/nominations"
    response = RedirectResponse(to, status_code=303)
    response.set_cookie(
        site.session_cookie,
        token,
        max_age=config.session_hours * 3600,
        path="/",
        httponly=True,
        samesite="lax",
        secure=config.secure_cookies,
    )
    return response


def sign_out(request: Request) -> Response:
    site = site_of(request)
    token = session_token(request)
    if token:
        sessions.sign_out(site.archive.database, token, site.archive.clock())
    response = RedirectResponse("/", status_code=303)
    response.delete_cookie(
        site.session_cookie,
        path="/",
        httponly=True,
        samesite="lax",
        secure=site.archive.config.web.secure_cookies,
    )
    return response
