"""Logging in where the owner gave us an account: HTTP authentication, or a form. Secrets stay in one file
that only we can read.

    HOME/logins.toml (mode 600)

    ["www.example.org"]                                  # HTTP authentication, Basic or Digest, as the server asks
    user = "archive"
    password = "…"

    ["members.example.org"]                              # a form: the page it stands on, and what to fill in
    form = "https://members.example.org/login"
    fields = { name = "archive", pass = "…" }

A form is fetched and sent once before the first request to its host; the cookies that come of it are sent
from then on. Neither the form's answer nor passwords nor those cookies are kept in containers or logs.
"""

import stat
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import turbohtml

from webdepot.errors import ConfigError
from webdepot.url import find_canonical


@dataclass(frozen=True, slots=True, kw_only=True)
class Login:
    """How to log in at one host; `repr` never shows a secret."""

    user: str = field(default="", repr=False)
    password: str = field(default="", repr=False)
    form: str = ""
    fields: Mapping[str, str] = field(default_factory=dict, repr=False)


def read(path: Path) -> dict[str, Login]:
    """The log-ins of a file by host name; none when it does not exist. ConfigError when it is wrong, or
    others can read it.
    """
    if not path.exists():
        return {}
    if path.stat().st_mode & (stat.S_IRWXG | stat.S_IRWXO):
        raise ConfigError(f"{path} holds passwords and can be read by others. Run: chmod 600 {path}")
    try:
        tree = tomllib.loads(path.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path} is not valid TOML: {error}.") from error
    return {host.lower(): _login(path, host, given) for host, given in tree.items()}


def _login(path: Path, host: str, given: Any) -> Login:
    known = {"user", "password", "form", "fields"}
    if not isinstance(given, dict) or not set(given) <= known:
        raise ConfigError(f'{path}: ["{host}"] may have {", ".join(sorted(known))} and nothing else.')
    fields = given.get("fields", {})
    texts = [given.get(name, "") for name in ("user", "password", "form")]
    if (
        not all(isinstance(text, str) for text in texts)
        or not isinstance(fields, dict)
        or not all(isinstance(v, str) for v in fields.values())
    ):
        raise ConfigError(f'{path}: ["{host}"] must have texts only.')
    if bool(given.get("form")) == bool(given.get("user")) or bool(given.get("form")) != bool(fields):
        raise ConfigError(f'{path}: ["{host}"] needs either user and password, or form and fields.')
    return Login(user=texts[0], password=texts[1], form=texts[2], fields=dict(fields))


def filled(page: str, url: str, fields: Mapping[str, str]) -> tuple[str, dict[str, str]]:
    """Where to send the form of a page and what, with what it holds already (tokens); the page itself when it
    has no such form.
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
