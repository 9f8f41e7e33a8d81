"""Ports of this machine for servers that are about to start."""

import random
import socket

BELOW_EPHEMERAL = range(10_000, 22_000)
"""The system gives no outgoing connection a port of this range, so one that is free stays free for the server
that is about to start. With the neighbours that `free_ports` may ask for it ends below 32,768."""


def free_port(*, udp: bool = False) -> int:
    (port,) = free_ports(1, udp=udp)
    return port


def free_ports(count: int, *, neighbour: int = 0, udp: bool = False) -> list[int]:
    """Ports that are free, and whose neighbours that far above are free too."""
    ports: list[int] = []
    while len(ports) < count:
        port = random.SystemRandom().choice(BELOW_EPHEMERAL)
        if port not in ports and _is_free(port, udp) and (not neighbour or _is_free(port + neighbour, udp)):
            ports.append(port)
    return ports


def _is_free(port: int, udp: bool) -> bool:
    with socket.socket(type=socket.SOCK_DGRAM if udp else socket.SOCK_STREAM) as probe:
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True
