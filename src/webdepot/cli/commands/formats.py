"""`webdepot formats`: what files are and whether they are sound, for loose files, containers and the whole
archive.
"""

import json as json_text
import os
import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from webdepot.cli.call import Call, Json, Quiet, call_of
from webdepot.cli.output import plain, size_words
from webdepot.cli.progress import shown
from webdepot.errors import InputError
from webdepot.formats import registry
from webdepot.formats.validity import Validity
from webdepot.model import Finding, FormatVerdict
from webdepot.services.quality import format_watch, identification
from webdepot.services.quality.identification import ContainerReport, FileReport

commands = typer.Typer(no_args_is_help=True)
Paths = Annotated[list[Path], typer.Argument(metavar="PATH...", help="Files, or folders of files.")]
Workers = Annotated[int, typer.Option(min=0, max=256, help="Files looked at at once; 0 means one per core.")]


@commands.command(epilog="Example: webdepot formats identify downloads/ --json")
def identify(
    context: typer.Context, paths: Paths, workers: Workers = 0, json: Json = False, quiet: Quiet = False
) -> None:
    """Say what files are, by PRONOM's signatures and by looking at text; names and folders need no archive."""
    _each_file(call_of(context), paths, json=json, quiet=quiet, workers=workers, checked=False)


@commands.command(epilog="Example: webdepot formats validate report.pdf pictures/ --json")
def validate(
    context: typer.Context, paths: Paths, workers: Workers = 0, json: Json = False, quiet: Quiet = False
) -> None:
    """Identify files, check them by the rules of their formats and read their properties. Exit 1 when one is
    not valid.
    """
    if _each_file(call_of(context), paths, json=json, quiet=quiet, workers=workers, checked=True):
        raise typer.Exit(1)


@commands.command(epilog="Example: webdepot formats report crawl/*.warc.gz")
def report(
    context: typer.Context,
    containers: Annotated[
        list[Path], typer.Argument(metavar="CONTAINER...", help="WARC or ARC files, or folders of them.")
    ],
    no_validate: Annotated[bool, typer.Option("--no-validate", help="Identify only.")] = False,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """What is in containers, read in place: files checked, recognised or not, and the share of each format."""
    call = call_of(context)
    output = call.output(json, quiet)
    with shown(output) as watch:
        for each in identification.report_containers(
            containers, signature_file=_signatures(call), checked=not no_validate, watch=watch
        ):
            output.result(_container_fields(each), _container_words(each))


@commands.command(epilog="Example: webdepot formats update pronom-126.sig")
def update(
    context: typer.Context,
    file: Annotated[
        Path | None,
        typer.Argument(help="A set of signatures in Siegfried's form. Without it, the sets are listed."),
    ] = None,
    json: Json = False,
) -> None:
    """Take a newer set of PRONOM signatures from a file, without a network. Old results stay; see `formats
    again`.
    """
    call = call_of(context)
    output = call.output(json)
    with call.archive() as archive:
        if file is None:
            for known in identification.signature_sets(archive):
                output.result(
                    _set_fields(known),
                    f"{known.installed_at:%Y-%m-%d}  {plain(known.name)}  [dim]{plain(known.engine)}[/dim]",
                )
            return
        found, is_new = identification.update_signatures(archive, file)
    words = "In use from now on" if is_new else "Known already"
    output.result(
        _set_fields(found) | {"new": is_new},
        f"{words}: {plain(found.name)}  [dim]{plain(found.engine)}[/dim]",
    )


@commands.command(epilog="Example: webdepot formats again --limit 10")
def again(
    context: typer.Context,
    harvests: Annotated[
        list[str] | None,
        typer.Argument(metavar="HARVEST...", help="Only these; all kept harvests by default."),
    ] = None,
    limit: Annotated[int, typer.Option(min=0, help="Stop after so many harvests; 0 means no limit.")] = 0,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Identify kept harvests again with today's engine and signatures. Adds to what was said, never
    overwrites; can be stopped.
    """
    call = call_of(context)
    output = call.output(json, quiet)
    with call.archive() as archive, shown(output) as watch:
        for harvest, table in identification.identify_again(
            archive, harvests or [], limit=limit, watch=watch
        ):
            fields = {
                "harvest": harvest.id,
                "files": table.files,
                "recognised": table.recognised,
                "uncertain": table.uncertain,
                "not_recognised": table.not_recognised,
            }
            output.result(
                fields,
                f"[bold]{plain(harvest.id)}[/bold]  {table.recognised:,} of {table.files:,} recognised",
            )


@commands.command(epilog="Example: webdepot formats watch --json")
def watch(context: typer.Context, json: Json = False) -> None:
    """The watch list: what the archive holds that is at risk, where, how much, since when."""
    call = call_of(context)
    output = call.output(json)
    with call.archive() as archive:
        for each in format_watch.watch_list(archive):
            fields = {
                "puid": each.puid,
                "format": each.name,
                "mime": each.mime,
                "risk": each.flag.risk.value,
                "reason": each.flag.reason,
                "software": list(each.flag.software),
                "addresses": each.uris,
                "bytes": each.size_bytes,
                "harvests": each.harvests,
                "collections": list(each.collections),
                "since": each.since,
                "samples": list(each.samples),
            }
            held = f"{each.uris:,} addresses, {size_words(each.size_bytes)}, since {each.since:%Y-%m-%d}"
            named = plain(each.name or each.mime or "unknown")
            output.result(
                fields,
                f"[yellow]{each.flag.risk.value}[/yellow]  [bold]{named}[/bold]  {held}\n    {plain(each.flag.reason)}",
            )


@commands.command(name="registry", epilog="Example: webdepot formats registry > registry.json")
def registry_(
    context: typer.Context,
    file: Annotated[
        Path | None,
        typer.Argument(help="A registry to take in place of the present one. Without it, that is printed."),
    ] = None,
) -> None:
    """The registry of formats and of the software that shows them, as JSON."""
    call = call_of(context)
    with call.archive() as archive:
        if file is None:
            sys.stdout.write(
                json_text.dumps(
                    registry.to_document(format_watch.load_registry(archive)), ensure_ascii=False, indent=1
                )
                + "\n"
            )
            return
        try:
            document = json_text.loads(file.read_text(encoding="utf-8"))
        except (OSError, ValueError) as error:
            raise InputError(f"{file} cannot be read as a registry: {error}.") from error
        taken = registry.from_document(document)
        format_watch.save_registry(archive, taken, by=archive.agent)
    call.output().say(f"{len(taken.entries)} formats and {len(taken.software)} programs were taken.")


def _each_file(call: Call, paths: list[Path], *, json: bool, quiet: bool, workers: int, checked: bool) -> int:
    """Tell of every file; how many were not valid."""
    output = call.output(json, quiet)
    wrong = 0
    for each in identification.examine_files(
        paths, checked=checked, signature_file=_signatures(call), workers=workers
    ):
        wrong += each.found.validity is Validity.NOT_VALID
        try:
            output.result(_file_fields(each), _file_words(each, checked))
        except BrokenPipeError:
            # Whoever reads has seen enough; Python would complain once more when it closes the stream.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            break
    return wrong


def _signatures(call: Call) -> Path | None:
    """The archive's own set, where there is an archive."""
    if not (call.home / "webdepot.db").exists():
        return None
    with call.archive() as archive:
        return archive.signatures()


def _file_fields(each: FileReport) -> dict[str, Any]:
    format = each.found.format
    return {
        "path": str(each.path),
        "size": each.size_bytes,
        "puid": format.puid,
        "format": format.name,
        "version": format.version,
        "mime": format.mime,
        "basis": format.basis.value,
        "verdict": format.verdict.value,
        "warning": format.warning,
        "validity": each.found.validity.value,
        "findings": [_finding_fields(found) for found in each.found.findings],
        "properties": dict(each.found.properties),
    }


def _finding_fields(found: Finding) -> dict[str, str]:
    return {
        "code": found.code,
        "severity": found.severity.value,
        "message": found.message,
        "place": found.place,
        "action": found.action,
    }


def _file_words(each: FileReport, checked: bool) -> str:
    format = each.found.format
    colour = {FormatVerdict.RECOGNISED: "green", FormatVerdict.UNCERTAIN: "yellow"}.get(format.verdict, "red")
    named = " ".join(
        filter(
            None, (format.puid or "–", format.name, format.version, f"({format.mime})" if format.mime else "")
        )
    )
    lines = [
        f"[bold]{plain(str(each.path))}[/bold]  [{colour}]{format.verdict.value}[/{colour}]  {plain(named)}"
    ]
    if checked:
        lines[0] += (
            f"  {'[red]' if each.found.validity is Validity.NOT_VALID else '[dim]'}{each.found.validity.value}[/]"
        )
    if format.warning:
        lines.append(f"    [yellow]{plain(format.warning)}[/yellow]")
    lines += [
        f"    {plain(found.message)}{f' [dim]({plain(found.place)})[/dim]' if found.place else ''}"
        for found in each.found.findings
    ]
    if each.found.properties:
        lines.append(
            "    [dim]"
            + plain(", ".join(f"{name} {value}" for name, value in each.found.properties.items()))
            + "[/dim]"
        )
    return "\n".join(lines)


def _container_fields(each: ContainerReport) -> dict[str, Any]:
    table = each.table
    return {
        "path": str(each.path),
        "engine": each.engine,
        "files": table.files,
        "checked": table.checked,
        "checked_share": round(table.checked_share, 4),
        "seconds": round(table.duration_s, 2),
        "files_per_s": round(table.files_per_s, 1),
        "distinct": table.distinct,
        "bytes": table.size_bytes,
        **{
            verdict.name.lower(): {"count": count, "share": round(table.share(verdict), 4)}
            for verdict, count in zip(
                FormatVerdict, (table.recognised, table.uncertain, table.not_recognised)
            )
        },
        "mismatches": each.mismatches,
        "formats": [
            {
                "puid": share.puid,
                "format": share.name,
                "version": share.version,
                "mime": share.mime,
                "uris": share.uris,
                "bytes": share.size_bytes,
                "uri_share": round(share.uri_share, 4),
                "byte_share": round(share.byte_share, 4),
                "not_valid": share.not_valid,
                "warnings": share.warnings,
            }
            for share in each.shares
        ],
        "not_recognised_samples": list(each.unknown),
        "findings": [_finding_fields(found) | {"subject": found.subject} for found in each.findings[:100]],
    }


def _container_words(each: ContainerReport) -> str:
    table = each.table
    lines = [
        f"[bold]{plain(str(each.path))}[/bold]",
        f"  Checked         {table.checked:,} of {table.files:,} files ({table.checked_share:.1%}) in {table.duration_s:.1f} s, "
        f"{table.files_per_s:,.0f} files/s",
    ]
    for verdict, count in zip(FormatVerdict, (table.recognised, table.uncertain, table.not_recognised)):
        lines.append(f"  {verdict.value.capitalize():15} {count:,} ({table.share(verdict):.1%})")
    lines.append(f"  Server was wrong about {each.mismatches:,}")
    for share in each.shares[:25]:
        name = " ".join(filter(None, (share.puid or "–", share.name or share.mime, share.version)))
        shown_share = f"{share.uri_share:7.2%} of addresses {share.byte_share:7.2%} of bytes {size_words(share.size_bytes):>10}"
        lines.append(f"    {shown_share}  {plain(name)}")
    return "\n".join(lines)


def _set_fields(found: Any) -> dict[str, Any]:
    return {
        "name": found.name,
        "sha256": found.sha256,
        "engine": found.engine,
        "installed": found.installed_at,
        "by": found.installed_by,
    }
