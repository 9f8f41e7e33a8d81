"""The registry of formats and of the software that renders them.

An entry has a PRONOM identifier or a media type as its key; the identifier is looked up first. The program
includes entries for the usual formats of the web; staff edit the registry and can export it as JSON. The flag
of a format follows from it:

    at risk    the entry says so, or none of its software is current
    watch      the entry says so, or the registry has no entry for the format
"""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from datetime import datetime
from enum import StrEnum
from importlib.resources import files
from typing import Any

from sqlalchemy import Connection, delete, func, insert, select

from webdepot.errors import InputError, NotFound, cause_of
from webdepot.formats import media
from webdepot.formats.tables import registry_formats, registry_renderings, registry_software

KINDS = ("browser", "viewer", "plug-in", "emulator", "tool")


class Risk(StrEnum):
    NONE = "none"
    WATCH = "watch"
    AT_RISK = "at risk"


@dataclass(frozen=True, slots=True, kw_only=True)
class Software:
    id: str
    name: str
    kind: str
    versions: str
    is_current: bool
    note: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class RegistryEntry:
    puid: str
    """PRONOM identifier or media type."""
    name: str
    risk: Risk
    reason: str
    note: str
    software: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Flag:
    risk: Risk
    reason: str
    software: tuple[str, ...] = ()
    """Names of the software that renders it, current software first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Registry:
    entries: Mapping[str, RegistryEntry]
    software: Mapping[str, Software]

    def find(self, puid: str, mime: str) -> RegistryEntry | None:
        return self.entries.get(puid) or self.entries.get(media.canonical(mime)) or self.entries.get(mime)

    def flag(self, puid: str, mime: str) -> Flag:
        """Whether a format is at risk, and why."""
        entry = self.find(puid, mime)
        if entry is None:
            nothing = (
                "The registry has no software for this format yet."
                if puid or mime
                else "The format is unknown."
            )
            return Flag(risk=Risk.WATCH, reason=nothing)
        software = sorted(
            (self.software[each] for each in entry.software if each in self.software),
            key=lambda each: not each.is_current,
        )
        names = tuple(each.name for each in software)
        if entry.risk is Risk.NONE and not any(each.is_current for each in software):
            return Flag(
                risk=Risk.AT_RISK, reason="No software that is still maintained renders it.", software=names
            )
        return Flag(risk=entry.risk, reason=entry.reason, software=names)


def load(connection: Connection) -> Registry:
    """The current registry; until it is edited for the first time, the one included in the program."""
    if not connection.execute(select(func.count()).select_from(registry_software)).scalar_one():
        return supplied()
    renderings: dict[str, list[str]] = {}
    for row in connection.execute(select(registry_renderings).order_by(registry_renderings.c.software)):
        renderings.setdefault(row.puid, []).append(row.software)
    entries = {
        row.puid: RegistryEntry(
            puid=row.puid,
            name=row.name,
            risk=Risk(row.risk),
            reason=row.reason,
            note=row.note,
            software=tuple(renderings.get(row.puid, ())),
        )
        for row in connection.execute(select(registry_formats).order_by(registry_formats.c.puid))
    }
    software = {
        row.id: Software(
            id=row.id,
            name=row.name,
            kind=row.kind,
            versions=row.versions,
            is_current=row.is_current,
            note=row.note,
        )
        for row in connection.execute(select(registry_software).order_by(registry_software.c.name))
    }
    return Registry(entries=entries, software=software)


def supplied() -> Registry:
    """The registry that is included in the program."""
    return from_document(
        json.loads((files("webdepot.formats") / "registry.json").read_text(encoding="utf-8"))
    )


def from_document(document: Any) -> Registry:
    """A registry from its JSON form; InputError if it is not one."""
    try:
        software = {each["id"]: Software(**each) for each in document["software"]}
        entries = {
            each["puid"]: RegistryEntry(
                **each | {"risk": Risk(each["risk"]), "software": tuple(each["software"])}
            )
            for each in document["formats"]
        }
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise InputError(
            f"This is not a registry of formats: {cause_of(error)}. "
            "To see the form, export one: webdepot formats registry"
        ) from error
    _check(entries, software)
    return Registry(entries=entries, software=software)


def to_document(registry: Registry) -> dict[str, object]:
    """The JSON form of a registry, which `from_document` reads."""
    return {
        "software": [asdict(each) for each in registry.software.values()],
        "formats": [asdict(each) | {"software": list(each.software)} for each in registry.entries.values()],
    }


def save(connection: Connection, registry: Registry, *, by: str, at: datetime) -> None:
    """Replace the stored registry."""
    _check(registry.entries, registry.software)
    for table in (registry_renderings, registry_formats, registry_software):
        connection.execute(delete(table))
    changed = {"changed_at": at, "changed_by": by}
    if registry.software:
        connection.execute(
            insert(registry_software), [asdict(each) | changed for each in registry.software.values()]
        )
    if registry.entries:
        values = [
            {
                "puid": each.puid,
                "name": each.name,
                "risk": each.risk.value,
                "reason": each.reason,
                "note": each.note,
            }
            | changed
            for each in registry.entries.values()
        ]
        connection.execute(insert(registry_formats), values)
    pairs = [
        {"puid": each.puid, "software": software}
        for each in registry.entries.values()
        for software in dict.fromkeys(each.software)
    ]
    if pairs:
        connection.execute(insert(registry_renderings), pairs)


def _check(entries: Mapping[str, RegistryEntry], software: Mapping[str, Software]) -> None:
    for entry in entries.values():
        unknown = [each for each in entry.software if each not in software]
        if unknown:
            raise NotFound(
                f"{entry.puid} names the software {unknown[0]}, which is not in the registry. Add it first."
            )
        if not entry.puid or len(entry.puid) > 100:
            raise InputError("An entry needs a PRONOM identifier or a media type.")
    for each in software.values():
        if not each.id or not each.name or each.kind not in KINDS:
            raise InputError(
                f"Software {each.id or each.name!r} needs an id, a name and a kind: {', '.join(KINDS)}."
            )
