"""Ports for servers that tests start."""

import errno
import socket
from collections.abc import Sequence
from contextlib import ExitStack

from bench.server_programs import free_port

from webdepot.cluster.free_ports import free_ports

__all__ = ["free_port", "free_ports", "sockets_on_one_port"]


def sockets_on_one_port(addresses: Sequence[str]) -> list[socket.socket]:
    """Sockets bound to the same port of every address.

    A port that is free on the first address may be taken on another, so further ports are tried.
    """
    for _ in range(20):
        with ExitStack() as opened:
            sockets: list[socket.socket] = []
            try:
                for address in addresses:
                    one = opened.enter_context(socket.socket())
                    one.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                    one.bind((address, sockets[0].getsockname()[1] if sockets else 0))
                    sockets.append(one)
            except OSError as error:
                if error.errno != errno.EADDRINUSE:
                    raise
                continue
            opened.pop_all()
            return sockets
    raise OSError(errno.EADDRINUSE, f"no port is free on all of {', '.join(addresses)}")
