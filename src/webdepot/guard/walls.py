"""Walls around a process that reads hostile bytes. It raises them itself, before it loads a parser, and
cannot take them down again. Each is tried on its own: an old kernel or a container may lack one.

    privileges   no_new_privs; all capabilities dropped
    resources    no core dumps, few open files, limited file sizes, no new processes
    network      a network namespace of its own, with nothing in it
    files        Landlock: reads only the program and system libraries, writes only into given folders
    calls        seccomp: only the system calls of a parser; no sockets, programs, processes or namespaces

`network` needs a user namespace unless the process is root; where those are forbidden, `calls` still refuses
sockets. Landlock restricts only the calling thread, so the walls must go up before any other thread starts.

    https://docs.kernel.org/userspace-api/landlock.html
    https://docs.kernel.org/userspace-api/seccomp_filter.html
    https://docs.kernel.org/userspace-api/no_new_privs.html
"""

import ctypes
import errno
import os
import platform
import resource
import struct
import sys
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from webdepot.guard.environment import source_folder
from webdepot.guard.system_calls import ARCHITECTURES, Architecture

PRIVILEGES, RESOURCES, NETWORK, FILES, CALLS = "privileges", "resources", "network", "files", "calls"
ALL = (PRIVILEGES, RESOURCES, NETWORK, FILES, CALLS)
MOST_OPEN_FILES = 256


@dataclass(frozen=True, slots=True, kw_only=True)
class View:
    """What a process behind the walls may still do."""

    readable: Sequence[Path] = ()
    """Besides Python, this program and the system's libraries."""
    writable: Sequence[Path] = ()
    threads: bool = False
    largest_file_bytes: int = 64 << 20


def raise_walls(view: View) -> list[str]:
    """Raise all walls around this process; the names of those that hold."""
    library = ctypes.CDLL(None, use_errno=True)
    walls: tuple[tuple[str, Callable[[], None]], ...] = (
        # Namespaces first: they need rights that the others take away.
        (NETWORK, lambda: _leave_network(library)),
        (PRIVILEGES, lambda: _drop_privileges(library)),
        (RESOURCES, lambda: _limit_resources(view)),
        (FILES, lambda: _restrict_files(library, view)),
        (CALLS, lambda: _restrict_calls(library, view)),
    )
    holding = []
    for name, raise_wall in walls:
        try:
            raise_wall()
        except OSError:
            continue
        holding.append(name)
    return holding


def around_command() -> Callable[[], None]:
    """For `preexec_fn` of a program that is not ours and must start others: no new privileges, no core dumps,
    and no network where namespaces are allowed.
    """
    library = ctypes.CDLL(None, use_errno=True)  # before the fork: loading takes locks

    def confine() -> None:
        with suppress(OSError):
            _leave_network(library)
        _check(library.prctl(_SET_NO_NEW_PRIVILEGES, 1, 0, 0, 0))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))

    return confine


def _check(result: int) -> int:
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
    return result


# --- network ---

_NEW_USER, _NEW_NET = 0x10000000, 0x40000000


def _leave_network(library: ctypes.CDLL) -> None:
    user, group = os.geteuid(), os.getegid()
    if user == 0:
        _check(library.unshare(_NEW_NET))
        return
    _check(library.unshare(_NEW_USER | _NEW_NET))
    # Without these, it could not create files in its own folder.
    for name, text in (
        ("setgroups", "deny"),
        ("uid_map", f"{user} {user} 1"),
        ("gid_map", f"{group} {group} 1"),
    ):
        Path(f"/proc/self/{name}").write_text(text, encoding="ascii")


# --- privileges ---

_SET_NO_NEW_PRIVILEGES = 38
_CAPABILITIES_VERSION = 0x20080522


def _drop_privileges(library: ctypes.CDLL) -> None:
    _check(library.prctl(_SET_NO_NEW_PRIVILEGES, 1, 0, 0, 0))
    header = ctypes.create_string_buffer(struct.pack("=II", _CAPABILITIES_VERSION, 0))
    _check(library.syscall(_architecture().capset, header, ctypes.create_string_buffer(bytes(24))))


# --- resources ---


def _limit_resources(view: View) -> None:
    for kind, limit in (
        (resource.RLIMIT_CORE, 0),
        (resource.RLIMIT_FSIZE, view.largest_file_bytes),
        (resource.RLIMIT_NOFILE, MOST_OPEN_FILES),
        # Counted for all processes of the user: a process that needs threads cannot have a low number.
        *(() if view.threads else ((resource.RLIMIT_NPROC, 0),)),
    ):
        hard = resource.getrlimit(kind)[1]
        lowered = limit if hard == resource.RLIM_INFINITY else min(limit, hard)
        resource.setrlimit(kind, (lowered, lowered))


# --- files: Landlock ---

_CREATE_RULESET, _ADD_RULE, _RESTRICT_SELF = 444, 445, 446
"""System calls; these numbers are the same on all architectures."""
_ASK_VERSION = 1
_PATH_BENEATH = 1
_EXECUTE, _WRITE_FILE, _READ_FILE, _READ_DIR = (1 << bit for bit in range(4))
_REMOVE_DIR, _REMOVE_FILE, _MAKE_DIR, _MAKE_REGULAR, _MAKE_LINK = (1 << bit for bit in (4, 5, 7, 8, 12))
_TRUNCATE = 1 << 14
_OF_FILES = _EXECUTE | _WRITE_FILE | _READ_FILE | _TRUNCATE
_READ = _READ_FILE | _READ_DIR
_WRITE = _READ | _WRITE_FILE | _REMOVE_DIR | _REMOVE_FILE | _MAKE_DIR | _MAKE_REGULAR | _MAKE_LINK | _TRUNCATE
_RIGHTS_OF_VERSION = {1: (1 << 13) - 1, 2: (1 << 14) - 1, 3: (1 << 15) - 1, 4: (1 << 15) - 1}
_LATEST_RIGHTS = (1 << 16) - 1
_NETWORK_SINCE, _SCOPES_SINCE = 4, 6
_SYSTEM = (
    "/usr/lib",
    "/usr/lib64",
    "/usr/local/lib",
    "/lib",
    "/lib64",
    "/etc/ld.so.cache",
    "/etc/localtime",
    "/usr/share/zoneinfo",
    "/dev/urandom",
    "/dev/null",
)


def _restrict_files(library: ctypes.CDLL, view: View) -> None:
    version = _check(library.syscall(_CREATE_RULESET, None, 0, _ASK_VERSION))
    handled = _RIGHTS_OF_VERSION.get(version, _LATEST_RIGHTS)
    fields = [handled]
    if version >= _NETWORK_SINCE:
        fields.append(0b11)  # bind and connect by TCP
    if version >= _SCOPES_SINCE:
        fields.append(0b11)  # abstract sockets of others, signals to others
    attributes = struct.pack(f"={len(fields)}Q", *fields)
    rules = _check(library.syscall(_CREATE_RULESET, attributes, len(attributes), 0))
    try:
        for path in _readable(view):
            _allow(library, rules, path, _READ & handled)
        for path in view.writable:
            _allow(library, rules, path, _WRITE & handled)
        _check(library.syscall(_RESTRICT_SELF, rules, 0))
    finally:
        os.close(rules)


def _readable(view: View) -> Iterable[Path]:
    """Folders and files to read. The current folder is never among them: it may be the archive."""
    python = (sys.prefix, sys.exec_prefix, sys.base_prefix, sys.base_exec_prefix)
    libraries = (entry for entry in sys.path if entry and Path(entry).is_absolute())
    # `/usr/lib` and not all of `/usr`, where the prefix of the system's Python is.
    ours = (Path(entry) for entry in (*python, *libraries) if entry not in ("/", "/usr", "/usr/local"))
    yield from {*ours, source_folder(), *map(Path, _SYSTEM), *view.readable}


def _allow(library: ctypes.CDLL, rules: int, path: Path, rights: int) -> None:
    try:
        descriptor = os.open(path, os.O_PATH | os.O_CLOEXEC)
    except OSError:
        return  # what is not there cannot be read
    try:
        allowed = rights if path.is_dir() else rights & _OF_FILES
        rule = struct.pack("=Qi", allowed, descriptor)
        _check(library.syscall(_ADD_RULE, rules, _PATH_BENEATH, rule, 0))
    finally:
        os.close(descriptor)


# --- system calls: seccomp ---


_SET_SECCOMP, _FILTER_MODE = 22, 2
_LOAD, _IF_EQUAL, _IF_AT_LEAST, _IF_ANY_BIT, _RETURN = 0x20, 0x15, 0x35, 0x45, 0x06
_CALL_AT, _ARCHITECTURE_AT, _ARGUMENTS_AT = 0, 4, 16
_ALLOW, _KILL, _FAIL = 0x7FFF0000, 0x80000000, 0x00050000
_X32_CALLS = 0x40000000
_CLONE_THREAD = 0x10000
_IOCTLS = (0x5401, 0x5450, 0x5451, 0x541B)
"""TCGETS (Python asks it of every file), FIONCLEX, FIOCLEX, FIONREAD."""
_PRCTLS = (15, 16, 0x53564D41)
"""PR_SET_NAME, PR_GET_NAME, PR_SET_VMA (Go names its memory)."""
_Instruction = tuple[int, int, int, int]


def _architecture() -> Architecture:
    machine = ARCHITECTURES.get(platform.machine())
    if machine is None or sys.byteorder != "little" or struct.calcsize("P") != 8:
        raise OSError(errno.ENOSYS, f"system calls of {platform.machine()} are not known")
    return machine


def _restrict_calls(library: ctypes.CDLL, view: View) -> None:
    program = b"".join(struct.pack("=HBBI", *each) for each in _filter(_architecture(), view))
    code = ctypes.create_string_buffer(program, len(program))
    pointer = struct.pack("@HP", len(program) // 8, ctypes.addressof(code))
    _check(library.prctl(_SET_SECCOMP, _FILTER_MODE, ctypes.create_string_buffer(pointer), 0, 0))


def _filter(machine: Architecture, view: View) -> list[_Instruction]:
    """Two instructions for each system call that is always allowed, more where arguments decide."""
    calls = dict(machine.calls)
    program = [
        (_LOAD, 0, 0, _ARCHITECTURE_AT),
        (_IF_EQUAL, 1, 0, machine.audit),
        (_RETURN, 0, 0, _KILL),
        (_LOAD, 0, 0, _CALL_AT),
        (_IF_AT_LEAST, 0, 1, _X32_CALLS),
        (_RETURN, 0, 0, _FAIL | errno.EPERM),
        # glibc then uses `clone`, whose flags can be read here.
        *_on(calls.pop("clone3"), [(_RETURN, 0, 0, _FAIL | errno.ENOSYS)]),
        *_on(calls.pop("ioctl"), _if_argument(1, _IOCTLS)),
        *_on(calls.pop("prctl"), _if_argument(0, _PRCTLS)),
        *_on(calls.pop("prlimit64"), _if_argument(0, (0,))),  # this process only
        *_on(calls.pop("tgkill"), _if_argument(0, (os.getpid(),))),
    ]
    if view.threads:
        program += _on(
            calls["clone"],
            [
                (_LOAD, 0, 0, _ARGUMENTS_AT),
                (_IF_ANY_BIT, 0, 1, _CLONE_THREAD),
                (_RETURN, 0, 0, _ALLOW),
                (_RETURN, 0, 0, _FAIL | errno.EPERM),
            ],
        )
    del calls["clone"]
    for number in calls.values():
        program += _on(number, [(_RETURN, 0, 0, _ALLOW)])
    return [*program, (_RETURN, 0, 0, _FAIL | errno.EPERM)]


def _on(number: int, then: list[_Instruction]) -> list[_Instruction]:
    """What follows for this system call; it must end with a return."""
    return [(_IF_EQUAL, 0, len(then), number), *then]


def _if_argument(place: int, values: Sequence[int]) -> list[_Instruction]:
    """Allow the call if the low half of an argument has one of these values."""
    tests = [(_IF_EQUAL, len(values) - number, 0, value) for number, value in enumerate(values)]
    return [
        (_LOAD, 0, 0, _ARGUMENTS_AT + 8 * place),
        *tests,
        (_RETURN, 0, 0, _FAIL | errno.EPERM),
        (_RETURN, 0, 0, _ALLOW),
    ]
