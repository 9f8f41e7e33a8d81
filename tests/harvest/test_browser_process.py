"""The process of Chromium: it cannot reach the network, ends with its harvester, and a clear message says when it is missing."""

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest
from harvest_site import Site

from webdepot import event_loop
from webdepot.errors import ConfigError
from webdepot.harvest.browser import launch, supervisor
from webdepot.harvest.browser.browser import Browser
from webdepot.harvest.browser.devtools import DevTools

pytestmark = pytest.mark.browser
CHROMIUM = Path("/usr/bin/chromium")
PEERS = """(async () => {
  const peer = new RTCPeerConnection(), found = [];
  peer.createDataChannel('x');
  const done = new Promise(end => peer.onicecandidate = event => event.candidate ? found.push(event.candidate.candidate) : end());
  await peer.setLocalDescription(await peer.createOffer());
  await done;
  return found.join();
})()"""


def test_the_browser_itself_has_no_way_out(site: Site, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Without our answers it reaches nothing, not even this machine; nor where the system does not let it
    leave the network.
    """
    script = Path(supervisor.__file__).read_text()
    (tmp_path / "supervisor.py").write_text(script.replace("    _leave_network(library)\n", ""))
    monkeypatch.setattr(supervisor, "__file__", str(tmp_path / "supervisor.py"))
    site.page("/", "<p>reached</p>")

    async def main() -> tuple[str, str]:
        process = launch.start(CHROMIUM, sandbox=False)
        devtools = await DevTools.open(process.commands, process.answers)
        try:
            made = await devtools.call("Target.createTarget", {"url": "about:blank"}, time_s=60)
            session = (
                await devtools.call("Target.attachToTarget", {"targetId": made["targetId"], "flatten": True})
            )["sessionId"]
            went = await devtools.call("Page.navigate", {"url": f"{site.url}/"}, session=session, time_s=60)
            peers = await devtools.call(
                "Runtime.evaluate", {"expression": PEERS, "awaitPromise": True}, session=session, time_s=60
            )
            return went.get("errorText", ""), peers["result"]["value"]
        finally:
            devtools.close()
            process.end()

    reached, peers = event_loop.run(main())
    assert reached == "net::ERR_PROXY_CONNECTION_FAILED" and peers == ""
    assert site.log == []


KILLED = """
import asyncio, os, sys
from pathlib import Path
from webdepot import event_loop
from webdepot.harvest.browser import launch
from webdepot.harvest.browser.devtools import DevTools

async def main():
    process = launch.start(Path(sys.argv[1]), sandbox=False)
    devtools = await DevTools.open(process.commands, process.answers)
    await devtools.call("Browser.getVersion")
    print(process.folder, flush=True)
    await asyncio.sleep(60)

event_loop.run(main())
"""


def test_a_killed_harvester_leaves_no_browser():
    harvester = subprocess.Popen(
        [sys.executable, "-c", KILLED, str(CHROMIUM)], stdout=subprocess.PIPE, text=True
    )
    assert harvester.stdout is not None
    folder = harvester.stdout.readline().strip()
    harvester.kill()
    harvester.wait()
    harvester.stdout.close()
    until_s = time.monotonic() + 20
    while (_running(folder) or Path(folder).exists()) and time.monotonic() < until_s:
        time.sleep(0.05)
    assert not _running(folder) and not Path(folder).exists()


def _running(folder: str) -> list[str]:
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                command = (entry / "cmdline").read_bytes().decode("utf-8", "replace")
            except OSError:
                continue
            if folder in command:
                found.append(command)
    return found


def test_no_browser_or_no_sandbox_is_told_in_words(monkeypatch: pytest.MonkeyPatch):
    with pytest.raises(ConfigError, match="apt install chromium"):
        launch.get_program("no-such-browser", sandbox=True)
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    with pytest.raises(ConfigError, match="browser_sandbox = false"):
        launch.get_program(str(CHROMIUM), sandbox=True)
    assert launch.get_program(str(CHROMIUM), sandbox=False) == CHROMIUM

    async def main() -> None:
        browser = Browser(Path("/bin/false"), sandbox=True, tabs=1, agent="")
        try:
            await browser.begin()
        finally:
            await browser.close()

    with pytest.raises(ConfigError, match="/bin/false does not start"):
        event_loop.run(main())
