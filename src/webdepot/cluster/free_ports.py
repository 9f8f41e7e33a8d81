"""Ports of this machine for servers that are about to start."""

import random
import socket

BELOW_EPHEMERAL = range(10_000, 22_000)
"""Range of ports that the system does not use for outgoing connections, so that a free port stays free until
the server starts. Together with the neighbours that `free_ports` can be asked for, it ends below 32,768.
"""


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
