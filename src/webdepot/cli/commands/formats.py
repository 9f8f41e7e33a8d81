"""`webdepot formats`: identification and validation of single files, containers and the whole archive."""

import json as json_text
import os
import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from webdepot.cli.call import Call, Json, Quiet, call_of
from webdepot.cli.output import plain, size_words
from webdepot.cli.progress import shown
from webdepot.errors import InputError, NotFound
from webdepot.formats.validation_result import Validity
from webdepot.model import Finding, FormatVerdict
from webdepot.services.depot import examination
from webdepot.services.quality import format_watch, identification
from webdepot.services.quality.identification import ContainerReport, FileReport

commands = typer.Typer(no_args_is_help=True)
Paths = Annotated[list[Path], typer.Argument(metavar="PATH...", help="Files, or folders of files.")]
Workers = Annotated[
    int, typer.Option(min=0, max=256, help="Files examined in parallel; 0 means one per core.")
]


@commands.command(epilog="Example: webdepot formats identify downloads/ --json")
def identify(
    context: typer.Context, paths: Paths, workers: Workers = 0, json: Json = False, quiet: Quiet = False
) -> None:
    """Identify files by PRONOM signatures and by their text. Does not need an archive."""
    _examine_files(call_of(context), paths, json=json, quiet=quiet, workers=workers, checked=False)


@commands.command(epilog="Example: webdepot formats validate report.pdf pictures/ --json")
def validate(
    context: typer.Context, paths: Paths, workers: Workers = 0, json: Json = False, quiet: Quiet = False
) -> None:
    """Identify files, validate them and read their properties. Exits 1 if a file is not valid."""
    if _examine_files(call_of(context), paths, json=json, quiet=quiet, workers=workers, checked=True):
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
    """Report the formats in containers, without importing them: files recognised, share of each format."""
    call = call_of(context)
    output = call.output(json, quiet)
    with shown(output) as watch:
        for container in identification.report_containers(
            containers, signature_file=_signatures(call), checked=not no_validate, watch=watch
        ):
            output.result(_container_fields(container), _container_text(container))


@commands.command(epilog="Example: webdepot formats update pronom-126.sig")
def update(
    context: typer.Context,
    file: Annotated[
        Path | None,
        typer.Argument(help="A Siegfried signature file. Without it, the installed sets are listed."),
    ] = None,
    json: Json = False,
) -> None:
    """Install newer PRONOM signatures from a file (no network). Old results stay; see `formats again`."""
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
        installed, is_new = identification.update_signatures(archive, file)
    message = "Installed" if is_new else "Already installed"
    output.result(
        _set_fields(installed) | {"new": is_new},
        f"{message}: {plain(installed.name)}  [dim]{plain(installed.engine)}[/dim]",
    )


@commands.command(epilog="Example: webdepot formats again --limit 10")
def again(
    context: typer.Context,
    harvests: Annotated[
        list[str] | None,
        typer.Argument(metavar="HARVEST...", help="Only these harvests. Default: all in the depot."),
    ] = None,
    limit: Annotated[int, typer.Option(min=0, help="Stop after this many harvests; 0 means no limit.")] = 0,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Identify harvests in the depot again with the current engine and signatures. New results are added, old
    ones are kept. Can be stopped and repeated.
    """
    call = call_of(context)
    output = call.output(json, quiet)
    with call.archive() as archive, shown(output) as watch:
        for harvest, table in examination.identify_again(archive, harvests or [], limit=limit, watch=watch):
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
    """Show the watch list: formats at risk, where they are held, how much, and since when."""
    call = call_of(context)
    output = call.output(json)
    with call.archive() as archive:
        for entry in format_watch.watch_list(archive):
            fields = {
                "puid": entry.puid,
                "format": entry.name,
                "mime": entry.mime,
                "risk": entry.flag.risk.value,
                "reason": entry.flag.reason,
                "software": list(entry.flag.software),
                "addresses": entry.uris,
                "bytes": entry.size_bytes,
                "harvests": entry.harvests,
                "collections": list(entry.collections),
                "since": entry.since,
                "samples": list(entry.samples),
            }
            held = f"{entry.uris:,} addresses, {size_words(entry.size_bytes)}, since {entry.since:%Y-%m-%d}"
            name = plain(entry.name or entry.mime or "unknown")
            output.result(
                fields,
                f"[yellow]{entry.flag.risk.value}[/yellow]  [bold]{name}[/bold]  {held}\n"
                f"    {plain(entry.flag.reason)}",
            )


@commands.command(epilog="Example: webdepot formats registry > registry.json")
def registry(
    context: typer.Context,
    file: Annotated[
        Path | None,
        typer.Argument(help="A registry to install instead. Without it, the current one is printed."),
    ] = None,
) -> None:
    """Print or replace the registry of formats and of the software that displays them, as JSON."""
    call = call_of(context)
    with call.archive() as archive:
        if file is None:
            document = format_watch.registry_document(archive)
            sys.stdout.write(json_text.dumps(document, ensure_ascii=False, indent=1) + "\n")
            return
        try:
            document = json_text.loads(file.read_text(encoding="utf-8"))
        except (OSError, ValueError) as error:
            raise InputError(f"{file} cannot be read as a registry: {error}.") from error
        installed = format_watch.save_document(archive, document, by=archive.agent)
    call.output().say(
        f"Installed a registry of {len(installed.entries)} formats and {len(installed.software)} programs."
    )


def _examine_files(
    call: Call, paths: list[Path], *, json: bool, quiet: bool, workers: int, checked: bool
) -> int:
    """Print the result for every file; returns how many are not valid."""
    output = call.output(json, quiet)
    wrong = 0
    for file in identification.examine_files(
        paths, checked=checked, signature_file=_signatures(call), workers=workers
    ):
        wrong += file.found.validity is Validity.NOT_VALID
        try:
            output.result(_file_fields(file), _file_text(file, checked))
        except BrokenPipeError:
            # The reader (such as `head`) is gone. Python would raise again when it closes stdout.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            break
    return wrong


def _signatures(call: Call) -> Path | None:
    """The signature file of the archive, if there is an archive."""
    try:
        with call.archive() as archive:
            return archive.signatures()
    except NotFound:
        return None


def _file_fields(file: FileReport) -> dict[str, Any]:
    format = file.found.format
    return {
        "path": str(file.path),
        "size": file.size_bytes,
        "puid": format.puid,
        "format": format.name,
        "version": format.version,
        "mime": format.mime,
        "basis": format.basis.value,
        "verdict": format.verdict.value,
        "warning": format.warning,
        "validity": file.found.validity.value,
        "findings": [_finding_fields(finding) for finding in file.found.findings],
        "properties": dict(file.found.properties),
    }


def _finding_fields(finding: Finding) -> dict[str, str]:
    return {
        "code": finding.code,
        "severity": finding.severity.value,
        "message": finding.message,
        "place": finding.place,
        "action": finding.action,
    }


def _file_text(file: FileReport, checked: bool) -> str:
    format = file.found.format
    colour = {FormatVerdict.RECOGNISED: "green", FormatVerdict.UNCERTAIN: "yellow"}.get(format.verdict, "red")
    mime = f"({format.mime})" if format.mime else ""
    name = " ".join(filter(None, (format.puid or "–", format.name, format.version, mime)))
    lines = [
        f"[bold]{plain(str(file.path))}[/bold]  [{colour}]{format.verdict.value}[/{colour}]  {plain(name)}"
    ]
    if checked:
        style = "[red]" if file.found.validity is Validity.NOT_VALID else "[dim]"
        lines[0] += f"  {style}{file.found.validity.value}[/]"
    if format.warning:
        lines.append(f"    [yellow]{plain(format.warning)}[/yellow]")
    lines += [
        f"    {plain(finding.message)}{f' [dim]({plain(finding.place)})[/dim]' if finding.place else ''}"
        for finding in file.found.findings
    ]
    if file.found.properties:
        properties = ", ".join(f"{name} {value}" for name, value in file.found.properties.items())
        lines.append(f"    [dim]{plain(properties)}[/dim]")
    return "\n".join(lines)


def _container_fields(container: ContainerReport) -> dict[str, Any]:
    table = container.table
    return {
        "path": str(container.path),
        "engine": container.engine,
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
        "mismatches": container.mismatches,
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
            for share in container.shares
        ],
        "not_recognised_samples": list(container.unknown),
        "findings": [
            _finding_fields(finding) | {"subject": finding.subject} for finding in container.findings[:100]
        ],
    }


def _container_text(container: ContainerReport) -> str:
    table = container.table
    lines = [
        f"[bold]{plain(str(container.path))}[/bold]",
        f"  Checked         {table.checked:,} of {table.files:,} files ({table.checked_share:.1%}) "
        f"in {table.duration_s:.1f} s, {table.files_per_s:,.0f} files/s",
    ]
    for verdict, count in zip(FormatVerdict, (table.recognised, table.uncertain, table.not_recognised)):
        lines.append(f"  {verdict.value.capitalize():15} {count:,} ({table.share(verdict):.1%})")
    lines.append(f"  Files with a wrong content type from the server: {container.mismatches:,}")
    for share in container.shares[:25]:
        name = " ".join(filter(None, (share.puid or "–", share.name or share.mime, share.version)))
        lines.append(
            f"    {share.uri_share:7.2%} of addresses {share.byte_share:7.2%} of bytes "
            f"{size_words(share.size_bytes):>10}  {plain(name)}"
        )
    return "\n".join(lines)


def _set_fields(installed: Any) -> dict[str, Any]:
    return {
        "name": installed.name,
        "sha256": installed.sha256,
        "engine": installed.engine,
        "installed": installed.installed_at,
        "by": installed.installed_by,
    }
