"""Targets in the portal: the list and its CSV, nominating, importing, and the page of one target with
everything done about it.
"""

from collections.abc import Mapping
from datetime import date
from urllib.parse import urlencode

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response, StreamingResponse

from webdepot.accounts import STAFF
from webdepot.errors import ConfigError, InputError, NotFound
from webdepot.model import EVERYTHING, Purpose, TargetId
from webdepot.selection.contacts import Contact
from webdepot.selection.criteria import SCALE, Judgement, Kind
from webdepot.selection.permission import WITHOUT_LETTER, Ground
from webdepot.selection.states import TARGET, TargetState
from webdepot.selection.targets import Filter, Origin, Sort, Strategy
from webdepot.selection.templates import LANGUAGES
from webdepot.services.catalogue import records
from webdepot.services.harvest import target_harvests
from webdepot.services.permission import consent, delivery, letters
from webdepot.services.permission.consent import Conditions, Reply, Showing
from webdepot.services.selection import contacts, csv_lists, targets
from webdepot.web.forms import read_form, read_upload
from webdepot.web.problems import words_for
from webdepot.web.site import CURATORS, person_of, render, site_of

MOST_SHOWN = 100
"""Rows of a preview, letters left out, and events on a page."""


def listed(request: Request) -> Response:
    archive = site_of(request).archive
    asked = filter_of(request)
    listing = targets.listed(archive, asked)
    return render(
        request,
        "targets.html",
        listing=listing,
        asked=asked,
        counts=targets.counts(archive),
        harvests=target_harvests.harvests_of_targets(archive, [row.id for row in listing.rows]),
        link=lambda **changes: _link(asked, **changes),
        imported=int(number)
        if (number := request.query_params.get("imported", "")).isdigit() and len(number) < 8
        else 0,
        sorts=list(Sort),
        origins=list(Origin),
        may_change=may_change(request),
    )


def as_csv(request: Request) -> Response:
    """The list that is shown, whole, as CSV."""
    lines = csv_lists.export(site_of(request).archive, filter_of(request))
    headers = {"Content-Disposition": 'attachment; filename="targets.csv"'}
    return StreamingResponse(lines, media_type="text/csv; charset=utf-8", headers=headers)


def filter_of(request: Request) -> Filter:
    """The list that the address asks for; what is no filter is passed over."""
    asked = request.query_params
    state = asked.get("state", "")
    origin, sort, page = asked.get("origin", ""), asked.get("sort", ""), asked.get("page", "1")
    return Filter(
        state=TargetState(state) if state in tuple(TargetState) else None,
        words=asked.get("q", "")[:200],
        collection=asked.get("collection", "")[:60],
        origin=Origin(origin) if origin in tuple(Origin) else None,
        sort=Sort(sort) if sort in tuple(Sort) else Sort.NAME,
        descending=asked.get("order", "") == "down",
        page=int(page) if page.isascii() and page.isdigit() and len(page) < 8 else 1,
    )


def _link(asked: Filter, **changes: object) -> str:
    """The address of the list with something changed; the first page unless another is asked for."""
    values: dict[str, object] = {
        "state": asked.state or "",
        "q": asked.words,
        "collection": asked.collection,
        "origin": asked.origin or "",
        "sort": asked.sort if asked.sort is not Sort.NAME else "",
        "order": "down" if asked.descending else "",
        **changes,
    }
    query = urlencode({name: str(value) for name, value in values.items() if value})
    return f"?{query}" if query else "?"


# --- nominating and importing ---


def new(request: Request) -> Response:
    return _new_page(request)


def _new_page(
    request: Request, *, status: int = 200, given: Mapping[str, str] | None = None, wrong: str = ""
) -> Response:
    blank = {"addresses": request.query_params.get("url", "")[:2000], "collection": EVERYTHING}
    return render(
        request,
        "target_new.html",
        status=status,
        given=given or blank,
        wrong=wrong,
        purposes=list(Purpose),
        strategies=list(Strategy),
        columns=csv_lists.COLUMNS,
        done=bool(request.query_params.get("done")) and not wrong,
    )


async def make(request: Request) -> Response:
    form = await read_form(request)
    return await run_in_threadpool(_made, request, form)


def _made(request: Request, form: Mapping[str, str]) -> Response:
    archive = site_of(request).archive
    try:
        nomination = targets.draft(
            form.get("addresses", "").split(),
            name=form.get("name", ""),
            collection=form.get("collection", "") or EVERYTHING,
            purpose=form.get("purpose", "") or Purpose.HERITAGE,
            strategy=form.get("strategy", "") or Strategy.SELECTIVE,
            origin=origin_of(request),
            by=by(request),
            note=form.get("note", ""),
        )
    except InputError as error:
        return _new_page(request, status=400, given=form, wrong=words_for(request, error))
    known = targets.find_known(archive, nomination.seeds[0])
    if origin_of(request) is Origin.PARTNER:
        # Contacts and notes are the archive's own business: partners hear that it is on the list, and no
        # more.
        if known is None or not known.is_same:
            targets.enter(archive, nomination, by=by(request))
        return RedirectResponse("/targets/new?done=1", status_code=303)
    if known is not None and known.is_same:
        return RedirectResponse(f"/targets/{known.dossier.id}?known=1", status_code=303)
    dossier, _ = targets.enter(archive, nomination, by=by(request))
    return RedirectResponse(f"/targets/{dossier.id}", status_code=303)


async def upload(request: Request) -> Response:
    content, fields = await read_upload(request, "list", longest=csv_lists.LONGEST_BYTES + 65_536)
    return await run_in_threadpool(_uploaded, request, content or fields.get("text", "").encode())


def _uploaded(request: Request, content: bytes) -> Response:
    try:
        seen = csv_lists.preview(site_of(request).archive, content, by=by(request), origin=origin_of(request))
    except InputError as error:
        return _new_page(request, status=400, wrong=words_for(request, error))
    return RedirectResponse(f"/targets/import/{seen.token}", status_code=303)


def look_at(request: Request) -> Response:
    archive, token = site_of(request).archive, request.path_params["token"]
    seen = csv_lists.look_at(archive, token, by=by(request), origin=origin_of(request))
    return render(request, "target_import.html", seen=seen, most=MOST_SHOWN)


def take_in(request: Request) -> Response:
    done = csv_lists.import_(
        site_of(request).archive, request.path_params["token"], by=by(request), origin=origin_of(request)
    )
    if origin_of(request) is Origin.PARTNER:
        return RedirectResponse("/targets/new?done=1", status_code=303)
    return RedirectResponse(f"/targets?sort=created&order=down&imported={len(done.new)}", status_code=303)


# --- one target ---


def shown(request: Request) -> Response:
    archive = site_of(request).archive
    dossier = targets.get(archive, target_of(request))
    person = person_of(request)
    judged = targets.judged(archive, dossier.id)
    roles = person.roles if person else frozenset()
    return render(
        request,
        "target.html",
        dossier=dossier,
        verdict=targets.may_harvest(archive, dossier.id),
        judged=judged,
        answerable={one.code for one in judged.asked if roles & one.roles}
        if TARGET.allows(dossier.state, "judge")
        else set(),
        scale=SCALE,
        acts=[act for act in TARGET.acts(dossier.state) if act in targets.DECISIONS],
        reasons=targets.NEEDS_REASON,
        contacts=contacts.contacts_of(archive, dossier.id),
        letters=letters.letters_of(archive, dossier.id),
        grounds=consent.grounds_of(archive, dossier.id),
        can_ask=TARGET.allows(dossier.state, "ask"),
        can_clear=TARGET.allows(dossier.state, "clear"),
        possible_grounds=WITHOUT_LETTER,
        replies=list(Reply),
        showings=list(Showing),
        purposes=list(Purpose),
        strategies=list(Strategy),
        languages_of_letters=LANGUAGES,
        harvests=target_harvests.harvests_of_targets(archive, [dossier.id]).get(dossier.id),
        record=records.find_of_target(archive, dossier.id),
        history=targets.history(archive, dossier.id)[:MOST_SHOWN],
        may_change=may_change(request),
        is_known=bool(request.query_params.get("known")),
        term_days=archive.config.selection.term_days,
    )


async def answer(request: Request) -> Response:
    form = await read_form(request)
    return await run_in_threadpool(_answered, request, form)


def _answered(request: Request, form: Mapping[str, str]) -> Response:
    archive, target = site_of(request).archive, target_of(request)
    given: list[Judgement] = []
    for criterion in targets.criteria_of(archive):
        value, reason = (
            form.get(f"answer-{criterion.code}", "").strip(),
            form.get(f"reason-{criterion.code}", ""),
        )
        if not value:
            continue
        if criterion.kind is Kind.TEXT:
            given.append(Judgement(criterion=criterion.code, words=value, reason=reason or value))
        elif value.isascii() and value.isdigit() and int(value) <= SCALE:
            share = int(value) / SCALE if criterion.kind is Kind.SCALE else float(int(value) > 0)
            given.append(Judgement(criterion=criterion.code, value=share, reason=reason))
        else:
            raise InputError(f"{value[:20]!r} is no answer to {criterion.code!r}.")
    if not given:
        raise InputError("No criterion was answered.")
    before = targets.judged(archive, target).given
    changed = [one for one in given if _is_new(one, before.get(one.criterion))]
    if changed:
        targets.answer(archive, target, changed, person=person_of(request))
    return back(target, "criteria")


def _is_new(given: Judgement, before: Judgement | None) -> bool:
    """A form sends every answer it shows; only those that were touched are signed anew."""
    return before is None or (given.value, given.words, given.reason.strip()) != (
        before.value,
        before.words,
        before.reason,
    )


async def decide(request: Request) -> Response:
    form = await read_form(request)
    return await run_in_threadpool(_decided, request, form)


def _decided(request: Request, form: Mapping[str, str]) -> Response:
    target = target_of(request)
    targets.decide(
        site_of(request).archive,
        target,
        form.get("act", ""),
        by=by(request),
        reason=form.get("reason", ""),
        look_again_on=day_of(form.get("look_again_on", "")),
    )
    return back(target)


async def change(request: Request) -> Response:
    form = await read_form(request)
    return await run_in_threadpool(_changed, request, form)


def _changed(request: Request, form: Mapping[str, str]) -> Response:
    target = target_of(request)
    targets.describe(
        site_of(request).archive,
        target,
        name=form.get("name", ""),
        collection=form.get("collection", ""),
        purpose=form.get("purpose", ""),
        strategy=form.get("strategy", ""),
        note=form.get("note", ""),
        by=by(request),
    )
    return back(target)


async def add_contact(request: Request) -> Response:
    form = await read_form(request)
    return await run_in_threadpool(_contact_added, request, form)


def _contact_added(request: Request, form: Mapping[str, str]) -> Response:
    archive, target = site_of(request).archive, target_of(request)
    if end := form.get("end", ""):
        contacts.end_contact(archive, target, number_of(end), by=by(request))
        return back(target, "contacts")
    language = form.get("language", "")
    contact = Contact(
        target=target,
        name=form.get("name", "").strip(),
        organisation=form.get("organisation", "").strip(),
        mail=form.get("mail", "").strip(),
        post=form.get("post", ""),
        language=language if language in LANGUAGES else LANGUAGES[0],
        note=form.get("note", ""),
    )
    contacts.add_contact(archive, contact, by=by(request))
    return back(target, "contacts")


def preview_letter(request: Request) -> Response:
    archive, target = site_of(request).archive, target_of(request)
    dossier = targets.get(archive, target)
    language = request.query_params.get("language", "")
    return render(
        request,
        "letter_preview.html",
        dossier=dossier,
        language_of_letter=language if language in LANGUAGES else "",
        languages_of_letters=LANGUAGES,
        rendered=letters.preview(archive, target, language=language, portal_url=site_of(request).portal_url),
        asking=letters.consider(archive, [target]),
        may_change=may_change(request),
    )


def ask(request: Request) -> Response:
    """Write the letter and send it at once; where that fails it waits, and the page says why."""
    archive, target = site_of(request).archive, target_of(request)
    outcome = letters.ask(archive, [target], by=by(request), portal_url=site_of(request).portal_url)
    if outcome.left_out:
        raise InputError(f"No letter was written: {outcome.left_out[0][1]}.")
    try:
        delivery.deliver_for(archive, target)
    except ConfigError as error:
        raise InputError(str(error)) from error
    return back(target, "letters")


async def reply(request: Request) -> Response:
    form = await read_form(request)
    return await run_in_threadpool(_replied, request, form)


def _replied(request: Request, form: Mapping[str, str]) -> Response:
    target = target_of(request)
    try:
        given = Reply(form.get("answer", ""))
        showing = Showing(form.get("showing", "") or Showing.OPEN)
    except ValueError:
        raise InputError(f"An answer is one of {', '.join(Reply)}.") from None
    embargo = form.get("embargo_days", "").strip()
    conditions = Conditions(
        showing=showing,
        embargo_days=number_of(embargo) if embargo else 0,
        until=day_of(form.get("until", "")),
        words=form.get("words", "")[:2000],
    )
    consent.reply(
        site_of(request).archive,
        target,
        given,
        by=by(request),
        words=form.get("words", ""),
        conditions=conditions if given is Reply.CONDITIONS else None,
    )
    return back(target, "letters")


async def ground(request: Request) -> Response:
    form = await read_form(request)
    return await run_in_threadpool(_grounded, request, form)


def _grounded(request: Request, form: Mapping[str, str]) -> Response:
    archive, target = site_of(request).archive, target_of(request)
    if withdrawn := form.get("withdraw", ""):
        consent.withdraw_ground(
            archive, target, number_of(withdrawn), by=by(request), reason=form.get("reason", "")
        )
        return back(target, "grounds")
    try:
        chosen = Ground(form.get("ground", ""))
    except ValueError:
        raise InputError(f"A ground is one of {', '.join(WITHOUT_LETTER)}.") from None
    until = day_of(form.get("until", ""))
    consent.record_ground(archive, target, chosen, by=by(request), reason=form.get("reason", ""), until=until)
    return back(target, "grounds")


# --- parts ---


def by(request: Request) -> str:
    person = person_of(request)
    return person.name if person else ""


def may_change(request: Request) -> bool:
    person = person_of(request)
    return person is not None and bool(person.roles & CURATORS)


def origin_of(request: Request) -> Origin:
    """Partners nominate as partners, also in a list."""
    person = person_of(request)
    is_partner = person is not None and not person.roles & STAFF
    return Origin.PARTNER if is_partner else Origin.STAFF


def target_of(request: Request) -> TargetId:
    text = request.path_params["target"]
    if not (text.isascii() and text.isdigit() and len(text) < 10):
        raise NotFound(f"There is no target {text[:40]}.")
    return TargetId(int(text))


def number_of(text: str) -> int:
    if not (text.isascii() and text.isdigit() and len(text) < 10):
        raise InputError(f"{text[:20]!r} is no number.")
    return int(text)


def day_of(text: str) -> date | None:
    try:
        return date.fromisoformat(text) if text else None
    except ValueError:
        raise InputError(f"{text[:30]!r} is no day. Write it like 2026-01-31.") from None


def back(target: TargetId, anchor: str = "") -> Response:
    return RedirectResponse(f"/targets/{target}{f'#{anchor}' if anchor else ''}", status_code=303)
