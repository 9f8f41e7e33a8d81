"""Start a Chromium without access to the network: which program, with which options, in which folder.

Every request of a page comes to us over the DevTools protocol (`devtools`), and we answer it. The browser
itself
    - runs without network interfaces (`supervisor`), if the system allows that;
    - resolves no host (`--host-resolver-rules`), and uses a proxy address at which nothing listens, also for
      loopback;
    - uses no QUIC, and WebRTC only through that proxy, which cannot work;
    - makes no requests of its own: no updates, no lists, no reports.
Its sandbox is on. The sandbox does not work for root; running without it must be allowed explicitly
(`harvest.browser_sandbox`), because pages are not trusted.
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
from webdepot.guard import environment
from webdepot.harvest.browser import supervisor

NAMES = ("chromium", "chromium-browser", "google-chrome-stable", "google-chrome")
"""Programs to look for, in this order."""
WIDTH, HEIGHT = 1280, 900
"""Size of the window, in pixels."""
HOW_TO_INSTALL = (
    "Install one (Debian: apt install chromium), "
    "or name it in webdepot.toml: [harvest] browser = /path/to/chromium"
)
_OPTIONS = (
    "--headless",
    "--remote-debugging-pipe",
    "--host-resolver-rules=MAP * ~NOTFOUND",
    "--proxy-server=127.0.0.1:9",
    "--proxy-bypass-list=<-loopback>",
    "--disable-quic",
    "--disable-popup-blocking",  # windows that a page opens are noted
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
    # One process for a page with its frames: one stream of requests, and half the memory. Pages share
    # nothing, because each has its own context.
    "--disable-site-isolation-trials",
    "--disable-features=IsolateOrigins,site-per-process,Translate,OptimizationHints,MediaRouter,"
    "DialMediaRouteProvider,InterestFeedContentSuggestions,CertificateTransparencyComponentUpdater,"
    "AutofillServerCommunication,HttpsUpgrades,LocalNetworkAccessChecks,Prerender2,"
    "SpareRendererForSitePerProcess",
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
class BrowserProcess:
    """A started browser: our ends of the protocol, and the pipe whose closing makes the supervisor end it."""

    supervisor_process: "subprocess.Popen[bytes]"
    commands: int
    answers: int
    life: int
    folder: Path

    def end(self) -> None:
        """End the browser and wait until its processes are gone. Does not close our ends of the protocol."""
        with suppress(OSError):
            os.close(self.life)
        try:
            self.supervisor_process.wait(timeout=10)
        except subprocess.TimeoutExpired:  # the browser dies with it
            self.supervisor_process.kill()
            self.supervisor_process.wait()
        shutil.rmtree(self.folder, ignore_errors=True)


def find_program(stated: str) -> Path | None:
    """The browser named in the configuration, or the first one that is installed; None if there is none."""
    for name in (stated,) if stated else NAMES:
        if path := shutil.which(name):
            return Path(path)
    return None


def get_program(
    stated: str, *, sandbox: bool, purpose: str = "this harvest opens pages in a browser"
) -> Path:
    """As `find_program`, but ConfigError if there is none, or if it cannot run as root."""
    program = find_program(stated)
    if program is None:
        missing = f"There is no browser {stated}" if stated else "There is no Chromium on this machine"
        raise ConfigError(f"{missing}, but {purpose}. {HOW_TO_INSTALL}")
    if sandbox and os.geteuid() == 0:
        raise ConfigError(
            "Chromium's sandbox, which protects this machine from untrusted pages, does not work for root. "
            "Run Webdepot as another user. If the machine itself is a sandbox, turn Chromium's off: "
            "[harvest] browser_sandbox = false"
        )
    return program


def start(program: Path, *, sandbox: bool) -> BrowserProcess:
    """Start the browser. OSError if its process cannot be started; other failures appear as BrowserGone
    later.
    """
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
        supervisor.__file__,
        str(folder),
        *map(str, numbers),
        str(program),
        *options,
    ]
    home = dict.fromkeys(("HOME", "TMPDIR", "XDG_CONFIG_HOME", "XDG_CACHE_HOME"), str(folder))
    try:
        supervisor_process = subprocess.Popen(  # noqa: S603 - our own script, with the operator's program
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            pass_fds=numbers,
            env=environment.of_command() | home,
            start_new_session=True,  # Ctrl-C goes to the harvest only, which then ends the browser
        )
    except OSError:
        for number in (commands, answers, life):
            os.close(number)
        shutil.rmtree(folder, ignore_errors=True)
        raise
    finally:
        for number in numbers:
            os.close(number)
    return BrowserProcess(
        supervisor_process=supervisor_process, commands=commands, answers=answers, life=life, folder=folder
    )
