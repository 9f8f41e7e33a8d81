"""Accounts for programs of administrators: list, add and change them, end sessions, revoke keys.

GET    /api/users                    POST   /api/users
GET    /api/users/{name}             PATCH  /api/users/{name}
DELETE /api/users/{name}/keys/{key}
DELETE /api/users/{name}/sessions

A key never makes another key: a person does that in the portal or by command, so a key that was stolen ends
when it is revoked.
"""

from typing import Any

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from webdepot.accounts import accounts, api_keys, sessions
from webdepot.accounts.accounts import LONGEST_PASSWORD, Account
from webdepot.accounts.roles import Role
from webdepot.errors import InputError, NotFound
from webdepot.reasons import said
from webdepot.times import to_iso
from webdepot.web.api.input_fields import FieldKind, InputField, describe_body, read_json, read_query
from webdepot.web.api.openapi_parts import (
    FLAG,
    MOMENT,
    TEXT,
    WHOLE,
    list_of,
    nullable,
    object_of,
    one_of,
    operation,
    parameter,
    ref,
)
from webdepot.web.forms import find_number
from webdepot.web.site import Site, name_of, site_of

_ROLES = InputField(
    name="roles", meaning="Roles of the person.", kind=FieldKind.TEXTS, longest=40, most=len(Role)
)
_PASSWORD = InputField(
    name="password", meaning="A password; all sessions end when it changes.", longest=LONGEST_PASSWORD
)
NEW_USER = (
    InputField(name="name", meaning="Name to sign in with.", required=True, longest=100),
    InputField(name="password", meaning="A password.", required=True, longest=LONGEST_PASSWORD),
    InputField(
        name="roles", meaning=_ROLES.meaning, kind=FieldKind.TEXTS, longest=40, most=len(Role), required=True
    ),
)
CHANGE = (
    _ROLES,
    _PASSWORD,
    InputField(
        name="is_closed",
        meaning="A closed account cannot sign in; closing it ends its sessions and keys.",
        kind=FieldKind.FLAG,
    ),
)


def show_list(request: Request) -> Response:
    read_query(request, ())
    archive = site_of(request).archive
    every = accounts.accounts(archive.database, archive.clock())
    return JSONResponse({"users": [_account_json(account) for account in every]})


def show(request: Request) -> Response:
    read_query(request, ())
    return JSONResponse(_whole_json(request, request.path_params["name"]))


async def add(request: Request) -> Response:
    return await run_in_threadpool(_add, request, await read_json(request, NEW_USER))


def _add(request: Request, sent: dict[str, Any]) -> Response:
    archive = site_of(request).archive
    person = accounts.add(
        archive.database,
        sent["name"],
        sent["password"],
        _roles(sent["roles"]),
        archive.clock(),
        by=name_of(request),
    )
    return JSONResponse(_whole_json(request, person.name), status_code=201)


async def change(request: Request) -> Response:
    return await run_in_threadpool(_change, request, await read_json(request, CHANGE))


def _change(request: Request, sent: dict[str, Any]) -> Response:
    """Change what is sent; everything else stays as it is."""
    archive, name, by = site_of(request).archive, request.path_params["name"], name_of(request)
    database, now = archive.database, archive.clock()
    _whole_json(request, name)  # NotFound before anything else
    if "roles" in sent:
        accounts.set_roles(database, name, _roles(sent["roles"]), now, by=by)
    if "password" in sent:
        accounts.set_password(database, name, sent["password"], now=now, by=by)
    if "is_closed" in sent:
        (accounts.close if sent["is_closed"] else accounts.reopen)(database, name, now, by=by)
    return JSONResponse(_whole_json(request, name))


def revoke_key(request: Request) -> Response:
    archive, name, text = site_of(request).archive, request.path_params["name"], request.path_params["key"]
    number = find_number(text)
    if number is None:
        raise NotFound(said("missing_key", "There is no key {number}.", number=text[:40]))
    api_keys.revoke_key(archive.database, name, number, archive.clock(), by=name_of(request))
    return JSONResponse(_whole_json(request, name))


def end_sessions(request: Request) -> Response:
    archive, name = site_of(request).archive, request.path_params["name"]
    sessions.end_session(archive.database, name, "", archive.clock(), by=name_of(request))
    return JSONResponse(_whole_json(request, name))


def _roles(names: list[str]) -> list[Role]:
    wrong = [name for name in names if name not in set(Role)]
    if wrong:
        raise InputError(f"roles: {wrong[0][:40]!r} is not one of {', '.join(Role)}.")
    return [Role(name) for name in names]


def _whole_json(request: Request, name: str) -> dict[str, Any]:
    archive = site_of(request).archive
    now = archive.clock()
    account = next((each for each in accounts.accounts(archive.database, now) if each.name == name), None)
    if account is None:
        raise NotFound(said("missing_account", "There is no account with the name {name}.", name=name[:100]))
    keys = api_keys.keys_of(archive.database, name)
    return {
        **_account_json(account),
        "keys": [
            {
                "id": key.id,
                "label": key.label,
                "roles": accounts.stored_roles(key.roles),
                "created_at": to_iso(key.created_at),
                "ends_at": to_iso(key.ends_at) if key.ends_at else None,
                "used_at": to_iso(key.used_at) if key.used_at else None,
            }
            for key in keys
        ],
    }


def _account_json(account: Account) -> dict[str, Any]:
    return {
        "name": account.name,
        "roles": accounts.stored_roles(account.roles),
        "created_at": to_iso(account.created_at),
        "closed_at": to_iso(account.closed_at) if account.closed_at else None,
        "is_external": bool(account.external),
        "sessions": account.sessions,
        "key_count": account.keys,
    }


# --- description ---

_LISTED_ROLES = list_of(one_of(list(Role)))
_USER = {
    "name": TEXT,
    "roles": _LISTED_ROLES,
    "created_at": MOMENT,
    "closed_at": nullable(MOMENT),
    "is_external": FLAG,
    "sessions": WHOLE,
    "key_count": WHOLE,
}
_KEY = {
    "id": WHOLE,
    "label": TEXT,
    "roles": _LISTED_ROLES,
    "created_at": MOMENT,
    "ends_at": nullable(MOMENT),
    "used_at": nullable(MOMENT),
}
SCHEMAS = {"User": object_of(_USER), "WholeUser": object_of({**_USER, "keys": list_of(object_of(_KEY))})}


def describe_api(_: Site) -> dict[str, Any]:
    """These interfaces for `web/api/openapi.py`."""
    user = ref("WholeUser")
    name = parameter("name", "Name of the person.", where="path", required=True)
    key = parameter("key", "Number of the key.", "integer", where="path", required=True, minimum=0)
    return {
        "/api/users": {
            "get": operation("listUsers", "Accounts by name", object_of({"users": list_of(ref("User"))})),
            "post": operation(
                "addUser", "Add an account", user, status=201, body=describe_body(NEW_USER), errors=[409]
            ),
        },
        "/api/users/{name}": {
            "parameters": [name],
            "get": operation("getUser", "One account with its keys", user, errors=[404]),
            "patch": operation(
                "changeUser",
                "Change an account; what is not sent stays as it is",
                user,
                body=describe_body(CHANGE),
                errors=[404, 409],
            ),
        },
        "/api/users/{name}/keys/{key}": {
            "parameters": [name, key],
            "delete": operation("revokeKey", "Revoke a key", user, errors=[404]),
        },
        "/api/users/{name}/sessions": {
            "parameters": [name],
            "delete": operation("endSessions", "End all sessions of a person", user, errors=[404]),
        },
    }
