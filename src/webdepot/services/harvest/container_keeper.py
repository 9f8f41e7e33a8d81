"""The crawl's `Keeper` on containers: the request, the answer and what is known about it, in one file.

Identical content is stored once. What this harvest has kept is remembered in its frontier, under the same
checkpoint as everything else, so a crash undoes the note together with the record. What earlier harvests have
kept is in the capture index.
"""

from collections.abc import Mapping, Sequence
from datetime import datetime
from io import BytesIO

from webdepot.container import new_records, revisit
from webdepot.container.new_records import NewRecord, about_visit, from_visit, payload_digest
from webdepot.container.writer import ContainerWriter
from webdepot.harvest.pending_answer import Attached, Kept
from webdepot.model import Capture, Visit
from webdepot.ports.captures import CaptureIndex
from webdepot.ports.harvest import Frontier
from webdepot.times import to_timestamp


class ContainerKeeper:
    """Writes visits as WARC records."""

    def __init__(self, writer: ContainerWriter, captures: CaptureIndex | None, frontier: Frontier) -> None:
        """Without `captures` payloads are not compared with those of earlier harvests."""
        self._writer = writer
        self._captures = captures
        self._frontier = frontier
        self._look_ups: dict[str, NewRecord] = {}

    def keep(self, visits: Sequence[Visit]) -> list[Kept]:
        """Compare the payloads with those kept before, and prepare the request and response (or revisit)
        records. The capture index is asked once for all of them: it may be on another machine.
        """
        payloads = [payload_digest(visit) for visit in visits]
        recall = self._frontier.recall
        in_harvest = [revisit.find_in_harvest(*each, recall) for each in zip(visits, payloads)]
        new = [each for each, earlier in zip(zip(visits, payloads), in_harvest) if earlier is None]
        elsewhere = iter(revisit.find(new, self._captures) if self._captures and new else [None] * len(new))
        return [
            self._kept(visit, payload, earlier or next(elsewhere))
            for visit, payload, earlier in zip(visits, payloads, in_harvest)
        ]

    def _kept(self, visit: Visit, payload: str, earlier: Capture | None) -> Kept:
        if earlier is None:
            # Another visit of the same call may have had it first.
            earlier = revisit.find_in_harvest(visit, payload, self._frontier.recall)
        if earlier is None:
            revisit.remember_in_harvest(visit, payload, self._frontier.remember)
        return Kept(
            digest=payload,
            duplicate=earlier is not None,
            records=from_visit(visit, payload_digest=payload, revisit_of=earlier),
        )

    def write(
        self,
        visit: Visit,
        kept: Kept,
        *,
        outlinks: Sequence[tuple[str, str]] = (),
        attached: Sequence[Attached] = (),
    ) -> None:
        """Write the records of a visit and a metadata record with its links, together in one container.

        Screenshots and texts are `resource` records (ISO 28500, 6.4) under the names that browsertrix gives
        them. They come before the page, so that a reader of the file has the text when the page comes.
        """
        resources = [
            new_records.resource(
                each.url, visit.at, each.mime, BytesIO(each.data), len(each.data), title=each.title
            )
            for each in attached
        ]
        metadata = about_visit(visit, outlinks, concurrent_to=kept.records[-1].id if kept.records else "")
        self._writer.append([*self._look_ups.values(), *resources, *kept.records, metadata])
        self._look_ups = {}

    def note_look_up(self, host: str, addresses: Sequence[str], at: datetime) -> None:
        """Note the addresses of a host name; written with the next visit (ISO 28500, 6.4.4; RFC 4027)."""
        lines = [f"{host}. IN {'AAAA' if ':' in address else 'A'} {address}\n" for address in addresses]
        text = "".join([f"{to_timestamp(at)}\n", *lines]).encode("ascii", "replace")
        self._look_ups[host] = new_records.resource(f"dns:{host}", at, "text/dns", BytesIO(text), len(text))

    def checkpoint(self) -> Mapping[str, int]:
        """Make everything written durable; return file name -> acknowledged size."""
        return self._writer.sync()
