"""Fixity checks: whether a package is unchanged, in one place or in several, and repair from a good copy.

`verify_package` needs only a store. `audit_package` checks one package in some of its places against one
inventory, and repairs it; a place that cannot be reached is `away`, which is not damage.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from webdepot.depot import event_chain, package, package_content, places, replication
from webdepot.depot.ocfl import verification
from webdepot.depot.ocfl.inventory import Inventory
from webdepot.errors import CorruptData, NoSpace, NotFound, NotPermitted, RemoteError
from webdepot.model import Finding, PackageId, Severity
from webdepot.ports.object_store import ObjectStore


class AuditOutcome(StrEnum):
    WHOLE = "whole"
    REPAIRED = "repaired"
    DAMAGED = "damaged"
    """Not repaired: because repair was not requested, or the place cannot be written."""
    LOST = "lost"
    """No place has a good copy of some file."""
    AWAY = "away"
    """The place cannot be reached."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CopyAudit:
    place: str
    package: PackageId
    outcome: AuditOutcome
    version: int
    findings: tuple[Finding, ...] = ()
    repaired: Mapping[str, str] | None = None
    """Key to the place it was taken from."""
    lost: tuple[str, ...] = ()
    message: str = ""


def verify_package(store: ObjectStore, identifier: PackageId) -> Iterator[Finding]:
    """Read every byte of a package in one store; one finding for each fault, none if it is intact."""
    damaged = False
    for finding in verification.verify(store, identifier):
        damaged = damaged or finding.severity is Severity.ERROR
        yield finding
    if damaged:  # the next checks would only report the same damage again
        return
    yield from _verify_package_files(store, identifier)


def audit_package(
    stores: Mapping[str, ObjectStore],
    identifier: PackageId,
    names: Sequence[str],
    *,
    known_sha256: str = "",
    known_version: int = 0,
    repair: bool = True,
) -> list[CopyAudit]:
    """Check the copies in the places named, and repair them from all `stores`; one result for each."""
    here, results = _present(stores, identifier, names)
    if not here:
        return results
    inventory = replication.choose_inventory(here, identifier, known_sha256=known_sha256)
    if inventory is None or inventory.head < known_version:
        missing = "an inventory" if inventory is None else f"version {known_version}"
        message = f"No reachable place has {missing} of {identifier} with a valid checksum."
        return results + [
            _result(name, identifier, AuditOutcome.LOST, message=message) for name in names if name in here
        ]
    return results + [_audit_copy(here, name, inventory, repair=repair) for name in names if name in here]


def _present(
    stores: Mapping[str, ObjectStore], identifier: PackageId, names: Sequence[str]
) -> tuple[dict[str, ObjectStore], list[CopyAudit]]:
    """The stores that can be reached, and a result for each named one that cannot."""
    here: dict[str, ObjectStore] = {}
    away: list[CopyAudit] = []
    for name, store in stores.items():
        try:
            places.require_present(name, store)
            here[name] = store
        except (RemoteError, NotPermitted, OSError) as error:
            if name in names:
                away.append(_result(name, identifier, AuditOutcome.AWAY, message=str(error)))
    return here, away


def _audit_copy(
    stores: Mapping[str, ObjectStore], name: str, inventory: Inventory, *, repair: bool
) -> CopyAudit:
    store = stores[name]
    identifier = PackageId(inventory.id)
    try:
        findings = tuple(verification.verify_against(store, inventory))
        if not findings:
            findings = tuple(_verify_package_files(store, identifier))
            # All bytes match the inventory, so the other copies have the same faults.
            outcome = AuditOutcome.LOST if findings else AuditOutcome.WHOLE
            return _result(name, identifier, outcome, inventory, findings=findings)
        if not repair:
            return _result(name, identifier, AuditOutcome.DAMAGED, inventory, findings=findings)
        return _repair(stores, name, inventory, findings)
    except (RemoteError, NotPermitted) as error:
        return _result(name, identifier, AuditOutcome.AWAY, inventory, message=str(error))


def _repair(
    stores: Mapping[str, ObjectStore], name: str, inventory: Inventory, findings: tuple[Finding, ...]
) -> CopyAudit:
    store = stores[name]
    others = {other: each for other, each in stores.items() if other != name}
    wrong = frozenset(finding.subject for finding in findings)
    try:
        copied = replication.replicate(store, others, inventory, only=wrong)
        left = () if copied.lost else tuple(verification.verify_against(store, inventory))
    except (NoSpace, OSError) as error:
        return _result(
            name,
            PackageId(inventory.id),
            AuditOutcome.DAMAGED,
            inventory,
            findings=findings,
            message=str(error),
        )
    if copied.lost:
        outcome = AuditOutcome.LOST
        message = f"No place has a good copy of {copied.lost[0]}" + _others(len(copied.lost) - 1)
    elif left:
        outcome = AuditOutcome.DAMAGED
        message = f"After the repair {left[0].subject} is still wrong: {left[0].message}"
    else:
        outcome, message = AuditOutcome.REPAIRED, _restored(len(copied.written))
    sources = {key: copied.sources.get(key, "inventory") for key in copied.written}
    return _result(
        name,
        PackageId(inventory.id),
        outcome,
        inventory,
        findings=findings,
        repaired=sources,
        lost=copied.lost,
        message=message,
    )


def _result(
    place: str,
    identifier: PackageId,
    outcome: AuditOutcome,
    inventory: Inventory | None = None,
    *,
    findings: tuple[Finding, ...] = (),
    repaired: Mapping[str, str] | None = None,
    lost: tuple[str, ...] = (),
    message: str = "",
) -> CopyAudit:
    return CopyAudit(
        place=place,
        package=identifier,
        outcome=outcome,
        version=inventory.head if inventory else 0,
        findings=findings,
        repaired=repaired,
        lost=lost,
        message=message or (findings[0].message if findings else ""),
    )


def _verify_package_files(store: ObjectStore, identifier: PackageId) -> Iterator[Finding]:
    """Check what checksums cannot show: the chain of events, and the containers that package.json lists."""
    try:
        if not package.is_package(identifier):
            return
        facts = package.read(store, identifier)
        with package.open_file(store, facts, package_content.EVENTS) as stream:
            yield from event_chain.check(stream, subject=f"{identifier} {package_content.EVENTS}")
        yield from _verify_containers(facts)
    except (CorruptData, NotFound) as error:
        yield _finding("package-incomplete", identifier, str(error))


def _verify_containers(facts: package_content.PackageFacts) -> Iterator[Finding]:
    files = facts.inventory.files()
    for container in facts.containers:
        if files[f"warc/{container.name}"] != container.sha256:
            yield _finding(
                "container-differs",
                container.name,
                f"{container.name} is not the container that package.json lists.",
            )


def _finding(code: str, subject: str, message: str) -> Finding:
    action = "Restore the package from another copy."
    return Finding(
        code=f"depot.{code}", severity=Severity.ERROR, subject=subject, message=message, action=action
    )


def _others(count: int) -> str:
    return f" and {count} other files." if count > 1 else " and another file." if count else "."


def _restored(count: int) -> str:
    return "1 file was restored." if count == 1 else f"{count} files were restored."
