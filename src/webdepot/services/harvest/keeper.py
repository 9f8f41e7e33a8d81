"""The crawl's `Keeper` on containers: request, answer and what is known about it, together in one file.

Identical content is stored once: what this harvest has kept itself is remembered in its frontier, under the
same checkpoint as everything else, so a crash forgets the note together with the record; what earlier
harvests have kept is in the captures index.
"""

from collections.abc import Mapping, Sequence
from datetime import datetime
from io import BytesIO

from webdepot.container import records, revisit
from webdepot.container.records import NewRecord, about_visit, from_visit, payload_digest
from webdepot.container.writer import ContainerWriter
from webdepot.harvest.crawl import Kept
from webdepot.harvest.kept import Attached
from webdepot.model import Visit
from webdepot.ports import CaptureIndex, Frontier
from webdepot.times import to_timestamp
from webdepot.url import host_of


class ContainerKeeper:
    def __init__(self, writer: ContainerWriter, captures: CaptureIndex | None, frontier: Frontier) -> None:
        """Without `captures` nothing is known of earlier harvests."""
        self._writer = writer
        self._captures = captures
        self._frontier = frontier
        self._held: dict[int, list[NewRecord]] = {}
        """Records of visits that are being kept, by their identity; `annotate` writes them with its own, in
        one go.
        """
        self._attached: dict[int, list[NewRecord]] = {}
        self._look_ups: dict[str, NewRecord] = {}

    def keep(self, visit: Visit) -> Kept:
        payload = payload_digest(visit)
        earlier = revisit.find_in_harvest(visit, payload, self._frontier.recall)
        repeated = earlier is not None and host_of(earlier.url) == host_of(visit.candidate.url)
        if earlier is None and self._captures is not None:
            earlier = revisit.find(visit, payload, self._captures)
        self._held[id(visit)] = from_visit(visit, payload_digest=payload, revisit_of=earlier)
        if earlier is None:
            revisit.remember_in_harvest(visit, payload, self._frontier.remember)
        return Kept(
            digest=payload, size_bytes=visit.body_bytes, duplicate=earlier is not None, repeated=repeated
        )

    def attach(self, visit: Visit, attached: Sequence[Attached]) -> None:
        """Pictures and texts of a page, as `resource` records (ISO 28500, 6.4) under the names that
        browsertrix gives them.
        """
        self._attached[id(visit)] = [
            records.resource(each.url, visit.at, each.mime, BytesIO(each.data), len(each.data))
            for each in attached
        ]

    def annotate(self, visit: Visit, outlinks: Sequence[tuple[str, str]]) -> None:
        held = self._held.pop(id(visit), [])
        answer = held[-1].id if held else ""
        # What was seen of a page stands before it: whoever reads on has its words when the page comes.
        group = [
            *self._attached.pop(id(visit), ()),
            *held,
            about_visit(visit, outlinks, concurrent_to=answer),
        ]
        if self._look_ups:
            group = [*self._look_ups.values(), *group]
            self._look_ups = {}
        self._writer.append(group)

    def note_look_up(self, host: str, addresses: Sequence[str], at: datetime) -> None:
        """What a name was found to mean; written with the next visit (ISO 28500, 6.4.4; RFC 4027)."""
        lines = [f"{host}. IN {'AAAA' if ':' in address else 'A'} {address}\n" for address in addresses]
        text = "".join([f"{to_timestamp(at)}\n", *lines]).encode("ascii", "replace")
        self._look_ups[host] = records.resource(f"dns:{host}", at, "text/dns", BytesIO(text), len(text))

    def checkpoint(self) -> Mapping[str, int]:
        return self._writer.sync()
