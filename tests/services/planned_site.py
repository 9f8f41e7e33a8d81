"""A small web server that counts requests, a clock that tests move, and plans for harvests of it."""

import threading
import time
from collections import Counter
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from webdepot.archive import Archive
from webdepot.harvest import harvest_rows
from webdepot.model import HarvestKind, TargetId
from webdepot.selection import plan_dates

START = datetime(2026, 3, 2, 12, tzinfo=UTC)
PROFILE = "delay_s = 0\n"


class Site:
    """A web server with a few pages; requests are counted."""

    def __init__(self) -> None:
        self.pages: dict[str, str] = {
            "/": "<title>Home</title><a href=/2>two</a><img src=/picture.png>",
            "/2": "<title>Two</title>two",
        }
        self.asked: Counter[str] = Counter()
        self.pause_s = 0.0
        site = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                path = self.path
                site.asked[f"{self.headers['Host']}{path}"] += 1
                time.sleep(site.pause_s)
                body = site.pages.get(path.partition("?")[0], "").encode()
                self.send_response(200 if body else 404)
                self.send_header("Content-Type", "text/html" if not path.endswith(".png") else "image/png")
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *words: object) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.port = self.server.server_port
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def close(self) -> None:
        self.server.shutdown()
        self.server.server_close()


def daily(first_on: str = "2026-03-02", at: str = "14:00"):
    return plan_dates.read_dates("daily", first_on=first_on, at_time=at)


def harvests_of(archive: Archive, target: TargetId) -> list:
    with archive.database.reading() as connection:
        return harvest_rows.of_target_any(connection, target, HarvestKind.HARVEST)
