"""A login goes to the origins it names and nowhere else, and nothing of it is stored: neither what was sent nor
the session cookies that a server sets or renews.
"""

import asyncio
import base64
import gzip
from collections.abc import Iterator
from io import BytesIO
from pathlib import Path

import pytest
from harvest_site import Asked, Site, running_site, whole

from webdepot.archive import Archive
from webdepot.container.reader import iter_records
from webdepot.errors import ConfigError
from webdepot.harvest.fetch import login
from webdepot.harvest.fetch.cookies import hide_values
from webdepot.model import Harvest, HarvestState
from webdepot.services.admin import setup
from webdepot.services.harvest import options as harvest_options
from webdepot.services.harvest import profiles, runner
from webdepot.services.harvest.options import HarvestOptions

SETTINGS = "[harvest]\nallow_private = true\ndelay_s = 0\nretry_delay_s = 0.02\nleast_free_bytes = 0\n"
PASSWORD = "BANKSECRETPW"
BASIC = base64.b64encode(f"archive:{PASSWORD}".encode())
COOKIE = "LOGINSECRETCOOKIE7"


@pytest.fixture
def site() -> Iterator[Site]:
    with running_site() as running:
        yield running


def home_with(tmp_path: Path, logins: str, settings: str = SETTINGS) -> Path:
    home = tmp_path / "home"
    setup.create(home, settings=settings)
    (home / "logins.toml").write_text(logins)
    (home / "logins.toml").chmod(0o600)
    return home


def harvested(home: Path, *urls: str, profile: str = "") -> Harvest:
    with Archive.open(home) as archive:
        options = profiles.options_of(archive, profile)
        return runner.run(archive, runner.start_or_resume(archive, urls, options))


def everything_written(home: Path) -> bytes:
    """All bytes below a home, containers also unpacked."""
    written = BytesIO()
    for path in home.rglob("*"):
        if path.is_file() and path.name != "logins.toml":
            written.write(path.read_bytes())
    for path in home.glob("harvests/*/warc/*.warc.gz"):
        written.write(gzip.decompress(path.read_bytes()))
        with path.open("rb") as stream:
            # A wrong digest or length would be a finding.
            for record in iter_records(
                stream, path.name, on_finding=lambda finding: pytest.fail(str(finding))
            ):
                written.write(f"{record.fields}{record.head}".encode() + record.payload().read())
    return written.getvalue()


def answering_password(site: Site, *paths: str) -> None:
    async def members(writer: asyncio.StreamWriter, asked: Asked) -> None:
        if b"authorization:" in asked.raw.lower():
            writer.write(whole("<title>Inside</title>"))
        else:
            writer.write(whole("who?", status="401 Unauthorized", WWW_Authenticate='Basic realm="members"'))
        await writer.drain()

    for path in paths:
        site.answers[path] = members


def authorized(site: Site) -> list[Asked]:
    return [asked for asked in site.log if b"authorization:" in asked.raw.lower() or BASIC in asked.raw]


# --- where a login goes ---


def test_a_profile_cannot_send_a_login_to_another_host(site: Site, tmp_path: Path) -> None:
    answering_password(site, "/")
    home = home_with(tmp_path, f'["bank.example"]\nuser = "archive"\npassword = "{PASSWORD}"\n')
    (home / "profiles").mkdir(exist_ok=True)
    (home / "profiles" / "thief.toml").write_text('[hosts."127.0.0.1"]\ncredentials = "bank.example"\n')
    with pytest.raises(ConfigError, match=r"https://bank\.example only"):
        harvested(home, f"{site.url}/", profile="thief")
    assert not authorized(site)
    with Archive.open(home) as archive, pytest.raises(ConfigError, match=r"https://bank\.example only"):
        profiles.save(archive, "other", '[hosts."127.0.0.1"]\ncredentials = "bank.example"\n')
    with Archive.open(home) as archive, pytest.raises(ConfigError, match="not in the file of logins"):
        profiles.save(archive, "other", '[hosts."127.0.0.1"]\ncredentials = "nobody"\n')
    assert not (home / "profiles" / "other.toml").exists()


def test_even_a_wrong_choice_of_login_is_not_sent(site: Site, tmp_path: Path) -> None:
    """The check before sending does not rely on the check of the profile."""
    home = home_with(tmp_path, f'["bank.example"]\nuser = "archive"\npassword = "{PASSWORD}"\n')
    logins = login.read(home / "logins.toml")
    assert login.find(logins, "https://bank.example", "bank.example") is not None
    for origin in ("http://bank.example", "https://bank.example:8443", "https://www.bank.example", site.url):
        assert login.find(logins, origin, "bank.example") is None
        assert login.find(logins, origin) is None


def test_a_login_goes_over_https_unless_the_entry_says_otherwise(site: Site, tmp_path: Path) -> None:
    answering_password(site, "/members")
    site.page("/", "<a href=/members>members</a>")
    entry = f'["127.0.0.1"]\nuser = "archive"\npassword = "{PASSWORD}"\n'
    home = home_with(tmp_path, entry)
    harvested(home, f"{site.url}/")
    assert not authorized(site)  # the name alone means https
    (home / "logins.toml").write_text(entry + f'origins = ["{site.url}"]\n')
    with pytest.raises(ConfigError, match="insecure = true") as refused:
        login.read(home / "logins.toml")
    assert PASSWORD not in str(refused.value)
    (home / "logins.toml").write_text(entry + f'origins = ["{site.url}"]\ninsecure = true\n')
    assert harvested(home, f"{site.url}/").state is HarvestState.FINISHED
    assert authorized(site)


def test_a_redirect_or_another_port_takes_no_login_along(site: Site, tmp_path: Path) -> None:
    with running_site() as other:
        answering_password(other, "/stolen", "/linked", "/")
        answering_password(site, "/")
        site.page("/away", "", status="302 Found", Location=f"{other.url}/stolen")
        site.page("/start", f"<a href=/away>a</a><a href=/>b</a><a href={other.url}/linked>c</a>")
        home = home_with(
            tmp_path,
            f'["127.0.0.1"]\nuser = "archive"\npassword = "{PASSWORD}"\n'
            f'origins = ["{site.url}"]\ninsecure = true\n',
        )
        harvested(home, f"{site.url}/start", f"{other.url}/")
        assert authorized(site)
        assert other.log
        assert not authorized(other)


def test_an_invalid_certificate_gets_no_login(tmp_path: Path) -> None:
    home = home_with(
        tmp_path,
        f'["a.example"]\nuser = "archive"\npassword = "{PASSWORD}"\n'
        f'["b.example"]\nuser = "archive"\npassword = "{PASSWORD}"\ninsecure = true\n',
        SETTINGS + 'tls = "accept"\n',
    )
    with Archive.open(home) as archive:
        access = harvest_options.access_of(archive, HarvestOptions.from_config(archive.config))
        assert (access("https://a.example").verify, access("https://b.example").verify) == (True, False)
        assert not access("https://c.example").verify


def test_a_form_that_leads_elsewhere_is_not_sent(site: Site, tmp_path: Path) -> None:
    with running_site() as other:
        site.page("/login", f"<form action={other.url}/steal method=post><input name=user><input name=pass>")
        site.page("/", "home")
        home = home_with(
            tmp_path,
            f'["127.0.0.1"]\nform = "{site.url}/login"\nfields = {{ user = "me", pass = "{PASSWORD}" }}\n'
            f'origins = ["{site.url}"]\ninsecure = true\n',
        )
        harvested(home, f"{site.url}/")
        assert "/login" in site.paths()
        assert not other.log


def test_the_page_of_a_form_must_be_at_an_origin_of_the_login(tmp_path: Path) -> None:
    path = tmp_path / "logins.toml"
    for form in (
        "https://evil.example/login",
        "http://a.example/login",
        "https://a.example@evil.example/",
        "x",
    ):
        path.write_text(f'["a.example"]\nform = "{form}"\nfields = {{ pass = "{PASSWORD}" }}\n')
        path.chmod(0o600)
        with pytest.raises(ConfigError, match="not at an origin") as refused:
            login.read(path)
        assert PASSWORD not in str(refused.value)


@pytest.mark.parametrize(
    "origins",
    [
        "[]",
        '"https://a.example"',
        '["a.example"]',
        '["https://a.example/path"]',
        '["https://u@a.example"]',
        "[1]",
        '["ftp://a.example"]',
        '["https://a.example?x"]',
    ],
)
def test_wrong_origins_are_refused(tmp_path: Path, origins: str) -> None:
    path = tmp_path / "logins.toml"
    path.write_text(f'["a.example"]\nuser = "me"\npassword = "{PASSWORD}"\norigins = {origins}\n')
    path.chmod(0o600)
    with pytest.raises(ConfigError, match="origin"):
        login.read(path)


def test_a_mistake_in_the_file_is_reported_without_its_text(tmp_path: Path) -> None:
    path = tmp_path / "logins.toml"
    path.write_text(f'["a.example"]\npassword = "{PASSWORD}" {PASSWORD}\n')
    path.chmod(0o600)
    with pytest.raises(ConfigError, match="line 2") as refused:
        login.read(path)
    assert PASSWORD not in str(refused.value)
    assert refused.value.__cause__ is None


# --- what is stored ---


def members_area(site: Site) -> str:
    """A site that renews its session cookie in every answer; the entry for its login."""
    count = iter(range(1, 10_000))

    async def members(writer: asyncio.StreamWriter, asked: Asked) -> None:
        body = "<title>Inside</title><a href=/member/1>1</a><a href=/member/2>2</a>"
        cookies = [
            f"sid={COOKIE}{next(count)}; Path=/; HttpOnly",
            f"other={COOKIE}x; Path=/member",  # set only inside
            f"SID={COOKIE}y",
        ]
        head = "".join(f"Set-Cookie: {cookie}\r\n" for cookie in cookies)
        head += f"set-cookie: folded=\r\n {COOKIE}z; Secure\r\nSet-Cookie: a=1; Path=/, sid={COOKIE}w\r\n"
        writer.write(
            f"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n{head}Content-Length: {len(body)}\r\n\r\n{body}".encode()
        )
        await writer.drain()

    site.page("/login", "<form action=/enter method=post><input name=user><input name=pass></form>")
    site.page("/enter", "welcome", Set_Cookie=f"sid={COOKIE}0; Path=/")
    for path in ("/", "/member/1", "/member/2", "/robots.txt"):
        site.answers[path] = members
    return (
        f'["127.0.0.1"]\nform = "{site.url}/login"\nfields = {{ user = "me", pass = "{PASSWORD}" }}\n'
        f'origins = ["{site.url}"]\ninsecure = true\n'
    )


@pytest.mark.parametrize(
    "fetch", ["plain", pytest.param("browser", marks=[pytest.mark.browser, pytest.mark.slow])]
)
def test_renewed_session_cookies_are_not_stored(site: Site, tmp_path: Path, fetch: str) -> None:
    entry = members_area(site)
    home = home_with(tmp_path, entry, SETTINGS + f'fetch = "{fetch}"\nbrowser_sandbox = false\n')
    assert harvested(home, f"{site.url}/").state is HarvestState.FINISHED
    sent = [asked for asked in site.log if asked.path == "/member/1"]
    assert sent and all(COOKIE.encode() in asked.raw for asked in sent)  # the session does go on
    written = everything_written(home)
    assert b"Inside" in written
    for secret in (COOKIE, PASSWORD):
        assert secret.encode() not in written
    assert b"sid=[removed]; Path=/; HttpOnly" in written
    assert b"webdepot-removed" in written.lower()


def test_session_cookies_of_http_authentication_are_not_stored(site: Site, tmp_path: Path) -> None:
    members_area(site)
    home = home_with(
        tmp_path,
        f'["127.0.0.1"]\nuser = "archive"\npassword = "{PASSWORD}"\norigins = ["{site.url}"]\ninsecure = true\n',
        SETTINGS + "cookies = false\n",
    )
    harvested(home, f"{site.url}/")
    assert COOKIE.encode() not in everything_written(home)


def test_cookies_of_a_login_go_to_its_origins_only(site: Site, tmp_path: Path) -> None:
    """A session cookie is as good as a password: it follows the same rule, whatever RFC 6265 would allow."""
    entry = members_area(site)
    with running_site() as other:  # the same host, another port: cookies would be shared
        other.page("/", "other")
        home = home_with(tmp_path, entry)
        harvested(home, f"{site.url}/", f"{other.url}/")
        assert other.log
        assert not any(COOKIE.encode() in asked.raw for asked in other.log)


def test_other_cookies_are_stored_as_they_came(site: Site, tmp_path: Path) -> None:
    site.page("/", "home", Set_Cookie="theme=dark; Path=/")
    home = home_with(tmp_path, "")
    harvested(home, f"{site.url}/")
    written = everything_written(home)
    assert b"theme=dark" in written
    assert b"webdepot-removed" not in written.lower()


def test_heads_without_cookies_stay_byte_for_byte() -> None:
    head = b"HTTP/1.1 200 OK\nX: a\n  b\r\nSet-Cookie: keep=1\r\nset-cookie : drop=2; path=/x\r\n\r\n"
    assert hide_values(head, lambda name: False) == head
    hidden = hide_values(head, lambda name: name == "drop")
    assert hidden == head.replace(b"set-cookie : drop=2; path=/x", b"set-cookie : drop=[removed]; path=/x")
