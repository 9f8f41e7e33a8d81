"""Sign-in with an account of an identity provider: OpenID Connect, authorization code flow with PKCE.

https://openid.net/specs/openid-connect-core-1_0.html#CodeFlowAuth, RFC 7636 (PKCE), RFC 9207 (issuer in the
response)

1. `begin` returns the provider's URL to redirect the browser to, and what the portal must remember until it
   comes back.
2. `redeem` exchanges the code for an ID token, validates the token (signature by the provider's keys, issuer,
   audience, nonce, time), and returns the person and their roles.

The provider's metadata and keys are cached for an hour. Keys are read again when a token does not verify,
but at most once a minute. A server of the provider that does not answer is not asked again for a minute.
"""

import base64
import hashlib
import json
import secrets
import threading
import time
import urllib.parse
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pycurl
from joserfc import jwt
from joserfc.errors import JoseError
from joserfc.jwk import KeySet

from webdepot.accounts.roles import Role
from webdepot.config.sections.portal import OidcConfig
from webdepot.errors import ConfigError, NotPermitted, RemoteError

_FRESH_S = 3600.0
_AWAY_S = 60.0
"""How long a server that did not respond is not asked again, and keys are not read again."""
_LARGEST_RESPONSE_BYTES = 1 << 20
_LEEWAY_S = 60
_ALGORITHMS = ["RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "EdDSA"]
"""Only signatures with the provider's own keys: neither `none` nor shared secrets."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StartedSignIn:
    """What the portal remembers while the browser is at the provider."""

    state: str
    nonce: str
    verifier: str
    address: str
    """The URL to redirect the browser to."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ExternalIdentity:
    external: str
    """Issuer and subject, which never change."""
    name: str
    roles: frozenset[Role] | None
    """None if roles are assigned in Webdepot and not by the provider."""


class IdentityProvider:
    """One provider, with its metadata and keys cached. Any thread may use it."""

    def __init__(self, config: OidcConfig) -> None:
        self.config = config
        self._lock = threading.Lock()
        self._cached_metadata: tuple[float, Mapping[str, Any]] = (0.0, {})
        self._keys: tuple[float, KeySet | None] = (0.0, None)
        self._away: dict[str, tuple[float, str]] = {}
        """Servers that did not answer: when, and what happened."""

    def begin(self, redirect_uri: str) -> StartedSignIn:
        """A new sign-in; redirect the browser to its `address`."""
        state, nonce = secrets.token_urlsafe(24), secrets.token_urlsafe(24)
        verifier = secrets.token_urlsafe(48)
        challenge = base64.urlsafe_b64encode(hashlib.sha256(verifier.encode()).digest()).rstrip(b"=").decode()
        query = {
            "response_type": "code",
            "client_id": self.config.client_id,
            "redirect_uri": redirect_uri,
            "scope": self.config.scopes,
            "state": state,
            "nonce": nonce,
            "code_challenge": challenge,
            "code_challenge_method": "S256",
        }
        endpoint = self._metadata()["authorization_endpoint"]
        address = endpoint + ("&" if "?" in endpoint else "?") + urllib.parse.urlencode(query)
        return StartedSignIn(state=state, nonce=nonce, verifier=verifier, address=address)

    def redeem(self, code: str, begun: StartedSignIn, redirect_uri: str) -> ExternalIdentity:
        """The person that a code belongs to. NotPermitted if the provider refuses or the token is invalid."""
        form = {
            "grant_type": "authorization_code",
            "code": code,
            "redirect_uri": redirect_uri,
            "code_verifier": begun.verifier,
            "client_id": self.config.client_id,
        }
        response = self._request(self._metadata()["token_endpoint"], form=form)
        token = response.get("id_token")
        if not isinstance(token, str):
            raise NotPermitted(
                f"{self.config.issuer} sent no ID token: {str(response.get('error', 'no reason'))[:200]}."
            )
        claims = self._claims(token, begun.nonce)
        access_token = response.get("access_token")
        if self._roles_claim(claims) is None and isinstance(access_token, str):
            claims = self._with_roles(claims, access_token)
        return self._identity(claims)

    def _with_roles(self, claims: Mapping[str, Any], access_token: str) -> Mapping[str, Any]:
        """The claims with roles from the access token, where Keycloak has them by default, or else from the
        userinfo endpoint. Both must be about the same person.
        """
        for more in (self._access_claims(access_token), self._userinfo(access_token)):
            if more.get("sub") == claims["sub"] and self._roles_claim(more) is not None:
                first = self.config.roles_claim.partition(".")[0]
                return {**claims, first: more[first]}
        return claims

    def _access_claims(self, access_token: str) -> Mapping[str, Any]:
        """The claims of an access token that the issuer signed for us; none of one that is not a JWT, as the
        specification allows.
        """
        if not self.config.roles_claim or access_token.count(".") != 2:
            return {}
        registry = jwt.JWTClaimsRegistry(
            leeway=_LEEWAY_S,
            iss={"essential": True, "value": self._metadata()["issuer"]},
            exp={"essential": True},
        )
        try:
            claims = self._decode(access_token)
            registry.validate(claims)
        except (JoseError, ValueError):
            return {}
        return claims if self.config.client_id in (claims.get("azp"), claims.get("client_id")) else {}

    def _userinfo(self, access_token: str) -> Mapping[str, Any]:
        address = self._metadata().get("userinfo_endpoint")
        if not self.config.roles_claim or not isinstance(address, str):
            return {}
        return self._request(address, bearer=access_token)

    def _claims(self, token: str, nonce: str) -> Mapping[str, Any]:
        registry = jwt.JWTClaimsRegistry(
            leeway=_LEEWAY_S,
            iss={"essential": True, "value": self._metadata()["issuer"]},
            sub={"essential": True},
            exp={"essential": True},
            nonce={"essential": True, "value": nonce},
        )
        try:
            claims: dict[str, Any] = self._decode(token)
            registry.validate(claims)
        except (JoseError, ValueError) as error:
            raise NotPermitted(f"The ID token of {self.config.issuer} is not valid: {error}.") from error
        audience = claims.get("aud")
        audiences = audience if isinstance(audience, list) else [audience]
        if self.config.client_id not in audiences or (
            len(audiences) > 1 and claims.get("azp") != self.config.client_id
        ):
            raise NotPermitted(f"The ID token of {self.config.issuer} is for another client.")
        return claims

    def _decode(self, token: str) -> dict[str, Any]:
        try:
            return jwt.decode(token, self._key_set(), algorithms=_ALGORITHMS).claims
        except (JoseError, ValueError):
            # The signing key may be newer than the cached keys.
            return jwt.decode(token, self._key_set(again=True), algorithms=_ALGORITHMS).claims

    def _identity(self, claims: Mapping[str, Any]) -> ExternalIdentity:
        issuer, subject = str(claims["iss"]), str(claims["sub"])
        name = next(
            (str(claims[each]) for each in (self.config.name_claim, "email", "sub") if claims.get(each)),
            subject,
        )
        return ExternalIdentity(external=f"{issuer} {subject}"[:500], name=name, roles=self._roles(claims))

    def _roles(self, claims: Mapping[str, Any]) -> frozenset[Role] | None:
        if not self.config.roles_claim:
            return None
        claim = self._roles_claim(claims)
        values = [claim] if isinstance(claim, str) else claim if isinstance(claim, list) else []
        known = set(Role)
        wrong = next((role for role in self.config.roles.values() if role not in known), None)
        if wrong:
            raise ConfigError(f"[oidc] roles: {wrong!r} is not a role. Use one of: {', '.join(Role)}.")
        return frozenset(
            Role(self.config.roles[value]) for value in values if value in self.config.roles
        ) or frozenset({Role.READER})

    def _roles_claim(self, claims: Mapping[str, Any]) -> Any:
        """The value of the claim with the roles; None if there is none."""
        claim: Any = claims
        for part in self.config.roles_claim.split("."):
            claim = claim.get(part) if isinstance(claim, Mapping) else None
        return claim

    def _metadata(self) -> Mapping[str, Any]:
        with self._lock:
            at, cached = self._cached_metadata
            if cached and time.monotonic() - at < _FRESH_S:
                return cached
            issuer = self.config.issuer.rstrip("/")
            metadata = self._request(f"{issuer}/.well-known/openid-configuration")
            missing = [
                name
                for name in ("issuer", "authorization_endpoint", "token_endpoint", "jwks_uri")
                if not metadata.get(name)
            ]
            if missing:
                raise ConfigError(
                    f"[oidc] issuer = {self.config.issuer!r}: its metadata lack {', '.join(missing)}."
                )
            if str(metadata["issuer"]).rstrip("/") != issuer:
                raise ConfigError(
                    f"[oidc] issuer = {self.config.issuer!r}: its metadata name another issuer, "
                    f"{str(metadata['issuer'])[:200]!r}. Check the address."
                )
            self._cached_metadata = (time.monotonic(), metadata)
            return metadata

    def _key_set(self, *, again: bool = False) -> KeySet:
        at, cached = self._keys
        if cached is not None and time.monotonic() - at < (_AWAY_S if again else _FRESH_S):
            return cached
        keys = KeySet.import_key_set(self._request(self._metadata()["jwks_uri"]))  # type: ignore[arg-type]
        self._keys = (time.monotonic(), keys)
        return keys

    def _request(
        self, address: str, *, form: Mapping[str, str] | None = None, bearer: str = ""
    ) -> dict[str, Any]:
        """A JSON object from the provider. Plain HTTP is allowed only on this machine."""
        parts = urllib.parse.urlsplit(address)
        if parts.scheme != "https" and not (
            parts.scheme == "http" and parts.hostname in ("127.0.0.1", "localhost", "::1")
        ):
            raise ConfigError(f"[oidc] {address} must be an https address.")
        since, happened = self._away.get(parts.netloc, (0.0, ""))
        if happened and time.monotonic() - since < _AWAY_S:
            raise RemoteError(happened, retry=True)
        try:
            status, text = self._fetch(address, form, bearer)
        except pycurl.error as error:
            happened = f"{parts.netloc} cannot be reached: {error.args[-1]}. Try again in a minute."
            self._away[parts.netloc] = (time.monotonic(), happened)
            raise RemoteError(happened, retry=True) from error
        if status >= 500:
            raise RemoteError(f"{parts.netloc} returned status {status}. Try again later.", retry=True)
        try:
            document = json.loads(text)
        except (ValueError, RecursionError) as error:
            raise RemoteError(f"{parts.netloc} sent no JSON for {parts.path}.", retry=False) from error
        return document if isinstance(document, dict) else {}

    def _fetch(self, address: str, form: Mapping[str, str] | None, bearer: str) -> tuple[int, bytes]:
        """Status and body. The time for the whole answer is limited, not that between two of its bytes; no
        redirect is followed, because it could lead the code and the secret elsewhere.
        """
        body = bytearray()

        def take(piece: bytes) -> int:
            body.extend(piece)
            return len(piece) if len(body) <= _LARGEST_RESPONSE_BYTES else 0

        curl = pycurl.Curl()
        try:
            curl.setopt(pycurl.URL, address)
            authorization = [f"Authorization: Bearer {bearer}"] if bearer else []
            curl.setopt(pycurl.HTTPHEADER, ["Accept: application/json", *authorization])
            curl.setopt(pycurl.TIMEOUT_MS, int(self.config.timeout_s * 1000))
            curl.setopt(pycurl.NOSIGNAL, 1)
            curl.setopt(pycurl.WRITEFUNCTION, take)
            if form is not None:
                curl.setopt(pycurl.POSTFIELDS, urllib.parse.urlencode(form))
                if self.config.client_secret:
                    names = (self.config.client_id, self.config.client_secret)
                    credentials = ":".join(urllib.parse.quote(name, safe="") for name in names)
                    basic = base64.b64encode(credentials.encode()).decode()
                    curl.setopt(
                        pycurl.HTTPHEADER, ["Accept: application/json", f"Authorization: Basic {basic}"]
                    )
            curl.perform()
            return curl.getinfo(pycurl.RESPONSE_CODE), bytes(body)
        finally:
            curl.close()
