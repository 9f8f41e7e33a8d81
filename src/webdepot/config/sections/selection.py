"""Sections about choosing sites and asking their owners: selection, discovery, mail."""

from dataclasses import dataclass

from webdepot.config.keys import at_least, check_port, check_share, key, one_of


@dataclass(frozen=True, slots=True, kw_only=True)
class DiscoveryConfig:
    """Finding the domains of an organisation: sources, politeness and thresholds."""

    resolver: str = key(
        "",
        "DNS servers, such as 192.0.2.53 or 127.0.0.1:5353, separated by commas. Empty means those of the "
        "system.",
    )
    rdap_bootstrap: str = key(
        "https://data.iana.org/rdap/",
        "URL or folder of the RDAP bootstrap files dns.json, ipv4.json and ipv6.json (RFC 9224).",
    )
    whois: str = key(
        "whois.iana.org", "First whois server (host or host:port) if there is no RDAP; `off` disables whois."
    )
    ct_search: str = key(
        "",
        "Certificate transparency search with the interface of crt.sh, such as https://crt.sh. Empty means "
        "off.",
    )
    extra_ca_file: str = key(
        "", "PEM file with certificate authorities to trust in addition to those of the system."
    )
    follow_at: float = key(0.75, "A host with this score or more belongs to the organisation.", check_share)
    ignore_at: float = key(
        0.25,
        "A host with this score or less does not belong; between the two a curator decides.",
        check_share,
    )
    new_domains: str = key(
        "follow",
        "New domains found during a harvest: follow (at once), or ask (a curator decides first).",
        one_of("follow", "ask"),
    )
    registry_pause_s: float = key(
        1.0, "Delay between two queries to one registry server, in seconds.", at_least(0)
    )
    page_pause_s: float = key(1.0, "Delay between two pages of one host, in seconds.", at_least(0))
    workers: int = key(24, "Number of hosts examined in parallel.", at_least(1))
    timeout_s: float = key(5.0, "Maximum time for a lookup or a connection, in seconds.", at_least(0.1))
    limit_hosts: int = key(20_000, "Maximum number of hosts examined in a survey.", at_least(1))
    http_port: int = key(80, "Port for HTTP; change it only in a closed network.", check_port)
    https_port: int = key(443, "Port for HTTPS; change it only in a closed network.", check_port)
    scan: bool = key(False, "Allow `webdepot organisation scan` in own_ranges.")
    own_ranges: tuple[str, ...] = key((), "IP ranges of your institution; only these are ever scanned.")
    scan_per_s: float = key(50.0, "Maximum number of connections per second while scanning.", at_least(0.1))
    reopen_months: int = key(
        12, "Automatic decisions about a host are made again after this many months.", at_least(1)
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class SelectionConfig:
    """Selecting sites and asking their owners."""

    points_needed: float = key(
        1.0, "Points from optional criteria that a site needs to be recommended.", at_least(0)
    )
    term_days: int = key(
        28,
        "Days the owner has to refuse after the letter was sent; after that, silence counts as consent.",
        at_least(1),
    )
    reminder_days: int = key(
        14, "Days after the letter on which a reminder is sent; 0 means no reminder.", at_least(0)
    )
    suggestions_per_hour: int = key(
        10,
        "Maximum number of suggestions and complaints per hour from one address; further ones are refused "
        "for now.",
        at_least(1),
    )
    suggestions_in_all: int = key(
        200, "Maximum number of suggestions and complaints per hour from all addresses.", at_least(1)
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class MailConfig:
    """The mail server for letters. Set the password as WEBDEPOT_MAIL_PASSWORD rather than in this file."""

    host: str = key("", "Host name of the SMTP server; empty means that no letters can be sent.")
    port: int = key(587, "Port of the SMTP server.", check_port)
    security: str = key(
        "starttls", "Encryption of the connection: starttls, tls or none.", one_of("starttls", "tls", "none")
    )
    user: str = key("", "User name at the SMTP server; empty means no authentication.")
    password: str = key("", "Password at the SMTP server.")
    sender: str = key(
        "", "Sender of letters: webarchive@example.org or Web archive <webarchive@example.org>."
    )
    reply_to: str = key("", "Address for replies, if it differs from the sender.")
    timeout_s: float = key(30.0, "Maximum time for a response of the SMTP server, in seconds.", at_least(1))
