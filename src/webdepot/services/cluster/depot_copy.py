"""Copy the main place of a depot to another one, as a further place is filled, and read every byte there."""

from dataclasses import dataclass

from webdepot.depot import replication
from webdepot.depot.ocfl import layout, objects
from webdepot.depot.places import MAIN
from webdepot.errors import Conflict, CorruptData
from webdepot.model import Severity
from webdepot.ports.object_store import ObjectStore
from webdepot.services.depot import audit
from webdepot.services.progress import Phase, Progress, Watch

_SHOWN = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class DepotCopy:
    objects: int
    size_bytes: int
    """What had to be written; less if it was interrupted before."""


def copy(source: ObjectStore, target: ObjectStore, *, replace: bool, watch: Watch) -> DepotCopy:
    """Make the target equal to the source, object by object. What is right there is not written again, so
    that it can be repeated. Objects that the source does not have are removed with `replace`, otherwise
    Conflict.
    """
    layout.prepare(target)
    known = set(objects.iter_objects(source))
    extra = sorted(set(objects.iter_objects(target)) - known)
    if extra and not replace:
        raise Conflict(
            f"The new place has {len(extra)} objects that the depot does not have, such as "
            f"{', '.join(extra[:_SHOWN])}. Give an empty place, or --replace to remove them."
        )
    for identifier in extra:
        replication.remove(target, identifier, objects.find_inventory(target, identifier))
    size_bytes = 0
    for done, identifier in enumerate(sorted(known), 1):
        inventory = replication.choose_inventory({MAIN: source}, identifier)
        if inventory is None:
            text = f"The inventory of {identifier} is damaged. Run: webdepot depot audit"
            raise CorruptData(text, where=identifier)
        there = objects.find_inventory(target, identifier)
        if there is None or there.sha256 != inventory.sha256:
            result = replication.replicate(target, {MAIN: source}, inventory)
            if result.lost:
                text = f"{identifier} is damaged: {result.lost[0]}. Run: webdepot depot audit"
                raise CorruptData(text, where=identifier)
            size_bytes += result.size_bytes
        watch(Progress(phase=Phase.COPY, done=done, total=len(known), size_bytes=size_bytes, note=identifier))
    return DepotCopy(objects=len(known), size_bytes=size_bytes)


def check(target: ObjectStore, *, watch: Watch) -> None:
    """Read every byte in the new place; CorruptData if something is wrong."""
    for identifier, finding in audit.verify_place(target, watch=watch):
        if finding.severity is Severity.ERROR:
            text = f"{identifier} is not intact in the new place: {finding.message}"
            raise CorruptData(text, where=identifier)


def inventories(store: ObjectStore) -> dict[str, str]:
    """The checksum of the inventory of each object."""
    inventories = {name: objects.find_inventory(store, name) for name in objects.iter_objects(store)}
    return {name: inventory.sha256 for name, inventory in inventories.items() if inventory is not None}
