"""The systemd units that run the portal and other roles: their text, and where they are written.

Two forms (https://www.freedesktop.org/software/systemd/man/latest/systemd.exec.html):

    system   runs as a user of its own, with every protection that Webdepot and Chromium allow
    user     runs as the person who installs it; a user's systemd can apply only a part of the protections

Each role has a unit of its own (`ServiceRole`). A unit is for the paths of this installation. Make your own
changes with `systemctl edit webdepot`: they survive a new version. A file that somebody else wrote is never
replaced.
"""

import os
import pwd
import stat
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from webdepot import durable
from webdepot.config import config as configuration
from webdepot.errors import Conflict, InputError, NotPermitted

_MARK = "# Written by `webdepot service install`. Change it with: systemctl edit "
_SECRETS = "/etc/webdepot/environment"
"""Passwords and keys that all roles need, if the archive is on several machines; the file may be missing."""
_SYSTEM_FOLDER = Path("/etc/systemd/system")
_HOMES = (Path("/home"), Path("/root"), Path("/run/user"))
_BY_SYSCALL_FILTER = """\
UMask=0077
NoNewPrivileges=true
LockPersonality=true
RestrictRealtime=true
RestrictSUIDSGID=true
RestrictAddressFamilies=AF_UNIX AF_INET AF_INET6
RestrictNamespaces=user net pid
SystemCallArchitectures=native
SystemCallFilter=@system-service seccomp chroot
SystemCallFilter=landlock_create_ruleset landlock_add_rule landlock_restrict_self
SystemCallErrorNumber=EPERM
MemoryMax=80%
OOMPolicy=continue
TasksMax=4096
LimitCORE=0
"""
"""Protections that the systemd of a user can apply, too."""
_BY_ROOT = """\
CapabilityBoundingSet=
AmbientCapabilities=
ProtectSystem=strict
PrivateTmp=true
PrivateDevices=true
PrivateMounts=true
PrivateUsers=true
ProtectKernelTunables=true
ProtectKernelModules=true
ProtectKernelLogs=true
ProtectControlGroups=true
ProtectClock=true
ProtectHostname=true
ProtectProc=invisible
KeyringMode=private
RemoveIPC=true
LimitNOFILE=65536
"""


class ServiceRole(StrEnum):
    """What a unit runs: a command of ours of the same name."""

    SERVE = "serve"
    SCHEDULER = "scheduler"
    BATCH = "batch"
    HARVESTER = "harvester"

    @property
    def unit(self) -> str:
        return "webdepot" if self is ServiceRole.SERVE else f"webdepot-{self.value}"


_DESCRIPTIONS = {
    ServiceRole.SERVE: "Webdepot portal and replay",
    ServiceRole.SCHEDULER: "Webdepot scheduler",
    ServiceRole.BATCH: "Webdepot worker for jobs",
    ServiceRole.HARVESTER: "Webdepot harvester",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class ServiceUnit:
    path: Path
    text: str
    commands: Sequence[str]
    """What to run after it was written."""


def describe(
    home: Path,
    *,
    for_user: bool,
    account: str = "webdepot",
    writable: Sequence[Path] = (),
    role: ServiceRole = ServiceRole.SERVE,
    arguments: Sequence[str] = (),
) -> ServiceUnit:
    """The unit of a role for an archive, with `arguments` for its command; InputError if something cannot be
    written into a unit or the account could not run the program.

    `writable` are folders outside the home that the service writes to, such as other places of the depot.
    """
    program = Path(sys.executable).parent / "webdepot"
    if not program.exists():
        raise InputError(f"There is no program {program}. Install Webdepot with pipx or pip.")
    folders = list(dict.fromkeys([home, *writable, *_depot_folder(home)]))
    if for_user:
        path = _user_folder() / f"{role.unit}.service"
        control = "systemctl --user"
        last = "loginctl enable-linger   # so that it also runs while you are not signed in"
    else:
        _check_program(program, account)
        path, control, last = _SYSTEM_FOLDER / f"{role.unit}.service", "systemctl", ""
    command = [str(program).replace("$", "$$"), role.value, *(each.replace("$", "$$") for each in arguments)]
    lines = [
        f"Environment={_quoted(f'WEBDEPOT_HOME={home}')}",
        *([] if for_user else [f"EnvironmentFile=-{_SECRETS}"]),
        f"ExecStart={' '.join(map(_quoted, command))}",
        "Restart=on-failure",
        *([] if for_user else [f"User={account}"]),
        *_BY_SYSCALL_FILTER.splitlines(),
        *([] if for_user else _system_lines(program, folders)),
    ]
    text = (
        f"{_MARK}{role.unit}\n[Unit]\nDescription={_DESCRIPTIONS[role]}\nAfter=network.target\n\n"
        f"[Service]\n{chr(10).join(lines)}\n\n"
        f"[Install]\nWantedBy={'default.target' if for_user else 'multi-user.target'}\n"
    )
    commands = (f"{control} daemon-reload", f"{control} enable --now {role.unit}", last)
    return ServiceUnit(path=path, text=text, commands=[command for command in commands if command])


def install(unit: ServiceUnit) -> bool:
    """Write the unit; return whether it is new or changed. Conflict if somebody else wrote the file."""
    try:
        before = unit.path.read_text(encoding="utf-8", errors="replace") if unit.path.exists() else None
        if before is not None and not before.startswith(_MARK):
            raise Conflict(
                f"{unit.path} was not written by this command. Move it away, or compare it with: "
                "webdepot service install --print"
            )
        if before == unit.text:
            return False
        unit.path.parent.mkdir(parents=True, exist_ok=True)
        durable.write_whole(unit.path, unit.text.encode())
        unit.path.chmod(0o644)
    except PermissionError as error:
        raise NotPermitted(
            f"You cannot write to {unit.path}. Run it as root, or install it for yourself: "
            "webdepot service install --user"
        ) from error
    return True


def _system_lines(program: Path, folders: Sequence[Path]) -> Iterator[str]:
    yield from _BY_ROOT.splitlines()
    needed = [*folders, program, Path(sys.base_prefix)]
    is_in_home = any(path.is_relative_to(parent) for path in needed for parent in _HOMES)
    yield f"ProtectHome={'read-only' if is_in_home else 'true'}"
    yield f"ReadWritePaths={' '.join(_quoted(str(folder)) for folder in folders)}"


def _depot_folder(home: Path) -> list[Path]:
    """The depot's main place, if it is a folder outside the home."""
    place = configuration.read(home).depot.place
    if "://" in place or place.startswith("s3:"):
        return []
    folder = Path(os.path.normpath(home / place))
    return [] if folder.is_relative_to(home) else [folder]


def _check_program(program: Path, account: str) -> None:
    """InputError if the account does not exist or may not run the program."""
    try:
        user = pwd.getpwnam(account)
    except (KeyError, ValueError):
        raise InputError(
            f"There is no user {account[:40]!r}. Create it: "
            f"adduser --system --group --home /srv/archive {account[:40]}"
        ) from None
    if user.pw_uid == 0:
        raise InputError("The service must not run as root. Give another user with --account.")
    _check_readable(program, account, user.pw_uid)


def _check_readable(program: Path, account: str, uid: int) -> None:
    # The interpreter of a virtual environment is a link to another folder.
    folders = {*program.resolve().parents, *Path(sys.executable).resolve().parents}
    for folder in sorted(folders):
        facts = folder.stat()
        if facts.st_uid != uid and not facts.st_mode & stat.S_IXOTH:
            raise InputError(
                f"{account} cannot run {program}: {folder} is closed to other users. Install Webdepot where "
                "all can read it, with a Python that all can run: "
                "/usr/bin/python3 -m venv /opt/webdepot && /opt/webdepot/bin/pip install WHEEL"
            )


def _user_folder() -> Path:
    return Path(os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config") / "systemd" / "user"


def _quoted(text: str) -> str:
    """A value for a unit, where %, quotes and backslashes have a meaning."""
    if any(ord(letter) < 0x20 for letter in text):
        raise InputError(f"{text[:100]!r} cannot be written into a unit: it contains control characters.")
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("%", "%%")
    return f'"{escaped}"' if escaped != text or " " in text or "'" in text else text
