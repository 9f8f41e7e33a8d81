"""Recognise pages that are not the expected content: an error page with status 200 (a soft 404), a sign-in
form, a CAPTCHA.

Only the first kilobytes of a page are read. The rules look for words in English, German, Dutch and French,
and only in pages with little other text: a long article about CAPTCHAs is not a CAPTCHA, and a shop's page
with a search box is not a sign-in form.
"""

import re
from dataclasses import dataclass
from urllib.parse import unquote, urlsplit

READ_BYTES = 128 << 10
FEW_WORDS = 120
LONGEST_TEXT = 2000
_MISSING = re.compile(
    r"\b(?:(?:error|fehler|fout|erreur)\s*:?\s*40[04]"
    r"|40[04]\s*[:\-–|]?\s*(?:error|fehler|fout|not found|page|nicht|niet|seite|pagina)"
    r"|(?:page|file|document|site|article|content|resource)\s+"
    r"(?:was\s+|is\s+|could\s+|can\s*not\s+|cannot\s+)*(?:be\s+)?"
    r"(?:not\s+(?:be\s+)?found|missing|unavailable)"
    r"|(?:page|content|document)\s+(?:you\s+\S+(?:\s+\S+){0,4}\s+)?"
    r"(?:does\s*n[o']t|doesn['’]t|does not|no longer)\s+exists?"
    r"|no\s+such\s+(?:page|file|document)"
    r"|(?:seite|datei|dokument|inhalt)\s+(?:\S+\s+){0,4}(?:nicht\s+(?:gefunden|vorhanden|mehr)|existiert\s+nicht)"
    r"|existiert\s+(?:leider\s+)?nicht(?:\s+mehr)?"
    r"|(?:pagina|bestand|document)\s+(?:\S+\s+){0,4}(?:niet\s+(?:gevonden|meer|beschikbaar)|bestaat\s+niet)"
    r"|page\s+(?:introuvable|non\s+trouv[ée]e)|not\s+found)\b|\A\s*40[04]\s*\Z",
    re.I,
)
_CAPTCHA_MARKUP = re.compile(
    rb"g-recaptcha|h-captcha|cf-turnstile|cf-challenge|challenge-platform"
    rb"|captcha[_-]?(?:image|img|code|response|input|form)|/captcha[/.?\"']",
    re.I,
)
_CAPTCHA_WORDS = re.compile(
    r"captcha|are you (?:a )?(?:human|robot)|verify (?:that )?you are (?:a )?human|checking your browser"
    r"|unusual traffic|not a robot|kein roboter|geen robot|bot (?:protection|detection)|security check"
    r"|sicherheitsüberprüfung",
    re.I,
)
_PASSWORD = re.compile(rb"<input[^<>]+type\s*+=\s*+[\"']?password", re.I)
_SIGN_IN_WORDS = re.compile(
    r"\b(?:log\s?-?in|log\s?on|sign\s?-?in|anmeld\w*|einloggen|inloggen|aanmelden|connexion|members only"
    r"|subscribe to read)\b",
    re.I,
)
_SIGN_IN_ADDRESS = re.compile(
    r"log-?in|log-?on|sign-?in|sign-?up|register|anmeld|inlog|aanmeld|account|auth|password|passwort"
    r"|wachtwoord|wp-admin|session|member",
    re.I,
)
_MISSING_ADDRESS = re.compile(r"404|not-?found|error", re.I)


@dataclass(frozen=True, slots=True, kw_only=True)
class FalsePage:
    """A page that is not the expected content."""

    code: str
    """`soft-missing`, `page-login` or `page-riddle`."""
    evidence: str
    """The text that showed it."""


def find_false(url: str, data: bytes) -> FalsePage | None:
    """Examine the beginning of an HTML page that came with status 200; None if it is an ordinary page."""
    import turbohtml  # slow to load, and many commands import this module without reading a page

    document = turbohtml.parse(data[:READ_BYTES], positions=False)
    title = _text(document, "title")
    heading = _text(document, "h1") or _text(document, "h2")
    body = document.find("body")
    words = _first_words(body) if body is not None else []
    is_short = len(words) <= FEW_WORDS
    text = " ".join(words[:FEW_WORDS])[:LONGEST_TEXT]
    address = unquote(urlsplit(url).path)
    if is_short and (
        _CAPTCHA_MARKUP.search(data[:READ_BYTES]) or _CAPTCHA_WORDS.search(f"{title} {heading}")
    ):
        match = _CAPTCHA_WORDS.search(f"{title} {heading} {text}")
        return FalsePage(code="page-riddle", evidence=match[0] if match else title)
    if is_short and _PASSWORD.search(data[:READ_BYTES]) and not _SIGN_IN_ADDRESS.search(address):
        match = _SIGN_IN_WORDS.search(f"{title} {heading} {text}")
        return FalsePage(code="page-login", evidence=match[0] if match else "a password field")
    if _MISSING_ADDRESS.search(address.rpartition("/")[2]):
        return None
    for part in (title, heading) if not is_short else (title, heading, text):
        if match := _MISSING.search(part):
            return FalsePage(code="soft-missing", evidence=match[0])
    return None


def is_sign_in(url: str) -> bool:
    """Whether an address looks like that of a sign-in page."""
    return bool(_SIGN_IN_ADDRESS.search(unquote(urlsplit(url).path)))


def _text(document: object, tag: str) -> str:
    element = document.find(tag)  # type: ignore[attr-defined]
    return " ".join(element.text.split())[:300] if element is not None else ""


def _first_words(body: object) -> list[str]:
    """The visible words; for a long page, only enough to know that it is long."""
    for each in list(body.find_all(["script", "style", "noscript", "template"])):  # type: ignore[attr-defined]
        each.decompose()
    words: list[str] = []
    for text in body.stripped_strings:  # type: ignore[attr-defined]
        words += text.split()
        if len(words) > FEW_WORDS:
            break
    return words
