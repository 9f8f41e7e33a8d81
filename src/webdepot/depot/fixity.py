"""Proof that a package is what it was: every byte against its digest, the event log against itself, the facts against the content."""

from collections.abc import Iterator

from webdepot.depot import chain, ocfl, package
from webdepot.errors import CorruptData, NotFound
from webdepot.model import Finding, PackageId, Severity
from webdepot.ports import ObjectStore


def verify_package(store: ObjectStore, identifier: PackageId) -> Iterator[Finding]:
    """Everything wrong with one package in one store, as it is found; nothing when it is whole. Reads every byte of it."""
    damaged = False
    for finding in ocfl.verify(store, identifier):
        damaged = damaged or finding.severity is Severity.ERROR
        yield finding
    if damaged:  # what follows would only say the same in other words
        return
    try:
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
            yield _finding("container-differs", container.name, f"{container.name} is not the container that package.json describes.")


def _finding(code: str, subject: str, message: str) -> Finding:
    action = "Restore the package from another copy."
    return Finding(code=f"depot.{code}", severity=Severity.ERROR, subject=subject, message=message, action=action)
