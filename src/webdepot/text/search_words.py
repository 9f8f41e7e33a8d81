"""Words for search, compared without case and accents: `Café` equals `CAFE`, `Straße` equals `strasse`."""

import re
import unicodedata

LONGEST_WORD = 60
_WORD = re.compile(r"[^\W_]+")
_LETTERS = str.maketrans(
    {"æ": "ae", "œ": "oe", "ø": "o", "đ": "d", "ð": "d", "þ": "th", "ł": "l", "ħ": "h", "ı": "i"}
)


def fold(text: str) -> str:
    """The text in lower case without accents; everything that is not a letter stays."""
    plain = unicodedata.normalize("NFKD", text.casefold().translate(_LETTERS))
    return "".join(char for char in plain if not unicodedata.combining(char))


def split(text: str) -> list[str]:
    """The words of a text, folded."""
    return [word[:LONGEST_WORD] for word in _WORD.findall(fold(text))]
