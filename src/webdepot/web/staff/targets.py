"""Targets in the portal: the list and its CSV, nominating, importing, and the page of one target."""
# Longer than other modules: the parts of the page of a target share how they show what was wrong in a form.

from collections.abc import Callable, Mapping, Sequence
from urllib.parse import urlencode

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response, StreamingResponse

from webdepot.accounts.accounts import STAFF
from webdepot.errors import ConfigError, Conflict, InputError, NotFound, NotPermitted
from webdepot.model import EVERYTHING, Purpose, TargetId
from webdepot.reasons import said
from webdepot.selection.contacts import Contact
from webdepot.selection.criteria import SCALE, AnswerKind, Criterion, Judgement
from webdepot.selection.permission import WITHOUT_LETTER, Ground
from webdepot.selection.states import TargetState
from webdepot.selection.targets import Origin, Strategy, TargetFilter, TargetSort
from webdepot.selection.templates import LANGUAGES
from webdepot.services.admin import bulk_actions, target_view
from webdepot.services.admin.bulk_actions import BulkAct
from webdepot.services.catalogue import described_lists
from webdepot.services.harvest import seed_check
from webdepot.services.harvest.seed_check import SeedCheck
from webdepot.services.permission import consent, delivery, letters
from webdepot.services.permission.consent import Conditions, OwnerReply, Showing
from webdepot.services.schedule import plans
from webdepot.services.selection import contacts, csv_lists, targets
from webdepot.services.selection import criteria as criteria_service
from webdepot.url import Url
from webdepot.web.forms import find_number, get_day, get_number, page_number, read_form, read_upload
from webdepot.web.problems import explain
from webdepot.web.site import CURATORS, may, name_of, person_of, reader_of, render, site_of

TABS = ("overview", "owner", "harvests", "record", "history")
_TAB_OF = {"contacts": "owner", "letters": "owner", "grounds": "owner", "harvested": "harvests"}
"""The tab of a part of the page of a target, if it is not the overview."""
MOST_SHOWN = 100
"""Rows of a preview, and of targets that get no letter."""


def show_list(request: Request) -> Response:
    return list_page(request)


def list_page(request: Request, *, status: int = 200, wrong: str = "") -> Response:
    """The list, with what was wrong in a form on it."""
    wanted = filter_of(request)
    view = target_view.view_list(site_of(request).archive, wanted)
    return render(
        request,
        "targets.html",
        status=status,
        wrong=wrong,
        listing=view.listing,
        asked=wanted,
        counts=view.counts,
        harvests=view.harvests,
        link=lambda **changes: link_of(wanted, **changes),
        imported=find_number(request.query_params.get("imported", "")) or 0,
        sorts=list(TargetSort),
        origins=list(Origin),
        acts=_acts_for(wanted.state),
        may_change=may(request, CURATORS),
    )


def _acts_for(state: TargetState | None) -> list[str]:
    """Actions on many sites that are possible in a state, or in any."""
    return [act for act in BulkAct if state is None or bulk_actions.allows(state, act)]


def as_csv(request: Request) -> Response:
    """The whole list that is shown, as CSV."""
    lines = csv_lists.export(site_of(request).archive, filter_of(request))
    headers = {"Content-Disposition": 'attachment; filename="targets.csv"'}
    return StreamingResponse(lines, media_type="text/csv; charset=utf-8", headers=headers)


def filter_of(request: Request) -> TargetFilter:
    """The filter in the address of the list; invalid values are ignored."""
    query = request.query_params
    state, origin, sort = query.get("state", ""), query.get("origin", ""), query.get("sort", "")
    return TargetFilter(
        state=TargetState(state) if state in tuple(TargetState) else None,
        words=query.get("q", "")[:200],
        collection=query.get("collection", "")[:60],
        origin=Origin(origin) if origin in tuple(Origin) else None,
        sort=TargetSort(sort) if sort in tuple(TargetSort) else TargetSort.NAME,
        descending=query.get("order", "") == "down",
        page=page_number(request),
    )


def link_of(wanted: TargetFilter, **changes: object) -> str:
    """The address of the list with some values changed; of its first page, unless `changes` name another."""
    values: dict[str, object] = {
        "state": wanted.state or "",
        "q": wanted.words,
        "collection": wanted.collection,
        "origin": wanted.origin or "",
        "sort": wanted.sort if wanted.sort is not TargetSort.NAME else "",
        "order": "down" if wanted.descending else "",
        **changes,
    }
    query = urlencode({name: str(value) for name, value in values.items() if value})
    return f"?{query}" if query else "?"


# --- nominating and importing ---


def show_own(request: Request) -> Response:
    """What a partner nominated, and what became of it."""
    page = page_number(request)
    archive, reader = site_of(request).archive, reader_of(request)
    found = target_view.nominations_of(archive, name_of(request), reader, page=page)
    return render(
        request,
        "nominations.html",
        rows=found.rows,
        listing=found.listing,
        done=bool(request.query_params.get("done")),
    )


def show_new(request: Request) -> Response:
    return _new_page(request)


def _new_page(
    request: Request,
    *,
    status: int = 200,
    given: Mapping[str, str] | None = None,
    wrong: str = "",
    wrong_list: str = "",
    text: str = "",
    checks: Sequence[SeedCheck] = (),
) -> Response:
    blank = {"addresses": request.query_params.get("url", "")[:2000], "collection": EVERYTHING}
    return render(
        request,
        "target_new.html",
        status=status,
        given=given or blank,
        wrong=wrong,
        wrong_list=wrong_list,
        text=text,
        purposes=list(Purpose),
        strategies=list(Strategy),
        columns=csv_lists.COLUMNS,
        may_test=may(request, CURATORS),
        is_partner=origin_of(request) is Origin.PARTNER,
        checks=checks,
    )


async def make(request: Request) -> Response:
    form = await read_form(request)
    return await run_in_threadpool(_make, request, form)


def _make(request: Request, form: Mapping[str, str]) -> Response:
    archive = site_of(request).archive
    try:
        nomination = targets.draft(
            form.get("addresses", "").split(),
            name=form.get("name", ""),
            collection=form.get("collection", "") or EVERYTHING,
            purpose=form.get("purpose", "") or Purpose.HERITAGE,
            strategy=form.get("strategy", "") or Strategy.SELECTIVE,
            origin=origin_of(request),
            by=name_of(request),
            note=form.get("note", ""),
        )
    except InputError as error:
        return _new_page(request, status=400, given=form, wrong=explain(request, error))
    checks = _check_seeds(request, form, nomination.seeds)
    if checks:
        return _new_page(request, given=form, checks=checks)
    known = targets.find_known(archive, nomination.seeds[0])
    if origin_of(request) is Origin.PARTNER:
        # Contacts and notes are internal: partners learn only that the site is on the list.
        if known is None or not known.is_same:
            targets.enter(archive, nomination, by=name_of(request))
        return RedirectResponse("/nominations?done=1", status_code=303)
    if known is not None and known.is_same:
        return RedirectResponse(f"/targets/{known.dossier.id}?known=1", status_code=303)
    dossier, _ = targets.enter(archive, nomination, by=name_of(request))
    return RedirectResponse(f"/targets/{dossier.id}", status_code=303)


def _check_seeds(request: Request, form: Mapping[str, str], seeds: Sequence[Url]) -> list[SeedCheck]:
    """What the start URLs answer, if the form asks for that only, or asks for it before it is saved and one
    of them is probably wrong. The person who has seen that may save all the same.
    """
    is_seen = form.get("checked", "").split() == list(seeds)
    asks_only = form.get("order") == "check"
    if origin_of(request) is Origin.PARTNER or not (asks_only or (form.get("check_first") and not is_seen)):
        return []
    checks = seed_check.check(site_of(request).archive, seeds)
    return checks if asks_only or any(check.problem for check in checks) else []


async def upload(request: Request) -> Response:
    content, fields = await read_upload(request, "list", longest=csv_lists.LONGEST_BYTES + 65_536)
    return await run_in_threadpool(_upload, request, content, fields.get("text", ""))


def _upload(request: Request, content: bytes, text: str) -> Response:
    try:
        preview = csv_lists.preview(
            site_of(request).archive,
            content or text.encode(),
            by=name_of(request),
            origin=origin_of(request),
        )
    except InputError as error:
        return _new_page(request, status=400, wrong_list=explain(request, error), text=text)
    return RedirectResponse(f"/targets/import/{preview.token}", status_code=303)


def show_import(request: Request) -> Response:
    return _import_page(request)


def _import_page(request: Request, *, status: int = 200, wrong: str = "") -> Response:
    archive, token = site_of(request).archive, request.path_params["token"]
    preview = csv_lists.get_preview(archive, token, by=name_of(request), origin=origin_of(request))
    return render(request, "target_import.html", status=status, wrong=wrong, seen=preview, most=MOST_SHOWN)


def take_in(request: Request) -> Response:
    archive, token = site_of(request).archive, request.path_params["token"]
    try:
        imported = csv_lists.import_(archive, token, by=name_of(request), origin=origin_of(request))
    except Conflict as error:
        return _import_page(request, status=error.http_status, wrong=explain(request, error))
    if origin_of(request) is Origin.PARTNER:
        return RedirectResponse("/nominations?done=1", status_code=303)
    described_lists.describe(archive, imported.rows, by=name_of(request))
    return RedirectResponse(f"/targets?sort=created&order=down&imported={len(imported.new)}", status_code=303)


# --- one target ---


def show(request: Request) -> Response:
    return _page(request)


def _page(
    request: Request,
    *,
    status: int = 200,
    wrong: str = "",
    wrong_in: str = "",
    typed: Mapping[str, str] | None = None,
) -> Response:
    """The page of a target. If a form was wrong: why, the part of the page that has this form, and what was
    typed into it.
    """
    archive, person = site_of(request).archive, person_of(request)
    asked = _TAB_OF.get(wrong_in, TABS[0]) if wrong_in else request.query_params.get("tab", "")
    view = target_view.view(archive, target_of(request), roles=person.roles if person else frozenset())
    return render(
        request,
        "target.html",
        status=status,
        tab=asked if asked in TABS else TABS[0],
        tabs=TABS,
        opened=request.query_params.get("new", ""),
        wrong=wrong,
        wrong_in=wrong_in,
        typed=typed or {},
        dossier=view.dossier,
        verdict=view.verdict,
        judged=view.judged,
        answerable=view.answerable,
        scale=SCALE,
        acts=view.acts,
        reasons=targets.NEEDS_REASON,
        contacts=view.contacts,
        letters=view.letters,
        grounds=view.grounds,
        can_ask=view.can_ask,
        can_clear=view.can_clear,
        possible_grounds=WITHOUT_LETTER,
        replies=list(OwnerReply),
        showings=list(Showing),
        purposes=list(Purpose),
        strategies=list(Strategy),
        languages_of_letters=LANGUAGES,
        harvests=view.harvests,
        record=view.record,
        history=view.history,
        path=view.path,
        plan=view.plan,
        latest=view.latest,
        ratings=view.ratings,
        open_turn=plans.find_open(archive, view.dossier.id),
        may_change=may(request, CURATORS),
        is_known=bool(request.query_params.get("known")),
        term_days=archive.config.selection.term_days,
    )


async def answer(request: Request) -> Response:
    return await run_in_threadpool(_try, _answer, request, await read_form(request), "criteria")


def _answer(request: Request, form: Mapping[str, str]) -> Response:
    archive, target = site_of(request).archive, target_of(request)
    answers = [
        _judgement(criterion, value, form.get(f"reason-{criterion.code}", ""))
        for criterion in criteria_service.criteria_of(archive)
        if (value := form.get(f"answer-{criterion.code}", "").strip())
    ]
    if not answers:
        raise InputError("No criterion was answered.")
    before = criteria_service.criteria_result(archive, target).given
    changed = [answer for answer in answers if _is_new(answer, before.get(answer.criterion))]
    if changed:
        criteria_service.answer(archive, target, changed, person=person_of(request))
    return back(target, "criteria")


def _judgement(criterion: Criterion, value: str, reason: str) -> Judgement:
    if criterion.kind is AnswerKind.TEXT:
        return Judgement(criterion=criterion.code, words=value, reason=reason or value)
    number = find_number(value)
    if number is None or number > SCALE:
        raise InputError(f"{value[:20]!r} is not an answer to {criterion.code!r}.")
    share = number / SCALE if criterion.kind is AnswerKind.SCALE else float(number > 0)
    return Judgement(criterion=criterion.code, value=share, reason=reason)


def _is_new(answer: Judgement, before: Judgement | None) -> bool:
    """A form sends every answer it shows; only those that were changed are signed again."""
    return before is None or (answer.value, answer.words, answer.reason.strip()) != (
        before.value,
        before.words,
        before.reason,
    )


async def decide(request: Request) -> Response:
    return await run_in_threadpool(_try, _decide, request, await read_form(request), "deciding")


def _decide(request: Request, form: Mapping[str, str]) -> Response:
    target = target_of(request)
    targets.decide(
        site_of(request).archive,
        target,
        form.get("act", ""),
        by=name_of(request),
        reason=form.get("reason", ""),
        look_again_on=get_day(form.get("look_again_on", "")),
    )
    return back(target)


async def change(request: Request) -> Response:
    return await run_in_threadpool(_try, _change, request, await read_form(request), "facts")


def _change(request: Request, form: Mapping[str, str]) -> Response:
    target = target_of(request)
    targets.describe(
        site_of(request).archive,
        target,
        name=form.get("name", ""),
        collection=form.get("collection", ""),
        purpose=form.get("purpose", ""),
        strategy=form.get("strategy", ""),
        note=form.get("note", ""),
        by=name_of(request),
    )
    return back(target)


async def add_contact(request: Request) -> Response:
    return await run_in_threadpool(_try, _change_contacts, request, await read_form(request), "contacts")


def _change_contacts(request: Request, form: Mapping[str, str]) -> Response:
    archive, target = site_of(request).archive, target_of(request)
    if end := form.get("end", ""):
        contacts.end_contact(archive, target, get_number(end), by=name_of(request))
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
    contacts.add_contact(archive, contact, by=name_of(request))
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
        may_change=may(request, CURATORS),
    )


def ask(request: Request) -> Response:
    """Write the letter and send it now; if that fails it waits, and the page says why."""
    return _try(_ask, request, {}, "letters")


def _ask(request: Request, form: Mapping[str, str]) -> Response:
    archive, target = site_of(request).archive, target_of(request)
    outcome = letters.ask(archive, [target], by=name_of(request), portal_url=site_of(request).portal_url)
    if outcome.left_out:
        raise InputError(f"No letter was written: {outcome.left_out[0][1]}.")
    try:
        delivery.deliver_for(archive, target)
    except ConfigError as error:
        raise InputError(str(error)) from error
    return back(target, "letters")


async def reply(request: Request) -> Response:
    return await run_in_threadpool(_try, _reply, request, await read_form(request), "letters")


def _reply(request: Request, form: Mapping[str, str]) -> Response:
    target = target_of(request)
    try:
        answer = OwnerReply(form.get("answer", ""))
        showing = Showing(form.get("showing", "") or Showing.OPEN)
    except ValueError:
        raise InputError(f"Choose one of these answers: {', '.join(OwnerReply)}.") from None
    embargo = form.get("embargo_days", "").strip()
    conditions = Conditions(
        showing=showing,
        embargo_days=get_number(embargo) if embargo else 0,
        until=get_day(form.get("until", "")),
        words=form.get("words", "")[:2000],
    )
    consent.reply(
        site_of(request).archive,
        target,
        answer,
        by=name_of(request),
        words=form.get("words", ""),
        conditions=conditions if answer is OwnerReply.CONDITIONS else None,
    )
    return back(target, "letters")


async def ground(request: Request) -> Response:
    return await run_in_threadpool(_try, _change_grounds, request, await read_form(request), "grounds")


def _change_grounds(request: Request, form: Mapping[str, str]) -> Response:
    archive, target = site_of(request).archive, target_of(request)
    if withdrawn := form.get("withdraw", ""):
        consent.withdraw_ground(
            archive, target, get_number(withdrawn), by=name_of(request), reason=form.get("reason", "")
        )
        return back(target, "grounds")
    try:
        chosen = Ground(form.get("ground", ""))
    except ValueError:
        raise InputError(f"Choose one of these grounds: {', '.join(WITHOUT_LETTER)}.") from None
    until = get_day(form.get("until", ""))
    consent.record_ground(
        archive, target, chosen, by=name_of(request), reason=form.get("reason", ""), until=until
    )
    return back(target, "grounds")


async def harvest(request: Request) -> Response:
    return await run_in_threadpool(_try, _harvest, request, await read_form(request), "harvested")


def _harvest(request: Request, form: Mapping[str, str]) -> Response:
    """Harvest now, with the profile that was chosen or else that of the plan; the page of the harvest shows
    what happens.
    """
    try:
        turn = plans.run_now(
            site_of(request).archive, target_of(request), profile=form.get("profile"), by=name_of(request)
        )
    except (Conflict, NotPermitted) as error:
        raise InputError(*error.args) from error
    return RedirectResponse(f"/harvests/{turn.harvest}", status_code=303)


# --- parts ---


def _try(
    work: Callable[[Request, Mapping[str, str]], Response],
    request: Request,
    form: Mapping[str, str],
    section: str,
) -> Response:
    """Do what a form asks for; if it is wrong, show the form again with the reason and what was typed."""
    try:
        return work(request, form)
    except (InputError, Conflict, NotPermitted) as error:
        wrong, status = explain(request, error), error.http_status
        return _page(request, status=status, wrong=wrong, wrong_in=section, typed=form)


def origin_of(request: Request) -> Origin:
    """The origin of nominations by this person: partners nominate as partners, also in a list."""
    person = person_of(request)
    is_partner = person is not None and not person.roles & STAFF
    return Origin.PARTNER if is_partner else Origin.STAFF


def target_of(request: Request) -> TargetId:
    """The number of the target in the address; NotFound when it is not a number."""
    text = request.path_params["target"]
    number = find_number(text)
    if number is None:
        raise NotFound(said("missing_target", "There is no target {target}.", target=text[:40]))
    return TargetId(number)


def back(target: TargetId, anchor: str = "") -> Response:
    """Redirect to a part of the page of a target."""
    tab = f"?tab={_TAB_OF[anchor]}" if anchor in _TAB_OF else ""
    return RedirectResponse(f"/targets/{target}{tab}{f'#{anchor}' if anchor else ''}", status_code=303)
