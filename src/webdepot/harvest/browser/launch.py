"""Starting a Chromium that has no way to the network: which program, with which options, in which folder.

Whatever a page asks for comes to us over the DevTools protocol (`devtools`) and is answered by us. The
browser itself
    - is outside the network (`minder`), where the system lets a process leave it;
    - finds no host (`--host-resolver-rules`), and would go through a proxy that nobody listens at, for
      loopback, too;
    - speaks no QUIC, and WebRTC only through that proxy, which it cannot;
    - calls home for nothing: no updates, no lists, no reports.
Its sandbox is on. It cannot work for root: that must be allowed by name (`harvest.browser_sandbox`), since
pages are strangers.
"""

import os
import shutil
import subprocess
import sys
import tempfile
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from webdepot.errors import ConfigError
from webdepot.harvest.browser import minder as browser_minder

NAMES = ("chromium", "chromium-browser", "google-chrome-stable", "google-chrome")
"""Programs looked for, in this order."""
WIDTH, HEIGHT = 1280, 900
"""Of the window, in pixels."""
HOW_TO_GET_ONE = "Install one (Debian: apt install chromium), or name it in webdepot.toml: [harvest] browser = /path/to/chromium"
_OPTIONS = (
    "--headless",
    "--remote-debugging-pipe",
    "--host-resolver-rules=MAP * ~NOTFOUND",
    "--proxy-server=127.0.0.1:9",
    "--proxy-bypass-list=<-loopback>",
    "--disable-quic",
    "--disable-popup-blocking",  # what a page wants to open is noted
    "--force-webrtc-ip-handling-policy=disable_non_proxied_udp",
    "--webrtc-ip-handling-policy=disable_non_proxied_udp",
    "--no-first-run",
    "--no-default-browser-check",
    "--no-service-autorun",
    "--no-pings",
    "--disable-background-networking",
    "--disable-breakpad",
    "--disable-client-side-phishing-detection",
    "--disable-component-extensions-with-background-pages",
    "--disable-component-update",
    "--disable-default-apps",
    "--disable-dev-shm-usage",
    "--disable-domain-reliability",
    "--disable-extensions",
    "--disable-gpu",
    "--disable-sync",
    "--disable-backgrounding-occluded-windows",
    "--disable-renderer-backgrounding",
    "--disable-background-timer-throttling",
    # One process for a page with its frames: one row of questions, and half the memory. Pages share nothing:
    # each has a context of its own.
    "--disable-site-isolation-trials",
    "--disable-features=IsolateOrigins,site-per-process,Translate,OptimizationHints,MediaRouter,DialMediaRouteProvider,InterestFeedContentSuggestions,"
    "CertificateTransparencyComponentUpdater,AutofillServerCommunication,HttpsUpgrades,LocalNetworkAccessChecks,Prerender2,SpareRendererForSitePerProcess",
    "--metrics-recording-only",
    "--mute-audio",
    "--autoplay-policy=no-user-gesture-required",
    "--hide-scrollbars",
    "--password-store=basic",
    "--use-mock-keychain",
    "--js-flags=--max-old-space-size=512",
    f"--window-size={WIDTH},{HEIGHT}",
)


@dataclass(slots=True, kw_only=True)
class Process:
    """A browser that was started: its two ends of the protocol, and the lead by which its minder holds it."""

    minder: "subprocess.Popen[bytes]"
    commands: int
    answers: int
    life: int
    folder: Path

    def end(self) -> None:
        """Let go of the lead and wait until nothing of it is left. The ends of the protocol are closed by
        whoever has taken them.
        """
        with suppress(OSError):
            os.close(self.life)
        try:
            self.minder.wait(timeout=10)
        except subprocess.TimeoutExpired:  # its own death takes the browser with it
            self.minder.kill()
            self.minder.wait()
        shutil.rmtree(self.folder, ignore_errors=True)


def find_program(stated: str) -> Path | None:
    """The browser: the one that was named, else the first one that is installed."""
    for name in (stated,) if stated else NAMES:
        found = shutil.which(name)
        if found:
            return Path(found)
    return None


def get_program(stated: str, *, sandbox: bool) -> Path:
    """The same; ConfigError says what to install, or what root has to allow."""
    program = find_program(stated)
    if program is None:
        wanted = f"There is no browser {stated}" if stated else "There is no Chromium on this machine"
        raise ConfigError(f"{wanted}, and this harvest opens pages in one. {HOW_TO_GET_ONE}")
    if sandbox and os.geteuid() == 0:
        raise ConfigError(
            "Chromium's sandbox, which keeps foreign pages away from this machine, does not work for root. Run Webdepot as another user, "
            "or allow it without, where the machine itself is a sandbox: [harvest] browser_sandbox = false"
        )
    return program


def start(program: Path, *, sandbox: bool) -> Process:
    """Start it. OSError when even that fails; everything else shows on the wire."""
    folder = Path(tempfile.mkdtemp(prefix="webdepot-browser-"))
    their_commands, commands = os.pipe()
    answers, their_answers = os.pipe()
    their_life, life = os.pipe()
    options = [
        *_OPTIONS,
        f"--user-data-dir={folder / 'data'}",
        *(() if sandbox else ("--no-sandbox",)),
        "about:blank",
    ]
    numbers = (their_commands, their_answers, their_life)
    command = [
        sys.executable,
        "-I",
        "-S",
        browser_minder.__file__,
        str(folder),
        *map(str, numbers),
        str(program),
        *options,
    ]
    home = dict.fromkeys(("HOME", "TMPDIR", "XDG_CONFIG_HOME", "XDG_CACHE_HOME"), str(folder))
    try:
        minder = subprocess.Popen(  # noqa: S603 - our own script, with the operator's program
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            pass_fds=numbers,
            env={name: value for name, value in os.environ.items() if not name.lower().endswith("proxy")}
            | home,
            start_new_session=True,  # Ctrl-C is the harvest's to hear, which ends the browser in its own time
        )
    except OSError:
        for number in (commands, answers, life):
            os.close(number)
        shutil.rmtree(folder, ignore_errors=True)
        raise
    finally:
        for number in numbers:
            os.close(number)
    return Process(minder=minder, commands=commands, answers=answers, life=life, folder=folder)
