"""Signs that a host belongs to an organisation. The first and surest: it lies below a domain the organisation holds.

Registrable domains come from the public suffix list, so that `a.github.io` and `b.github.io` are two owners.
"""

from dataclasses import dataclass

from webdepot.url import domain_of


@dataclass(frozen=True, slots=True, kw_only=True)
class Sign:
    """One piece of evidence, in words, with its weight in log-odds (positive speaks for, negative against)."""

    code: str
    weight: float
    words: str


def below_domain(host: str, root: str) -> Sign | None:
    """Is the host the organisation's own domain or below it? No sign when it is not: many organisations hold several."""
    domain = domain_of(f"http://{root}/")
    name = host.partition(":")[0].lower().rstrip(".")
    if name == domain or name.endswith(f".{domain}"):
        return Sign(code="below-domain", weight=8.0, words=f"{name} lies below {domain}, the registrable domain of {root}")
    return None
