"""Check whether a server on this machine is ready."""

import http.client
import socket
from http import HTTPStatus

_PATIENCE_S = 3.0


def accepts(port: int) -> bool:
    """Whether something listens at this port."""
    with socket.socket() as probe:
        probe.settimeout(_PATIENCE_S)
        return probe.connect_ex(("127.0.0.1", port)) == 0


def answers(port: int, path: str, *, method: str = "GET") -> bool:
    """Whether a web server answers this request with success."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=_PATIENCE_S)
    try:
        connection.request(method, path)
        return connection.getresponse().status < HTTPStatus.BAD_REQUEST
    except (OSError, http.client.HTTPException):
        return False
    finally:
        connection.close()
