"""`webdepot evidence`: signed documents that prove that a page was archived as it is shown."""

from pathlib import Path
from typing import Annotated

import typer

from webdepot.access.policy import AccessPoint, Reader
from webdepot.cli.call import Json, call_of
from webdepot.cli.output import plain
from webdepot.errors import InputError
from webdepot.model import EVERYTHING
from webdepot.services.access import evidence as evidence_service
from webdepot.times import from_timestamp, to_timestamp
from webdepot.url import canonicalise

commands = typer.Typer(no_args_is_help=True)


@commands.command(
    epilog="Example: webdepot evidence write https://www.example.org/ --at 20100101 -o evidence.json"
)
def write(
    context: typer.Context,
    url: Annotated[str, typer.Argument(metavar="URL", help="Address of the page.")],
    at: Annotated[
        str, typer.Option("--at", metavar="TIMESTAMP", help="The version closest to it. Default: now.")
    ] = "",
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="File to write. Default: standard output.")
    ] = None,
    json: Json = False,
) -> None:
    """Write the evidence of a capture as a signed JSON document.

    You read as staff: only access rules for staff apply.
    """
    call = call_of(context)
    with call.archive() as archive:
        try:
            stamp = to_timestamp(from_timestamp(at) if at else archive.clock())
        except ValueError as error:
            raise InputError(f"--at {error}.") from None
        facts = evidence_service.collect(
            archive,
            canonicalise(url),
            stamp,
            collection=EVERYTHING,
            reader=Reader(name=archive.agent, access_point=AccessPoint.STAFF),
        )
        data = evidence_service.sign(archive, facts)
    if output is None:
        typer.echo(data.decode(), nl=False)
        return
    output.write_bytes(data)
    call.output(json).result(
        {"file": str(output), "url": facts.url, "timestamp": facts.timestamp},
        f"Wrote {plain(str(output))}: {plain(facts.url)}, {facts.timestamp}.",
    )


@commands.command(epilog="Example: webdepot evidence verify --key key.pem evidence.json")
def verify(
    context: typer.Context,
    file: Annotated[Path, typer.Argument(metavar="FILE", help="The signed document.")],
    key: Annotated[
        str,
        typer.Option(
            "--key", help="The archive's public key: a PEM file (/evidence/key.pem of its portal), or base64."
        ),
    ] = "",
    json: Json = False,
) -> None:
    """Check that signed evidence is unchanged. Does not need an archive. Exits 6 if the signature is
    wrong.
    """
    try:
        data = file.read_bytes()
    except OSError as error:
        raise InputError(f"{file} cannot be read: {error.strerror}.") from error
    signer, facts = evidence_service.check(data, key=key)
    url, captured_at, name = (str(facts.get(field)) for field in ("url", "captured_at", "archive"))
    message = (
        f"The signature is valid: {plain(url)}, captured {plain(captured_at)}, by {plain(name)}.\n"
        f"Key: {signer}"
    )
    if not key:
        message += (
            "\nThis does not prove whose key it is. Compare it with the archive's public key, or use --key."
        )
    call_of(context).output(json).result(
        {
            "valid": True,
            "key": signer,
            "is_expected_key": bool(key),
            "url": url,
            "captured_at": captured_at,
            "archive": name,
        },
        message,
    )
