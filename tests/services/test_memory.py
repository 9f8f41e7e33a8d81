"""Memory does not grow with the number of captures: to import, audit and rebuild ten times as many takes the
same. Addresses are long, so that anything that is kept for each capture shows.
"""

import json
import subprocess
import sys
import zlib
from pathlib import Path

import pytest

FEW, MANY = 400, 4_000
MOST_GROWTH = 1.2
MOST_KILOBYTES = 300 << 10
LONG = "x" * 1500
SITE = "http://memory.example"
GIF = (
    b"GIF89a\x01\x00\x01\x00\x80\x00\x00\x00\x00\x00\xff\xff\xff,"
    b"\x00\x00\x00\x00\x01\x00\x01\x00\x00\x02\x02D\x01\x00;"
)
MEASURED = """
import json, sys
from pathlib import Path
from webdepot.archive import Archive
from webdepot.services import pipeline
from webdepot.services.admin import setup
from webdepot.services.depot import audit
from webdepot.services.index import indexer

def peak(pid="self"):
    return int(Path(f"/proc/{pid}/status").read_text().partition("VmHWM:")[2].split()[0])

def descendants(pid):
    for task in Path(f"/proc/{pid}/task").iterdir():
        for child in (task / "children").read_text().split():
            yield child
            yield from descendants(child)

def peak_of_others():
    # Of workers, and of the guarded processes that they keep.
    return max(map(peak, descendants("self")))

def main(folder):
    setup.create(folder / "home")
    peaks = {}
    with Archive.open(folder / "home") as archive:
        pipeline.import_files(archive, [str(folder / "warc")], collection="c")
        peaks |= {"import": peak(), "workers of import": peak_of_others()}
        assert audit.audit(archive, older_than_days=0).lost == 0
        peaks["audit"] = peak()
        indexer.rebuild(archive)
        peaks |= {"rebuild": peak(), "workers of rebuild": peak_of_others()}
        print(json.dumps([archive.captures.total(), peaks]))

if __name__ == "__main__":
    main(Path(sys.argv[1]))
"""


def write(folder: Path, captures: int) -> None:
    """Containers of 400 captures: pictures with the same bytes, and of forty captures one page with links."""
    (folder / "warc").mkdir(parents=True)
    for start in range(0, captures, 400):
        with (folder / "warc" / f"{start}.warc.gz").open("wb") as file:
            for number in range(start, start + 400):
                if number % 40:
                    file.write(response(f"/{number}/{LONG}", "image/gif", GIF))
                else:
                    links = "".join(f'<a href="/{number}-{at}/{LONG}">Link {at}</a> ' for at in range(20))
                    body = f"<title>Page {number}</title><p>Text of page {number}</p>{links}"
                    file.write(response(f"/{number}/", "text/html", body.encode()))


def response(path: str, mime: str, body: bytes) -> bytes:
    block = f"HTTP/1.1 200 OK\r\nContent-Type: {mime}\r\n\r\n".encode() + body
    head = (
        f"WARC/1.1\r\nWARC-Type: response\r\nWARC-Target-URI: {SITE}{path}\r\n"
        f"WARC-Date: 2024-05-17T12:30:00Z\r\nWARC-Record-ID: <urn:uuid:{zlib.crc32(path.encode()):032x}>\r\n"
        f"Content-Type: application/http; msgtype=response\r\nContent-Length: {len(block)}\r\n\r\n"
    )
    packer = zlib.compressobj(1, wbits=31)
    return packer.compress(head.encode() + block + b"\r\n\r\n") + packer.flush()


def peaks_of(folder: Path, captures: int) -> dict[str, int]:
    """The peaks of the main process and of the largest other one in kilobytes, after each step."""
    write(folder, captures)
    script = folder / "measured.py"
    script.write_text(MEASURED)
    done = subprocess.run([sys.executable, script, folder], check=True, capture_output=True, text=True)
    total, peaks = json.loads(done.stdout)
    assert total == captures
    return peaks


@pytest.mark.slow
def test_memory_does_not_grow_with_the_captures(tmp_path: Path):
    few, many = peaks_of(tmp_path / "few", FEW), peaks_of(tmp_path / "many", MANY)
    for step, peak in many.items():
        assert peak <= MOST_GROWTH * few[step], (step, few, many)
        assert peak <= MOST_KILOBYTES, (step, peak)
