"""The explorer's server: on this machine alone, and only for those who have its link."""

from __future__ import annotations

import contextlib
import json
import os
import secrets
import socket
import sys
import threading
from collections.abc import Mapping
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib.resources import files
from typing import Any
from urllib.parse import parse_qs, urlsplit

from agglo.explore import api, schema
from agglo.explore.opened import Opened
from agglo.explore.page import MAX_BYTES, save_page
from agglo.mapped import forget

STATIC = {
    "/": ("index.html", "text/html; charset=utf-8"),
    "/app.js": ("app.js", "text/javascript; charset=utf-8"),
    "/app.css": ("app.css", "text/css; charset=utf-8"),
}
_HOST = "127.0.0.1"
_FORGET = 20  # answers, after which the pages of the tree's file that they read are let go
# Nothing from elsewhere is loaded, and nothing is told to anyone.
_POLICY = "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data: blob:; "
_POLICY += "connect-src 'self'; base-uri 'none'; form-action 'none'"


class Explorer:
    """A server of one run, on a free port of this machine's own address, which no other machine reaches.

    Parameters
    ----------
    opened : Opened
        The run.
    port : int
        The port; 0 for any that is free.

    Attributes
    ----------
    url : str
        The link to the page. The token in it is what lets one in.
    """

    def __init__(self, opened: Opened, port: int = 0) -> None:
        self.opened = opened
        self.token = secrets.token_urlsafe(24)
        self._server = _Server(self, port)
        self.port: int = self._server.server_port
        self.url = f"http://{_HOST}:{self.port}/?token={self.token}"
        self._thread: threading.Thread | None = None
        self._answers = 0

    def start(self) -> Explorer:
        """Answer from now on, in a thread that ends with the program."""
        if self._thread is None:
            self._thread = threading.Thread(
                target=self._server.serve_forever, args=(0.1,), name="agglo explore", daemon=True
            )
            self._thread.start()
        return self

    def save(self, path: str | os.PathLike[str], max_bytes: int = MAX_BYTES) -> None:
        """Write one file that shows the top of the tree without a server; see :func:`agglo.explore.page.page`."""
        save_page(self.opened, path, max_bytes)

    def answered(self) -> None:
        """Count an answer; from time to time give back the memory of what was read of the tree."""
        self._answers += 1
        if self._answers % _FORGET == 0:
            forget(self.opened.tree)

    def wait(self) -> None:
        """Return when the server is closed, or raise when interrupted."""
        while self._thread is not None and self._thread.is_alive():
            self._thread.join(0.2)

    def close(self) -> None:
        """Stop answering."""
        if self._thread is not None:
            self._server.shutdown()
            self._thread.join()
            self._thread = None
        self._server.server_close()

    def __enter__(self) -> Explorer:
        return self.start()

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"Explorer({self.url})"

    def _repr_html_(self) -> str:
        """The page inside a notebook."""
        return (
            f'<iframe src="{self.url}" title="agglo explore" width="100%" height="640" style="border:0"></iframe>'
        )


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, explorer: Explorer, port: int) -> None:
        self.explorer = explorer
        self.connections: set[Any] = set()
        super().__init__((_HOST, port), _Handler)

    def process_request(self, request: Any, client_address: Any) -> None:
        self.connections.add(request)
        super().process_request(request, client_address)

    def shutdown_request(self, request: Any) -> None:
        self.connections.discard(request)
        super().shutdown_request(request)

    def server_close(self) -> None:
        super().server_close()
        for connection in list(self.connections):  # browsers keep theirs, and would still be answered
            with contextlib.suppress(OSError):  # it has just ended by itself
                connection.shutdown(socket.SHUT_RDWR)

    def handle_error(self, request: Any, client_address: Any) -> None:
        if not isinstance(sys.exception(), ConnectionError):  # a reader may leave when it likes
            super().handle_error(request, client_address)


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server_version = "agglo"
    sys_version = ""
    timeout = 60
    server: _Server

    def do_GET(self) -> None:
        """Answer a question."""
        explorer = self.server.explorer
        # A name that someone else's server resolves to this machine must not open it to that server's pages.
        if self.headers.get("Host") not in {f"{name}:{explorer.port}" for name in (_HOST, "localhost")}:
            self._refuse(
                HTTPStatus.FORBIDDEN, "this server answers to its own address alone: open the printed link"
            )
            return
        address = urlsplit(self.path)
        if address.path in STATIC:
            name, kind = STATIC[address.path]
            self._send(files("agglo.explore").joinpath("static", name).read_bytes(), kind)
        elif address.path == "/openapi.json":
            self._send_json(schema.openapi(api.ROUTES))
        elif address.path == "/docs":
            self._send(schema.documentation(schema.openapi(api.ROUTES)).encode(), "text/html; charset=utf-8")
        elif address.path in api.ROUTES:
            self._answer(address.path, address.query)
        else:
            self._refuse(HTTPStatus.NOT_FOUND, f"there is nothing at {address.path[:100]}: see /docs")

    def _answer(self, path: str, text: str) -> None:
        explorer = self.server.explorer
        try:
            query = parse_qs(
                text, keep_blank_values=True, strict_parsing=bool(text), errors="strict", max_num_fields=50
            )
            token = (query.pop("token", None) or [self.headers.get("X-Agglo-Token", "")])[0]
            if not secrets.compare_digest(token.encode(), explorer.token.encode()):
                self._refuse(HTTPStatus.FORBIDDEN, "the token is missing or wrong: open the printed link")
                return
            function = api.ROUTES[path]
            result = function(explorer.opened, **schema.arguments(function, query))
            explorer.answered()
        except ValueError as error:
            self._refuse(HTTPStatus.BAD_REQUEST, str(error))
            return
        if isinstance(result, api.File):
            disposition = {"Content-Disposition": f'attachment; filename="{result.name}"'}
            self._send(result.content, result.kind, headers=disposition)
        else:
            self._send_json(schema.plain(result))

    def _refuse(self, status: HTTPStatus, message: str) -> None:
        self._send_json({"error": message}, status)

    def _send_json(self, value: Any, status: HTTPStatus = HTTPStatus.OK) -> None:
        content = json.dumps(value, ensure_ascii=False, allow_nan=False).encode("utf-8", "replace")
        self._send(content, "application/json; charset=utf-8", status)

    def _send(
        self,
        content: bytes,
        kind: str,
        status: HTTPStatus = HTTPStatus.OK,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        self.send_response(status)
        fixed = {
            "Content-Type": kind,
            "Content-Length": str(len(content)),
            "Cache-Control": "no-store",
            "Content-Security-Policy": _POLICY,
            "Referrer-Policy": "no-referrer",
            "X-Content-Type-Options": "nosniff",
        }
        for name, value in {**fixed, **(headers or {})}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *_: Any) -> None:
        """Say nothing: the terminal is for the link."""
