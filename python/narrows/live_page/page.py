"""Runs on a page while they are under way: a server on the loopback interface alone, in a thread.

The address of the page contains a secret, so that other users of the machine and other pages cannot read it.
A request must name the server as this machine (against names that are made to resolve to it), and an order
must come from the page itself (Fetch Standard, Origin header).
"""

from __future__ import annotations

import contextlib
import hmac
import json
import secrets
import threading
from collections.abc import Iterator
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib.resources import files
from pathlib import PurePosixPath
from typing import Any

from narrows.agent.schema import parse
from narrows.documents.data import DamagedError, Part, from_data, to_data
from narrows.errors import UnavailableError, reason
from narrows.live.terminal import name_of
from narrows.live.watch import Watch, Watched

LOOPBACK = "127.0.0.1"
_LONGEST_ORDER = 10_000
#: Time after which an idle stream sends a comment, to notice that its reader has gone.
_KEEP_ALIVE_S = 5.0
_DATA = "application/json"
_HOST, _ORIGIN, _CONTENT, _LENGTH = "Host", "Origin", "Content-Type", "Content-Length"


class _Order(Part, frozen=True, kw_only=True):
    """The content of a request with an order."""

    text: str


class Server(ThreadingHTTPServer):
    """The server of one page."""

    daemon_threads = True
    #: The port must be free: no other program may take part of its requests.
    allow_reuse_port = False

    def __init__(self, watch: Watch, port: int = 0) -> None:
        self.watch = watch
        self.secret = secrets.token_urlsafe(16)
        self.page = page(watch.orders.examples if watch.orders is not None else ())
        try:
            super().__init__((LOOPBACK, port), _Handler)
        except (OSError, OverflowError) as error:
            why = reason(error) if isinstance(error, OSError) else str(error)
            raise UnavailableError(
                f"--live-page: port {port} of {LOOPBACK} can't be used: {why}; choose another one"
            ) from None
        self.hosts = tuple(f"{name}:{self.server_port}" for name in (LOOPBACK, "localhost"))

    @property
    def url(self) -> str:
        """The address of the page."""
        return f"http://{self.hosts[0]}/{self.secret}/"

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Nothing: readers may go at any time."""


@contextlib.contextmanager
def serve(watch: Watch, port: int = 0) -> Iterator[Server]:
    """Serves the page inside the context."""
    from narrows.threads import stay_apart

    def work() -> None:
        stay_apart()
        server.serve_forever(poll_interval=0.2)

    with Server(watch, port) as server:
        thread = threading.Thread(target=work, daemon=True, name="page")
        thread.start()
        try:
            yield server
        finally:
            server.shutdown()
            thread.join()


def page(examples: tuple[str, ...]) -> str:
    """The page, which loads nothing from elsewhere; with examples of orders it takes some."""
    from markupsafe import Markup

    from narrows import policy
    from narrows.report.page import asset, environment, style_sheet

    def own(name: str) -> str | None:
        place = files("narrows.live_page").joinpath("templates", PurePosixPath(name).name)
        return place.read_text(encoding="utf-8") if place.is_file() else None

    template = environment(own).get_template("live.html.j2")
    return policy.lock(
        template.render(
            examples=examples,
            style=Markup(style_sheet()),
            own_style=Markup(own("live.css") or ""),
            uplot_js=Markup(asset("assets", "uplot", "uPlot.iife.min.js")),
            theme=Markup(asset("templates", "theme.js")),
            charts=Markup(asset("templates", "charts.js")),
            script=Markup(own("live.js") or ""),
        )
    )


class _Handler(BaseHTTPRequestHandler):
    """Answers one request."""

    server: Server
    protocol_version = "HTTP/1.1"
    server_version, sys_version = "narrows", ""
    #: A reader that sends half a request does not hold a thread for ever.
    timeout = 20

    def log_message(self, *_: object) -> None:
        """Nothing: the terminal belongs to the runs."""

    def do_GET(self) -> None:
        """The page, or its events."""
        match self._place():
            case "":
                self._answer(HTTPStatus.OK, self.server.page.encode(), "text/html; charset=utf-8")
            case "events":
                self._stream()
            case None:
                pass
            case _:
                self._refuse(HTTPStatus.NOT_FOUND, "this page does not exist")

    def do_POST(self) -> None:
        """An order, as a JSON object with `text`."""
        self.close_connection = True
        place = self._place()
        if place is None:
            return
        if place != "order":
            self._refuse(HTTPStatus.NOT_FOUND, "this page does not exist")
            return
        origins = [f"http://{host}" for host in self.server.hosts]
        if self.headers.get(_ORIGIN) not in origins or self.headers.get(_CONTENT) != _DATA:
            self._refuse(HTTPStatus.FORBIDDEN, "orders come from the page itself")
            return
        length = self.headers.get(_LENGTH, "")
        if not length.isdecimal() or int(length) > _LONGEST_ORDER:
            self._refuse(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, "the order is too long")
            return
        try:
            order = from_data(parse(self.rfile.read(int(length))), _Order)
        except DamagedError:
            self._refuse(HTTPStatus.BAD_REQUEST, "an order is an object with a text")
            return
        refusal = self.server.watch.order(order.text)
        answer = json.dumps({"refused": refusal} if refusal else {})
        self._answer(HTTPStatus.OK, answer.encode(), _DATA)

    def _place(self) -> str | None:
        """The part of the address after the secret; None if the request was refused."""
        if self.headers.get(_HOST) not in self.server.hosts:
            self._refuse(HTTPStatus.MISDIRECTED_REQUEST, "this server has another name")
            return None
        first, slash, rest = self.path.removeprefix("/").partition("/")
        if not (slash and hmac.compare_digest(first.encode(), self.server.secret.encode())):
            self._refuse(HTTPStatus.NOT_FOUND, "this page does not exist")
            return None
        return rest

    def _refuse(self, status: HTTPStatus, why: str) -> None:
        self.close_connection = True
        self._answer(status, f"{why}\n".encode(), "text/plain; charset=utf-8")

    def _answer(self, status: HTTPStatus, content: bytes, kind: str) -> None:
        self.send_response(status)
        self._head(kind)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def _head(self, kind: str) -> None:
        self.send_header("Content-Type", kind)
        self.send_header("Cache-Control", "no-store")
        self.send_header("X-Content-Type-Options", "nosniff")
        self.send_header("Referrer-Policy", "no-referrer")
        self.send_header("X-Frame-Options", "DENY")

    def _stream(self) -> None:
        """Server-sent events: the run so far, then each reading (HTML Standard, 9.2)."""
        self.close_connection = True
        self.send_response(HTTPStatus.OK)
        self._head("text/event-stream")
        self.end_headers()
        version, sent = -1, Sent()
        with contextlib.suppress(OSError):
            while True:
                now, watched = self.server.watch.wait(version, _KEEP_ALIVE_S)
                if now == version:
                    self.wfile.write(b": alive\n\n")
                else:
                    version = now
                    text = json.dumps(sent.news(watched))
                    self.wfile.write(f"data: {text}\n\n".encode())
                self.wfile.flush()


class Sent:
    """The part of a run that a page has received."""

    def __init__(self) -> None:
        self._cell = ""
        self._time_ns = -1
        self._notes = 0

    def news(self, watched: Watched) -> dict[str, object]:
        """The rest of it, with the facts about the run when another one has begun."""
        run: dict[str, object] | None = None
        cell = watched.cell
        if cell is not None and (cell.id != self._cell or watched.time_ns < self._time_ns):
            self._cell, self._time_ns, self._notes = cell.id, -1, 0
            run = {
                "title": f"{cell.scheme} run {cell.run}",
                "duration_ns": cell.duration_ns,
                "flows": {flow.number: name_of(cell, flow.number) for flow in cell.flows},
            }
        fresh = [reading for reading in watched.readings if reading.time_ns > self._time_ns]
        notes = [
            {"time_ns": note.time_ns, "text": note.text, "is_change": note.is_change}
            for note in watched.notes[self._notes :]
        ]
        self._time_ns = max(self._time_ns, watched.time_ns)
        self._notes = len(watched.notes)
        return {"run": run, "readings": to_data(fresh), "notes": notes, "over": watched.over}
