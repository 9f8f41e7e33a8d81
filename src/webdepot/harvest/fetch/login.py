"""Login at sites that gave us an account, by HTTP authentication or a form. Secrets are in one file that only
we can read.

    HOME/logins.toml (mode 600)

    ["www.example.org"]                                  # HTTP authentication, Basic or Digest
    user = "archive"
    password = "…"

    ["members.example.org"]                              # a form: its page, and the values to fill in
    form = "https://members.example.org/login"
    fields = { name = "archive", pass = "…" }

A form is fetched and sent once before the first request to its host; its cookies are sent from then on.
Neither the response to the form nor passwords nor these cookies are stored in containers or logs.
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
    """How to log in to one host; `repr` never shows a secret."""

    user: str = field(default="", repr=False)
    password: str = field(default="", repr=False)
    form: str = ""
    fields: Mapping[str, str] = field(default_factory=dict, repr=False)


def read(path: Path) -> dict[str, Login]:
    """The logins of a file by host name; none if it does not exist.

    ConfigError if it is wrong, or if others can read it.
    """
    if not path.exists():
        return {}
    if path.stat().st_mode & (stat.S_IRWXG | stat.S_IRWXO):
        raise ConfigError(f"{path} contains passwords and can be read by others. Run: chmod 600 {path}")
    try:
        tree = tomllib.loads(path.read_text(encoding="utf-8"))
    except (ValueError, RecursionError) as error:
        raise ConfigError(f"{path} is not valid TOML: {error}.") from error
    return {host.lower(): _login(path, host, table) for host, table in tree.items()}


def _login(path: Path, host: str, table: Any) -> Login:
    known = {"user", "password", "form", "fields"}
    if not isinstance(table, dict) or not set(table) <= known:
        raise ConfigError(f'{path}: ["{host}"] may only have {", ".join(sorted(known))}.')
    fields = table.get("fields", {})
    texts = [table.get(name, "") for name in ("user", "password", "form")]
    if (
        not all(isinstance(text, str) for text in texts)
        or not isinstance(fields, dict)
        or not all(isinstance(v, str) for v in fields.values())
    ):
        raise ConfigError(f'{path}: ["{host}"] must contain only texts.')
    if bool(table.get("form")) == bool(table.get("user")) or bool(table.get("form")) != bool(fields):
        raise ConfigError(f'{path}: ["{host}"] needs either user and password, or form and fields.')
    return Login(user=texts[0], password=texts[1], form=texts[2], fields=dict(fields))


def fill_form(page: str, url: str, fields: Mapping[str, str]) -> tuple[str, dict[str, str]]:
    """The address to send a form to, and its fields with the hidden ones (tokens).

    The address is that of the page if it has no form with these fields.
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
