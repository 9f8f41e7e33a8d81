"""The holder of a domain or network, from registry answers: RDAP (RFC 9083 with vCards, RFC 7095) and whois
fields.

Personal data is dropped here, before a value is created: of a natural person only the fact remains, of an
organisation its name, its address and the domains of its mailboxes (never the mailboxes). A holder whose data
contains the usual phrases of redaction or privacy services counts as redacted.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from ipaddress import ip_address, ip_network
from typing import Any

from webdepot.selection.domains.facts import (
    LookupStatus,
    Network,
    Registrant,
    Registration,
    bare_host,
    registrable,
)
from webdepot.selection.domains.names import looks_like_organisation

MOST_ENTITIES = 200
_LONGEST = 300
_REDACTED = re.compile(
    r"(?i)redacted|not disclosed|data protected|gdpr|withheld|privacy|proxy|whois ?guard|statutory masking|"
    r"on request|anonym|hidden|"
    r"non-public data|registration private|domains by|contact privacy|not shown|is not published|select "
    r"request|identity protect"
)
_NO_NAME = re.compile(r"(?i)\A(?:n/?a|none|-+|\.+|null|unknown|same as.*)?\Z")
_MAIL = re.compile(r"[A-Za-z0-9._%+'-]{1,100}@((?:[A-Za-z0-9-]{1,63}\.)+[A-Za-z0-9-]{2,63})")
FREE_MAIL = frozenset(
    [
        "gmail.com",
        "googlemail.com",
        "gmx.de",
        "gmx.net",
        "gmx.at",
        "gmx.ch",
        "web.de",
        "t-online.de",
        "outlook.com",
        "hotmail.com",
        "yahoo.com",
        "yahoo.de",
        "aol.com",
        "icloud.com",
        "me.com",
        "mail.com",
        "posteo.de",
        "posteo.net",
        "mailbox.org",
        "freenet.de",
        "arcor.de",
        "protonmail.com",
        "proton.me",
        "live.com",
        "msn.com",
        "ziggo.nl",
        "kpnmail.nl",
        "orange.fr",
        "free.fr",
        "laposte.net",
        "bluewin.ch",
        "hetnet.nl",
        "planet.nl",
        "xs4all.nl",
    ]
)


def mail_domains_in(text: str) -> tuple[str, ...]:
    """Domains of the mail addresses in a text, without free-mail providers."""
    domains = (bare_host(match) for match in _MAIL.findall(text[:200_000]))
    return tuple(dict.fromkeys(domain for domain in domains if registrable(domain) not in FREE_MAIL))


def of_fields(
    *, name: str = "", organisation: str = "", kind: str = "", address: str = "", mails: Iterable[str] = ()
) -> Registrant:
    """The holder from named fields. `kind` is the registry's term for the type of holder, if it gives one."""
    name, organisation, address = (_tidy(text) for text in (name, organisation, address))
    is_redacted = any(_REDACTED.search(text) for text in (name, organisation, *mails))
    organisation = "" if _REDACTED.search(organisation) or _NO_NAME.match(organisation) else organisation
    name = "" if _REDACTED.search(name) or _NO_NAME.match(name) else name
    type_of_holder = kind.lower()
    is_organisation = bool(organisation) or type_of_holder.startswith(
        ("org", "legal", "business", "company", "uk limited", "government")
    )
    if not is_organisation and not type_of_holder.startswith(("ind", "pers", "natural")):
        is_organisation = looks_like_organisation(name)
    holder = organisation or (name if is_organisation else "")
    domains = tuple(
        dict.fromkeys(
            domain for mail in mails if not _REDACTED.search(mail) for domain in mail_domains_in(mail)
        )
    )
    return Registrant(
        name=holder,
        address=address if holder and not _REDACTED.search(address) else "",
        mail_domains=domains,
        is_person=bool(name) and not holder,
        is_redacted=is_redacted and not holder,
    )


def registration_of_rdap(answer: Mapping[str, Any], *, source: str, at: datetime) -> Registration:
    """The registration in an RDAP domain object. No member is assumed to have its proper type."""
    holders = [_holder(entity) for entity in _entities(answer) if "registrant" in roles_of(entity)]
    servers = [bare_host(_text(item.get("ldhName"))) for item in _objects(answer.get("nameservers"))]
    best = max(
        holders,
        key=lambda holder: (bool(holder.name), bool(holder.mail_domains)),
        default=Registrant(is_redacted=True),
    )
    return Registration(
        status=LookupStatus.FOUND,
        registrant=best,
        name_servers=tuple(dict.fromkeys(filter(None, servers[:50]))),
        source=source,
        at=at,
    )


def network_of_rdap(answer: Mapping[str, Any], *, source: str, at: datetime) -> Network:
    """The network in an RDAP IP network object; its status is `failed` if the bounds cannot be read."""
    bounds = _bounds(answer)
    if bounds is None:
        return Network(source=source, at=at)
    # RIPE gives the organisation the role registrant; others give only the name of the network.
    holders = [_holder(entity) for entity in _entities(answer) if "registrant" in roles_of(entity)]
    best = max(holders, key=lambda holder: bool(holder.name), default=Registrant())
    return Network(
        status=LookupStatus.FOUND,
        first=bounds[0],
        last=bounds[1],
        name=_text(answer.get("name"))[:100],
        holder=best,
        source=source,
        at=at,
    )


def _bounds(answer: Mapping[str, Any]) -> tuple[str, str] | None:
    try:
        first, last = (
            ip_address(_text(answer.get("startAddress"))),
            ip_address(_text(answer.get("endAddress"))),
        )
    except ValueError:
        for item in _objects(answer.get("cidr0_cidrs")):
            prefix = _text(item.get("v4prefix")) or _text(item.get("v6prefix"))
            try:
                network = ip_network(f"{prefix}/{item.get('length')}", strict=False)
            except ValueError:
                continue
            return str(network[0]), str(network[-1])
        return None
    if first.version != last.version or int(first) > int(last):
        return None
    return str(first), str(last)


def _entities(answer: Mapping[str, Any], depth: int = 0) -> Iterator[Mapping[str, Any]]:
    for entity in _objects(answer.get("entities"))[:MOST_ENTITIES]:
        yield entity
        if depth < 2 and "registrant" not in roles_of(entity):
            yield from _entities(entity, depth + 1)


def roles_of(entity: Mapping[str, Any]) -> list[str]:
    roles = entity.get("roles")
    return [role.lower() for role in roles if isinstance(role, str)] if isinstance(roles, list) else []


def _holder(entity: Mapping[str, Any]) -> Registrant:
    properties = _vcard(entity)
    card = entity.get("jscard_0") or entity.get("jsContact") or {}
    if not properties and isinstance(card, dict):
        return _of_jscontact(card)
    name = "; ".join(properties.get("fn", [])[:1])
    organisation = "; ".join(properties.get("org", [])[:1])
    kind = "; ".join(properties.get("kind", [])[:1])
    return of_fields(
        name=name,
        organisation=organisation,
        kind=kind,
        address=" ".join(properties.get("adr", [])),
        mails=properties.get("email", []),
    )


def _vcard(entity: Mapping[str, Any]) -> dict[str, list[str]]:
    """Properties of a jCard (RFC 7095): ["vcard", [[name, parameters, type, value...], ...]]."""
    card = entity.get("vcardArray")
    if not isinstance(card, list) or len(card) < 2 or not isinstance(card[1], list):
        return {}
    properties: dict[str, list[str]] = {}
    for item in card[1][:100]:
        if not isinstance(item, list) or len(item) < 4 or not isinstance(item[0], str):
            continue
        label = item[1].get("label") if isinstance(item[1], dict) else None
        value = _flat(item[3]) or (label if isinstance(label, str) else "")
        if value:
            properties.setdefault(item[0].lower(), []).append(value)
    return properties


def _of_jscontact(card: Mapping[str, Any]) -> Registrant:
    """The holder in a JSContact card (RFC 9553), as newer registries use it."""
    full = card.get("name") if isinstance(card.get("name"), dict) else {}
    organisations = [_text(item.get("name")) for item in _values(card.get("organizations"))]
    mails = [_text(item.get("address") or item.get("email")) for item in _values(card.get("emails"))]
    addresses = [_text(item.get("full")) for item in _values(card.get("addresses"))]
    name = _text(full.get("full")) if isinstance(full, dict) else ""
    return of_fields(
        name=name,
        organisation="".join(organisations[:1]),
        kind=_text(card.get("kind")),
        address=" ".join(addresses[:1]),
        mails=mails,
    )


def _values(raw: object) -> list[Mapping[str, Any]]:
    return _objects(list(raw.values())) if isinstance(raw, dict) else _objects(raw)


def _objects(raw: object) -> list[Mapping[str, Any]]:
    return [item for item in raw if isinstance(item, dict)] if isinstance(raw, list) else []


def _flat(raw: object, depth: int = 0) -> str:
    if isinstance(raw, str):
        return raw
    if isinstance(raw, Sequence) and depth < 3:
        return " ".join(filter(None, (_flat(item, depth + 1) for item in raw[:20])))
    return ""


def _text(raw: object) -> str:
    return raw if isinstance(raw, str) else ""


def _tidy(text: str) -> str:
    return " ".join("".join(sign if sign.isprintable() else " " for sign in text[: _LONGEST * 2]).split())[
        :_LONGEST
    ]
