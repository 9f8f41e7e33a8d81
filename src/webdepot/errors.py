"""Every error a user can meet.

    WebdepotError                 exit  http
    ├── ConfigError               2     500   the configuration file or an option is wrong
    ├── InputError                2     400   something given to us (URL, file, form, query) is wrong
    ├── NotFound                  1     404   the named thing does not exist
    ├── Withdrawn                 1     410   it was here and was withdrawn; it will not come back
    ├── NotPermitted              3     403   a role, a person's decision or an owner's answer forbids it
    │   └── Closed                3     451   a rule of access closes it to whoever asks (RFC 7725)
    ├── Conflict                  4     409   somebody else holds it, or it exists already in another form
    ├── RemoteError               5     502   another machine failed; `retry` says whether to try again
    ├── CorruptData               6     500   bytes of ours are not what they were; `where` says which
    └── NoSpace                   7     507   a disk is full or read-only

A message says what, on which thing, and what to do. Expected outcomes (a 404, a robots refusal, an invalid
file) are values, not errors. Built-in errors pass where they are true; the command line turns an `OSError`
into one line.
"""

from typing import ClassVar


class WebdepotError(Exception):
    """An error with words for a person; the face that shows it needs no more than `str(error)`."""

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
