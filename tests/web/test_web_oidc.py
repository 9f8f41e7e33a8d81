"""Signing in with an account elsewhere, against a real OpenID Connect provider on this machine."""

import json
import os
import re
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from http.cookiejar import CookieJar
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from urllib.parse import parse_qs, urlencode, urlsplit

import pytest
from joserfc import jwt
from joserfc.jwk import RSAKey
from museum import NOW, PASSWORD, Answer, Served, ask, serving

from webdepot.accounts import accounts
from webdepot.accounts.roles import Role
from webdepot.archive import Archive
from webdepot.config.sections.portal import OidcConfig
from webdepot.errors import ConfigError, NotPermitted
from webdepot.services.admin import setup
from webdepot.services.admin.oidc import IdentityProvider

PROVIDER = """
from oidc_provider_mock import User, app
from werkzeug.serving import make_server
users = [
    User(sub="anna-1", claims={"preferred_username": "anna", "groups": ["web-curators", "staff"]}),
    User(sub="piet-2", claims={"email": "piet@example.org", "groups": []}),
    User(sub="boss-3", claims={"preferred_username": "administrator", "groups": ["web-curators"]}),
]
server = make_server("127.0.0.1", 0, app(user_claims=users, require_nonce=True), threaded=True)
print(server.server_port, flush=True)
server.serve_forever()
"""


@pytest.fixture(scope="module")
def issuer() -> Iterator[str]:
    """The provider: it knows three people and issues codes to anyone who signs in there."""
    # Warnings of its libraries are not ours: it runs in its own process.
    process = subprocess.Popen(
        [sys.executable, "-W", "ignore", "-c", PROVIDER],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        env=os.environ,
    )
    assert process.stdout is not None
    try:
        yield f"http://127.0.0.1:{int(process.stdout.readline())}"
    finally:
        process.kill()
        process.wait()
        process.stdout.close()


@pytest.fixture(scope="module")
def portal(tmp_path_factory: pytest.TempPathFactory, issuer: str) -> Iterator[Served]:
    home: Path = tmp_path_factory.mktemp("oidc") / "home"
    settings = (
        f'[oidc]\nissuer = "{issuer}"\nclient_id = "portal"\nclient_secret = "s3cret"\n'
        'label = "Account of the library"\n'
        'roles_claim = "groups"\nroles = {"web-curators" = "curator"}\n'
    )
    setup.create(home, settings=settings)
    with Archive.open(home) as archive:
        accounts.add(archive.database, "administrator", PASSWORD, [Role.ADMINISTRATOR], NOW)
    with serving(home) as served:
        yield served


def begin(portal: Served, to: str = "/account") -> tuple[str, str]:
    """The address at the provider, and the cookie for the answer."""
    answer = ask(f"{portal.portal}/sign-in/oidc?{urlencode({'to': to})}")
    assert answer.status == 303, answer.text
    return answer.headers["Location"], answer.headers["Set-Cookie"].partition(";")[0]


def at_provider(address: str, subject: str) -> str:
    """Sign in at the provider; returns the address to which it redirects the browser."""

    class Stay(urllib.request.HTTPRedirectHandler):
        def redirect_request(self, *args: object, **kwargs: object) -> None:
            return None

    opener = urllib.request.build_opener(Stay, urllib.request.HTTPCookieProcessor(CookieJar()))
    request = urllib.request.Request(address, data=urlencode({"sub": subject}).encode())
    try:
        with opener.open(request, timeout=20) as answer:
            raise AssertionError(f"{answer.status} {answer.read()!r}")
    except urllib.error.HTTPError as error:
        with error:
            assert error.code in (302, 303), error.read()
            return str(error.headers["Location"])


def sign_in_there(portal: Served, subject: str, to: str = "/account") -> Answer:
    address, cookie = begin(portal, to)
    return ask(at_provider(address, subject), headers={"Cookie": cookie})


def session_of(answer: Answer) -> str:
    assert answer.status == 303, answer.text
    return next(
        value.partition(";")[0]
        for value in answer.headers.get_all("Set-Cookie")
        if value.startswith("session=")
    )


def test_the_form_leads_there(portal: Served):
    text = ask(f"{portal.portal}/sign-in?to=/depot").text
    assert "Account of the library" in text and 'href="/sign-in/oidc?to=/depot"' in text


def test_the_way_there_and_back(portal: Served):
    answer = sign_in_there(portal, "anna-1", "/harvests")
    assert answer.headers["Location"] == "/harvests"
    session = session_of(answer)
    assert ask(f"{portal.portal}/harvests", headers={"Cookie": session}).status == 200
    assert ask(f"{portal.portal}/users", headers={"Cookie": session}).status == 403
    assert ">anna<" in ask(f"{portal.portal}/account", headers={"Cookie": session}).text
    again = sign_in_there(portal, "anna-1")
    with portal.archive() as archive:
        assert [each.name for each in accounts.every(archive.database)].count("anna") == 1
    assert session_of(again) != session


def test_a_person_without_a_group_is_a_reader_known_by_mail(portal: Served):
    session = session_of(sign_in_there(portal, "piet-2"))
    text = ask(f"{portal.portal}/account", headers={"Cookie": session}).text
    assert "piet@example.org" in text and "reader" in text
    assert ask(f"{portal.portal}/harvests", headers={"Cookie": session}).status == 403


def test_a_name_that_somebody_has_here_is_never_taken_over(portal: Served):
    session = session_of(sign_in_there(portal, "boss-3"))
    assert "administrator 2" in ask(f"{portal.portal}/account", headers={"Cookie": session}).text
    assert ask(f"{portal.portal}/users", headers={"Cookie": session}).status == 403


def test_no_password_opens_such_an_account(portal: Served):
    session_of(sign_in_there(portal, "anna-1"))
    for password in ("", PASSWORD):
        answer = ask(
            f"{portal.portal}/sign-in",
            "POST",
            body=urlencode({"name": "anna", "password": password}).encode(),
        )
        assert answer.status == 401


def test_an_answer_counts_once_and_in_the_browser_that_asked(portal: Served):
    address, cookie = begin(portal)
    back = at_provider(address, "anna-1")
    assert ask(back).status == 401
    address, cookie = begin(portal)
    back = at_provider(address, "anna-1")
    _, other = begin(portal)
    assert ask(back, headers={"Cookie": other}).status == 401
    address, cookie = begin(portal)
    back = at_provider(address, "anna-1")
    assert ask(back, headers={"Cookie": cookie}).status == 303
    assert ask(back, headers={"Cookie": cookie}).status == 401
    assert ask(f"{portal.portal}/sign-in/oidc/back?state=x&code=y", headers={"Cookie": cookie}).status == 401


def test_it_leads_to_no_other_site_afterwards(portal: Served):
    assert sign_in_there(portal, "anna-1", "//evil.example/").headers["Location"] == "/dashboard"


def test_the_request_carries_a_challenge_and_a_nonce(portal: Served):
    address, _ = begin(portal)
    asked = parse_qs(urlsplit(address).query)
    assert asked["code_challenge_method"] == ["S256"] and re.fullmatch(
        r"[\w-]{43}", asked["code_challenge"][0]
    )
    assert len(asked["nonce"][0]) > 20 and asked["redirect_uri"] == [f"{portal.portal}/sign-in/oidc/back"]


def test_a_token_for_another_nonce_verifier_or_client_is_refused(issuer: str):
    redirect = "http://127.0.0.1:9/back"
    provider = IdentityProvider(OidcConfig(issuer=issuer, client_id="portal", client_secret="s3cret"))

    def code(begun_address: str) -> str:
        return parse_qs(urlsplit(at_provider(begun_address, "anna-1")).query)["code"][0]

    first, second = provider.begin(redirect), provider.begin(redirect)
    with pytest.raises(NotPermitted):
        provider.redeem(code(first.address), second, redirect)
    third = provider.begin(redirect)
    stranger = IdentityProvider(OidcConfig(issuer=issuer, client_id="stranger", client_secret="s3cret"))
    with pytest.raises(NotPermitted):
        stranger.redeem(code(third.address), third, redirect)
    assert provider.redeem(code(third.address), third, redirect).external == f"{issuer} anna-1"


class _Liar(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        body = json.dumps(
            dict.fromkeys(
                ("issuer", "authorization_endpoint", "token_endpoint", "jwks_uri"), "https://evil.example"
            )
        ).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *words: object) -> None:
        pass


def test_another_issuer_or_plain_http_elsewhere_is_a_wrong_setting():
    with pytest.raises(ConfigError, match="https"):
        IdentityProvider(OidcConfig(issuer="http://login.example.org", client_id="x")).begin(
            "http://127.0.0.1:9/"
        )
    server = HTTPServer(("127.0.0.1", 0), _Liar)
    threading.Thread(target=server.handle_request).start()
    with pytest.raises(ConfigError, match=r"name another issuer, 'https://evil\.example'"):
        IdentityProvider(OidcConfig(issuer=f"http://127.0.0.1:{server.server_port}", client_id="x")).begin(
            "http://127.0.0.1:9/"
        )
    server.server_close()


class _Keycloak(HTTPServer):
    """A provider that has roles in the access token only, as Keycloak by default."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _KeycloakPage)
        self.issuer = f"http://127.0.0.1:{self.server_port}"
        self.key = RSAKey.generate_key(2048, {"kid": "a"})
        self.nonce = ""
        self.access_more: dict[str, object] = {}

    def token(self, **claims: object) -> str:
        now = int(time.time())
        common = {"iss": self.issuer, "sub": "anna-1", "exp": now + 60, "iat": now}
        return jwt.encode({"alg": "RS256", "kid": "a"}, {**common, **claims}, self.key)


class _KeycloakPage(BaseHTTPRequestHandler):
    server: _Keycloak

    def do_GET(self) -> None:
        issuer = self.server.issuer
        if self.path.endswith("openid-configuration"):
            names = ("authorization_endpoint", "token_endpoint", "jwks_uri")
            self._send({"issuer": issuer, **{name: f"{issuer}/{name}" for name in names}})
        else:
            self._send({"keys": [self.server.key.as_dict(private=False)]})

    def do_POST(self) -> None:
        access = {"azp": "portal", "realm_access": {"roles": ["web-curators"]}, **self.server.access_more}
        self._send(
            {
                "id_token": self.server.token(aud="portal", nonce=self.server.nonce),
                "access_token": self.server.token(aud="account", **access),
            }
        )

    def _send(self, document: dict[str, object]) -> None:
        body = json.dumps(document).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *words: object) -> None:
        pass


@pytest.mark.parametrize(
    ("more", "roles"),
    [
        ({}, {Role.CURATOR}),
        ({"azp": "another-client"}, {Role.READER}),
        ({"sub": "somebody-else"}, {Role.READER}),
        ({"iss": "https://evil.example"}, {Role.READER}),
    ],
)
def test_roles_may_be_in_the_access_token_only(more: dict[str, object], roles: set[Role]):
    keycloak = _Keycloak()
    keycloak.access_more = more
    threading.Thread(target=keycloak.serve_forever, daemon=True).start()
    try:
        config = OidcConfig(
            issuer=keycloak.issuer,
            client_id="portal",
            roles_claim="realm_access.roles",
            roles={"web-curators": "curator"},
        )
        provider = IdentityProvider(config)
        begun = provider.begin("http://127.0.0.1:9/")
        keycloak.nonce = begun.nonce
        assert provider.redeem("code", begun, "http://127.0.0.1:9/").roles == roles
    finally:
        keycloak.shutdown()
        keycloak.server_close()
