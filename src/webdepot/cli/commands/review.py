"""`webdepot review`: harvests that wait for a decision, and the decisions."""

from typing import Annotated

import typer

from webdepot.cli.call import Json, Quiet, call_of
from webdepot.cli.output import plain, size_words
from webdepot.cli.progress import shown
from webdepot.harvest.runs import ListFilter
from webdepot.model import HarvestState
from webdepot.services.review import reviews

commands = typer.Typer(no_args_is_help=True)
HarvestName = Annotated[
    str,
    typer.Argument(metavar="HARVEST", help="Identifier of the harvest, as `webdepot review list` prints it."),
]
Words = Annotated[str, typer.Option("--reason", metavar="TEXT", help="Why; it is kept.")]


@commands.command(name="list", epilog="Example: webdepot review list --json")
def list_(
    context: typer.Context,
    state: Annotated[HarvestState, typer.Option(help="In this state.")] = HarvestState.FINISHED,
    page: Annotated[int, typer.Option(min=1, help="Fifty are on a page.")] = 1,
    json: Json = False,
) -> None:
    """Harvests that wait for a reviewer, those that wait longest first."""
    call = call_of(context)
    output = call.output(json)
    with call.archive() as archive:
        found = reviews.list_harvests(archive, ListFilter(state=state, oldest_first=True, page=page))
        verdicts = reviews.verdicts_of(archive, found.rows)
    for harvest in found.rows:
        verdict = verdicts.get(harvest.id)
        fields = {
            "id": harvest.id,
            "state": harvest.state.value,
            "seeds": list(harvest.seeds),
            "started": harvest.started_at,
            "verdict": verdict.answer.value if verdict is not None else "",
            "reason": verdict.reason if verdict is not None else "",
            "counts": dict(harvest.counts),
        }
        got = f"{harvest.counts.get('fetched', 0):,} documents, {size_words(harvest.counts.get('bytes', 0))}"
        words = f"[bold]{plain(harvest.id)}[/bold]  {fields['verdict'] or 'not checked'}  {got}  [dim]{plain(str(fields['reason']))}[/dim]"
        output.result(fields, words)


@commands.command(epilog="Example: webdepot review show 20261115090251-www-example-org-1f2e3d --json")
def show(context: typer.Context, harvest: HarvestName, json: Json = False) -> None:
    """What a reviewer wants to know: the verdict, what is missing, broken, odd and new, formats, and what was
    said before.
    """
    call = call_of(context)
    output = call.output(json)
    with call.archive() as archive:
        found = reviews.dossier(archive, harvest)
    compared = found.compared
    fields = {
        "id": found.harvest.id,
        "state": found.harvest.state.value,
        "target": found.target_name,
        "verdict": {"answer": found.checked.verdict.answer.value, "reason": found.checked.verdict.reason},
        "rules": {
            "answer": found.by_rules.answer.value,
            "rule": found.by_rules.rule,
            "reason": found.by_rules.reason,
        },
        "findings": {group: dict(codes) for group, codes in found.groups.items()},
        "difference": None
        if compared is None
        else {
            "before": compared.before.id,
            "added": compared.added,
            "gone": compared.gone,
            "changed": compared.changed,
            "same": compared.same,
            "documents": found.harvest.counts.get("fetched", 0) - compared.before.counts.get("fetched", 0),
            "bytes": found.harvest.counts.get("bytes", 0) - compared.before.counts.get("bytes", 0),
        },
        "not_valid": found.not_valid,
        "missing": found.missing,
        "patches": [patch.id for patch in found.patches],
        "reviews": [
            {"decision": each.decision.value, "words": each.words, "by": each.by, "at": each.at}
            for each in found.reviews
        ],
    }
    lines = [
        f"[bold]{plain(found.harvest.id)}[/bold]  {found.harvest.state.value}  {plain(found.checked.verdict.reason)}"
    ]
    lines += [
        f"  {group}: {', '.join(f'{count} {code}' for code, count in codes)}"
        for group, codes in found.groups.items()
        if codes
    ]
    if compared is not None:
        lines.append(
            f"  since {compared.before.id}: {compared.added} added, {compared.gone} gone, {compared.changed} changed"
        )
    lines.append(
        f"  {found.not_valid} files not valid by their format; {found.missing} addresses could be patched"
    )
    lines += [
        f"  {each.at:%Y-%m-%d} {plain(each.by)}: {each.decision.value} {plain(each.words)}"
        for each in found.reviews
    ]
    output.result(fields, "\n".join(lines))


@commands.command(epilog="Example: webdepot review accept 20261115090251-www-example-org-1f2e3d")
def accept(
    context: typer.Context, harvest: HarvestName, reason: Words = "", json: Json = False, quiet: Quiet = False
) -> None:
    """Put it into the depot and make it public, with its patches."""
    call = call_of(context)
    output = call.output(json, quiet)
    with call.archive() as archive, shown(output) as watch:
        kept = reviews.accept(archive, harvest, words=reason, watch=watch)
    output.result(
        {"id": harvest, "state": "kept", "package": kept.id},
        f"{plain(harvest)} is kept as {plain(kept.id)} and public.",
    )


@commands.command(
    epilog="Example: webdepot review reject 20261115090251-www-example-org-1f2e3d --reason 'a holding page, not the site'"
)
def reject(context: typer.Context, harvest: HarvestName, reason: Words, json: Json = False) -> None:
    """Do not keep it; the reason is kept."""
    call = call_of(context)
    with call.archive() as archive:
        found = reviews.reject(archive, harvest, words=reason)
    call.output(json).result({"id": found.id, "state": found.state.value}, f"{plain(found.id)} is rejected.")


@commands.command(
    epilog="Example: webdepot review reopen 20261115090251-www-example-org-1f2e3d --reason 'the owner explained it'"
)
def reopen(context: typer.Context, harvest: HarvestName, reason: Words, json: Json = False) -> None:
    """Take a rejection back; it waits for review again."""
    call = call_of(context)
    with call.archive() as archive:
        found = reviews.reopen(archive, harvest, words=reason)
    call.output(json).result(
        {"id": found.id, "state": found.state.value}, f"{plain(found.id)} waits for review again."
    )


@commands.command(
    epilog="Example: webdepot review annotate 20261115090251-www-example-org-1f2e3d --reason 'the gallery needs a browser'"
)
def annotate(context: typer.Context, harvest: HarvestName, reason: Words, json: Json = False) -> None:
    """Say something about a harvest, whatever its state."""
    call = call_of(context)
    with call.archive() as archive:
        found = reviews.annotate(archive, harvest, words=reason)
    call.output(json).result({"id": found.id, "state": found.state.value}, f"Noted with {plain(found.id)}.")


@commands.command(epilog="Example: webdepot review patch 20261115090251-www-example-org-1f2e3d")
def patch(context: typer.Context, harvest: HarvestName, json: Json = False, quiet: Quiet = False) -> None:
    """Harvest what is missing and check the whole again; the patch waits with its harvest for the decision."""
    call = call_of(context)
    output = call.output(json, quiet)
    with call.archive() as archive, shown(output) as watch:
        done = reviews.patch(archive, harvest, watch=watch)
    fields = {
        "id": harvest,
        "asked": done.asked,
        "verdict": done.checked.verdict.answer.value,
        "reason": done.checked.verdict.reason,
    }
    output.result(
        fields, f"{done.asked} addresses were asked for again. {plain(done.checked.verdict.reason)}"
    )
