"""The result of each seed, after its redirects, so that a crawl that harvested nothing can report why.

If a seed redirects within its registrable domain (to https, to `www.`, to another host of the owner), the
scope moves with it. A redirect out of the domain is noted and not followed.
"""

import json
from collections.abc import Iterable
from dataclasses import asdict, replace

from webdepot.harvest.report.result import SeedOutcome
from webdepot.harvest.scope.hop_path import is_seed_path
from webdepot.harvest.scope.membership import may_move
from webdepot.model import Candidate, Failure, Visit
from webdepot.url import Url


class SeedBook:
    """The outcome of each seed, and where seeds have moved."""

    def __init__(self, seeds: Iterable[Url], stored: bytes | None) -> None:
        """`stored` is what `to_json` returned in an earlier run of the same harvest."""
        values = json.loads(stored or b"{}")
        self._outcomes: dict[Url, SeedOutcome] = {}
        for outcome in values.get("seeds", []):
            failure = Failure(outcome["failure"]) if outcome["failure"] else None
            self._outcomes[outcome["seed"]] = SeedOutcome(**outcome | {"failure": failure})
        for seed in seeds:
            self._outcomes.setdefault(seed, SeedOutcome(seed=seed))
        self._moved: dict[Url, Url] = values.get("moved", {})
        self.shut_out: list[str] = values.get("shut_out", [])
        """Hosts whose robots.txt forbids everything."""
        self.changed = True
        """Whether anything has changed since the last `to_json`."""

    def to_json(self) -> bytes:
        self.changed = False
        outcomes = [asdict(outcome) for outcome in self._outcomes.values()]
        return json.dumps({"seeds": outcomes, "moved": self._moved, "shut_out": self.shut_out}).encode()

    @property
    def outcomes(self) -> tuple[SeedOutcome, ...]:
        return tuple(self._outcomes.values())

    @property
    def addresses(self) -> list[Url]:
        """The seeds and where they have moved: the scope is built from these."""
        return [*self._outcomes, *self._moved]

    def note(self, visit: Visit) -> None:
        """Note an answer or a failure, if it is of a seed or of an address to which a seed redirected."""
        seed = self._seed_of(visit.candidate)
        if seed is not None:
            self._set(
                replace(
                    self._outcomes[seed],
                    status=visit.status,
                    size_bytes=visit.body_bytes,
                    failure=visit.failure,
                    detail=visit.failure_detail,
                )
            )

    def note_refusal(self, candidate: Candidate, failure: Failure, reason: str) -> None:
        seed = self._seed_of(candidate)
        if seed is not None:
            self._set(replace(self._outcomes[seed], failure=failure, detail=reason))

    def follow(self, target: Candidate) -> bool:
        """Whether a seed, and the scope with it, moves to the target of a redirect outside the scope."""
        seed = self._owner(target.via)
        if seed is None:
            return False
        if not may_move(seed, target.url):
            self._set(replace(self._outcomes[seed], moved_to=target.url))
            return False
        self._moved[target.url] = seed
        self.changed = True
        return True

    def adopt_move(self, target: Url, via: Url) -> None:
        """Note a move of a seed that another process of this harvest followed."""
        seed = self._owner(via)
        if seed is not None:
            self._moved[target] = seed
            self.changed = True

    def note_shut_out(self, host: str) -> None:
        if host not in self.shut_out:
            self.shut_out.append(host)
            self.changed = True

    def _seed_of(self, candidate: Candidate) -> Url | None:
        """The seed from which only redirects led to this candidate."""
        if not is_seed_path(candidate.path):
            return None
        seed = self._owner(candidate.url) or self._owner(candidate.via)
        if seed is not None and candidate.url not in self._outcomes:
            self._moved[candidate.url] = seed  # within the scope; needed to recognise the next redirect
        return seed

    def _owner(self, url: Url | None) -> Url | None:
        if url is None:
            return None
        return url if url in self._outcomes else self._moved.get(url)

    def _set(self, outcome: SeedOutcome) -> None:
        self._outcomes[outcome.seed] = outcome
        self.changed = True
