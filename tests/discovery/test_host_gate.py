"""The gate of a crawl and its process: verdicts arrive, and hosts still get an answer if the process dies."""

import asyncio
import json
from pathlib import Path

from webdepot import event_loop
from webdepot.model import Answer
from webdepot.selection.domains.organisations import Remembered
from webdepot.services.harvest.organisation_hosts import MOST_STARTS, HostGate

ANSWERS = """
import json, sys
for line in sys.stdin:
    asked = json.loads(line)
    answer = "accept" if asked["host"].endswith("own.example") else "reject"
    print(json.dumps({"host": asked["host"], "answer": answer, "rule": "BelongsTo", "reason": "because"}), flush=True)
"""
DIES_FIRST = """
import os, pathlib, sys
mark = pathlib.Path(sys.argv[1])
if not mark.exists():
    sys.stdin.readline()
    mark.touch()
    os._exit(1)
"""


async def decided(gate: HostGate, hosts: list[str]) -> dict[str, Answer]:
    try:
        for host in hosts:
            gate.ask(host, "www.own.example")
        async with asyncio.timeout(30):
            while gate.waiting():
                await asyncio.sleep(0.01)
        return {host: verdict.answer for host in hosts if (verdict := gate.find(host)) is not None}
    finally:
        await gate.close()


def test_verdicts_arrive_while_the_crawl_goes_on() -> None:
    async def run() -> dict[str, Answer]:
        return await decided(HostGate(("-c", ANSWERS), {}), ["a.own.example", "shop.example"])

    assert event_loop.run(run()) == {"a.own.example": Answer.ACCEPT, "shop.example": Answer.REJECT}


def test_a_process_that_dies_is_started_again_with_what_was_waiting(tmp_path: Path) -> None:
    async def run() -> dict[str, Answer]:
        gate = HostGate(("-c", DIES_FIRST + ANSWERS, str(tmp_path / "died")), {})
        return await decided(gate, ["a.own.example", "shop.example"])

    assert event_loop.run(run()) == {"a.own.example": Answer.ACCEPT, "shop.example": Answer.REJECT}
    assert (tmp_path / "died").exists()


def test_hosts_that_cannot_be_found_out_stay_outside_and_the_reason_says_so() -> None:
    async def run() -> str:
        gate = HostGate(("-c", "import sys; sys.stdin.readline()"), {})
        assert await decided(gate, ["a.own.example"]) == {"a.own.example": Answer.REJECT}
        verdict = gate.find("a.own.example")
        return verdict.reason if verdict is not None else ""

    assert f"ended {MOST_STARTS} times" in event_loop.run(run())


def test_what_was_decided_before_starts_no_process() -> None:
    signs = json.dumps([{"code": "range", "weight": 3.0, "words": "its address lies in the range"}])
    known = Remembered(
        host="a.own.example", own=True, score=0.98, decision="", decided_by="", signs_json=signs
    )

    async def run() -> str:
        gate = HostGate(("-c", "raise SystemExit('started')"), {known.host: known})
        verdict = gate.find(known.host)
        await gate.close()
        assert verdict is not None and verdict.answer is Answer.ACCEPT
        return verdict.reason

    assert event_loop.run(run()) == "a.own.example belongs, score 0.98: its address lies in the range (+3.0)"
