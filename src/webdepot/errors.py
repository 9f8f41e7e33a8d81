"""Every error a user can see.

    WebdepotError                 exit  http
    ├── ConfigError               2     500   the configuration file or an option is wrong
    ├── InputError                2     400   the input (a URL, file, form or query) is wrong
    │   └── TooExpensive          2     400   the query would take too long to answer
    ├── NotFound                  1     404   the named thing does not exist
    ├── Withdrawn                 1     410   it existed but was withdrawn permanently
    ├── NotPermitted              3     403   forbidden by a role, a decision or the site owner
    │   └── Closed                3     451   closed to this reader by an access rule (RFC 7725)
    ├── Conflict                  4     409   it is in use, in the wrong state, or already exists
    ├── RemoteError               5     502   another server failed; `retry` says whether to try again
    ├── CorruptData               6     500   stored data is damaged; `where` names it
    └── NoSpace                   7     507   a disk is full or read-only

A message says what happened, to which thing, and what to do next. Expected outcomes (a 404, a robots refusal,
an invalid file) are values, not errors. Built-in errors are not wrapped; the command line turns an `OSError`
into a one-line message.
"""

from typing import ClassVar


class WebdepotError(Exception):
    """An error with a message for people: `str(error)`. `code` is stable, for programs."""

    code: ClassVar[str] = "error"
    exit_status: ClassVar[int] = 1
    http_status: ClassVar[int] = 500


class ConfigError(WebdepotError):
    code = "config"
    exit_status = 2


class InputError(WebdepotError):
    code = "input"
    exit_status = 2
    http_status = 400


class TooExpensive(InputError):
    code = "too-expensive"


class NotFound(WebdepotError):
    code = "not-found"
    exit_status = 1
    http_status = 404


class Withdrawn(WebdepotError):
    code = "withdrawn"
    exit_status = 1
    http_status = 410


class NotPermitted(WebdepotError):
    code = "not-permitted"
    exit_status = 3
    http_status = 403


class Closed(NotPermitted):
    code = "closed"
    http_status = 451


class Conflict(WebdepotError):
    code = "conflict"
    exit_status = 4
    http_status = 409


class RemoteError(WebdepotError):
    code = "remote"
    exit_status = 5
    http_status = 502

    def __init__(self, message: str, *, retry: bool) -> None:
        super().__init__(message)
        self.retry = retry


class CorruptData(WebdepotError):
    code = "corrupt"
    exit_status = 6

    def __init__(self, message: str, *, where: str) -> None:
        super().__init__(message)
        self.where = where


class NoSpace(WebdepotError):
    code = "no-space"
    exit_status = 7
    http_status = 507


def cause_of(error: Exception) -> str:
    """An error of Python or of the database, as part of a message: without the name of its class or SQL."""
    if isinstance(error, KeyError):
        return f"{error} is missing"
    return str(getattr(error, "orig", None) or error)
