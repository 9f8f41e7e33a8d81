"""Private addresses, partner addresses, commands and credentials are set by administrators: every role tries,
with a session and with an API key, on every route that saves a profile, a plan or a partner.
"""

from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlencode

import pytest
from harvest_site import running_site
from museum import NOW, PASSWORD, Answer, Served, ask, serving, sign_in

from webdepot.accounts import accounts, api_keys
from webdepot.accounts.roles import Role
from webdepot.archive import Archive
from webdepot.errors import ConfigError, NotPermitted, RemoteError
from webdepot.harvest.profile import HOST_KEYS, KEYS
from webdepot.services.admin import setup
from webdepot.services.exchange import oai_harvest, partner_admin
from webdepot.services.harvest import profiles, runner

LOGINS = '["bank.example"]\nuser = "archive"\npassword = "BANKSECRETPW"\n'
WITH_LOGIN = 'description = "x"\n[hosts."bank.example"]\ncredentials = "bank.example"\n'


@pytest.fixture
def home(tmp_path: Path) -> Path:
    folder = tmp_path / "home"
    setup.create(folder, settings="[harvest]\ndelay_s = 0\nretry_delay_s = 0.02\nleast_free_bytes = 0\n")
    (folder / "logins.toml").write_text(LOGINS)
    (folder / "logins.toml").chmod(0o600)
    with Archive.open(folder) as archive:
        for role in Role:
            accounts.add(archive.database, role.value, PASSWORD, [role], NOW, by="test")
    return folder


@pytest.fixture
def served(home: Path) -> Iterator[Served]:
    with serving(home) as running:
        yield running


def post(served: Served, path: str, fields: dict[str, str], credentials: dict[str, str]) -> Answer:
    headers = {"Content-Type": "application/x-www-form-urlencoded", **credentials}
    return ask(served.portal + path, "POST", headers=headers, body=urlencode(fields).encode())


def ways_in(served: Served, home: Path, role: Role) -> list[dict[str, str]]:
    """A session and an API key of a person with this role."""
    with Archive.open(home) as archive:
        _, key = api_keys.make_key(archive.database, role.value, "test", [role], NOW)
    return [{"Cookie": sign_in(served, role.value)}, {"Authorization": f"Bearer {key}"}]


@pytest.mark.parametrize("role", list(Role))
def test_only_administrators_choose_logins_and_partners(served: Served, home: Path, role: Role) -> None:
    is_administrator = role is Role.ADMINISTRATOR
    for number, way in enumerate(ways_in(served, home, role)):
        name = f"p{number}"
        answer = post(served, f"/profiles/{name}", {"text": WITH_LOGIN}, way)
        assert answer.status == (303 if is_administrator else 403), answer.text
        assert (home / "profiles" / f"{name}.toml").exists() is is_administrator
        if role is Role.CURATOR:
            assert "Only an administrator may change which login" in answer.text
        answer = post(served, f"/profiles/{name}x", {"text": "allow_private = true\n"}, way)
        assert answer.status in (400, 403)
        assert not (home / "profiles" / f"{name}x.toml").exists()
        answer = post(served, "/partners", {"name": name, "url": "https://depot.example/oai"}, way)
        assert answer.status == (303 if is_administrator else 403), answer.text
    with Archive.open(home) as archive:
        assert bool(partner_admin.every(archive)) is is_administrator


def test_a_curator_may_edit_the_rest_of_a_profile_with_a_login(home: Path) -> None:
    with Archive.open(home) as archive:
        profiles.save(archive, "bank", WITH_LOGIN, by_administrator=True)
        changed = WITH_LOGIN.replace('"x"', '"y"')
        assert profiles.save(archive, "bank", changed, by_administrator=False).description == "y"
        for text in (
            'description = "y"\n',
            changed.replace('[hosts."bank.example"]', '[hosts.".example"]'),
            changed + '[hosts."evil.example"]\ncredentials = "bank.example"\n',
        ):
            with pytest.raises(NotPermitted, match="administrator"):
                profiles.save(archive, "bank", text, by_administrator=False)
        # A copy under another name is a new choice.
        with pytest.raises(NotPermitted, match="administrator"):
            profiles.save(archive, "copy", changed, by_administrator=False)


def test_a_profile_cannot_open_private_addresses(home: Path) -> None:
    (home / "profiles").mkdir(exist_ok=True)
    (home / "profiles" / "old.toml").write_text("allow_private = true\n")
    with running_site() as site:
        site.page("/latest/meta-data/", "secret")
        with Archive.open(home) as archive:
            with pytest.raises(ConfigError, match=r"harvest\.private_networks"):
                profiles.options_of(archive, "old")
            with pytest.raises(ConfigError, match=r"harvest\.private_networks"):
                profiles.save(archive, "new", "allow_private = true\n")
            harvest = runner.start_or_resume(
                archive, [f"{site.url}/latest/meta-data/"], profiles.options_of(archive, "")
            )
            with pytest.raises(RemoteError):
                runner.run(archive, harvest)
        assert not site.log


def test_networks_are_opened_in_the_configuration(home: Path) -> None:
    toml = home / "webdepot.toml"
    toml.write_text(
        toml.read_text().replace("[harvest]", '[harvest]\nprivate_networks = ["127.0.0.1/32"]', 1)
    )
    with running_site() as site:
        site.page("/", f"<a href=http://127.0.0.2:{site.port}/other>other</a>")
        with Archive.open(home) as archive:
            seeds = [f"{site.url}/", f"http://127.0.0.2:{site.port}/"]
            runner.run(archive, runner.start_or_resume(archive, seeds, profiles.options_of(archive, "")))
        assert {asked.host for asked in site.log} == {"127.0.0.1"}
    toml.write_text(toml.read_text().replace("127.0.0.1/32", "everything"))
    with pytest.raises(ConfigError, match="is not a network"):
        Archive.open(home)


def test_a_partner_at_a_private_address_is_not_asked(home: Path) -> None:
    with running_site() as site, Archive.open(home) as archive:
        partner_admin.add(archive, "a", f"{site.url}/latest/meta-data/")
        partner_admin.add(archive, "b", f"http://localhost:{site.port}/oai")
        for name in ("a", "b"):
            with pytest.raises(RemoteError, match=r"not a public address.*harvest\.private_networks"):
                oai_harvest.harvest(archive, name, wait=lambda seconds: None)
        assert not site.log


def test_no_key_of_a_profile_runs_a_command_or_opens_addresses() -> None:
    """Whoever adds such a key must decide who may set it."""
    names = {*KEYS, *HOST_KEYS}
    assert not {
        name for name in names if any(word in name for word in ("command", "program", "private", "proxy"))
    }
    assert "credentials" in HOST_KEYS
