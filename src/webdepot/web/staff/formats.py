"""File formats for staff: shares, years, wrong media types, software for a format, and formats at risk; as
pages and as CSV.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from webdepot.errors import InputError
from webdepot.formats.registry import KINDS, RegistryEntry, Risk, Software
from webdepot.model import EVERYTHING
from webdepot.services.access import collections
from webdepot.services.quality import format_watch
from webdepot.services.quality.format_watch import CollectionFormats, YearShare
from webdepot.text.csv_text import written
from webdepot.web.csv_response import csv_file
from webdepot.web.forms import SHORT_FORM, read_form
from webdepot.web.problems import explain
from webdepot.web.site import name_of, render, site_of

TOP = 25
TOP_OVER_YEARS = 8


def show(request: Request) -> Response:
    archive = site_of(request).archive
    name = request.query_params.get("collection", EVERYTHING)[:60]
    held = format_watch.collection(archive, name)
    return render(
        request,
        "formats.html",
        found=held,
        collections=collections.names(archive, hidden=True),
        shares=held.shares[:TOP],
        years=_by_year(held.years),
        flags=format_watch.flags_of(archive, held.shares[:TOP]),
    )


def show_watch_list(request: Request) -> Response:
    archive = site_of(request).archive
    name = request.query_params.get("collection", EVERYTHING)[:60]
    return render(
        request,
        "watch.html",
        watched=format_watch.watch_list(archive, name),
        chosen=name,
        collections=collections.names(archive, hidden=True),
    )


def show_registry(request: Request) -> Response:
    return _registry_page(request)


def _registry_page(
    request: Request, *, status: int = 200, given: Mapping[str, str] | None = None, wrong: str = ""
) -> Response:
    known = format_watch.load_registry(site_of(request).archive)
    wanted = request.query_params.get("format", "")
    return render(
        request,
        "registry.html",
        status=status,
        known=known,
        given=defaultdict(str, given if given is not None else _entry_fields(known.entries.get(wanted))),
        wrong=wrong,
        risks=list(Risk),
        kinds=KINDS,
    )


def _entry_fields(entry: RegistryEntry | None) -> dict[str, str]:
    """An entry as the form shows it."""
    if entry is None:
        return {}
    fields = {name: str(getattr(entry, name)) for name in ("puid", "name", "risk", "reason", "note")}
    return {"what": "format", **fields, "software": ", ".join(entry.software)}


def send_registry(request: Request) -> Response:
    return Response(
        format_watch.registry_json(site_of(request).archive) + "\n", media_type="application/json"
    )


async def change_registry(request: Request) -> Response:
    form = await read_form(request, limits=SHORT_FORM)
    return await run_in_threadpool(_change, request, form)


def _change(request: Request, form: dict[str, str]) -> Response:
    try:
        return _save(request, form)
    except InputError as error:
        return _registry_page(request, status=400, given=form, wrong=explain(request, error))


def _save(request: Request, form: dict[str, str]) -> Response:
    archive, by = site_of(request).archive, name_of(request)
    if form.get("what") == "software":
        identifier = form.get("id", "").strip()[:60]
        software = Software(
            id=identifier,
            name=form.get("name", "").strip()[:200],
            kind=form.get("kind", "viewer"),
            versions=form.get("versions", "").strip()[:100],
            is_current=form.get("is_current") == "yes",
            note=form.get("note", "").strip()[:2000],
        )
        format_watch.change_software(archive, software, by=by)
        return RedirectResponse("/formats/registry", status_code=303)
    if form.get("risk") not in [risk.value for risk in Risk]:
        raise InputError(f"Choose one of the risks: {', '.join(Risk)}.")
    entry = RegistryEntry(
        puid=form.get("puid", "").strip()[:100],
        name=form.get("name", "").strip()[:200],
        risk=Risk(form["risk"]),
        reason=form.get("reason", "").strip()[:2000],
        note=form.get("note", "").strip()[:2000],
        software=tuple(each.strip() for each in form.get("software", "").split(",") if each.strip()),
    )
    format_watch.change_entry(archive, entry, by=by)
    return RedirectResponse(f"/formats/registry?format={entry.puid}", status_code=303)


def as_csv(request: Request) -> Response:
    """A table as a file: `what` is shares, years, mismatches, unknown or watch."""
    archive = site_of(request).archive
    what = request.query_params.get("what", "shares")
    name = request.query_params.get("collection", EVERYTHING)[:60]
    if what == "watch":
        head: Sequence[str] = (
            "puid",
            "format",
            "mime",
            "risk",
            "reason",
            "addresses",
            "bytes",
            "harvests",
            "collections",
            "since",
        )
        rows: Iterable[Sequence[object]] = (
            (
                *(each.puid, each.name, each.mime, each.flag.risk.value, each.flag.reason),
                *(each.uris, each.size_bytes, each.harvests),
                *(" ".join(each.collections), each.since.isoformat()),
            )
            for each in format_watch.watch_list(archive, name)
        )
    else:
        head, rows = _table(format_watch.collection(archive, name), what)
    return csv_file(
        f"formats-{what if what.isascii() and what.isalpha() else 'shares'}", written([head, *rows])
    )


def _table(held: CollectionFormats, what: str) -> tuple[Sequence[str], Iterable[Sequence[object]]]:
    if what == "years":
        by_year = ("year", "puid", "format", "version", "mime", "addresses", "bytes")
        return by_year, (
            (each.year, each.puid, each.name, each.version, each.mime, each.uris, each.size_bytes)
            for each in held.years
        )
    if what == "mismatches":
        return ("server_said", "it_is", "files", "example"), held.mismatches
    if what == "unknown":
        return ("address", "server_said", "bytes"), held.unknown
    head = (
        "puid",
        "format",
        "version",
        "mime",
        "addresses",
        "address_share",
        "bytes",
        "byte_share",
        "not_valid",
        "warnings",
    )
    return head, (
        (
            *(each.puid, each.name, each.version, each.mime),
            *(each.uris, f"{each.uri_share:.6f}", each.size_bytes, f"{each.byte_share:.6f}"),
            *(each.not_valid, each.warnings),
        )
        for each in held.shares
    )


def _by_year(shares: Sequence[YearShare]) -> list[tuple[str, list[tuple[int, float, float]]]]:
    """The largest media types, each with its years: year, share of bytes and share of addresses."""
    totals: dict[int, tuple[int, int]] = {}
    sums: dict[str, dict[int, tuple[int, int]]] = {}
    for each in shares:
        size_bytes, uris = totals.get(each.year, (0, 0))
        totals[each.year] = (size_bytes + each.size_bytes, uris + each.uris)
        of_type = sums.setdefault(each.mime or "?", {})
        size_bytes, uris = of_type.get(each.year, (0, 0))
        of_type[each.year] = (size_bytes + each.size_bytes, uris + each.uris)
    largest = sorted(sums, key=lambda mime: -sum(size_bytes for size_bytes, _ in sums[mime].values()))[
        :TOP_OVER_YEARS
    ]
    return [
        (mime, [_shares(year, sums[mime].get(year, (0, 0)), whole) for year, whole in sorted(totals.items())])
        for mime in largest
    ]


def _shares(year: int, part: tuple[int, int], whole: tuple[int, int]) -> tuple[int, float, float]:
    return year, _share(part[0], whole[0]), _share(part[1], whole[1])


def _share(part: int, whole: int) -> float:
    return part / whole if whole else 0.0
