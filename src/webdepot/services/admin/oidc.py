"""Signing in with an account elsewhere: OpenID Connect, authorization code flow with PKCE.

https://openid.net/specs/openid-connect-core-1_0.html#CodeFlowAuth, RFC 7636 (PKCE), RFC 9207 (issuer in the
answer)

1. `begin` gives the address of the provider to send the browser to, and what has to be remembered until it
   comes back.
2. `redeem` exchanges the code it brings for an ID token, checks the token (signature by the provider's keys,
   issuer, audience, nonce, time), and says who that is and with which roles.

The provider's description and keys are read once an hour, and keys again when a token names one that is not
known.
"""

import base64
import hashlib
import json
import secrets
import threading
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from joserfc import jwt
from joserfc.errors import JoseError
from joserfc.jwk import KeySet

from webdepot.accounts import Role
from webdepot.errors import ConfigError, NotPermitted, RemoteError
from webdepot.settings import OidcConfig

_FRESH_S = 3600.0
_LARGEST_ANSWER = 1 << 20
_LEEWAY_S = 60
_ALGORITHMS = ["RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "EdDSA"]
"""Only signatures of the provider's own keys: neither `none` nor secrets shared with us."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Begun:
    """What the portal remembers while the browser is away."""

    state: str
    nonce: str
    verifier: str
    address: str
    """Where the browser goes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Vouched:
    external: str
    """Issuer and subject: who it is, for good."""
    name: str
    roles: frozenset[Role] | None
    """None where roles are given here and not there."""


class Provider:
    """One provider, with its description and keys remembered. Any thread may use it."""

    def __init__(self, config: OidcConfig) -> None:
        self.config = config
        self._lock = threading.Lock()
        self._described: tuple[float, Mapping[str, Any]] = (0.0, {})
        self._keys: tuple[float, KeySet | None] = (0.0, None)

    def begin(self, redirect_uri: str) -> Begun:
        begun = Begun(
            state=secrets.token_urlsafe(24),
            nonce=secrets.token_urlsafe(24),
            verifier=secrets.token_urlsafe(48),
            address="",
        )
        challenge = (
            base64.urlsafe_b64encode(hashlib.sha256(begun.verifier.encode()).digest()).rstrip(b"=").decode()
        )
        asked = {
            "response_type": "code",
            "client_id": self.config.client_id,
            "redirect_uri": redirect_uri,
            "scope": self.config.scopes,
            "state": begun.state,
            "nonce": begun.nonce,
            "code_challenge": challenge,
            "code_challenge_method": "S256",
        }
        endpoint = self._description()["authorization_endpoint"]
        address = endpoint + ("&" if "?" in endpoint else "?") + urllib.parse.urlencode(asked)
        return Begun(state=begun.state, nonce=begun.nonce, verifier=begun.verifier, address=address)

    def redeem(self, code: str, begun: Begun, redirect_uri: str) -> Vouched:
        """Who stands behind a code. NotPermitted when the provider or its token says no."""
        form = {
            "grant_type": "authorization_code",
            "code": code,
            "redirect_uri": redirect_uri,
            "code_verifier": begun.verifier,
            "client_id": self.config.client_id,
        }
        answer = self._ask(self._description()["token_endpoint"], form=form)
        token = answer.get("id_token")
        if not isinstance(token, str):
            raise NotPermitted(
                f"{self.config.issuer} gave no ID token: {str(answer.get('error', 'no reason'))[:200]}."
            )
        return self._vouched(self._claims(token, begun.nonce))

    def _claims(self, token: str, nonce: str) -> Mapping[str, Any]:
        registry = jwt.JWTClaimsRegistry(
            leeway=_LEEWAY_S,
            iss={"essential": True, "value": self._description()["issuer"]},
            sub={"essential": True},
            exp={"essential": True},
            nonce={"essential": True, "value": nonce},
        )
        try:
            claims: dict[str, Any] = self._decoded(token)
            registry.validate(claims)
        except (JoseError, ValueError) as error:
            raise NotPermitted(f"The ID token of {self.config.issuer} is not valid: {error}.") from error
        audience = claims.get("aud")
        audiences = audience if isinstance(audience, list) else [audience]
        if self.config.client_id not in audiences or (
            len(audiences) > 1 and claims.get("azp") != self.config.client_id
        ):
            raise NotPermitted(f"The ID token of {self.config.issuer} is meant for somebody else.")
        return claims

    def _decoded(self, token: str) -> dict[str, Any]:
        try:
            return jwt.decode(token, self._key_set(), algorithms=_ALGORITHMS).claims
        except (JoseError, ValueError):
            # It may be signed by a key that is newer than those we know.
            return jwt.decode(token, self._key_set(again=True), algorithms=_ALGORITHMS).claims

    def _vouched(self, claims: Mapping[str, Any]) -> Vouched:
        issuer, subject = str(claims["iss"]), str(claims["sub"])
        name = next(
            (str(claims[each]) for each in (self.config.name_claim, "email", "sub") if claims.get(each)),
            subject,
        )
        return Vouched(external=f"{issuer} {subject}"[:500], name=name, roles=self._roles(claims))

    def _roles(self, claims: Mapping[str, Any]) -> frozenset[Role] | None:
        if not self.config.roles_claim:
            return None
        found: Any = claims
        for part in self.config.roles_claim.split("."):
            found = found.get(part) if isinstance(found, Mapping) else None
        values = [found] if isinstance(found, str) else found if isinstance(found, list) else []
        known = set(Role)
        wrong = next((role for role in self.config.roles.values() if role not in known), None)
        if wrong:
            raise ConfigError(f"[oidc] roles: {wrong!r} is no role. There are: {', '.join(Role)}.")
        return frozenset(
            Role(self.config.roles[value]) for value in values if value in self.config.roles
        ) or frozenset({Role.READER})

    def _description(self) -> Mapping[str, Any]:
        with self._lock:
            at, known = self._described
            if known and time.monotonic() - at < _FRESH_S:
                return known
            issuer = self.config.issuer.rstrip("/")
            found = self._ask(f"{issuer}/.well-known/openid-configuration")
            missing = [
                name
                for name in ("issuer", "authorization_endpoint", "token_endpoint", "jwks_uri")
                if not found.get(name)
            ]
            if missing or str(found["issuer"]).rstrip("/") != issuer:
                raise ConfigError(
                    f"[oidc] issuer = {self.config.issuer!r} describes itself otherwise, or lacks {', '.join(missing)}."
                )
            self._described = (time.monotonic(), found)
            return found

    def _key_set(self, *, again: bool = False) -> KeySet:
        at, known = self._keys
        if known is not None and not again and time.monotonic() - at < _FRESH_S:
            return known
        made = KeySet.import_key_set(self._ask(self._description()["jwks_uri"]))  # type: ignore[arg-type]
        self._keys = (time.monotonic(), made)
        return made

    def _ask(self, address: str, *, form: Mapping[str, str] | None = None) -> dict[str, Any]:
        """A JSON object from the provider. Plain HTTP is for this machine alone."""
        parts = urllib.parse.urlsplit(address)
        if parts.scheme != "https" and not (
            parts.scheme == "http" and parts.hostname in ("127.0.0.1", "localhost", "::1")
        ):
            raise ConfigError(f"[oidc] {address} must be an https address.")
        request = urllib.request.Request(address, headers={"Accept": "application/json"})  # noqa: S310 - the scheme was checked
        if form is not None:
            request.data = urllib.parse.urlencode(form).encode()
            if self.config.client_secret:
                both = f"{urllib.parse.quote(self.config.client_id, safe='')}:{urllib.parse.quote(self.config.client_secret, safe='')}"
                request.add_header("Authorization", "Basic " + base64.b64encode(both.encode()).decode())
        try:
            with urllib.request.urlopen(request, timeout=self.config.timeout_s) as answer:  # noqa: S310 - the scheme was checked
                text = answer.read(_LARGEST_ANSWER)
        except urllib.error.HTTPError as error:
            with error:
                text = error.read(_LARGEST_ANSWER)
            if error.code >= 500:
                raise RemoteError(
                    f"{parts.netloc} answered {error.code}. Try again in a while.", retry=True
                ) from error
        except OSError as error:
            raise RemoteError(
                f"{parts.netloc} cannot be reached: {error}. Try again in a while.", retry=True
            ) from error
        try:
            found = json.loads(text)
        except ValueError as error:
            raise RemoteError(f"{parts.netloc} gave no JSON for {parts.path}.", retry=False) from error
        return found if isinstance(found, dict) else {}
