"""Targets: nominate, find, decide; and the one gate that every harvest passes.

Every step is a row of `selection.states.TARGET` and leaves an event with the state before and after and the
person who acted. `by` is that person; if it is empty, it is the person at the command line or the program
itself.
"""

from collections.abc import Iterable, Mapping, Sequence
from datetime import date

from sqlalchemy import Connection

from webdepot.archive import Archive
from webdepot.errors import InputError, NotFound, NotPermitted
from webdepot.model import EVERYTHING, Purpose, Target, TargetId, Verdict
from webdepot.provenance import Event, append, difference, iter_of
from webdepot.reasons import Reason, said
from webdepot.selection import grounds, letter_rows, permission, target_list, target_verdicts, targets
from webdepot.selection.permission_basis import Ground, PermissionBasis
from webdepot.selection.states import TargetState
from webdepot.selection.target_list import TargetFilter, TargetPage
from webdepot.selection.targets import (
    LONGEST_NAME,
    LONGEST_NOTE,
    Dossier,
    KnownTarget,
    Nomination,
    Origin,
    Strategy,
)
from webdepot.url import Url, from_typed, host_of

MOST_SEEDS = 200
NEEDS_REASON = frozenset({"put off", "reject", "reopen", "end"})
DECISIONS = ("nominate", "select", "put off", "reject", "reopen", "end")
"""Steps that a person takes on the page of a target; the others follow from letters, grounds and answers."""


# --- nominating ---


def nominate(archive: Archive, seeds: Sequence[Url], *, collection: str, name: str = "") -> Target:
    """The target with these seeds; if there is none, it is created, with an event."""
    nomination = Nomination(seeds=tuple(seeds), name=name or host_of(seeds[0]), collection=collection)
    dossier, _ = enter(archive, nomination)
    return dossier.target


def enter(archive: Archive, nomination: Nomination, *, by: str = "") -> tuple[Dossier, bool]:
    """The target of a nomination, and whether it is new; a known site is found in any spelling of its
    address.
    """
    with archive.database.transaction() as connection:
        return enter_in(connection, archive, nomination, by=by)


def enter_in(
    connection: Connection, archive: Archive, nomination: Nomination, *, by: str = ""
) -> tuple[Dossier, bool]:
    """As `enter`, in the caller's transaction."""
    dossier, is_new = targets.nominate(connection, nomination, now=archive.clock())
    if is_new:
        action = "suggested" if dossier.state is TargetState.SUGGESTED else "nominated"
        detail = difference(
            {},
            {
                "state": dossier.state.value,
                "seeds": list(nomination.seeds),
                "origin": nomination.origin.value,
            },
        )
        agent = by or nomination.by
        append(
            connection,
            archive.event(action, "target", str(dossier.id), by=agent, message=dossier.name, detail=detail),
        )
    return dossier, is_new


def suggest(
    archive: Archive, typed: str, *, name: str = "", reason: str = "", by: str = "", mail: str = ""
) -> tuple[Dossier, bool]:
    """The target for a site suggested in the public form, and whether it is new. InputError if the address is
    not valid.
    """
    url = public_address(typed)
    known = find_known(archive, url)
    if known is not None and known.is_same:
        return known.dossier, False
    note = "\n".join(filter(None, [reason.strip()[:2000], f"Mail: {mail}" if mail else ""]))
    label = " ".join(name.split())[:LONGEST_NAME]
    sender = " ".join(by.split())[:200]
    nomination = Nomination(
        seeds=(url,),
        name=label or host_of(url),
        collection=EVERYTHING,
        origin=Origin.PUBLIC,
        by=sender,
        note=note,
    )
    return enter(archive, nomination, by=f"public form{f' ({sender})' if sender else ''}")


def public_address(typed: str) -> Url:
    """The URL of an address as people type it; InputError if it is not a web address with a host name."""
    url = from_typed(typed)
    if not url.startswith(("http://", "https://")) or "@" in url.partition("://")[2].partition("/")[0]:
        raise InputError(
            said(
                "no_site_address",
                "{typed} is not the address of a website. Write it like https://www.example.org/",
                typed=repr(typed[:100]),
            )
        )
    if "." not in host_of(url).partition(":")[0] and not host_of(url).startswith(("localhost", "[")):
        raise InputError(
            said(
                "no_full_host",
                "{typed} does not contain a full host name. Write it like https://www.example.org/",
                typed=repr(typed[:100]),
            )
        )
    return url


def draft(
    typed: Iterable[str],
    *,
    name: str = "",
    collection: str = EVERYTHING,
    purpose: str = Purpose.HERITAGE,
    strategy: str = Strategy.SELECTIVE,
    origin: Origin = Origin.STAFF,
    by: str = "",
    note: str = "",
) -> Nomination:
    """A nomination from the fields of a form; InputError names the field that is wrong."""
    seeds = tuple(dict.fromkeys(public_address(address) for address in typed if address.strip()))
    if not 1 <= len(seeds) <= MOST_SEEDS:
        raise InputError(
            said("needs_seeds", "A target needs 1 to {most} seeds (start addresses).", most=MOST_SEEDS)
        )
    label = " ".join(name.split())
    if len(label) > LONGEST_NAME or len(note) > LONGEST_NOTE:
        raise InputError(
            said(
                "name_too_long",
                "A name can have at most {name} characters, a note at most {note}.",
                name=LONGEST_NAME,
                note=LONGEST_NOTE,
            )
        )
    check_collection(collection)
    try:
        chosen_purpose, chosen_strategy = Purpose(purpose), Strategy(strategy)
    except ValueError:
        raise InputError(
            f"The purpose must be one of {', '.join(Purpose)}; the strategy one of {', '.join(Strategy)}."
        ) from None
    return Nomination(
        seeds=seeds,
        name=label or host_of(seeds[0]),
        collection=collection,
        purpose=chosen_purpose,
        strategy=chosen_strategy,
        origin=origin,
        by=by[:200],
        note=note.strip(),
    )


def check_collection(name: str) -> None:
    """InputError unless it is a valid name for a collection."""
    if not name.replace("-", "").replace("_", "").isalnum() or not name.isascii() or len(name) > 60:
        text = "{typed} is not a valid name for a collection. Use letters, digits, - and _."
        raise InputError(said("no_collection_name", text, typed=repr(name[:60])))


def find_known(archive: Archive, url: Url) -> KnownTarget | None:
    """The target that an address belongs to, in any spelling."""
    with archive.database.reading() as connection:
        return targets.find_known(connection, url)


# --- reading ---


def list_targets(archive: Archive, wanted: TargetFilter) -> TargetPage:
    with archive.database.reading() as connection:
        return target_list.listing(connection, wanted)


def list_past(archive: Archive, wanted: TargetFilter, *, last: int, limit: int) -> list[Dossier]:
    """The next targets that a filter matches, by number, after the target with the number `last`."""
    with archive.database.reading() as connection:
        return target_list.past(connection, wanted, last, limit)


def counts(archive: Archive) -> Mapping[TargetState, int]:
    with archive.database.reading() as connection:
        return target_list.counts(connection)


def get(archive: Archive, target: int) -> Dossier:
    with archive.database.reading() as connection:
        return targets.dossier_of(connection, target)


def find(archive: Archive, text: str) -> Dossier:
    """The target with this number, name or address; NotFound says how to list them."""
    with archive.database.reading() as connection:
        target = targets.find_named(connection, text)
        if target is None:
            raise NotFound(
                said(
                    "missing_target",
                    "There is no target {target}. List them: webdepot target list",
                    target=text[:100],
                )
            )
        return targets.dossier_of(connection, target.id)


def history(archive: Archive, target: TargetId) -> Sequence[Event]:
    """All events about a target, newest first."""
    with archive.database.reading() as connection:
        return list(iter_of(connection, "target", str(target)))[::-1]


# --- decisions ---


def decide(
    archive: Archive,
    target: TargetId,
    act: str,
    *,
    by: str = "",
    reason: str = "",
    look_again_on: date | None = None,
) -> Dossier:
    """Nominate, select, put off, reject, reopen or end a target; Conflict says why it is not possible,
    InputError what is missing.
    """
    if act not in DECISIONS:
        raise InputError(f"{act[:40]!r} is not a decision about a target. Known: {', '.join(DECISIONS)}.")
    if act in NEEDS_REASON and not reason.strip():
        raise InputError(said("say_why_act", "Give a reason: the step {act} needs one.", act=act))
    with archive.database.transaction() as connection:
        dossier = targets.dossier_of(connection, target)
        return step(
            connection,
            archive,
            dossier,
            act,
            by=by,
            reason=reason.strip(),
            look_again_on=look_again_on if act == "put off" else None,
        )


def step(
    connection: Connection,
    archive: Archive,
    dossier: Dossier,
    act: str,
    *,
    by: str = "",
    reason: str = "",
    look_again_on: date | None = None,
) -> Dossier:
    """Take one step and record its event, in the caller's transaction."""
    moved = targets.move(
        connection, dossier, act, reason=reason, now=archive.clock(), look_again_on=look_again_on
    )
    detail = {"before": {"state": dossier.state.value}, "after": {"state": moved.state.value}, "act": act}
    append(
        connection,
        archive.event(moved.state.value, "target", str(moved.id), by=by, message=reason, detail=detail),
    )
    return moved


def describe(
    archive: Archive,
    target: TargetId,
    *,
    name: str,
    collection: str,
    purpose: str,
    strategy: str,
    note: str,
    by: str = "",
) -> Dossier:
    """Change the description of a target. Its seeds cannot be changed: they identify it."""
    with archive.database.transaction() as connection:
        before = targets.dossier_of(connection, target)
        new = draft(
            before.target.seeds,
            name=name,
            collection=collection,
            purpose=purpose,
            strategy=strategy,
            note=note,
        )
        values = {
            "name": new.name,
            "collection": new.collection,
            "purpose": new.purpose.value,
            "strategy": new.strategy.value,
            "note": new.note,
        }
        after = targets.change(connection, target, values)
        old = {
            "name": before.name,
            "collection": before.target.collection,
            "purpose": before.target.purpose.value,
            "strategy": before.strategy.value,
            "note": before.note,
        }
        detail = difference(old, values)
        if changed := ", ".join(detail["after"]):
            append(
                connection,
                archive.event("changed", "target", str(target), by=by, message=changed, detail=detail),
            )
    return after


def move_to_collection(
    connection: Connection, archive: Archive, dossier: Dossier, collection: str, *, by: str = ""
) -> None:
    """Put a target into another collection, in the caller's transaction; the name has been checked."""
    detail = difference({"collection": dossier.target.collection}, {"collection": collection})
    targets.change(connection, dossier.id, {"collection": collection})
    event = archive.event("changed", "target", str(dossier.id), by=by, message="collection", detail=detail)
    append(connection, event)


# --- the gate ---


def may_harvest(archive: Archive, target: TargetId, extra: Sequence[PermissionBasis] = ()) -> Verdict:
    """May this target be harvested now, and if not, what is missing. `extra` grounds count only for this
    call.
    """
    with archive.database.reading() as connection:
        return _gate(connection, target, extra, archive.clock().date())


def _gate(connection: Connection, target: TargetId, extra: Sequence[PermissionBasis], today: date) -> Verdict:
    dossier = targets.dossier_of(connection, target)
    bases = [kept.basis for kept in grounds.not_ended(connection, target)]
    return permission.gate(dossier.state, [*bases, *extra], letter_rows.notices(connection, target), today)


def admit(archive: Archive, target: Target, bases: Sequence[PermissionBasis] = ()) -> None:
    """Ask the gate and store its verdict; NotPermitted says what is missing."""
    now = archive.clock()
    with archive.database.transaction() as connection:
        verdict = _gate(connection, target.id, bases, now.date())
        target_verdicts.keep_verdict(
            connection, target.id, "may harvest", verdict, agent=archive.agent, now=now
        )
    if not verdict:
        raise NotPermitted(refusal(target.name, verdict))


def refuse_if_refused(archive: Archive, target: TargetId) -> None:
    """Raise NotPermitted if the owner has refused since a harvest began, so that it is not resumed."""
    verdict = may_harvest(archive, target, [operators_decision(archive)])
    if verdict.rule == Ground.REFUSAL.value:
        raise NotPermitted(refusal(f"Target {target}", verdict))


def refusal(name: str, verdict: Verdict) -> Reason:
    """The message of the gate when a target may not be harvested."""
    text = "{name} may not be harvested: {reason} ({rule})."
    return said("may_not_be_harvested", text, name=name, reason=verdict.reason, rule=verdict.rule)


def operators_decision(archive: Archive) -> PermissionBasis:
    """The ground of `webdepot archive`: the person who typed the command is responsible and is recorded."""
    return PermissionBasis(
        ground=Ground.OPERATOR,
        since=archive.clock().date(),
        reason=said("operator", "requested on the command line by {agent}", agent=archive.agent),
    )
