"""A depot in two places compared with a plain dictionary: put, version, damage, lose, audit, withdraw,
rebuild, in any order.

Invariant: what one place still has whole is whole everywhere after an audit; exactly what no place has is
reported as lost.
"""

import hashlib
import shutil
import tempfile
from datetime import UTC, datetime
from pathlib import Path

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from webdepot.depot import fixity, replication
from webdepot.depot.fixity import AuditOutcome
from webdepot.depot.ocfl import layout, objects, verification
from webdepot.depot.store.folder import FolderStore
from webdepot.model import PackageId

WHEN = datetime(2026, 1, 1, tzinfo=UTC)
PLACES = ("main", "second")
names = st.sampled_from(["warc/a", "warc/b", "metadata/c", "log/d"])
contents = st.binary(min_size=1, max_size=40)
numbers = st.integers(0, 2)


class Depot(RuleBasedStateMachine):
    """Objects that are not packages, so that only the bytes count."""

    def __init__(self) -> None:
        super().__init__()
        self.folder = Path(tempfile.mkdtemp())
        self.stores = {name: FolderStore(self.folder / name) for name in PLACES}
        self.model: dict[str, dict[str, bytes]] = {}
        self.versions: dict[str, int] = {}
        self.known: dict[str, str] = {}

    @initialize()
    def prepared(self) -> None:
        for store in self.stores.values():
            layout.prepare(store)

    @rule(number=numbers, files=st.dictionaries(names, contents, min_size=1, max_size=3))
    def put(self, number: int, files: dict[str, bytes]) -> None:
        """Write a first or further version to the main place and copy it to the other; damage is repaired
        first, as the service does.
        """
        identifier = self.id_of(number)
        if identifier in self.model:
            self.audit(number)
            if identifier not in self.model:
                return
        inventory = objects.put_version(
            self.stores["main"], identifier, files, message="put", user="anna", created=WHEN
        )
        self.model[identifier] = self.model.get(identifier, {}) | files
        self.known[identifier] = inventory.sha256
        self.versions[identifier] = inventory.head
        assert not replication.replicate(self.stores["second"], {"main": self.stores["main"]}, inventory).lost

    @precondition(lambda self: self.model)
    @rule(
        number=numbers,
        place=st.sampled_from(PLACES),
        pick=st.integers(0, 1000),
        how=st.sampled_from(["flip", "cut", "remove", "grow", "swap"]),
    )
    def damage(self, number: int, place: str, pick: int, how: str) -> None:
        identifier = self.id_of(number)
        files = self.files(place, identifier)
        if not files:
            return
        path = files[pick % len(files)]
        data = path.read_bytes()
        if how == "flip" and data:
            path.write_bytes(bytes([data[0] ^ 1]) + data[1:])
        elif how == "cut":
            path.write_bytes(data[:-1])
        elif how == "grow":
            path.write_bytes(data + b"x")
        elif how == "swap":
            other = files[(pick // 7) % len(files)]
            moved = other.read_bytes()
            other.write_bytes(data)
            path.write_bytes(moved)
        else:
            path.unlink()

    @precondition(lambda self: self.model)
    @rule(number=numbers, place=st.sampled_from(PLACES))
    def lose_object(self, number: int, place: str) -> None:
        shutil.rmtree(self.stores[place].root / layout.folder_of(self.id_of(number)), ignore_errors=True)

    @precondition(lambda self: self.model)
    @rule(number=numbers)
    def audit(self, number: int) -> None:
        identifier = self.id_of(number)
        if identifier not in self.model:
            return
        whole = self.whole_somewhere(identifier)
        results = fixity.audit_package(
            self.stores,
            PackageId(identifier),
            PLACES,
            known_sha256=self.known[identifier],
            known_version=self.versions[identifier],
        )
        outcomes = {result.place: result.outcome for result in results}
        assert set(outcomes) == set(PLACES)
        if whole:
            assert set(outcomes.values()) <= {AuditOutcome.WHOLE, AuditOutcome.REPAIRED}, outcomes
            for place in PLACES:
                assert self.content(place, identifier) == self.model[identifier]
                assert not list(
                    verification.verify_against(
                        self.stores[place], objects.read_inventory(self.stores[place], identifier)
                    )
                )
        else:
            assert AuditOutcome.LOST in outcomes.values(), outcomes
            self.forget(identifier)

    @precondition(lambda self: self.model)
    @rule(number=numbers)
    def withdraw(self, number: int) -> None:
        identifier = self.id_of(number)
        for store in self.stores.values():
            replication.remove(store, identifier)
        assert not any(self.files(place, identifier) for place in PLACES)
        self.forget(identifier)

    @rule(place=st.sampled_from(PLACES))
    def rebuild(self, place: str) -> None:
        """From one place alone: every object that it shows as whole is what was put."""
        for identifier in objects.iter_objects(self.stores[place]):
            if identifier in self.model and not list(verification.verify(self.stores[place], identifier)):
                inventory = objects.read_inventory(self.stores[place], identifier)
                if inventory.sha256 == self.known[identifier]:
                    assert self.content(place, identifier) == self.model[identifier]

    @invariant()
    def nothing_unknown_is_there(self) -> None:
        for place in PLACES:
            for key in self.stores[place].keys(""):
                assert not key.rpartition("/")[2].startswith(".part-")

    def teardown(self) -> None:
        shutil.rmtree(self.folder)

    def id_of(self, number: int) -> str:
        return f"info:webdepot/test/{number}"

    def files(self, place: str, identifier: str) -> list[Path]:
        folder = self.stores[place].root / layout.folder_of(identifier)
        return sorted(path for path in folder.rglob("*") if path.is_file())

    def content(self, place: str, identifier: str) -> dict[str, bytes]:
        store = self.stores[place]
        inventory = objects.read_inventory(store, identifier)
        found = {}
        for logical in inventory.files():
            with store.open(objects.content_key(inventory, logical)) as stream:
                found[logical] = stream.read()
        return found

    def whole_somewhere(self, identifier: str) -> bool:
        """Computed independently: an inventory with the right bytes in one of its places, and each content
        file good in some place.
        """
        inventory = None
        for place in PLACES:
            folder = self.stores[place].root / layout.folder_of(identifier)
            head = self.versions[identifier]
            for beside in (folder, *(folder / f"v{number}" for number in range(1, head + 1))):
                proof = [
                    self.read(beside / "inventory.json.sha256"),
                    self.read(folder / f"v{head}" / "inventory.json.sha256"),
                ]
                data = self.read(beside / "inventory.json")
                if data is None or hashlib.sha256(data).hexdigest() != self.known[identifier]:
                    continue
                if any(
                    line is not None and line.split() == [self.known[identifier].encode(), b"inventory.json"]
                    for line in proof
                ):
                    inventory = objects.inventories.parse(data, where="model")
        if inventory is None or not self.is_found(identifier):
            return False
        for value, paths in inventory.manifest.items():
            for path in paths:
                found = [
                    self.read(self.stores[place].root / layout.folder_of(identifier) / path)
                    for place in PLACES
                ]
                if not any(data is not None and hashlib.sha256(data).hexdigest() == value for data in found):
                    return False
        return True

    def is_found(self, identifier: str) -> bool:
        """Whether some place has the newest inventory with a proof that the audit accepts."""
        return any(
            found.sha256 == self.known[identifier]
            for store in self.stores.values()
            for found in objects.iter_candidates(store, identifier)
        )

    def read(self, path: Path) -> bytes | None:
        return path.read_bytes() if path.is_file() else None

    def forget(self, identifier: str) -> None:
        for store in self.stores.values():
            shutil.rmtree(store.root / layout.folder_of(identifier), ignore_errors=True)
        self.model.pop(identifier, None)
        self.known.pop(identifier, None)
        self.versions.pop(identifier, None)


Depot.TestCase.settings = settings(
    max_examples=60, stateful_step_count=25, deadline=None, suppress_health_check=list(HealthCheck)
)
test_depot_model = Depot.TestCase
