"""Headers of HTTP requests that several parts of the program read (RFC 9110)."""

import re

_RANGE = re.compile(r"\s*+bytes\s*+=\s*+(\d{0,18})\s*+-\s*+(\d{0,18})\s*+\Z", re.ASCII)


def stated_number(text: str | None) -> int | None:
    """The whole number in a header such as Content-Length or Retry-After, up to 18 digits; None for anything
    else. `int` alone accepts signs, spaces and digits of other scripts, and fails for thousands of digits.
    """
    return int(text) if text and text.isascii() and text.isdigit() and len(text) <= 18 else None


def accepts(coding: str, accept_encoding: str | None) -> bool:
    """Whether an Accept-Encoding header accepts a content coding (RFC 9110, 12.5.3); without the header any
    coding is accepted.
    """
    if accept_encoding is None:
        return True
    weights: dict[str, float] = {}
    for part in accept_encoding.lower().split(","):
        name, _, parameter = part.strip().partition(";")
        weight = re.search(r"q\s*+=\s*+([0-9.]+)", parameter)
        try:
            weights[name.strip()] = float(weight[1]) if weight else 1.0
        except ValueError:
            weights[name.strip()] = 0.0
    plain = coding.removeprefix("x-")
    return weights.get(plain, weights.get(coding, weights.get("*", 0.0))) > 0


def parse_range(header: str | None, size_bytes: int) -> tuple[int, int] | None:
    """First and last byte of a satisfiable single range (RFC 9110, 14.2); None for anything else, which is
    answered with the whole body.
    """
    match = _RANGE.match(header or "")
    if not match or size_bytes <= 0 or not (match[1] or match[2]):
        return None
    if not match[1]:
        length = min(int(match[2]), size_bytes)
        return (size_bytes - length, size_bytes - 1) if length else None
    first = int(match[1])
    last = min(int(match[2]), size_bytes - 1) if match[2] else size_bytes - 1
    return (first, last) if first <= last else None
