"""Parsers of whois answers. There is no standard format, so each registry's layout has its own parser, and a
generic one reads the rest.

    [Holder] blocks          .de (old: with Tech-C blocks; new: holder of legal entities)    of_sections
    heading, indented lines  .nl, .eu, .ch, .uk                                              of_blocks
    objects with handles     .at, .fr, RIPE                                                  of_objects
    Registrant Field: value  gTLDs (ICANN form), ARIN                                        of_lines
    anything else            the first lines whose key names a holder                        of_anything

Answers are bytes: UTF-8 if valid, otherwise Latin-1. No parser ever raises: garbage gives an empty holder.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from ipaddress import ip_address, ip_network

from webdepot.selection.domains.facts import LookupStatus, Network, Registrant, Registration, bare_host
from webdepot.selection.domains.lookup.registrant import of_fields

LONGEST_ANSWER_BYTES = 256 << 10
_MOST_LINES = 5000
_LINE = re.compile(
    r"\A\s*+([A-Za-z](?:[A-Za-z0-9 ()/._-]{0,59}?[A-Za-z0-9()/._-])?)\s*+(?:\.{2,}+\s*+)?:(.*)\Z"
)
"""Key and value; the value has spaces around it."""
_NOTHING = re.compile(
    r"(?im)^[^\w\n]*+(?:no match|not found|no entries found|no data found|domain not found|status:\s*(?:free|"
    r"available)|no object found|"
    r".{0,80}is free|nothing found|no such domain|.{0,80}no entries found|invalid query|the queried object "
    r"does not exist)"
)
_LIMITED = re.compile(
    r"(?i)(?:query|rate|connection|access|lookup|request)s?[ -]+(?:limit|control|quota)|limit exceeded|too "
    r"many "
    r"(?:requests|queries|connections)|"
    r"exceeded.{0,40}(?:limit|maximum|quota)|try again later|blacklisted|quota exceeded|access denied"
)
_SERVER = re.compile(r"(?i)\A(?:(?:[a-z0-9_-]{1,63})\.)+[a-z0-9-]{2,63}\.?")
Fields = list[tuple[str, str]]


def decoded(answer: bytes) -> str:
    cut = answer[:LONGEST_ANSWER_BYTES]
    try:
        text = cut.decode("utf-8")
    except UnicodeDecodeError:
        text = cut.decode("latin-1")
    return text.replace("\r\n", "\n").replace("\r", "\n").replace("\0", "")


def is_limited(text: str) -> bool:
    """Whether a short answer says that there were too many queries."""
    return (
        len(text) < 2000
        and bool(_LIMITED.search(text))
        and not re.search(r"(?im)^[ \t]*+(?:domain|registrant|nserver|inetnum)\b.*:.+", text)
    )


def referral_of(text: str) -> str:
    """The server that an answer refers to, as IANA, ARIN and thin registries name it."""
    match = re.search(
        r"(?im)^[ \t]*+(?:refer|whois|registrar whois server|"
        r"referralserver)[ \t]*+:[ \t]*+(?:r?whois://)?([A-Za-z0-9.:\[\]-]++)[ \t]*+$",
        text,
    )
    return match[1] if match else ""


def registration_of(text: str, domain: str, *, source: str, at: datetime) -> Registration:
    """The holder and name servers of a domain, read by the parser of its top-level domain."""
    if is_limited(text):
        return Registration(source=source, at=at, detail="the server reports too many queries")
    if _NOTHING.search(text[:20_000]):
        return Registration(status=LookupStatus.NONE, source=source, at=at)
    reader = _READERS.get(domain.rpartition(".")[2], of_lines)
    holder = reader(text)
    if holder == Registrant() and reader is not of_lines:
        holder = of_lines(text)
    if holder == Registrant():
        holder = of_anything(text)
    servers = name_servers_in(text)
    if holder == Registrant() and not servers:
        return Registration(source=source, at=at, detail="the answer could not be read")
    if holder == Registrant():
        holder = Registrant(is_redacted=True)
    return Registration(
        status=LookupStatus.FOUND, registrant=holder, name_servers=servers, source=source, at=at
    )


def network_of(text: str, address: str, *, source: str, at: datetime) -> Network:
    """The smallest network in an answer (RIPE inetnum and inet6num, ARIN NetRange) that contains the address,
    with its holder.
    """
    objects = _objects(text)
    networks: list[tuple[int, str, str, Fields]] = []
    for fields in objects:
        for key, value in fields:
            bounds = _range(value) if key in ("inetnum", "inet6num", "netrange", "cidr") else None
            if bounds is not None and _contains(bounds, address):
                networks.append(
                    (int(ip_address(bounds[1])) - int(ip_address(bounds[0])), bounds[0], bounds[1], fields)
                )
    if not networks:
        return Network(source=source, at=at)
    _, first, last, fields = min(networks, key=lambda item: item[0])
    name = _first(fields, "netname")
    return Network(
        status=LookupStatus.FOUND,
        first=first,
        last=last,
        name=name,
        holder=_network_holder(objects, fields),
        source=source,
        at=at,
    )


def name_servers_in(text: str) -> tuple[str, ...]:
    servers, block = [], False
    for line in text.splitlines()[:_MOST_LINES]:
        match = _LINE.match(line)
        key = match[1].lower() if match else ""
        is_key = bool(
            re.fullmatch(
                r"n(?:ame ?)?servers?(?: information)?|nserver|domain (?:name)?servers?(?: in listed "
                r"order)?|name servers?",
                key,
            )
        )
        if match and is_key:
            block = not match[2].strip()
            servers.append(match[2].strip())
        elif block and line.strip():
            servers.append(line.strip())
        else:
            block = False
    names = (bare_host(name[0]) for server in servers if (name := _SERVER.match(server.strip())))
    return tuple(dict.fromkeys(names))[:30]


# --- the parsers ---


def of_sections(text: str) -> Registrant:
    """`[Holder]` and the lines below it, up to the next bracket; other sections (Tech-C) are ignored."""
    for heading in ("holder", "registrant", "domain holder"):
        match = re.search(rf"(?ims)^\[{heading}\]\s*\n(.*?)(?=^\[|\Z)", text)
        if match:
            return _of_fields(_fields(match[1].splitlines()))
    return Registrant()


def of_blocks(text: str) -> Registrant:
    """A heading that ends in a colon, and the lines below it until the next empty line or heading."""
    lines = text.splitlines()[:_MOST_LINES]
    for at, line in enumerate(lines):
        if not re.fullmatch(
            r"\s*(?:registrant|holder of domain name|domain holder|registered for|domain owner)\s*:\s*",
            line,
            re.IGNORECASE,
        ):
            continue
        indent = len(line) - len(line.lstrip())
        block: list[str] = []
        for below in lines[at + 1 :]:
            if not below.strip() or (
                len(below) - len(below.lstrip()) <= indent and below.rstrip().endswith(":")
            ):
                break
            block.append(below.strip())
        return _of_block(block, _after_heading(lines, "registrant type"))
    return Registrant()


def of_objects(text: str) -> Registrant:
    """Objects separated by empty lines; the domain object refers to that of its holder by a handle."""
    objects = _objects(text)
    handle = next(
        (
            value
            for fields in objects
            for key, value in fields
            if key in ("registrant", "holder-c", "org", "holder")
        ),
        "",
    )
    for fields in objects:
        if handle and handle.lower() in (
            _first(fields, "nic-hdl", "personname-hdl", "organisation", "handle").lower(),
        ):
            return _of_fields(fields)
    return Registrant()


def of_lines(text: str) -> Registrant:
    """`Registrant Organization: ...`: the format that ICANN requires of gTLDs; many others use it too."""
    fields = [
        (key.removeprefix("registrant").strip(" -"), value)
        for key, value in _fields(text.splitlines())
        if key.startswith("registrant")
    ]
    return _of_fields([(key or "name", value) for key, value in fields])


def of_anything(text: str) -> Registrant:
    """Any key that names a holder, except lines about registrar, technical and abuse contacts."""
    fields: Fields = []
    for key, value in _fields(text.splitlines()):
        if re.search(r"registrar|tech|admin|abuse|billing|zone", key):
            continue
        if re.search(
            r"holder|owner|registrant|titulaire|inhaber|organi[sz]ation|org-name|orgname|descr", key
        ):
            kinds = re.findall(r"e-?mail|address|street|city", key)
            fields.append((kinds[-1] if kinds else key, value))
    return _of_fields(
        [(key if key in _ADDRESS or "mail" in key else "organisation", value) for key, value in fields]
    )


_READERS: Mapping[str, Callable[[str], Registrant]] = {
    "de": of_sections,
    "nl": of_blocks,
    "eu": of_blocks,
    "ch": of_blocks,
    "li": of_blocks,
    "uk": of_blocks,
    "at": of_objects,
    "fr": of_objects,
    "re": of_objects,
    "pm": of_objects,
}
_NAMES = ("name", "person", "personname", "contact", "holder name", "first name")
_ORGANISATIONS = (
    "organisation",
    "organization",
    "org-name",
    "orgname",
    "company",
    "organisation name",
    "org",
    "custname",
)
_ADDRESS = frozenset(
    [
        "address",
        "street",
        "city",
        "postalcode",
        "postal",
        "code",
        "postcode",
        "pcode",
        "country",
        "countrycode",
        "state/province",
        "stateprov",
        "zip",
    ]
) | {"street address", "postal code"}
_MAILS = ("email", "e-mail", "mail", "contact e-mail", "orgtechemail")


def _of_fields(fields: Fields) -> Registrant:
    return of_fields(
        name=_first(fields, *_NAMES),
        organisation=_first(fields, *_ORGANISATIONS),
        kind=_first(fields, "type", "registrant type", "kind"),
        address=" ".join(value for key, value in fields if key in _ADDRESS),
        mails=[value for key, value in fields if key in _MAILS],
    )


def _of_block(block: Sequence[str], kind: str) -> Registrant:
    fields = _fields(block)
    if any(key in (*_NAMES, *_ORGANISATIONS) for key, _ in fields):
        return _of_fields(fields)
    plain = [line for line in block if not _LINE.match(line)]
    mails = [line for line in block if "@" in line]
    rest = [line for line in plain if "@" not in line]
    return of_fields(name="".join(rest[:1]), address=" ".join(rest[1:]), kind=kind, mails=mails)


def _network_holder(objects: Sequence[Fields], fields: Fields) -> Registrant:
    handle = _first(fields, "org").lower()
    for other in objects:
        if handle and _first(other, "organisation").lower() == handle:
            return of_fields(
                organisation=_first(other, "org-name"),
                address=" ".join(value for key, value in other if key == "address"),
                mails=[value for key, value in other if key in ("e-mail",)],
            )
    organisation = _first(fields, "orgname", "custname", "org-name")
    for other in objects:
        organisation = organisation or _first(other, "orgname", "custname")
    return of_fields(
        organisation=organisation or _first(fields, "descr"),
        mails=[value for key, value in fields if key == "e-mail"],
    )


def _objects(text: str) -> list[Fields]:
    return [
        fields
        for piece in re.split(r"\n\s*\n", text[:LONGEST_ANSWER_BYTES])
        if (fields := _fields(piece.splitlines()))
    ]


def _fields(lines: Sequence[str]) -> Fields:
    fields = []
    for line in lines[:_MOST_LINES]:
        if line.lstrip().startswith(("%", "#", ">>>")):
            continue
        match = _LINE.match(line)
        if match and (value := match[2].strip()):
            fields.append((match[1].lower().strip(), value))
    return fields


def _first(fields: Fields, *keys: str) -> str:
    return next((value for wanted in keys for key, value in fields if key == wanted), "")


def _after_heading(lines: Sequence[str], heading: str) -> str:
    for at, line in enumerate(lines[:-1]):
        if line.strip().lower().rstrip(":") == heading:
            return lines[at + 1].strip()
    return ""


def _range(text: str) -> tuple[str, str] | None:
    try:
        if "-" in text:
            first, _, last = text.partition("-")
            low, high = ip_address(first.strip()), ip_address(last.strip())
            return (str(low), str(high)) if low.version == high.version and int(low) <= int(high) else None
        network = ip_network(text.split(",")[0].strip(), strict=False)
        return str(network[0]), str(network[-1])
    except ValueError:
        return None


def _contains(bounds: tuple[str, str], address: str) -> bool:
    first, last, other = map(ip_address, (*bounds, address))
    return first.version == other.version and int(first) <= int(other) <= int(last)
