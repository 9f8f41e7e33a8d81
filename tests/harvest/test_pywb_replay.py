"""Every answer in our containers is shown by pywb as it was sent."""

import socket
import subprocess
import time
from pathlib import Path
from urllib.error import HTTPError
from urllib.request import HTTPRedirectHandler, build_opener

import pytest
from bench import site as generated
from harvest_site import Site
from test_whole_site import begin, build, found, held

from ports import free_port
from pywb_beside import PROGRAMS, needs_pywb
from webdepot.archive import Archive
from webdepot.model import HarvestState
from webdepot.services.harvest import runner


class _NoRedirects(HTTPRedirectHandler):
    def redirect_request(self, *args: object) -> None:
        return None


def asked(url: str) -> tuple[int, bytes, str]:
    """Status, body and Location, redirects not followed."""
    try:
        with build_opener(_NoRedirects).open(url, timeout=60) as answer:
            return answer.status, answer.read(), answer.headers.get("Location", "")
    except HTTPError as error:
        with error:
            return error.code, error.read(), error.headers.get("Location", "")


def wait_for(port: int, process: subprocess.Popen[bytes]) -> None:
    for _ in range(600):
        assert process.poll() is None, "pywb did not start"
        try:
            socket.create_connection(("127.0.0.1", port)).close()
            return
        except OSError:
            time.sleep(0.05)
    pytest.fail("pywb does not answer")


@pytest.mark.slow
@needs_pywb
def test_every_answer_is_replayed_by_pywb(site: Site, tmp_path: Path) -> None:
    plan = build(site, pages=6)
    found(tmp_path / "home")
    with Archive.open(tmp_path / "home") as archive:
        assert runner.run(archive, begin(archive, plan)).state is HarvestState.FINISHED
    containers = sorted(map(str, (tmp_path / "home").glob("harvests/*/warc/*.warc.gz")))
    there = tmp_path / "pywb"
    there.mkdir()
    for command in (["init", "ours"], ["add", "ours", *containers]):
        subprocess.run([PROGRAMS / "wb-manager", *command], cwd=there, check=True, capture_output=True)
    port = free_port()
    process = subprocess.Popen(
        [PROGRAMS / "wayback", "-b", "127.0.0.1", "-p", str(port), "-t", "2"],
        cwd=there,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        wait_for(port, process)
        bodies = {
            host + answer.path: answer
            for number, host in enumerate(plan.hosts)
            for answer in generated.iter_answers(plan, number)
        }
        for url in held(tmp_path / "home"):
            status, body, location = asked(f"http://127.0.0.1:{port}/ours/2020id_/{url}")
            if (
                location and status in (302, 307) and "/ours/" in location and url in location
            ):  # to the capture's own date
                status, body, location = asked(
                    location if location.startswith("http") else f"http://127.0.0.1:{port}{location}"
                )
            assert status == generated.expected(plan)[url], url
            if status == 200 and url in bodies:
                assert body == bodies[url].body, url
    finally:
        process.terminate()
        process.wait()
