"""The systemd unit of `webdepot service install`: rated by systemd, and complete enough to run Webdepot."""

import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from webdepot.cli.command_table import COMMANDS
from webdepot.errors import Conflict, InputError
from webdepot.services.admin import service_unit

MOST_EXPOSURE = 2.0
HAS_SYSTEMD = pytest.mark.skipif(
    not shutil.which("systemd-analyze"), reason="systemd-analyze is not installed"
)


@pytest.fixture
def account(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """A user, and a program in a folder that all can read: those of tests are closed to others."""
    with TemporaryDirectory() as name:
        folder = Path(name)
        folder.chmod(0o755)
        (folder / "webdepot").write_text("#!/bin/sh\n")
        (folder / "webdepot").chmod(0o755)
        monkeypatch.setattr(service_unit.sys, "executable", str(folder / "python"))
        yield "daemon"


@HAS_SYSTEMD
@pytest.mark.parametrize("role", service_unit.ServiceRole)
def test_each_role_has_a_unit_that_systemd_understands(home: Path, account: str, tmp_path: Path, role):
    described = service_unit.describe(home, for_user=False, account=account, role=role)
    unit = tmp_path / described.path.name
    unit.write_text(described.text, encoding="utf-8")
    done = subprocess.run(
        ["systemd-analyze", "verify", "--man=no", str(unit)], capture_output=True, text=True, check=False
    )
    assert not [line for line in done.stderr.splitlines() if "webdepot" in line], done.stderr
    command = re.search(r"(?m)^ExecStart=\S+ (\S+)$", described.text)[1].strip('"')
    assert command in {each.name for each in COMMANDS}
    assert f"systemctl edit {described.path.stem}" in described.text
    assert f"systemctl enable --now {described.path.stem}" in described.commands


def test_the_command_of_a_unit_has_its_options(home: Path, account: str):
    described = service_unit.describe(
        home,
        for_user=False,
        account=account,
        role=service_unit.ServiceRole.HARVESTER,
        arguments=["--parts", "4", "--browser"],
    )
    (line,) = [line for line in described.text.splitlines() if line.startswith("ExecStart=")]
    assert line.replace('"', "").endswith("/webdepot harvester --parts 4 --browser")


@pytest.fixture
def unit(home: Path, account: str, tmp_path: Path) -> Path:
    path = tmp_path / "webdepot.service"
    described = service_unit.describe(home, for_user=False, account=account, writable=[Path("/mnt/a b%")])
    path.write_text(described.text, encoding="utf-8")
    return path


@HAS_SYSTEMD
def test_systemd_rates_the_unit_below_two(unit: Path):
    done = subprocess.run(
        ["systemd-analyze", "security", "--offline=true", "--no-pager", str(unit)],
        capture_output=True,
        text=True,
        check=False,
    )
    rating = re.search(r"Overall exposure level for webdepot.service: ([0-9.]+)", done.stdout)
    assert rating, done.stderr
    assert float(rating[1]) < MOST_EXPOSURE, done.stdout


@HAS_SYSTEMD
@pytest.mark.parametrize("for_user", [False, True])
def test_systemd_understands_every_line(unit: Path, home: Path, for_user: bool):
    if for_user:
        odd = shutil.copytree(home, home.with_name("my $home 100% 'x'"))
        unit.write_text(service_unit.describe(odd, for_user=True).text, encoding="utf-8")
    done = subprocess.run(
        ["systemd-analyze", "verify", "--man=no", str(unit)], capture_output=True, text=True, check=False
    )
    about_it = [line for line in done.stderr.splitlines() if str(unit) in line or "webdepot" in line]
    assert not about_it, done.stderr
    if for_user:
        written = re.search(r'(?m)^Environment="(.*)"$', unit.read_text(encoding="utf-8"))[1]
        assert written == f"WEBDEPOT_HOME={odd}".replace("%", "%%")


def test_the_unit_lets_the_walls_and_the_sandbox_of_chromium_stand(unit: Path):
    """What the guard and Chromium's sandbox call must not be refused."""
    lines = unit.read_text(encoding="utf-8").splitlines()
    calls = {word for line in lines if line.startswith("SystemCallFilter=") for word in line[17:].split()}
    assert {"@system-service", "seccomp", "chroot", "landlock_restrict_self"} <= calls
    assert "RestrictNamespaces=user net pid" in lines
    assert not any(line.startswith("MemoryDenyWriteExecute=") for line in lines)  # V8 compiles
    assert {"UMask=0077", "OOMPolicy=continue", "CapabilityBoundingSet=", "User=daemon"} <= set(lines)
    assert lines[-4].startswith("ReadWritePaths=") and lines[-4].endswith(' "/mnt/a b%%"')


def test_a_depot_elsewhere_is_writable(home: Path, account: str):
    (home / "webdepot.toml").write_text('[depot]\nplace = "/mnt/vault"\n')
    described = service_unit.describe(home, for_user=False, account=account)
    assert f"ReadWritePaths={home} /mnt/vault\n" in described.text


def test_only_its_own_file_is_replaced(home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    unit = service_unit.describe(home, for_user=True)
    assert unit.path == tmp_path / "config/systemd/user/webdepot.service"
    assert service_unit.install(unit) and not service_unit.install(unit)
    assert unit.path.read_text() == unit.text and unit.path.stat().st_mode & 0o777 == 0o644
    unit.path.write_text("[Service]\nExecStart=/bin/true\n")
    with pytest.raises(Conflict, match="was not written by this command"):
        service_unit.install(unit)
    assert "/bin/true" in unit.path.read_text()


def test_who_cannot_run_it_is_told_why(home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    with pytest.raises(InputError, match="adduser --system"):
        service_unit.describe(home, for_user=False, account="no-such-user")
    with pytest.raises(InputError, match="must not run as root"):
        service_unit.describe(home, for_user=False, account="root")
    closed = tmp_path / "closed"
    closed.mkdir(mode=0o700)
    (closed / "webdepot").touch()
    monkeypatch.setattr(service_unit.sys, "executable", str(closed / "python"))
    with pytest.raises(InputError, match="is closed to other users"):
        service_unit.describe(home, for_user=False, account="daemon")
