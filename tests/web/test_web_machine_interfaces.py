"""Interfaces for other programs: resolved revisits, fuzzy addresses, the API description, and a real pywb
that uses our index.
"""

import json
import shutil
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from museum import EDITIONS, SITE, Served, Warc, ask, make_home, serving

from ports import free_port
from pywb_beside import PROGRAMS, needs_pywb
from webdepot.archive import Archive
from webdepot.services.access.cdx import cdx_server
from webdepot.services.access.cdx.cdx_server import CdxFileForm

BODY = b"<title>Clock</title><p>It still runs."


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Served, Path]]:
    folder = tmp_path_factory.mktemp("machines")
    warc = Warc(folder / "machines.warc.gz")
    warc.response(f"{SITE}/clock", EDITIONS[0], BODY)
    warc.revisit(f"{SITE}/clock", EDITIONS[1], BODY, of_url=f"{SITE}/clock", of_stamp=EDITIONS[0])
    warc.response(f"{SITE}/data?_=1234567890", EDITIONS[1], b"{}", mime="application/json")
    warc.response(f"{SITE}/a/__data.json", EDITIONS[1], b"{}", mime="application/json")
    for start in (0, 10):
        rows = f"{SITE}/rows?start={start}&length=10&_=123456789{start}"
        warc.response(rows, EDITIONS[1], b"[]", mime="application/json")
    path = warc.write()
    with serving(make_home(folder / "home", path)) as running:
        yield running, path


def test_revisits_are_resolved(told: tuple[Served, Path]):
    served, path = told
    query = f"{served.replay}/all/cdx?url={SITE}/clock&resolveRevisits=true"
    first, second = (json.loads(line) for line in ask(f"{query}&output=json").text.splitlines())
    assert (first["orig.filename"], second["mime"]) == ("-", "warc/revisit")
    assert (second["orig.filename"], second["orig.offset"], second["orig.length"]) == (
        path.name,
        first["offset"],
        first["length"],
    )
    assert '"orig.filename": "machines.warc.gz"' in ask(query).text
    assert (
        ask(f"{query}&output=text")
        .text.splitlines()[1]
        .endswith(f"{first['length']} {first['offset']} {path.name}")
    )


def test_cache_busters_are_forgiven_when_asked(told: tuple[Served, Path]):
    served, _ = told
    query = f"{served.replay}/all/cdx?url={SITE}/data%3F_%3D999999&output=json"
    assert ask(query).status == 404
    assert json.loads(ask(f"{query}&allowFuzzy=true").text)["url"] == f"{SITE}/data?_=1234567890"
    query = f"{served.replay}/all/cdx?url={SITE}/a/__data.json%3Fx-sveltekit-invalidated%3D01&output=json"
    assert json.loads(ask(f"{query}&allowFuzzy=true").text)["url"] == f"{SITE}/a/__data.json"
    # In the key the buster is the first argument, because they are sorted.
    query = f"{served.replay}/all/cdx?url={SITE}/rows%3Fstart%3D10%26length%3D10%26_%3D999999&output=json"
    rows = f"{SITE}/rows?start=10&length=10&_=12345678910"
    assert json.loads(ask(f"{query}&allowFuzzy=true").text)["url"] == rows
    assert ask(query.replace("D10%26len", "D20%26len") + "&allowFuzzy=true").status == 404


def test_everything_is_described(told: tuple[Served, Path]):
    served, _ = told
    described = json.loads(ask(f"{served.portal}/api/openapi.json").text)
    assert described["openapi"] == "3.1.0"
    values = {"collection": "all", "timestamp": EDITIONS[0], "url": f"{SITE}/clock", "form": "link"}
    ours = [
        path
        for path in described["paths"]
        if ("{" in path or path.startswith("/cdx")) and not path.startswith("/api/")
    ]
    assert len(ours) >= 7
    for path in ours:
        item = described["paths"][path]
        named = {each["name"] for each in item["get"]["parameters"] if each["in"] == "path"}
        assert named == {name for name in values if f"{{{name}}}" in path}
        base = item.get("servers", described["servers"])[0]["url"]
        query = "" if "{url}" in path else f"?url={SITE}/clock"
        assert ask(f"{base}{path.format(**values)}{query}").status in (200, 302), path


# --- pywb ---


@contextmanager
def pywb(folder: Path) -> Iterator[str]:
    port = free_port()
    base = f"http://127.0.0.1:{port}"
    with (folder / "log").open("wb") as log:
        command = [str(PROGRAMS / "wayback"), "-p", str(port), "-b", "127.0.0.1", "-d", str(folder)]
        process = subprocess.Popen(command, stdout=log, stderr=log)
        try:
            for _ in range(600):
                try:
                    urllib.request.urlopen(base + "/", timeout=5).close()
                    break
                except OSError:
                    assert process.poll() is None, (folder / "log").read_text()
                    time.sleep(0.05)
            yield base
        finally:
            process.terminate()
            process.wait(timeout=20)


@needs_pywb
@pytest.mark.parametrize("form", ["cdxj", "zipnum", "server"])
def test_a_real_pywb_sits_on_our_index(told: tuple[Served, Path], tmp_path: Path, form: str):
    served, path = told
    place = tmp_path / "collections" / "ours"
    for name in ("archive", "indexes"):
        (place / name).mkdir(parents=True)
    shutil.copy(path, place / "archive")
    if form == "server":
        config = (
            f"collections:\n  theirs:\n    index: cdx+{served.replay}/all/cdx\n"
            f"    archive_paths: {place / 'archive'}/\n"
        )
        (tmp_path / "config.yaml").write_text(config)
    else:
        with Archive.open(served.home) as archive:
            name = "index.cdxj" if form == "cdxj" else "index.cdxj.gz"
            cdx_server.export(archive, place / "indexes" / name, CdxFileForm(form))
    collection = "theirs" if form == "server" else "ours"
    with pywb(tmp_path) as base:
        for stamp in EDITIONS[:2]:
            with urllib.request.urlopen(f"{base}/{collection}/{stamp}id_/{SITE}/clock", timeout=30) as answer:
                assert answer.read() == BODY
        with pytest.raises(urllib.error.HTTPError):
            urllib.request.urlopen(f"{base}/{collection}/{EDITIONS[0]}id_/{SITE}/never", timeout=30)
