"""A whole cluster on this machine: `make test-cluster`."""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from ports import free_port
from security.behind_nginx import NGINX, PORTAL, REPLAY, SITES, Front, wait_for_port, write_certificate
from small_warcs import write_warc
from webdepot.cluster import plan, readiness

pytestmark = pytest.mark.skipif(
    os.environ.get("WEBDEPOT_TEST_CLUSTER") != "1", reason="takes a minute: make test-cluster"
)
WEBDEPOT = str(Path(sys.executable).parent / "webdepot")
ROOT = Path(__file__).parents[2]
PUBLIC = {
    "WEBDEPOT_WEB_PORTAL_URL": f"https://{PORTAL}",
    "WEBDEPOT_WEB_REPLAY_URL": f"https://{REPLAY}",
    "WEBDEPOT_WEB_TRUSTED_PROXIES": "127.0.0.1",
}
"""Settings of portals that are behind nginx."""
PAGES = {
    f"http://x.example/{number}": b"<!doctype html><title>Mill %d</title>" % number for number in range(3)
}


def run(
    *arguments: str, status: int = 0, environment: dict[str, str] | None = None
) -> list[dict[str, object]]:
    done = subprocess.run(
        [WEBDEPOT, "--json", *arguments],
        capture_output=True,
        text=True,
        timeout=280,
        check=False,
        env={**os.environ, **(environment or {})},
    )
    assert done.returncode == status, done.stdout + done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


def states(home: Path, status: int = 0) -> dict[str, str]:
    return {row["name"]: row["state"] for row in run("cluster", "status", str(home), status=status)}


@pytest.fixture(scope="module")
def known(tmp_path_factory) -> Iterator[plan.ClusterPlan]:
    """A cluster that was started, has some pages, and is stopped at the end."""
    folder = tmp_path_factory.mktemp("cluster")
    home = folder / "home"
    run("cluster", "status", str(home), status=1)
    try:
        (result,) = run("cluster", "up", str(home), environment=PUBLIC)
        assert len(result["portals"]) == 2 and not result["is_elsewhere"]
        assert set(states(home).values()) == {"running"}
        known = plan.load(home)
        write_warc(folder / "mills.warc.gz", PAGES)
        run("--home", str(home), "import", str(folder / "mills.warc.gz"), environment=known.environment)
        yield known
    finally:
        run("cluster", "down", str(home))
        known = plan.load(home)
        shutil.rmtree(known.postgresql.folder)  # outside the home if root runs the tests
    assert set(states(home, status=1).values()) == {"not running"}
    assert run("cluster", "down", str(home)) == [{"stopped": 0}]
    assert not readiness.accepts(known.ports["postgresql"])


@pytest.fixture
def home(known) -> Path:
    """The home of the archive, with everything running."""
    run("cluster", "up", str(known.folder.parent), environment=PUBLIC)
    return known.folder.parent


def test_a_process_that_was_killed_is_started_again(home, known):
    (doctor, *_) = [
        row
        for row in run("--home", str(home), "doctor", environment=known.environment)
        if "PostgreSQL" in str(row)
    ]
    assert "answers" in str(doctor)
    run("cluster", "kill", "portal-2", str(home))
    run("cluster", "kill", "portal-2", str(home), status=2)
    run("cluster", "kill", "nobody", str(home), status=1)
    assert [name for name, state in states(home, status=1).items() if state != "running"] == ["portal-2"]
    assert readiness.answers(known.ports["portal-1-port"], "/ready")
    assert run("cluster", "up", str(home), environment=PUBLIC)[0]["started"] == ["portal-2"]
    assert set(states(home).values()) == {"running"}


@contextmanager
def in_front(known: plan.ClusterPlan, folder: Path) -> Iterator[Front]:
    """nginx with the file for two portals."""
    certificate, port = write_certificate(folder, [PORTAL, REPLAY, SITES]), free_port()
    ours = {"listen 443": f"listen 127.0.0.1:{port}"}
    ours |= {f"/etc/ssl/archive.{ending}": str(certificate) for ending in ("pem", "key")}
    for number in (1, 2):
        for kind, theirs in (("port", 8080), ("replay_port", 8081)):
            ours[f"portal-{number}.example.org:{theirs}"] = (
                f"127.0.0.1:{known.ports[f'portal-{number}-{kind}']}"
            )
    text = (ROOT / "deploy" / "nginx" / "webdepot.conf").read_text()
    text = re.sub("|".join(map(re.escape, ours)), lambda match: ours[match[0]], text)
    # Which portal answered, for this test.
    text = text.replace("proxy_pass", "add_header X-Portal $upstream_addr always;\nproxy_pass")
    kinds = ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
    temporary = "".join(f"{kind}_temp_path {folder}/{kind}; " for kind in kinds)
    conf = folder / "nginx.conf"
    conf.write_text(
        f"daemon off; master_process off; pid {folder}/nginx.pid; error_log {folder}/error.log;\n"
        f"events {{ worker_connections 512; }}\nhttp {{ access_log off; {temporary}\n{text}\n}}\n"
    )
    process = subprocess.Popen([NGINX, "-c", conf, "-p", folder], stderr=subprocess.DEVNULL)
    try:
        wait_for_port(port)
        yield Front(folder, port, certificate)
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(20)


@pytest.mark.skipif(not Path(NGINX).exists(), reason="nginx is not installed")
def test_a_reader_does_not_notice_that_a_portal_dies_behind_nginx(home, known, tmp_path):
    adding = [
        WEBDEPOT,
        "--home",
        str(home),
        "account",
        "add",
        "anna",
        "--role",
        "administrator",
        "--password-stdin",
    ]
    environment = {**os.environ, **known.environment}
    subprocess.run(adding, input="a long password of anna\n", text=True, check=True, env=environment)
    with in_front(known, tmp_path) as front:
        signed_in = front.ask(
            PORTAL,
            "/sign-in",
            ("Content-Type", "application/x-www-form-urlencoded"),
            method="POST",
            body=b"name=anna&password=a+long+password+of+anna&to=/",
        )
        assert signed_in.status == 303, signed_in.text
        cookie = ("Cookie", signed_in.headers["Set-Cookie"].partition(";")[0])

        def portal_of(source: str) -> str:
            answer = front.ask(PORTAL, "/machines", cookie, source=source)
            assert answer.status == 200, answer.text
            return str(answer.headers["X-Portal"])

        # A reader stays at a portal; another address goes to the other one, with the same sign-in.
        by_source = {source: portal_of(source) for source in (f"127.0.0.{number}" for number in range(1, 9))}
        assert set(by_source.values()) == {
            f"127.0.0.1:{known.ports[f'portal-{each}-port']}" for each in (1, 2)
        }

        def read() -> None:
            for url, body in PAGES.items():
                for source in by_source:
                    answer = front.ask(REPLAY, f"/all/20240517123001id_/{url}", source=source)
                    assert (answer.status, answer.body) == (200, body)

        read()
        run("cluster", "kill", "portal-1", str(home))
        for source in by_source:
            assert portal_of(source).rpartition(" ")[2].endswith(str(known.ports["portal-2-port"]))
        read()
        assert front.ask(PORTAL, "/metrics", cookie).status == 404
