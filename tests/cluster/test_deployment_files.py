"""The files for several machines that other programs read: nginx and compose."""

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from webdepot.cli.command_table import COMMANDS
from webdepot.config import config

ROOT = Path(__file__).parents[2]
NGINX = shutil.which("nginx") or "/usr/sbin/nginx"


@pytest.mark.skipif(not Path(NGINX).exists(), reason="nginx is not installed")
def test_nginx_understands_the_file_for_two_portals(tmp_path):
    text = (ROOT / "deploy" / "nginx" / "webdepot.conf").read_text()
    # Names must exist when nginx starts, and certificates, too.
    text = re.sub(r"portal-[12]\.example\.org", "127.0.0.1", text).replace("/etc/ssl/", f"{tmp_path}/")
    command = ["openssl", "req", "-x509", "-newkey", "ed25519", "-nodes", "-subj", "/CN=x"]
    files = ["-keyout", str(tmp_path / "archive.key"), "-out", str(tmp_path / "archive.pem")]
    subprocess.run([*command, *files], check=True, capture_output=True)
    whole = tmp_path / "nginx.conf"
    whole.write_text(
        f"pid {tmp_path}/pid;\nerror_log stderr;\nevents {{}}\nhttp {{\naccess_log off;\n{text}\n}}\n"
    )
    done = subprocess.run(
        [NGINX, "-t", "-c", str(whole), "-p", str(tmp_path)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert "warn" not in done.stderr


def test_compose_starts_commands_that_exist_with_settings_that_are_valid(tmp_path):
    yaml = pytest.importorskip("yaml")
    services = yaml.safe_load((ROOT / "compose.yaml").read_text())["services"]
    ours = {
        name: service
        for name, service in services.items()
        if "command" in service and "webdepot" in service["image"]
    }
    assert {service["command"][0] for service in ours.values()} == {
        "init",
        "serve",
        "scheduler",
        "batch",
        "harvester",
    }
    assert {service["command"][0] for service in ours.values()} <= {command.name for command in COMMANDS}
    for service in services.values():
        assert set(service.get("depends_on", ())) <= set(services)
    environment = {
        name: re.sub(r"\$\{\w+:\?\}", "secret", str(value))
        for name, value in ours["portal-1"]["environment"].items()
    }
    settings = config.from_tree(tmp_path, {}, environment=environment, origin="compose.yaml")
    known = {f"WEBDEPOT_{name.replace('.', '_')}".upper() for name in settings.sources}
    places = {name for name in environment if name.startswith("WEBDEPOT_PLACE_")}
    assert set(environment) == known | places and len(places) == 4
    assert settings.engine.kind == "dask" and not settings.jobs.in_server
    assert (ROOT / services["nginx"]["volumes"][0].partition(":")[0]).exists()
