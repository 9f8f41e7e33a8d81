"""The facts of a container and its damage, as the check of a harvest gets them."""

from webdepot.container.reader import iter_records
from webdepot.quality import record_facts


def facts_of(path):
    damage = []
    with path.open("rb") as stream:
        for record in iter_records(stream, path.name, on_finding=damage.append):
            if facts := record_facts.of_record(record):
                yield facts
    yield from damage
