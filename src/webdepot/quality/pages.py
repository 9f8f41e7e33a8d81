"""What a page says of itself: an error page with status 200 (a soft 404), a form to sign in, a riddle against
robots.

The first kilobytes of a page are looked at. Judging is by words in the languages of the archive's
neighbourhood, and only where the page says little else: a long article about captchas is no riddle, and a
shop's page with a search box is no form to sign in.
"""

import re
from dataclasses import dataclass
from urllib.parse import unquote, urlsplit

LOOKED_AT_BYTES = 128 << 10
FEW_WORDS = 120
_MISSING = re.compile(
    r"\b(?:(?:error|fehler|fout|erreur)\s*:?\s*40[04]"
    r"|40[04]\s*[:\-–|]?\s*(?:error|fehler|fout|not found|page|nicht|niet|seite|pagina)"
    r"|(?:page|file|document|site|article|content|resource)\s+(?:was\s+|is\s+|could\s+|can\s*not\s+|cannot\s+)*(?:be\s+)?"
    r"(?:not\s+(?:be\s+)?found|missing|unavailable)"
    r"|(?:page|content|document)\s+(?:you\s+\S+(?:\s+\S+){0,4}\s+)?(?:does\s*n[o']t|doesn['’]t|does not|no longer)\s+exists?"
    r"|no\s+such\s+(?:page|file|document)"
    r"|(?:seite|datei|dokument|inhalt)\s+(?:\S+\s+){0,4}(?:nicht\s+(?:gefunden|vorhanden|mehr)|existiert\s+nicht)"
    r"|existiert\s+(?:leider\s+)?nicht(?:\s+mehr)?"
    r"|(?:pagina|bestand|document)\s+(?:\S+\s+){0,4}(?:niet\s+(?:gevonden|meer|beschikbaar)|bestaat\s+niet)"
    r"|page\s+(?:introuvable|non\s+trouv[ée]e)|not\s+found)\b|\A\s*40[04]\s*\Z",
    re.I,
)
_RIDDLE_MARKUP = re.compile(
    rb"g-recaptcha|h-captcha|cf-turnstile|cf-challenge|challenge-platform|captcha[_-]?(?:image|img|code|response|input|form)|/captcha[/.?\"']",
    re.I,
)
_RIDDLE_WORDS = re.compile(
    r"captcha|are you (?:a )?(?:human|robot)|verify (?:that )?you are (?:a )?human|checking your browser|unusual traffic|not a robot"
    r"|kein roboter|geen robot|bot (?:protection|detection)|security check|sicherheitsüberprüfung",
    re.I,
)
_PASSWORD = re.compile(rb"<input[^>]+type\s*=\s*[\"']?password", re.I)
_SIGN_IN_WORDS = re.compile(
    r"\b(?:log\s?-?in|log\s?on|sign\s?-?in|anmeld\w*|einloggen|inloggen|aanmelden|connexion|members only|subscribe to read)\b",
    re.I,
)
_SIGN_IN_ADDRESS = re.compile(
    r"log-?in|log-?on|sign-?in|sign-?up|register|anmeld|inlog|aanmeld|account|auth|password|passwort|wachtwoord|wp-admin|session|member",
    re.I,
)
_MISSING_ADDRESS = re.compile(r"404|not-?found|error", re.I)


@dataclass(frozen=True, slots=True, kw_only=True)
class Looks:
    """What a page turned out to be."""

    code: str
    """`soft-missing`, `page-login` or `page-riddle`."""
    evidence: str
    """The words or the mark that told it."""


def look(url: str, data: bytes) -> Looks | None:
    """Judge the beginning of an HTML page that came with status 200; None for a page like any other."""
    import turbohtml

    document = turbohtml.parse(data[:LOOKED_AT_BYTES])
    title = _text(document, "title")
    heading = _text(document, "h1") or _text(document, "h2")
    body = document.find("body")
    words = _visible(body).split() if body is not None else []
    is_short = len(words) <= FEW_WORDS
    said = " ".join(words[:FEW_WORDS])
    address = unquote(urlsplit(url).path)
    if is_short and (
        _RIDDLE_MARKUP.search(data[:LOOKED_AT_BYTES]) or _RIDDLE_WORDS.search(f"{title} {heading}")
    ):
        mark = _RIDDLE_WORDS.search(f"{title} {heading} {said}")
        return Looks(code="page-riddle", evidence=mark[0] if mark else title)
    if is_short and _PASSWORD.search(data[:LOOKED_AT_BYTES]) and not _SIGN_IN_ADDRESS.search(address):
        mark = _SIGN_IN_WORDS.search(f"{title} {heading} {said}")
        return Looks(code="page-login", evidence=mark[0] if mark else "a field for a password")
    if _MISSING_ADDRESS.search(address.rpartition("/")[2]):
        return None
    for place in (title, heading) if not is_short else (title, heading, said):
        if mark := _MISSING.search(place):
            return Looks(code="soft-missing", evidence=mark[0])
    return None


def is_sign_in(url: str) -> bool:
    """Whether an address itself speaks of signing in."""
    return bool(_SIGN_IN_ADDRESS.search(unquote(urlsplit(url).path)))


def _text(document: object, tag: str) -> str:
    found = document.find(tag)  # type: ignore[attr-defined]
    return " ".join(found.text.split())[:300] if found is not None else ""


def _visible(body: object) -> str:
    for each in list(body.find_all(["script", "style", "noscript", "template"])):  # type: ignore[attr-defined]
        each.decompose()
    # Words of neighbouring elements must not grow together.
    return " ".join(body.stripped_strings)  # type: ignore[attr-defined]
