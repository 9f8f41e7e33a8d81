"""A fuzzer whose inputs name the fault they cause, to see that the harness notices each."""

import os
import re

from webdepot.errors import InputError

_SLOW = re.compile(r"(a+)+$")
TOKENS = (b"documented", b"crash")


def one_input(data: bytes) -> None:
    match data:
        case b"documented":
            raise InputError("This is an error that the program documents.")
        case b"crash":
            raise KeyError("planted")
        case b"hang":  # inside a regular expression, which holds the interpreter
            _SLOW.match("a" * 60 + "!")
        case b"memory":
            bytearray(4 << 30)
        case b"native":
            os.abort()
