"""Login at sites that gave us an account, by HTTP authentication or a form. Secrets are in one file that only
we can read.

    HOME/logins.toml (mode 600)

    ["www.example.org"]                                  # HTTP authentication, Basic or Digest
    user = "archive"
    password = "…"

    ["members.example.org"]                              # a form: its page, and the values to fill in
    form = "https://sso.example.org/login"
    fields = { name = "archive", pass = "…" }
    origins = ["https://members.example.org", "https://sso.example.org"]

A login goes to its `origins` (scheme, host and port) and nowhere else; without the key, to `https://NAME`.
http, and https without a valid certificate, are refused unless the entry says `insecure = true`. Whatever a
profile, a redirect, a form or a page asks for, `Login.is_for` is checked before something is sent.

A form is fetched and sent once before the first request to its host; its cookies are sent from then on, to
the origins of the login only. Neither the form, the response to it, passwords nor these cookies are stored in
containers or logs.
"""

import re
import stat
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import turbohtml

from webdepot.errors import ConfigError
from webdepot.url import find_canonical, origin_of

_TEXTS = ("user", "password", "form")
_KNOWN = frozenset({*_TEXTS, "fields", "origins", "insecure"})
_ORIGIN = re.compile(r"(https?)://([^/?#@\s]+)/?\Z")


@dataclass(frozen=True, slots=True, kw_only=True)
class Login:
    """How to log in, and where; `repr` never shows a secret."""

    name: str
    origins: frozenset[str]
    """Canonical origins, as `origin_of` writes them."""
    insecure: bool = False
    """Whether it may be sent over http, or over https without a valid certificate."""
    user: str = field(default="", repr=False)
    password: str = field(default="", repr=False)
    form: str = ""
    fields: Mapping[str, str] = field(default_factory=dict, repr=False)

    def is_for(self, url: str) -> bool:
        """Whether the login may be sent to this address."""
        return origin_of(url) in self.origins


def read(path: Path) -> dict[str, Login]:
    """The logins of a file by name; none if it does not exist.

    ConfigError if it is wrong, or if others can read it.
    """
    if not path.exists():
        return {}
    if path.stat().st_mode & (stat.S_IRWXG | stat.S_IRWXO):
        raise ConfigError(f"{path} contains passwords and can be read by others. Run: chmod 600 {path}")
    try:
        tree = tomllib.loads(path.read_text(encoding="utf-8"))
    except (ValueError, RecursionError) as error:
        # Without the text of the error: it may quote the line, and with it a password.
        line = re.search(r"line \d+", str(error))
        raise ConfigError(f"{path} is not valid TOML{f' at {line[0]}' if line else ''}.") from None
    return {name.lower(): _login(f'{path}: ["{name}"]', name.lower(), table) for name, table in tree.items()}


def find(logins: Mapping[str, Login], origin: str, name: str = "") -> Login | None:
    """The login to use at an origin: the one with this name, otherwise the one named as the host. None if
    there is none, or if it is not for this origin.
    """
    authority = origin.partition("://")[2]
    names = (name.lower(),) if name else (authority, re.sub(r":\d+\Z", "", authority))
    login = next((logins[each] for each in names if each in logins), None)
    return login if login is not None and login.is_for(origin) else None


def _login(where: str, name: str, table: Any) -> Login:
    if not isinstance(table, dict) or not set(table) <= _KNOWN:
        raise ConfigError(f"{where} may only have {', '.join(sorted(_KNOWN))}.")
    fields = table.get("fields", {})
    user, password, form = (table.get(key, "") for key in _TEXTS)
    if (
        not all(isinstance(text, str) for text in (user, password, form))
        or not isinstance(fields, dict)
        or not all(isinstance(value, str) for value in fields.values())
    ):
        raise ConfigError(f"{where}: user, password, form and fields must contain only strings.")
    if bool(form) == bool(user) or bool(form) != bool(fields):
        raise ConfigError(f"{where} needs either user and password, or form and fields.")
    origins = _origins(where, name, table)
    form_url = find_canonical(form) if form else ""
    if form_url is None or (form_url and origin_of(form_url) not in origins):
        raise ConfigError(
            f"{where}: form = {form!r} is not at an origin of this login. "
            'Name all of them, such as: origins = ["https://www.example.org", "https://sso.example.org"]'
        )
    return Login(
        name=name,
        origins=origins,
        insecure=table.get("insecure", False),
        user=user,
        password=password,
        form=form_url,
        fields=dict(fields),
    )


def _origins(where: str, name: str, table: Mapping[str, Any]) -> frozenset[str]:
    """The origins of an entry in canonical form; ConfigError if one is wrong, or http without `insecure`."""
    named, insecure = table.get("origins", [f"https://{name}"]), table.get("insecure", False)
    if not isinstance(named, list) or not named or not all(isinstance(each, str) for each in named):
        raise ConfigError(f'{where}: origins must be a list of strings, such as ["https://www.example.org"].')
    if not isinstance(insecure, bool):
        raise ConfigError(f"{where}: insecure must be true or false.")
    origins = set()
    for each in named:
        url = find_canonical(each) if _ORIGIN.match(each.lower()) else None
        if url is None:
            raise ConfigError(
                f"{where}: {each!r} is not an origin. Write scheme, host and, if it is not the usual one, "
                'port: origins = ["https://www.example.org"]'
            )
        if url.startswith("http:") and not insecure:
            raise ConfigError(
                f"{where}: others can read the password, because {each} is not encrypted. "
                "Use https, or add: insecure = true"
            )
        origins.add(origin_of(url))
    return frozenset(origins)


def fill_form(page: str, url: str, fields: Mapping[str, str]) -> tuple[str, dict[str, str]]:
    """The address to send a form to, and its fields with the hidden ones (tokens).

    The address is that of the page if it has no form with these fields. The caller checks that the login may
    be sent there.
    """
    document = turbohtml.parse(page, positions=False)
    for form in document.select("form"):
        inputs = {
            str(item.attr("name")): str(item.attr("value") or "") for item in form.select("input[name]")
        }
        if fields.keys() & inputs.keys():
            action = find_canonical(form.attr("action") or url, url) or url
            hidden = {
                str(item.attr("name")): str(item.attr("value") or "")
                for item in form.select("input[type=hidden][name]")
            }
            return action, hidden | dict(fields)
    return url, dict(fields)
