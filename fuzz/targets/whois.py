"""Answers of WHOIS servers, for a domain of each parser and for an address."""

from datetime import UTC, datetime

from webdepot.selection.domains.lookup import whois_parser

TOKENS = (
    b"Registrant:\n", b"Registrant Organization: ", b"[Holder]\n", b"Domain: ", b"Nserver: ",
    b"Name Server: ", b"inetnum: 192.0.2.0 - 192.0.2.255\n", b"netname: ", b"org: ORG-1\n",
    b"organisation: ORG-1\n", b"refer: whois.a.example\n", b"REDACTED FOR PRIVACY", b"No match",
    b"limit exceeded", b"holder-c: H1\n", b"nic-hdl: H1\n", b"\n\n", b"   ", b"NetRange: ",
    b"CIDR: 192.0.2.0/24\n", b"inet6num: 2001:db8::/32\n", b"address: ", b"% ", b"e-mail: a@b.example\n",
    b"\xe4",
)  # fmt: skip
_AT = datetime(2020, 1, 1, tzinfo=UTC)
_DOMAINS = ("a.de", "a.nl", "a.fr", "a.com")


def one_input(data: bytes) -> None:
    text = whois_parser.decoded(data)
    whois_parser.is_limited(text)
    whois_parser.referral_of(text)
    for domain in _DOMAINS:
        whois_parser.registration_of(text, domain, source="fuzz", at=_AT)
    whois_parser.network_of(text, "192.0.2.1", source="fuzz", at=_AT)
    whois_parser.network_of(text, "2001:db8::1", source="fuzz", at=_AT)
