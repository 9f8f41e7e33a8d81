"""Accounts, for administrators; and one's own account: password, sessions, API keys."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from functools import partial
from urllib.parse import quote

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from webdepot.accounts import accounts, api_keys, sessions
from webdepot.accounts.roles import Role
from webdepot.errors import InputError, NotFound, WebdepotError
from webdepot.reasons import said
from webdepot.web import confirmation
from webdepot.web.forms import SHORT_FORM, find_number, get_number, read_fields, read_form
from webdepot.web.language.language import Language
from webdepot.web.problems import explain
from webdepot.web.session.sign_in_brake import MOST_FAILURES, SignInBrake
from webdepot.web.site import has_key, language_of, name_of, person_of, render, session_token, site_of

_BROWSERS = {
    "Edg": "Edge",
    "OPR/": "Opera",
    "Firefox/": "Firefox",
    "Chromium/": "Chromium",
    "Chrome/": "Chrome",
    "Safari/": "Safari",
}
"""Browsers by a part of their User-Agent; the first match counts, because most also name other browsers."""
_SYSTEMS = {
    "Windows": "Windows",
    "Android": "Android",
    "iPhone": "iOS",
    "iPad": "iPadOS",
    "Mac OS X": "macOS",
    "CrOS": "ChromeOS",
    "Linux": "Linux",
}


def device_of(language: Language, agent: str) -> str:
    """A browser and its system in words, by the header User-Agent; the header if they are unknown."""
    browser = next((name for part, name in _BROWSERS.items() if part in agent), "")
    system = next((name for part, name in _SYSTEMS.items() if part in agent), "")
    known = browser and system
    return language.say("users.device_on", browser=browser, system=system) if known else agent[:80]


def show_list(request: Request) -> Response:
    return _list(request)


async def add(request: Request) -> Response:
    fields = await read_fields(request, limits=SHORT_FORM)
    return await run_in_threadpool(_add, request, fields)


def show(request: Request) -> Response:
    return _person(request, request.path_params["name"])


async def change(request: Request) -> Response:
    fields = await read_fields(request, limits=SHORT_FORM)
    return await run_in_threadpool(_change, request, fields)


def show_own(request: Request) -> Response:
    return _own(request)


async def change_password(request: Request) -> Response:
    form = await read_form(request, limits=SHORT_FORM)
    return await run_in_threadpool(_change_password, request, form)


async def end_own_session(request: Request) -> Response:
    form = await read_form(request, limits=SHORT_FORM)
    return await run_in_threadpool(_end_own_session, request, form)


async def change_own_keys(request: Request) -> Response:
    fields = await read_fields(request, limits=SHORT_FORM)
    return await run_in_threadpool(_change_own_keys, request, fields)


# --- everybody, for administrators ---


def _list(
    request: Request, *, wrong: str = "", name: str = "", held: Sequence[Role] = (), status: int = 200
) -> Response:
    archive = site_of(request).archive
    users = accounts.accounts(archive.database, archive.clock())
    return render(
        request,
        "users.html",
        status=status,
        users=users,
        roles=list(Role),
        wrong=wrong,
        name=name,
        held=held,
    )


def _add(request: Request, fields: Sequence[tuple[str, str]]) -> Response:
    archive, form = site_of(request).archive, dict(fields)
    name = form.get("name", "")[:200]
    try:
        roles = _roles(fields)
        if not roles:
            raise InputError(language_of(request).texts["users.no_role"])
        account = accounts.add(
            archive.database, name, form.get("password", ""), roles, archive.clock(), by=name_of(request)
        )
    except WebdepotError as error:
        wrong, held = explain(request, error), _roles(fields)
        return _list(request, wrong=wrong, name=name, held=held, status=error.http_status)
    return RedirectResponse(_path(account.name), status_code=303)


def _person(request: Request, name: str, *, wrong: str = "", status: int = 200) -> Response:
    archive = site_of(request).archive
    now = archive.clock()
    account = next((each for each in accounts.accounts(archive.database, now) if each.name == name), None)
    if account is None:
        raise NotFound(said("missing_account", "There is no account with the name {name}.", name=name))
    return render(
        request,
        "user.html",
        status=status,
        account=account,
        roles=list(Role),
        sessions=sessions.sessions_of(archive.database, name, now),
        keys=api_keys.keys_of(archive.database, name),
        device_of=partial(device_of, language_of(request)),
        wrong=wrong,
        is_self=name == name_of(request),
    )


def _change(request: Request, fields: Sequence[tuple[str, str]]) -> Response:
    archive, form, name = site_of(request).archive, dict(fields), request.path_params["name"]
    now, by, database = archive.clock(), name_of(request), archive.database
    try:
        match form.get("order", ""):
            case "roles":
                accounts.set_roles(database, name, _roles(fields), now, by=by)
            case "password":
                accounts.set_password(database, name, form.get("password", ""), now=now, by=by)
            case "close":
                accounts.close(database, name, now, by=by)
            case "reopen":
                accounts.reopen(database, name, now, by=by)
            case "end":
                sessions.end_session(database, name, form.get("session", "")[:64], now, by=by)
            case "revoke" if question := confirmation.ask(request, form, "key", back=_path(name)):
                return question
            case "revoke":
                api_keys.revoke_key(database, name, get_number(form.get("key", "")), now, by=by)
            case other:
                raise InputError(f"{other[:50]!r} is not a change to an account.")
    except NotFound:
        raise
    except WebdepotError as error:
        return _person(request, name, wrong=explain(request, error), status=error.http_status)
    return RedirectResponse(_path(name), status_code=303)


# --- one's own account ---


def _own(
    request: Request,
    *,
    wrong: str = "",
    new_key: str = "",
    status: int = 200,
    typed: Sequence[tuple[str, str]] = (),
) -> Response:
    archive, person = site_of(request).archive, person_of(request)
    assert person is not None  # noqa: S101 - the route table requires a role
    account = next(
        each for each in accounts.accounts(archive.database, archive.clock()) if each.name == person.name
    )
    return render(
        request,
        "account.html",
        status=status,
        account=account,
        sessions=sessions.sessions_of(archive.database, person.name, archive.clock()),
        keys=api_keys.keys_of(archive.database, person.name),
        device_of=partial(device_of, language_of(request)),
        this_session=sessions.session_id(session_token(request)),
        wrong=wrong,
        new_key=new_key,
        typed=defaultdict(str, typed),
        chosen=_roles(typed),
    )


def _change_password(request: Request, form: Mapping[str, str]) -> Response:
    archive, name, spoken = site_of(request).archive, name_of(request), language_of(request)
    if has_key(request):
        raise InputError(spoken.texts["users.not_with_a_key"])
    brake, limits = SignInBrake(archive.database), {f"password of {name}": MOST_FAILURES}
    if brake.is_on(limits):
        return _own(request, wrong=spoken.texts["sign_in.too_many"], status=429)
    if not accounts.has_password(archive.database, name, form.get("old", "")):
        brake.note_failure(limits)
        return _own(request, wrong=spoken.texts["users.old_password_wrong"], status=400)
    try:
        accounts.set_password(archive.database, name, form.get("password", ""), now=archive.clock(), by=name)
    except InputError as error:
        return _own(request, wrong=explain(request, error), status=400)
    # All sessions have ended, this one too: sign in again with the new password.
    return RedirectResponse("/sign-in?to=/account", status_code=303)


def _end_own_session(request: Request, form: Mapping[str, str]) -> Response:
    archive, name = site_of(request).archive, name_of(request)
    if has_key(request):
        raise InputError(language_of(request).texts["users.not_with_a_key"])
    sessions.end_session(archive.database, name, form.get("session", "")[:64], archive.clock(), by=name)
    return RedirectResponse("/account", status_code=303)


def _change_own_keys(request: Request, fields: Sequence[tuple[str, str]]) -> Response:
    archive, name, form = site_of(request).archive, name_of(request), dict(fields)
    if has_key(request):
        raise InputError(language_of(request).texts["users.not_with_a_key"])
    if form.get("revoke"):
        if question := confirmation.ask(request, form, "key", back="/account"):
            return question
        api_keys.revoke_key(
            archive.database, name, get_number(form.get("revoke", "")), archive.clock(), by=name
        )
        return RedirectResponse("/account", status_code=303)
    try:
        _, text = api_keys.make_key(
            archive.database,
            name,
            form.get("label", ""),
            _roles(fields),
            archive.clock(),
            days=min(find_number(form.get("days", "")) or 0, 9999),
        )
    except InputError as error:
        return _own(request, wrong=explain(request, error), status=400, typed=fields)
    return _own(request, new_key=text)


def _roles(fields: Sequence[tuple[str, str]]) -> list[Role]:
    known = set(Role)
    return [Role(value) for name, value in fields if name == "role" and value in known]


def _path(name: str) -> str:
    return f"/users/{quote(name, safe='')}"
