"""URN:NBN with the check digit of the German National Library.

Syntax: RFC 8141 and RFC 8458. The digit is computed over the whole URN in lower case, `urn:nbn:` included:
https://www.persistent-identifier.de/dokumente/ (Prüfziffer). 1. each character becomes its code, 2. the
digits of all codes are multiplied by their position and added, 3. the sum is divided by the last digit, 4.
the last digit of the quotient is the check digit. Not every namespace uses the digit, so the settings of a
partner decide about a foreign URN without it; it is not an error here.
"""

import re

from webdepot.errors import InputError

_CODES = dict(zip("0123456789", (1, 2, 3, 4, 5, 6, 7, 8, 9, 41), strict=True))
_CODES |= dict(zip("abcdefghijklm", (18, 14, 19, 15, 16, 21, 22, 23, 24, 25, 42, 26, 27), strict=True))
_CODES |= dict(zip("nopqrstuvwxyz", (13, 28, 29, 31, 12, 32, 33, 11, 34, 35, 36, 37, 38), strict=True))
_CODES |= {"-": 39, ":": 17, "_": 43, "/": 45, ".": 47, "+": 49}
_NAMESPACE = re.compile(r"urn:nbn:[a-z]{2}(?::[a-z0-9._+]+)*\Z", re.ASCII)
_URN = re.compile(r"urn:nbn:[a-z]{2}(?::[a-z0-9._+]+)*-[a-z0-9:_/.+-]+\Z", re.ASCII)
LONGEST = 500


def check_digit(urn: str) -> int:
    """The check digit to append to a URN; InputError if a character has no code."""
    lower = urn.lower()
    unknown = sorted({character for character in lower if character not in _CODES})
    if unknown or not lower:
        raise InputError(
            f"{urn[:100]!r} cannot have a check digit: only letters a-z, digits and -:_/.+ are allowed."
        )
    digits = "".join(str(_CODES[character]) for character in lower)
    total = sum(position * int(digit) for position, digit in enumerate(digits, 1))
    return total // int(digits[-1]) % 10


def mint(namespace: str, local: str) -> str:
    """A new URN in our namespace (`urn:nbn:de:example`, with or without `-` at its end), with check digit."""
    namespace = namespace.removesuffix("-")
    if not _NAMESPACE.match(namespace.lower()):
        raise InputError(f"{namespace[:100]!r} is not a URN:NBN namespace. Write it like urn:nbn:de:example")
    body = f"{namespace}-{local}".lower()
    if not _URN.match(body) or len(body) >= LONGEST:
        raise InputError(
            f"{local[:100]!r} cannot be part of a URN: only letters a-z, digits and -:_/.+ are allowed."
        )
    return f"{body}{check_digit(body)}"


def is_valid(urn: str) -> bool:
    """Whether it is a URN:NBN whose last character is its check digit. Case does not matter."""
    lower = urn.lower()
    return len(lower) <= LONGEST and bool(_URN.match(lower)) and lower[-1] == str(check_digit(lower[:-1]))


def is_nbn(urn: str) -> bool:
    """Whether it is a URN:NBN, with or without a check digit."""
    return len(urn) <= LONGEST and bool(_URN.match(urn.lower()))
