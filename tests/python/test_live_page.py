"""The page of runs that are under way: its server, steered by the page alone, and the page in a browser."""

from __future__ import annotations

import contextlib
import http.client
import json
import os
import socket
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from browser import PROGRAM, Browser
from live_kit import cell_of, load, sample, watch_run
from narrows.errors import UnavailableError
from narrows.live.orders import Desk
from narrows.live.watch import Watch
from narrows.live_page.page import Sent, Server, serve

IN_BROWSER = pytest.mark.skipif(
    PROGRAM is None and os.environ.get("CI") != "true",
    reason="no Chromium is installed, so the live page is not tried in a browser (Debian package: chromium)",
)


@pytest.fixture
def server() -> Iterator[Server]:
    watch, _ = watch_run()
    watch.orders = Desk(load())
    with serve(watch) as running:
        yield running


def _ask(
    server: Server, place: str = "", method: str = "GET", body: str | None = None, **headers: str
) -> tuple[int, str]:
    connection = http.client.HTTPConnection("127.0.0.1", server.server_port, timeout=10)
    with contextlib.closing(connection):
        connection.putrequest(method, f"/{server.secret}/{place}", skip_host=True)
        for name, value in {"Host": server.hosts[0], **headers}.items():
            connection.putheader(name.replace("_", "-"), value)
        if body is not None:
            connection.putheader("Content-Length", str(len(body)))
        connection.endheaders(body.encode() if body is not None else None)
        with connection.getresponse() as answer:
            return answer.status, answer.read().decode()


def _order(server: Server, text: object, **headers: str) -> tuple[int, str]:
    headers = {"Origin": f"http://{server.hosts[0]}", "Content_Type": "application/json"} | headers
    return _ask(server, "order", "POST", json.dumps(text), **headers)


def test_the_page_loads_nothing_from_elsewhere(server: Server) -> None:
    status, text = _ask(server)
    assert status == 200 and "connect-src 'self'" in text
    assert "src=" not in text.replace("img-src", "") and "http://" not in text.replace(
        "http://www.w3.org", ""
    )


def test_the_server_listens_on_the_loopback_interface_alone(server: Server) -> None:
    assert server.socket.getsockname()[0] == "127.0.0.1"
    assert urlsplit(server.url).hostname == "127.0.0.1"


def test_requests_under_another_name_or_without_the_secret_are_refused(server: Server) -> None:
    assert _ask(server, Host="attacker.example")[0] == 421
    assert _ask(server, Host=f"attacker.example:{server.server_port}")[0] == 421
    secret = server.secret
    for path in ("/", "/events", f"/{secret[:-1]}/", f"/{secret}", "//", f"/{secret}/nothing"):
        connection = http.client.HTTPConnection(server.hosts[0], timeout=10)
        with contextlib.closing(connection):
            connection.request("GET", path)
            with connection.getresponse() as answer:
                assert answer.status == 404, path


def test_orders_of_other_pages_are_refused(server: Server) -> None:
    order = {"text": "rate 5 Mbit/s"}
    assert _order(server, order, Origin="http://attacker.example")[0] == 403
    assert _order(server, order, Origin="null")[0] == 403
    assert _order(server, order, Content_Type="text/plain")[0] == 403
    assert _ask(server, "order", "POST", json.dumps(order), Content_Type="application/json")[0] == 403
    assert _order(server, order, Host="attacker.example")[0] == 421


def test_orders_of_the_page_reach_the_run_and_bad_ones_are_refused(server: Server) -> None:
    assert _order(server, {"text": "rate 5 Mbit/s"}) == (200, "{}")
    assert json.loads(_order(server, {"text": "faster"})[1])["refused"].startswith('"faster" is not an order')
    bodies: list[object] = ["x", [], {}, {"text": 5}, {"text": None}]
    for body in bodies:
        assert _order(server, body)[0] == 400
    assert _order(server, {"text": "x" * 20_000})[0] == 413


def test_a_port_that_is_taken_is_refused_in_one_sentence() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(UnavailableError, match=f"port {port} of 127.0.0.1 can't be used"):
            Server(Watch(), port)


def test_news_are_sent_once_and_a_new_run_begins_with_its_facts() -> None:
    watch, _ = watch_run(samples=3)
    sent = Sent()
    first = sent.news(watch.look())
    assert first["run"] == {
        "title": "reno run 1",
        "duration_ns": 30_000_000_000,
        "flows": {1: "reno", 2: "reno"},
    }
    assert isinstance(first["readings"], list) and len(first["readings"]) == 3
    watch.hear(sample(4))
    watch.note("news")
    second = sent.news(watch.look())
    assert second["run"] is None and second["notes"] == [
        {"time_ns": 800_000_000, "text": "news", "is_change": False}
    ]
    assert isinstance(second["readings"], list) and len(second["readings"]) == 1
    assert sent.news(watch.look())["readings"] == []


# -- in a browser ----------------------------------------------------------------------------------


def _open(page: Browser, url: str, width: int, *, dark: bool = False) -> None:
    page.call(
        "Emulation.setDeviceMetricsOverride", width=width, height=900, deviceScaleFactor=1, mobile=False
    )
    scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
    page.call("Emulation.setEmulatedMedia", features=[scheme])
    page.call("Page.navigate", url=url)
    page.until("Boolean(window.narrowsLive)")


@IN_BROWSER
@pytest.mark.parametrize("width", [390, 1200])
def test_the_page_draws_readings_as_they_arrive_and_takes_orders(
    server: Server, tmp_path: Path, width: int
) -> None:
    with Browser(tmp_path / "profile") as page:
        _open(page, server.url, width)
        page.until("window.narrowsLive && narrowsLive.count() === 40")
        page.until("document.querySelectorAll('.chart[data-drawn]').length === 4")
        assert page.run("document.getElementById('title').textContent") == "reno run 1"
        row = page.run("[...document.querySelectorAll('#flows tbody tr')].map((r) => r.innerText)")
        assert row[1].split() == ["2", "reno", "1.20", "10.0", "4.76", "60.0", "–"]
        server.watch.hear(sample(41))
        page.until("narrowsLive.count() === 41")
        page.run(
            "document.getElementById('order').value = 'faster';"
            "document.getElementById('orders').requestSubmit()"
        )
        page.until("document.getElementById('notes').innerText.includes('is not an order')")
        assert page.run("document.getElementById('latest').innerText.includes('is not an order')")
        assert page.run("document.getElementById('order').value") == "faster"
        assert page.run("document.documentElement.scrollWidth <= innerWidth")
        server.watch.end(cell_of())
        page.until("document.getElementById('state').innerText.startsWith('The run has ended')")
        assert page.said == []
        assert all(url.startswith((server.url, "data:")) for url in page.requests)
