"""A small process that ends a browser together with its harvest:
`python -I -S supervisor.py FOLDER COMMANDS ANSWERS LIFE PROGRAM OPTION...`

1. It moves itself, and so the browser, into a network namespace without an active interface, if the system
   allows that.
2. It starts the program with the two pipes of the protocol as its file descriptors 3 and 4.
3. It waits until the program ends, or until the other end of the pipe LIFE is closed: then the process that
   started it is dead.
4. It kills the program and all its descendants, and removes FOLDER.

It is run as a script, without our packages, because it is loaded for each start of a browser.
"""

import ctypes
import os
import resource
import select
import shutil
import signal
import sys
from contextlib import suppress
from pathlib import Path

_NEW_NET, _NEW_USER = 0x40000000, 0x10000000
_SET_DEATH_SIGNAL, _SET_SUBREAPER = 1, 36
_COMMANDS, _ANSWERS = 3, 4
_HIGH = 100
"""File descriptors from here on are free."""
_MOST_DATA_BYTES = 3 << 30
"""Most memory of each process of the browser. A page that wants more fails or crashes: its tab is lost, not
the machine.
"""


def main(arguments: list[str]) -> None:
    folder, commands, answers, life = Path(arguments[0]), *map(int, arguments[1:4])
    command = arguments[4:]
    library = ctypes.CDLL(None, use_errno=True)
    library.prctl(_SET_SUBREAPER, 1, 0, 0, 0)
    _leave_network(library)
    child = os.fork()
    if not child:
        _exec(library, commands, answers, command)
    os.close(commands)
    os.close(answers)
    watched = os.pidfd_open(child)
    select.select([watched, life], [], [])
    with suppress(ProcessLookupError):
        os.killpg(child, signal.SIGKILL)
    _kill_descendants()
    shutil.rmtree(folder, ignore_errors=True)


def _leave_network(library: ctypes.CDLL) -> None:
    """Leave the network if the system allows it; otherwise only the browser's options keep it from the
    network.
    """
    user, group = os.getuid(), os.getgid()
    if user == 0:
        library.unshare(_NEW_NET)
    elif library.unshare(_NEW_USER | _NEW_NET) == 0:
        with suppress(OSError):
            Path("/proc/self/setgroups").write_text("deny", encoding="ascii")
            Path("/proc/self/uid_map").write_text(f"{user} {user} 1", encoding="ascii")
            Path("/proc/self/gid_map").write_text(f"{group} {group} 1", encoding="ascii")


def _exec(library: ctypes.CDLL, commands: int, answers: int, command: list[str]) -> None:
    """In the child: run the program in its own process group; it dies with its supervisor."""
    os.setsid()
    library.prctl(_SET_DEATH_SIGNAL, signal.SIGKILL, 0, 0, 0)
    resource.setrlimit(resource.RLIMIT_DATA, (_MOST_DATA_BYTES, _MOST_DATA_BYTES))
    # Duplicated to high numbers first, because the given ones may be 3 and 4 in the wrong order.
    os.dup2(commands, _HIGH)
    os.dup2(answers, _HIGH + 1)
    os.dup2(_HIGH, _COMMANDS)
    os.dup2(_HIGH + 1, _ANSWERS)
    os.closerange(_ANSWERS + 1, _HIGH + 2)
    try:
        os.execv(command[0], command)  # noqa: S606 - the operator's program, no shell
    finally:
        os._exit(127)


def _kill_descendants() -> None:
    """Kill what the program left behind: orphans become our children."""
    children = Path(f"/proc/self/task/{os.getpid()}/children")
    while True:
        with suppress(OSError):
            for number in children.read_text(encoding="ascii").split():
                with suppress(ProcessLookupError):
                    os.kill(int(number), signal.SIGKILL)
        try:
            os.waitpid(-1, 0)
        except ChildProcessError:
            return


if __name__ == "__main__":
    main(sys.argv[1:])
