"""Peer connections bypass the worker and every Content-Security-Policy, by UDP: an archived page must not get
one in any way.
"""

import socket
from collections.abc import Iterator

import pytest
from leaks import Leaks, launched
from museum import EDITIONS, Served, Warc, make_home, serving

pytestmark = pytest.mark.browser
HOSTILE = """<!doctype html><title>Hostile</title><body><script>
const whole = (0, eval)("this");
document.body.append(document.createElement("iframe"));
const Peer = whole[whole.length - 1].RTCPeerConnection;
console.log("trying with a " + typeof Peer);
const peer = new Peer({ iceServers: [{ urls: "stun:127.0.0.1:PORT" }] });
peer.createDataChannel("leak");
peer.createOffer().then((offer) => peer.setLocalDescription(offer));
</script>"""


@pytest.fixture(scope="module")
def outside() -> Iterator[socket.socket]:
    """A server of the live web that peers would ask for their address."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as made:
        made.bind(("127.0.0.1", 0))
        made.settimeout(4)
        yield made


@pytest.fixture(scope="module")
def hostile(tmp_path_factory: pytest.TempPathFactory, outside: socket.socket) -> Iterator[Served]:
    folder = tmp_path_factory.mktemp("peers")
    page = HOSTILE.replace("PORT", str(outside.getsockname()[1])).encode()
    with serving(
        make_home(
            folder / "home",
            Warc(folder / "peers.warc.gz").response("http://hostile.org/", EDITIONS[0], page).write(),
        )
    ) as made:
        yield made


def test_a_peer_connection_taken_from_a_fresh_frame_asks_nobody(hostile: Served, outside: socket.socket):
    with Leaks.listening() as leaks, launched(leaks) as browser:
        page = browser.new_page()
        with page.expect_console_message(
            lambda said: said.text.startswith("trying"), timeout=60_000
        ) as heard:
            page.goto(f"{hostile.frame}/all/{EDITIONS[0]}/http://hostile.org/")
        assert heard.value.text == "trying with a function", (
            "the means are there: it is the browser that must refuse"
        )
        with pytest.raises(TimeoutError):
            outside.recvfrom(2000)
