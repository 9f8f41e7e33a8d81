"""How fast are files identified and validated, and are the results right? Ours from a WARC, compared with the
Siegfried binding and opf-fido on plain files.

    python -m bench.formats [--quick] [--json PATH] [--files N]

The data: real files from installed packages (documentation, fonts, icons, sounds, scripts), sampled evenly
over their extensions with a fixed seed, at most 4 MB each. One WARC has the same payloads as HTTP responses,
one gzip member per record.

* identify: pygfried on the plain files with two processes, opf-fido on every tenth file with one; ours from
  the WARC with two workers.
* all: identification, validation and digest from the WARC with two workers, of a web mix (mostly pages, style
  sheets, scripts, images).
* memory: of the reading process over many records.
* agreement: with pygfried on the PUID where it is certain, and with `file` (libmagic) on the media type.

Two cores are used; the best of five alternating rounds counts. On a shared machine only the ratios are
meaningful.
"""

import argparse
import gzip
import json
import multiprocessing
import os
import platform
import random
import resource
import subprocess
import sys
import tempfile
import time
import uuid
from collections import defaultdict
from pathlib import Path
from typing import Any

from webdepot.formats import media, survey

SEED = 20070115
ROOTS = ("/usr/share", "/usr/lib")
KINDS = (
    "html",
    "htm",
    "png",
    "jpg",
    "gif",
    "svg",
    "css",
    "js",
    "json",
    "xml",
    "txt",
    "pdf",
    "ico",
    "woff",
    "woff2",
    "ttf",
    "otf",
    "eot",
    "gz",
    "zip",
    "jar",
    "wav",
    "oga",
    "ogg",
    "mp3",
    "mp4",
    "webm",
    "docx",
    "odt",
    "ott",
    "ods",
    "xlsx",
    "epub",
    "tif",
    "webp",
    "bmp",
    "php",
    "py",
    "c",
    "h",
    "md",
    "rst",
    "csv",
    "po",
    "mo",
    "class",
    "so",
    "afm",
    "pfb",
    "ps",
    "eps",
    "xpm",
    "xbm",
)
WEB_MIX = {
    "html": 30,
    "css": 12,
    "js": 15,
    "png": 18,
    "jpg": 8,
    "gif": 6,
    "svg": 5,
    "json": 3,
    "ico": 1,
    "woff": 1,
    "xml": 1,
}


def find_files(count: int, extra: list[str]) -> list[Path]:
    """A sample, evenly over the extensions; always the same on the same machine."""
    by_extension: dict[str, list[Path]] = defaultdict(list)
    for root in (*ROOTS, *extra):
        for folder, folders, names in os.walk(root):
            folders.sort()
            for name in sorted(names):
                kind = name.rpartition(".")[2].lower()
                if kind in KINDS and len(by_extension[kind]) < 20 * count:
                    path = Path(folder) / name
                    if not path.is_symlink() and 0 < path.stat().st_size <= 4 << 20:
                        by_extension[kind].append(path)
    random.seed(SEED)
    for paths in by_extension.values():
        random.shuffle(paths)
    chosen: list[Path] = []
    depth = 0
    while len(chosen) < count and any(len(paths) > depth for paths in by_extension.values()):
        chosen += [paths[depth] for _, paths in sorted(by_extension.items()) if len(paths) > depth]
        depth += 1
    return chosen[:count]


def web_mix(files: list[Path], count: int) -> list[Path]:
    by_kind = defaultdict(list)
    for path in files:
        by_kind[path.suffix[1:].lower()].append(path)
    kinds = [kind for kind, weight in WEB_MIX.items() for _ in range(weight) if by_kind[kind]]
    random.seed(SEED)
    return [random.choice(by_kind[random.choice(kinds)]) for _ in range(count)]


def write_warc(path: Path, files: list[Path], *, distinct: bool = True) -> None:
    with path.open("wb") as out:
        for number, each in enumerate(files):
            body = each.read_bytes()
            if distinct:  # made different, because identical payloads are examined only once
                body += b"" if number == files.index(each) else b"\n" * (number % 97 + 1)
            block = b"HTTP/1.1 200 OK\r\nContent-Type: application/octet-stream\r\n\r\n" + body
            head = f"WARC/1.1\r\nWARC-Type: response\r\nWARC-Record-ID: <{uuid.uuid4().urn}>\r\nWARC-Date: 2026-11-15T09:00:00Z\r\n"
            head += f"WARC-Target-URI: http://www.example.org/{number}/{each.name.replace(' ', '_')}\r\n"
            head += (
                f"Content-Type: application/http; msgtype=response\r\nContent-Length: {len(block)}\r\n\r\n"
            )
            out.write(gzip.compress(head.encode() + block + b"\r\n\r\n", 3))


_scanner: Any = None
"""The signatures, loaded once in each process."""


def _load_binding() -> None:
    import pygfried

    global _scanner
    _scanner = pygfried.Scanner()


def _binding(paths: list[str]) -> dict[str, list[dict[str, str]]]:
    return {
        path: [dict(match) for match in _scanner.identify(path, detailed=True)["files"][0]["matches"]]
        for path in paths
    }


def time_binding(files: list[Path], workers: int) -> tuple[float, dict[str, list[dict[str, str]]]]:
    """Two processes, because it holds the GIL. Starting them and loading signatures is not measured, as with
    ours.
    """
    shares = [[str(path) for path in files[number::workers]] for number in range(workers)]
    with multiprocessing.get_context("spawn").Pool(workers, _load_binding) as pool:
        pool.map(_binding, [share[:1] for share in shares], chunksize=1)
        started = time.monotonic()
        done = pool.map(_binding, shares, chunksize=1)
        return time.monotonic() - started, {path: found for part in done for path, found in part.items()}


def time_fido(files: list[Path]) -> float | None:
    """Seconds for these files in one process; None if opf-fido is not installed."""
    program = (
        "import sys, time, io, contextlib\nfrom fido.fido import Fido\nfrom fido import CONFIG_DIR\nimport "
        "os, glob\n"
        "xml = sorted(glob.glob(os.path.join(CONFIG_DIR, 'formats-v*.xml')))[-1]\n"
        "f = Fido(quiet=True, format_files=[xml, os.path.join(CONFIG_DIR, 'format_extensions.xml')])\nstart "
        "= time.monotonic()\n"
        "with contextlib.redirect_stdout(io.StringIO()):\n    [f.identify_file(p) for p in sys.argv[1:]]\n"
        "sys.stderr.write(f'SECONDS {time.monotonic() - start}')\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, *map(str, files)], capture_output=True, text=True, check=False
    )
    return float(done.stderr.rpartition("SECONDS ")[2]) if "SECONDS" in done.stderr else None


def time_ours(warc: Path, rows: Path, workers: int, *, checked: bool) -> survey.SurveyResult:
    return survey.of_container(warc, warc.name, rows=rows, workers=workers, checked=checked)


def agreement(files: list[Path], rows: Path, theirs: dict[str, list[dict[str, str]]]) -> dict[str, object]:
    ours = {int(row["url"].split("/")[3]): row for row in survey.read_rows(rows)}
    sure = same = both = magic_same = 0
    mimes = subprocess.run(
        ["file", "--brief", "--mime-type", *map(str, files)], capture_output=True, text=True, check=False
    ).stdout.split("\n")
    different = []
    for number, path in enumerate(files):
        row = ours.get(number)
        if row is None:
            continue
        matches = [match for match in theirs[str(path)] if match["id"] != "UNKNOWN"]
        if (len(matches) == 1 and "byte match" in matches[0]["basis"]) or (
            len(matches) == 1 and "container" in matches[0]["basis"]
        ):
            sure += 1
            same += row["puid"] == matches[0]["id"]
        if number < len(mimes) and row["mime"] and mimes[number]:
            both += 1
            agrees = media.agree(mimes[number], row["mime"]) or media.canonical(
                mimes[number]
            ) == media.canonical(row["mime"])
            magic_same += agrees
            if not agrees:
                different.append((row["mime"], mimes[number]))
    top = sorted({pair: different.count(pair) for pair in set(different)}.items(), key=lambda each: -each[1])[
        :8
    ]
    return {
        "binding_sure": sure,
        "binding_same": same,
        "libmagic_compared": both,
        "libmagic_same": magic_same,
        "libmagic_differs": [{"ours": pair[0], "libmagic": pair[1], "files": count} for pair, count in top],
    }


def memory_over(files: list[Path], records: int, folder: Path) -> dict[str, float]:
    """Peak memory of the reading process for a tenth of the records and for all of them."""
    small = [path for path in files if path.stat().st_size < 20_000][:200]
    peaks = {}
    for name, count in (("tenth", records // 10), ("all", records)):
        warc = folder / f"{name}.warc.gz"
        write_warc(warc, (small * (count // len(small) + 1))[:count], distinct=False)
        code = (
            "import resource, sys\nfrom pathlib import Path\nfrom webdepot.formats import survey\n"
            "survey.of_container(Path(sys.argv[1]), 'x', rows=Path(sys.argv[2]), workers=2)\n"
            "print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)\n"
        )
        command = [sys.executable, "-c", code, str(warc), str(folder / "m.gz")]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        peaks[name] = round(float(done.stdout), 1)
        warc.unlink()
    return {"records": records, **peaks}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--json", type=Path)
    parser.add_argument("--files", type=int, default=1200)
    parser.add_argument("--extra", action="append", default=[], help="more folders with files to sample")
    given = parser.parse_args()
    count = 120 if given.quick else given.files
    workers = 2
    files = find_files(count, given.extra)
    print(
        f"{platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}, load "
        f"{os.getloadavg()[0]:.1f}"
    )
    print(
        f"{len(files)} files, {sum(path.stat().st_size for path in files) / 1e6:.0f} MB, "
        f"{len({path.suffix for path in files})} extensions"
    )
    result: dict[str, object] = {"files": len(files), "load": os.getloadavg()[0]}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        warc, rows = folder / "all.warc.gz", folder / "rows.gz"
        write_warc(warc, files)
        binding = ours = float("inf")
        for _ in range(
            1 if given.quick else 5
        ):  # alternating, so that other load on the machine affects both equally
            took, theirs = time_binding(files, workers)
            binding = min(binding, took)
            ours = min(ours, time_ours(warc, rows, workers, checked=False).counts.work_s)
        fido_files = files[:: 4 if given.quick else 10]
        fido = time_fido(fido_files)
        rates = {
            "binding": len(files) / binding,
            "ours": len(files) / ours,
            "fido": len(fido_files) / fido if fido else None,
        }
        result |= {"identify_files_per_s": rates, "to_binding": rates["ours"] / rates["binding"]}
        result["to_fido"] = rates["ours"] / rates["fido"] if rates["fido"] else None
        print(
            f"identify   binding {rates['binding']:.0f}/s   ours from WARC {rates['ours']:.0f}/s   ratio "
            f"{result['to_binding']:.2f}"
        )
        if rates["fido"]:
            print(f"           opf-fido {rates['fido']:.0f}/s   ratio {result['to_fido']:.1f}")
        result["agreement"] = agreement(files, rows, theirs)
        print(f"agreement  {json.dumps(result['agreement'])}")
        mix = web_mix(files, 300 if given.quick else 3000)
        write_warc(folder / "mix.warc.gz", mix)
        done = time_ours(folder / "mix.warc.gz", rows, workers, checked=True)
        result["all_files_per_s"] = done.counts.files / done.counts.work_s
        print(
            f"all        identification + validation + digest of a web mix: {result['all_files_per_s']:.0f} "
            "files/s"
        )
        result["memory_mb"] = memory_over(files, 2000 if given.quick else 100_000, folder)
        print(
            f"memory     {result['memory_mb']}  (children at most "
            f"{resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024:.0f} MB)"
        )
    if given.json:
        given.json.write_text(json.dumps(result, indent=1) + "\n")


if __name__ == "__main__":
    main()
