"""Character references of HTML, as foreign pages write them (https://html.spec.whatwg.org/#character-reference-state)."""

import html
import re

_TOO_LARGE = re.compile(r"&#[0-9]{10,}+;?")


def unescape(text: str) -> str:
    """The text without character references. Never fails, unlike `html.unescape`."""
    return html.unescape(without_too_large(text))


def without_too_large(text: str) -> str:
    """The text with numbers beyond Unicode replaced as browsers do; Python refuses to read very long ones."""
    return _TOO_LARGE.sub("\ufffd", text)
