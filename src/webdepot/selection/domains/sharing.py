"""Which signs are shared: a name server or address that many unrelated owners use is weak evidence."""

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field

from webdepot.selection.domains.facts import HostFacts
from webdepot.selection.domains.names import folded

MOST_COUNTED = 50


@dataclass(slots=True)
class Sharing:
    """Which identified strangers and which members use a name server, an address or a certificate; learned
    while running.
    """

    strangers: dict[str, set[str]] = field(default_factory=lambda: defaultdict(set))
    members: dict[str, set[str]] = field(default_factory=lambda: defaultdict(set))
    limit: int = 200_000

    def note_stranger(self, keys: Iterable[str], owner: str) -> None:
        self._note(self.strangers, keys, owner)

    def note_member(self, keys: Iterable[str], domain: str) -> None:
        self._note(self.members, keys, domain)

    def factor(self, key: str) -> float:
        """1 while only the organisation uses it; falls as more strangers than members use it."""
        mine = 1 + len(self.members.get(key, ()))
        return mine / (mine + 0.5 * self.others(key))

    def others(self, key: str) -> int:
        return len(self.strangers.get(key, ()))

    def _note(self, known: dict[str, set[str]], keys: Iterable[str], who: str) -> None:
        for key in keys:
            if (key in known or len(known) < self.limit) and len(known[key]) < MOST_COUNTED:
                known[key].add(who)


def shared_keys(facts: HostFacts) -> list[str]:
    """Keys of everything this host uses that others may use too."""
    keys = [f"ns:{name}" for name in facts.name_servers]
    if facts.records is not None:
        keys += [f"ip:{address}" for address in facts.records.addresses]
    if facts.zone is not None:
        keys += [f"mx:{name}" for name in facts.zone.mail_hosts]
        keys += [f"soa:{facts.zone.soa_contact}"] if facts.zone.soa_contact else []
        keys += [f"spf:{name}" for name in facts.zone.spf]
    if facts.certificate is not None:
        keys.append(f"certificate:{facts.certificate.fingerprint}")
    if facts.front is not None:
        keys += [f"tracker:{name}" for name in facts.front.trackers]
    if facts.registration is not None:
        keys += [f"mail:{name}" for name in facts.registration.registrant.mail_domains]
        keys += (
            [f"registrant:{folded(facts.registration.registrant.name)}"]
            if facts.registration.registrant.name
            else []
        )
    return keys
