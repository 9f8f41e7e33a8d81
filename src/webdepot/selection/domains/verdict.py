"""From facts to a verdict: cheapest evidence first, until the verdict is certain; follow, ignore, or ask the
curator.

`HostJudge` keeps what it learns (the profile, shared signs, rarity of words) and every host it has examined.
The survey and the host rules of a harvest both use it, so they cannot disagree.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime

from webdepot.model import Answer, Verdict
from webdepot.selection.domains.facts import HostFacts, LookupStatus, registrable
from webdepot.selection.domains.lookup.site_visit import ask_security, guess_imprint, visit_site
from webdepot.selection.domains.lookup.sources import Sources
from webdepot.selection.domains.names import Rarity
from webdepot.selection.domains.ownership_evidence import (
    CERTAIN,
    Group,
    HostOrigin,
    Sign,
    owner_of,
    score_of,
    signs_of,
)
from webdepot.selection.domains.profile import OrganisationProfile, ProfileMatcher, SourcedValue
from webdepot.selection.domains.sharing import Sharing, shared_keys

SURE, SURELY_NOT = 0.985, 0.008
"""Scores at which no further evidence is collected."""
TEACHES_AT = 0.97
"""Score from which a member extends the profile."""
RULE = "BelongsTo"


@dataclass(frozen=True, slots=True, kw_only=True)
class ScoreBounds:
    """Scores from which a host is followed, and up to which it is ignored; a curator decides in between."""

    follow_at: float = 0.75
    ignore_at: float = 0.25


@dataclass(frozen=True, slots=True, kw_only=True)
class HostJudgement:
    """The verdict on one host with its evidence."""

    host: str
    domain: str
    origin: HostOrigin
    score: float
    own: bool | None
    """None: the curator must decide, or the host does not resolve at present."""
    signs: tuple[Sign, ...]
    is_resolved: bool
    is_inside: bool
    at: datetime
    by_person: str = ""

    @property
    def reason(self) -> str:
        """The strongest signs, as text."""
        strongest = [f"{sign.words} ({sign.weight:+.1f})" for sign in self.signs[:4]]
        return "; ".join(strongest) or "there is no evidence for it"

    def verdict(self) -> Verdict:
        answer = Answer.ACCEPT if self.own else Answer.REJECT
        if not self.is_resolved and self.own is None:
            return Verdict(
                answer=answer,
                rule=RULE,
                reason=f"{self.host} does not resolve at present; it is examined again in the next run",
            )
        state = (
            "belongs"
            if self.own
            else "does not belong"
            if self.own is False
            else "is undecided, a curator must decide"
        )
        return Verdict(
            answer=answer, rule=RULE, reason=f"{self.host} {state}, score {self.score:.2f}: {self.reason}"
        )


@dataclass(slots=True)
class HostJudge:
    """Judges hosts; to be used in one event loop. `decisions` are a curator's, host or domain -> belongs;
    they override all evidence.
    """

    sources: Sources
    profile: OrganisationProfile
    now: datetime
    bounds: ScoreBounds = field(default_factory=ScoreBounds)
    decisions: Mapping[str, bool] = field(default_factory=dict)
    ports: tuple[int, int] = (80, 443)
    sharing: Sharing = field(default_factory=Sharing)
    rarity: Rarity = field(default_factory=Rarity)
    facts: dict[str, HostFacts] = field(default_factory=dict)
    origins: dict[str, HostOrigin] = field(default_factory=dict)
    measure: ProfileMatcher = field(init=False)
    _noted: set[str] = field(default_factory=set)
    _teachers: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.measure = ProfileMatcher(self.profile)

    def learn(self, profile: OrganisationProfile) -> None:
        self.profile = profile
        self.measure = ProfileMatcher(profile, self._teachers)

    async def examine(
        self, host: str, origin: HostOrigin, *, wants_page: bool = False, only_dns: bool = False
    ) -> HostJudgement:
        """Collect evidence about a host until the verdict is certain. `wants_page` fetches the front page
        even then, for its links.
        """
        self.origins.setdefault(host, origin)
        facts = self.facts.get(host) or HostFacts(host=host, domain=registrable(host))
        facts = await self._dns(facts)
        if facts.records is None or facts.records.status is not LookupStatus.FOUND:
            return self._settled(facts)
        is_below = bool(self.measure.owner_of(host))
        judged = self.judge(facts)
        if only_dns and judged.score < self.bounds.ignore_at and not _has_evidence(judged):
            return self._settled(facts)
        if facts.certificate is None:
            facts = replace(facts, certificate=await self.sources.certificate(host, facts.records.addresses))
        if wants_page or is_below or not self._is_sure(facts):
            facts = await visit_site(
                facts, self.sources, wants_imprint=is_below or not self._is_sure(facts), ports=self.ports
            )
        if not is_below and not self._is_sure(facts) and facts.imprint is None:
            facts = await guess_imprint(facts, self.sources)
        if not self.measure.owner_of(facts.domain) and not self._is_sure(facts):
            facts = replace(facts, registration=await self.sources.registration(facts.domain))
        if not is_below and self._is_open(facts):
            facts = await ask_security(facts, self.sources)
        return self._settled(facts)

    def judge(self, facts: HostFacts) -> HostJudgement:
        """The verdict on the known facts, with everything learned so far."""
        origin = self.origins.get(facts.host, HostOrigin.FOREIGN)
        signs = signs_of(facts, self.measure, origin, self.sharing, self.rarity)
        decided = self._decision(facts.host)
        if decided is not None:
            text = "a curator accepted it" if decided else "a curator rejected it"
            signs = [
                Sign(code="person", group=Group.PERSON, weight=CERTAIN if decided else -CERTAIN, words=text),
                *signs,
            ]
        score = score_of(signs, origin)
        is_resolved = facts.records is not None and facts.records.status is LookupStatus.FOUND
        own = decided if decided is not None else self._answer(score) if is_resolved else None
        return HostJudgement(
            host=facts.host,
            domain=facts.domain,
            origin=origin,
            score=score,
            own=own,
            signs=tuple(signs),
            is_resolved=is_resolved,
            is_inside=is_resolved
            and facts.records is not None
            and bool(self.measure.range_of(facts.records.addresses)),
            at=self.now,
            by_person="" if decided is None else "curator",
        )

    def judgements(self) -> dict[str, HostJudgement]:
        return {host: self.judge(facts) for host, facts in self.facts.items()}

    def recount_sharing(self, judgements: Mapping[str, HostJudgement]) -> None:
        """Count again who shares which signs, now that verdicts are known."""
        self.sharing = Sharing()
        for host, judged in judgements.items():
            self._note_use(self.facts[host], judged)

    def teach(self, judgements: Mapping[str, HostJudgement]) -> bool:
        """Let certain members extend the profile; returns whether it has learned something."""
        known = {item.value for item in self.profile.domains}
        taught: list[SourcedValue] = []
        for judged in judgements.values():
            if (
                not judged.own
                or judged.score < TEACHES_AT
                or not judged.is_resolved
                or self.measure.owner_of(judged.domain)
            ):
                continue
            name = _taught_name(judged)
            if name not in known:
                known.add(name)
                self._teachers[name] = judged.host
                taught.append(
                    SourcedValue(
                        value=name, source=f"score {judged.score:.2f}: {judged.signs[0].words}", at=self.now
                    )
                )
        self.learn(replace(self.profile, domains=(*self.profile.domains, *taught)))
        return bool(taught)

    async def _dns(self, facts: HostFacts) -> HostFacts:
        if facts.records is not None and facts.zone is not None:
            return facts
        if self.measure.owner_of(facts.domain):
            return replace(facts, records=await self.sources.host(facts.host))
        records = await self.sources.host(facts.host)
        # The owner of the zone matters only for a name that resolves.
        zone = await self.sources.zone(facts.domain) if records.status is LookupStatus.FOUND else None
        return replace(facts, records=records, zone=zone)

    def _settled(self, facts: HostFacts) -> HostJudgement:
        self.facts[facts.host] = facts
        judged = self.judge(facts)
        owner = owner_of(facts)
        if owner and facts.host not in self._noted:
            self._noted.add(facts.host)
            if judged.own is False:
                # Only other organisations are counted: the words of this one's name are not common just
                # because it has many sites.
                self.rarity.note(owner)
            self._note_use(facts, judged)
        return judged

    def _note_use(self, facts: HostFacts, judged: HostJudgement) -> None:
        """Count a sign as shared if a known other organisation uses it, and as the organisation's own if a
        certain member does.
        """
        owner = owner_of(facts)
        if judged.own and judged.score >= TEACHES_AT:
            self.sharing.note_member(shared_keys(facts), facts.domain)
        elif judged.own is False and owner:
            self.sharing.note_stranger(shared_keys(facts), owner)

    def _is_sure(self, facts: HostFacts) -> bool:
        score = self.judge(facts).score
        return score >= SURE or score <= SURELY_NOT

    def _is_open(self, facts: HostFacts) -> bool:
        return self.bounds.ignore_at < self.judge(facts).score < self.bounds.follow_at

    def _answer(self, score: float) -> bool | None:
        if score >= self.bounds.follow_at:
            return True
        return False if score <= self.bounds.ignore_at else None

    def _decision(self, host: str) -> bool | None:
        rest = host
        while rest:
            if rest in self.decisions:
                return self.decisions[rest]
            rest = rest.partition(".")[2]
        return None


def _has_evidence(judged: HostJudgement) -> bool:
    return any(sign.weight >= 1.0 for sign in judged.signs)


def _taught_name(judged: HostJudgement) -> str:
    """The domain if the host is its main host or the registry names the owner; otherwise only the host."""
    is_main_host = judged.host in (judged.domain, f"www.{judged.domain}")
    by_registry = any(sign.group is Group.REGISTRY and sign.weight > 1.5 for sign in judged.signs)
    return judged.domain if is_main_host or by_registry else judged.host
