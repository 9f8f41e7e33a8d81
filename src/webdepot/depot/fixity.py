"""Proof that a package is what it was, in one place or in all of them, and mending from a good copy where it
is not.

`verify_package` needs nothing but a store. `audit_package` looks at one package in some of its places, holds
each to the inventory they agree on, and repairs; a place that cannot be reached is away, which is no damage.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from webdepot.depot import chain, copying, ocfl, package, places
from webdepot.depot.inventory import Inventory
from webdepot.errors import CorruptData, NoSpace, NotFound, NotPermitted, RemoteError
from webdepot.model import Finding, PackageId, Severity
from webdepot.ports import ObjectStore


class AuditOutcome(StrEnum):
    WHOLE = "whole"
    REPAIRED = "repaired"
    DAMAGED = "damaged"
    """Something is wrong and was not repaired: repair was not asked for, or the place cannot be written."""
    LOST = "lost"
    """No place has a good copy of something."""
    AWAY = "away"


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
    """Everything wrong with one package in one store, as it is found; nothing when it is whole. Reads every
    byte of it.
    """
    damaged = False
    for finding in ocfl.verify(store, identifier):
        damaged = damaged or finding.severity is Severity.ERROR
        yield finding
    if damaged:  # what follows would only say the same in other words
        return
    yield from _verify_meaning(store, identifier)


def audit_package(
    stores: Mapping[str, ObjectStore],
    identifier: PackageId,
    asked: Sequence[str],
    *,
    known_sha256: str = "",
    known_version: int = 0,
    repair: bool = True,
) -> list[CopyAudit]:
    """Look at the copies in the places asked for, of all that there are; one result for each."""
    here, results = _present(stores, identifier, asked)
    if not here:
        return results
    inventory = copying.agree(here, identifier, known_sha256=known_sha256)
    if inventory is None or inventory.head < known_version:
        missing = "an inventory" if inventory is None else f"version {known_version}"
        message = f"No place that can be reached has {missing} of {identifier} that proves itself."
        return results + [
            _result(name, identifier, AuditOutcome.LOST, message=message) for name in asked if name in here
        ]
    return results + [_audit_copy(here, name, inventory, repair=repair) for name in asked if name in here]


def _present(
    stores: Mapping[str, ObjectStore], identifier: PackageId, asked: Sequence[str]
) -> tuple[dict[str, ObjectStore], list[CopyAudit]]:
    """The stores that answer, and a result for each asked one that does not."""
    here: dict[str, ObjectStore] = {}
    away: list[CopyAudit] = []
    for name, store in stores.items():
        try:
            places.require_present(name, store)
            here[name] = store
        except (RemoteError, NotPermitted, OSError) as error:
            if name in asked:
                away.append(_result(name, identifier, AuditOutcome.AWAY, message=str(error)))
    return here, away


def _audit_copy(
    stores: Mapping[str, ObjectStore], name: str, inventory: Inventory, *, repair: bool
) -> CopyAudit:
    store = stores[name]
    identifier = PackageId(inventory.id)
    try:
        findings = tuple(ocfl.verify_against(store, inventory))
        if not findings:
            findings = tuple(_verify_meaning(store, identifier))
            outcome = (
                AuditOutcome.LOST if findings else AuditOutcome.WHOLE
            )  # every byte agrees, so no other copy says otherwise
            return _result(name, identifier, outcome, inventory, findings=findings)
        if not repair:
            return _result(name, identifier, AuditOutcome.DAMAGED, inventory, findings=findings)
        return _repaired(stores, name, inventory, findings)
    except (RemoteError, NotPermitted) as error:
        return _result(name, identifier, AuditOutcome.AWAY, inventory, message=str(error))


def _repaired(
    stores: Mapping[str, ObjectStore], name: str, inventory: Inventory, findings: tuple[Finding, ...]
) -> CopyAudit:
    store = stores[name]
    others = {other: each for other, each in stores.items() if other != name}
    wrong = frozenset(finding.subject for finding in findings)
    try:
        brought = copying.bring(store, others, inventory, only=wrong)
        left = () if brought.lost else tuple(ocfl.verify_against(store, inventory))
    except (NoSpace, OSError) as error:
        return _result(
            name,
            PackageId(inventory.id),
            AuditOutcome.DAMAGED,
            inventory,
            findings=findings,
            message=str(error),
        )
    if brought.lost:
        outcome, message = (
            AuditOutcome.LOST,
            f"No place has a good copy of {brought.lost[0]}" + _others(len(brought.lost) - 1),
        )
    elif left:
        outcome, message = (
            AuditOutcome.DAMAGED,
            f"After the repair {left[0].subject} is still wrong: {left[0].message}",
        )
    else:
        outcome, message = AuditOutcome.REPAIRED, f"{len(brought.written)} files were restored."
    sources = {key: brought.sources.get(key, "inventory") for key in brought.written}
    return _result(
        name,
        PackageId(inventory.id),
        outcome,
        inventory,
        findings=findings,
        repaired=sources,
        lost=brought.lost,
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


def _verify_meaning(store: ObjectStore, identifier: PackageId) -> Iterator[Finding]:
    """Beyond bytes: the log of events follows from itself, and package.json describes these containers."""
    try:
        if not package.is_package(identifier):
            return
        facts = package.read(store, identifier)
        with package.open_file(store, facts, package.EVENTS) as stream:
            yield from chain.check(stream, subject=f"{identifier} {package.EVENTS}")
        yield from _verify_containers(facts)
    except (CorruptData, NotFound) as error:
        yield _finding("package-incomplete", identifier, str(error))


def _verify_containers(facts: package.PackageFacts) -> Iterator[Finding]:
    files = facts.inventory.files()
    for container in facts.containers:
        if files[f"warc/{container.name}"] != container.sha256:
            yield _finding(
                "container-differs",
                container.name,
                f"{container.name} is not the container that package.json describes.",
            )


def _finding(code: str, subject: str, message: str) -> Finding:
    action = "Restore the package from another copy."
    return Finding(
        code=f"depot.{code}", severity=Severity.ERROR, subject=subject, message=message, action=action
    )


def _others(count: int) -> str:
    return f" and {count} other files." if count > 1 else " and another file." if count else "."
