"""`webdepot review`: harvests awaiting a decision, and the decisions."""

from typing import Annotated

import typer

from webdepot.cli.call import Json, Quiet, call_of
from webdepot.cli.output import plain, size_words
from webdepot.cli.progress import shown
from webdepot.harvest.harvest_rows import HarvestFilter
from webdepot.model import HarvestState
from webdepot.services.review import patches, reviews

commands = typer.Typer(no_args_is_help=True)
HarvestName = Annotated[
    str,
    typer.Argument(metavar="HARVEST", help="Identifier of the harvest, as `webdepot review list` prints it."),
]
Reason = Annotated[str, typer.Option("--reason", metavar="TEXT", help="The reason; it is recorded.")]


@commands.command(name="list", epilog="Example: webdepot review list --json")
def list_(
    context: typer.Context,
    state: Annotated[HarvestState, typer.Option(help="Harvests in this state.")] = HarvestState.FINISHED,
    page: Annotated[int, typer.Option(min=1, help="Page of the list, with fifty harvests each.")] = 1,
    json: Json = False,
) -> None:
    """List harvests awaiting review, oldest first."""
    call = call_of(context)
    output = call.output(json)
    with call.archive() as archive:
        listed = reviews.list_waiting if state is HarvestState.FINISHED else reviews.list_harvests
        waiting = listed(archive, HarvestFilter(state=state, oldest_first=True, page=page))
        verdicts = reviews.verdicts_of(archive, waiting.rows)
    for harvest in waiting.rows:
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
        size = f"{harvest.counts.get('fetched', 0):,} documents, {size_words(harvest.counts.get('bytes', 0))}"
        output.result(
            fields,
            f"[bold]{plain(harvest.id)}[/bold]  {fields['verdict'] or 'not checked'}  {size}  "
            f"[dim]{plain(str(fields['reason']))}[/dim]",
        )


@commands.command(epilog="Example: webdepot review show 20261115090251-www-example-org-1f2e3d --json")
def show(context: typer.Context, harvest: HarvestName, json: Json = False) -> None:
    """Show a harvest for review: verdict, findings, changes since the last one, invalid files, decisions."""
    call = call_of(context)
    output = call.output(json)
    with call.archive() as archive:
        dossier = reviews.dossier(archive, harvest)
    compared = dossier.compared
    fields = {
        "id": dossier.harvest.id,
        "state": dossier.harvest.state.value,
        "target": dossier.target_name,
        "verdict": {"answer": dossier.checked.verdict.answer.value, "reason": dossier.checked.verdict.reason},
        "rules": {
            "answer": dossier.by_rules.answer.value,
            "rule": dossier.by_rules.rule,
            "reason": dossier.by_rules.reason,
        },
        "findings": {group: dict(codes) for group, codes in dossier.groups.items()},
        "difference": None
        if compared is None
        else {
            "before": compared.before.id,
            "added": compared.added,
            "gone": compared.gone,
            "changed": compared.changed,
            "same": compared.same,
            "documents": dossier.harvest.counts.get("fetched", 0) - compared.before.counts.get("fetched", 0),
            "bytes": dossier.harvest.counts.get("bytes", 0) - compared.before.counts.get("bytes", 0),
        },
        "not_valid": dossier.not_valid,
        "missing": dossier.missing,
        "patches": [patch.id for patch in dossier.patches],
        "reviews": [
            {"decision": review.decision.value, "words": review.words, "by": review.by, "at": review.at}
            for review in dossier.reviews
        ],
    }
    lines = [
        f"[bold]{plain(dossier.harvest.id)}[/bold]  {dossier.harvest.state.value}  "
        f"{plain(dossier.checked.verdict.reason)}"
    ]
    lines += [
        f"  {group}: {', '.join(f'{count} {code}' for code, count in codes)}"
        for group, codes in dossier.groups.items()
        if codes
    ]
    if compared is not None:
        lines.append(
            f"  since {compared.before.id}: {compared.added} added, {compared.gone} removed, "
            f"{compared.changed} changed"
        )
    lines.append(f"  {dossier.not_valid} invalid files; {dossier.missing} missing addresses could be patched")
    lines += [
        f"  {review.at:%Y-%m-%d} {plain(review.by)}: {review.decision.value} {plain(review.words)}"
        for review in dossier.reviews
    ]
    output.result(fields, "\n".join(lines))


@commands.command(epilog="Example: webdepot review accept 20261115090251-www-example-org-1f2e3d")
def accept(
    context: typer.Context,
    harvest: HarvestName,
    reason: Reason = "",
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Accept a harvest and its patches: deposit them and make them public."""
    call = call_of(context)
    output = call.output(json, quiet)
    with call.archive() as archive, shown(output) as watch:
        package = reviews.accept(archive, harvest, words=reason, watch=watch)
    output.result(
        {"id": harvest, "state": "kept", "package": package.id},
        f"{plain(harvest)} is deposited as {plain(package.id)} and public.",
    )


@commands.command(
    epilog="Example: webdepot review reject 20261115090251-www-example-org-1f2e3d "
    "--reason 'a holding page, not the site'"
)
def reject(context: typer.Context, harvest: HarvestName, reason: Reason, json: Json = False) -> None:
    """Reject a harvest: it is not deposited, and the reason is recorded."""
    call = call_of(context)
    with call.archive() as archive:
        rejected = reviews.reject(archive, harvest, words=reason)
    call.output(json).result(
        {"id": rejected.id, "state": rejected.state.value}, f"{plain(rejected.id)} is rejected."
    )


@commands.command(
    epilog="Example: webdepot review reopen 20261115090251-www-example-org-1f2e3d "
    "--reason 'the owner explained it'"
)
def reopen(context: typer.Context, harvest: HarvestName, reason: Reason, json: Json = False) -> None:
    """Undo a rejection; the harvest awaits review again."""
    call = call_of(context)
    with call.archive() as archive:
        reopened = reviews.reopen(archive, harvest, words=reason)
    call.output(json).result(
        {"id": reopened.id, "state": reopened.state.value}, f"{plain(reopened.id)} awaits review again."
    )


@commands.command(
    epilog="Example: webdepot review annotate 20261115090251-www-example-org-1f2e3d "
    "--reason 'the gallery needs a browser'"
)
def annotate(context: typer.Context, harvest: HarvestName, reason: Reason, json: Json = False) -> None:
    """Add a note to a harvest in any state."""
    call = call_of(context)
    with call.archive() as archive:
        annotated = reviews.annotate(archive, harvest, words=reason)
    call.output(json).result(
        {"id": annotated.id, "state": annotated.state.value}, f"Note added to {plain(annotated.id)}."
    )


@commands.command(epilog="Example: webdepot review patch 20261115090251-www-example-org-1f2e3d")
def patch(context: typer.Context, harvest: HarvestName, json: Json = False, quiet: Quiet = False) -> None:
    """Harvest missing parts and check the result; the patch awaits review together with its harvest."""
    call = call_of(context)
    output = call.output(json, quiet)
    with call.archive() as archive, shown(output) as watch:
        done = patches.patch(archive, harvest, watch=watch)
    fields = {
        "id": harvest,
        "asked": done.asked,
        "verdict": done.checked.verdict.answer.value,
        "reason": done.checked.verdict.reason,
    }
    output.result(fields, f"{done.asked} addresses requested again. {plain(done.checked.verdict.reason)}")
