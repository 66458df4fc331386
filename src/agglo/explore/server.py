"""The explorer's server: on this machine alone, and only for those who have its link."""

from __future__ import annotations

import contextlib
import json
import logging
import os
import secrets
import socket
import sys
import threading
import time
from collections.abc import Mapping
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib.resources import files
from operator import itemgetter
from typing import Any
from urllib.parse import parse_qs, urlsplit

from agglo.explore import api, schema
from agglo.explore.page import MAX_BYTES, save_page
from agglo.explore.run import Opened
from agglo.explore.schema import BadRequestError
from agglo.io.tree_file import forget

STATIC = {
    "/": ("index.html", "text/html; charset=utf-8"),
    "/app.js": ("app.js", "text/javascript; charset=utf-8"),
    "/app.css": ("app.css", "text/css; charset=utf-8"),
}
_HOST = "127.0.0.1"
_JSON = "application/json; charset=utf-8"
_MOST_CONNECTIONS = 64  # each of which has a thread
_AT_ONCE = 4  # answers that are computed, whatever the number of connections: each may need memory
_FORGET = 20  # answers, after which the pages of the tree's file that they read are let go
# Nothing from elsewhere is loaded, and nothing is told to anyone.
_POLICY = "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data: blob:; "
_POLICY += "connect-src 'self'; base-uri 'none'; form-action 'none'; "
# Only notebooks on this machine show the page in a frame: in a browser, or in the editor.
_POLICY += "frame-ancestors 'self' http://localhost:* http://127.0.0.1:* https://localhost:* https://127.0.0.1:* "
_POLICY += "vscode-webview: vscode-file:"
_BUSY = b"HTTP/1.1 503 Service Unavailable\r\nContent-Length: 0\r\nRetry-After: 1\r\nConnection: close\r\n\r\n"
_log = logging.getLogger(__name__)


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
    request_queue_size = 128
    patience = 60.0  # seconds that a connection may take for its next request

    def __init__(self, explorer: Explorer, port: int) -> None:
        self.explorer = explorer
        self.connections: set[Any] = set()
        self.waiting: dict[Any, float] = {}  # connections without a whole request, and since when
        self.turns = threading.BoundedSemaphore(_AT_ONCE)
        super().__init__((_HOST, port), _Handler)

    def process_request(self, request: Any, client_address: Any) -> None:
        if len(self.connections) >= _MOST_CONNECTIONS:
            self._drop_waiting()
        if len(self.connections) >= _MOST_CONNECTIONS:  # all are being answered
            with contextlib.suppress(OSError):
                request.sendall(_BUSY)
            self.shutdown_request(request)
            return
        self.connections.add(request)
        self.waiting[request] = time.monotonic()
        super().process_request(request, client_address)

    def _drop_waiting(self) -> None:
        """End the connection that has been waiting longest, so that idle ones cannot keep others out."""
        waiting = list(self.waiting.items())  # a copy: other threads change it
        if waiting:
            self._end(min(waiting, key=itemgetter(1))[0])

    def service_actions(self) -> None:
        """End connections that are too slow; called several times a second."""
        before = time.monotonic() - self.patience
        for connection, since in list(self.waiting.items()):
            if since < before:
                self._end(connection)

    def _end(self, connection: Any) -> None:
        self.waiting.pop(connection, None)
        self.connections.discard(connection)
        with contextlib.suppress(OSError):  # it has just ended by itself
            connection.shutdown(socket.SHUT_RDWR)

    def shutdown_request(self, request: Any) -> None:
        self.connections.discard(request)
        self.waiting.pop(request, None)
        super().shutdown_request(request)

    def server_close(self) -> None:
        super().server_close()
        for connection in list(self.connections):  # browsers keep theirs, and would still be answered
            self._end(connection)

    def handle_error(self, request: Any, client_address: Any) -> None:
        error = sys.exception()
        if not isinstance(error, ConnectionError | TimeoutError):  # a reader may leave when it likes
            _log.error("a connection failed: %s", describe_error(error))


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server_version = "agglo"
    sys_version = ""
    timeout = 60  # seconds that one read or write may take
    server: _Server

    def handle_one_request(self) -> None:
        """Read a request and answer it."""
        self.server.waiting[self.connection] = time.monotonic()
        super().handle_one_request()

    def do_GET(self) -> None:
        """Answer a question."""
        self.server.waiting.pop(self.connection, None)
        self._answering = False
        try:
            self._check_request()
            self._route()
        except BadRequestError as error:
            self._refuse(HTTPStatus.BAD_REQUEST, str(error))
        except _ForbiddenError as error:
            self._refuse(HTTPStatus.FORBIDDEN, str(error))
        except (ConnectionError, TimeoutError):
            raise
        except Exception as error:
            cause = describe_error(error)
            _log.error("the answer to %s failed: %s", self.path.partition("?")[0][:100], cause)
            if self._answering:  # too late for another answer: without its end the reader knows that it failed
                self.close_connection = True
                return
            self._refuse(HTTPStatus.INTERNAL_SERVER_ERROR, f"the answer failed: {cause}")

    def do_HEAD(self) -> None:
        """Answer a question without a body."""
        self.do_GET()

    def send_error(self, code: int, message: str | None = None, explain: str | None = None) -> None:
        """Refuse a request that could not be read, or whose method is not supported."""
        self.request_version = self.protocol_version  # until a request is read it is HTTP/0.9, without headers
        if code == HTTPStatus.NOT_IMPLEMENTED:
            self._refuse(
                HTTPStatus.METHOD_NOT_ALLOWED, "this method is not supported: use GET", {"Allow": "GET, HEAD"}
            )
            return
        self._refuse(HTTPStatus(code), message or HTTPStatus(code).phrase)

    def _check_request(self) -> None:
        explorer = self.server.explorer
        # A name that someone else's server resolves to this machine must not open it to that server's pages.
        own = [[f"{name}:{explorer.port}"] for name in (_HOST, "localhost")]
        if self.headers.get_all("Host") not in own:
            raise _ForbiddenError("this server answers to its own address alone: open the printed link")
        if "Transfer-Encoding" in self.headers or self.headers.get("Content-Length", "0").strip() != "0":
            raise BadRequestError("requests have no body: leave out Content-Length and Transfer-Encoding")
        if not self.path.isascii():
            raise BadRequestError("the address has characters that are not ASCII: percent-encode them as UTF-8")

    def _route(self) -> None:
        try:
            address = urlsplit(self.path)
        except ValueError as error:
            raise BadRequestError(f"the address cannot be read ({error}): pass a path, see /docs") from None
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
        query = _parse_query(text)
        token = (query.pop("token", None) or [self.headers.get("X-Agglo-Token", "")])[0]
        if not secrets.compare_digest(token.encode(), explorer.token.encode()):
            raise _ForbiddenError("the token is missing or wrong: open the printed link")
        function = api.ROUTES[path]
        arguments = schema.arguments(function, query)
        with self.server.turns:
            result = function(explorer.opened, **arguments)
            content = b"" if isinstance(result, schema.File) else _to_json(schema.plain(result))
            explorer.answered()
        if isinstance(result, schema.File):
            self._send_file(result)
        else:
            self._send(content, _JSON)

    def _send_file(self, file: schema.File) -> None:
        """Send a file piece by piece, so that only one piece of it is in memory."""
        chunked = self.request_version != "HTTP/1.0"
        headers = {"Content-Disposition": f'attachment; filename="{file.name}"'}
        headers |= {"Transfer-Encoding": "chunked"} if chunked else {"Connection": "close"}
        if self.command == "HEAD":
            self._send_head(file.kind, headers)
            return
        part = self._next_part(file)  # before the headers: what goes wrong often goes wrong at once
        self._send_head(file.kind, headers)
        while part is not None:
            if part:  # an empty chunk would be the last
                self.wfile.write(b"%x\r\n%b\r\n" % (len(part), part) if chunked else part)
            part = self._next_part(file)
        if chunked:
            self.wfile.write(b"0\r\n\r\n")

    def _next_part(self, file: schema.File) -> bytes | None:
        with self.server.turns:
            return next(file.parts, None)

    def _refuse(self, status: HTTPStatus, message: str, headers: Mapping[str, str] | None = None) -> None:
        # What follows may be the body of what was refused, and must not be read as a request.
        self.close_connection = True
        self._send(_to_json({"error": message}), _JSON, status, {"Connection": "close", **(headers or {})})

    def _send_json(self, value: Any) -> None:
        self._send(_to_json(value), _JSON)

    def _send(
        self,
        content: bytes,
        kind: str,
        status: HTTPStatus = HTTPStatus.OK,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        self._send_head(kind, {"Content-Length": str(len(content)), **(headers or {})}, status)
        if self.command != "HEAD":
            self.wfile.write(content)

    def _send_head(self, kind: str, headers: Mapping[str, str], status: HTTPStatus = HTTPStatus.OK) -> None:
        fixed = {
            "Content-Type": kind,
            "Cache-Control": "no-store",
            "Content-Security-Policy": _POLICY,
            "Referrer-Policy": "no-referrer",
            "X-Content-Type-Options": "nosniff",
        }
        self.send_response(status)
        for name, value in {**fixed, **headers}.items():
            self.send_header(name, value)
        self._answering = True
        self.end_headers()

    def log_message(self, *_: Any) -> None:
        """Say nothing: the terminal is for the link."""


class _ForbiddenError(Exception):
    """A request of someone who may not ask."""


def describe_error(error: BaseException | None) -> str:
    """Return the kind and the message of an error on one line."""
    message = " ".join(str(error).split())
    return f"{type(error).__name__}: {message}"[:500]


def _parse_query(text: str) -> dict[str, list[str]]:
    try:
        return parse_qs(
            text, keep_blank_values=True, strict_parsing=bool(text), errors="strict", max_num_fields=50
        )
    except UnicodeDecodeError:
        raise BadRequestError(
            "the address has percent-encoded bytes that are no UTF-8, such as a lone surrogate: encode it as UTF-8"
        ) from None
    except ValueError as error:
        raise BadRequestError(f"the parameters cannot be read ({error}): pass name=value&name=value") from None


def _to_json(value: Any) -> bytes:
    return json.dumps(value, ensure_ascii=False, allow_nan=False).encode("utf-8", "replace")
