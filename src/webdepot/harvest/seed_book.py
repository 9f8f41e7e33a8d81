"""What became of each seed, followed along its redirects, so that a crawl that brought nothing can say why.

A seed that redirects within its registrable domain (to https, to `www.`, to another host of the owner) takes
the scope with it; one that leaves the domain is noted and not followed.
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
    def __init__(self, seeds: Iterable[Url], stored: bytes | None) -> None:
        """`stored` is what an earlier run of the same harvest kept."""
        values = json.loads(stored or b"{}")
        self._outcomes: dict[Url, SeedOutcome] = {}
        for outcome in values.get("seeds", []):
            failure = Failure(outcome["failure"]) if outcome["failure"] else None
            self._outcomes[outcome["seed"]] = SeedOutcome(**outcome | {"failure": failure})
        for seed in seeds:
            self._outcomes.setdefault(seed, SeedOutcome(seed=seed))
        self._moved: dict[Url, Url] = values.get("moved", {})
        self.shut_out: list[str] = values.get("shut_out", [])
        """Hosts whose robots.txt shuts everybody out."""
        self.changed = True
        """Since it was last written by `to_json`."""

    def to_json(self) -> bytes:
        self.changed = False
        outcomes = [asdict(outcome) for outcome in self._outcomes.values()]
        return json.dumps({"seeds": outcomes, "moved": self._moved, "shut_out": self.shut_out}).encode()

    @property
    def outcomes(self) -> tuple[SeedOutcome, ...]:
        return tuple(self._outcomes.values())

    @property
    def addresses(self) -> list[Url]:
        """The seeds and where they have moved to: what the scope is built from."""
        return [*self._outcomes, *self._moved]

    def note(self, visit: Visit) -> None:
        """An answer or a failure of a seed, or of what it redirected to."""
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
        """A redirect of a seed that the scope does not take: whether the seed, and the scope with it, moves
        there.
        """
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
        """Another process of this harvest followed a seed, or what it had moved to, there."""
        seed = self._owner(via)
        if seed is not None:
            self._moved[target] = seed
            self.changed = True

    def note_shut_out(self, host: str) -> None:
        if host not in self.shut_out:
            self.shut_out.append(host)
            self.changed = True

    def _seed_of(self, candidate: Candidate) -> Url | None:
        """The seed from which redirects alone led to this one."""
        if not is_seed_path(candidate.path):
            return None
        seed = self._owner(candidate.url) or self._owner(candidate.via)
        if seed is not None and candidate.url not in self._outcomes:
            self._moved[candidate.url] = seed  # within the scope; the next redirect is found by it
        return seed

    def _owner(self, url: Url | None) -> Url | None:
        if url is None:
            return None
        return url if url in self._outcomes else self._moved.get(url)

    def _set(self, outcome: SeedOutcome) -> None:
        self._outcomes[outcome.seed] = outcome
        self.changed = True
