"""The HTTP server of the explorer. It is reachable from this machine only; requests need the token in the link."""

from __future__ import annotations

import contextlib
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

from agglo.explore import api
from agglo.explore.mapped_tree import release_pages
from agglo.explore.page import MAX_BYTES, render_frame, save_page
from agglo.explore.query import BadRequestError, parse_arguments
from agglo.explore.run import ExplorableRun

STATIC = {
    "/": ("index.html", "text/html; charset=utf-8"),
    "/app.js": ("app.js", "text/javascript; charset=utf-8"),
    "/app.css": ("app.css", "text/css; charset=utf-8"),
}
_HOST = "127.0.0.1"
_JSON = "application/json; charset=utf-8"
_MAX_CONNECTIONS = 64  # maximum number of open connections; each connection has a thread
_MAX_COMPUTED = 4  # maximum number of responses computed at a time, to limit memory
_RELEASE_EVERY = 20  # after this number of responses, the mapped pages of the tree file are released
# The page loads nothing from other servers, sends nothing to them, and is not shown in their frames.
_POLICY = "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data: blob:; "
_POLICY += "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
_BUSY = b"HTTP/1.1 503 Service Unavailable\r\nContent-Length: 0\r\nRetry-After: 1\r\nConnection: close\r\n\r\n"
_log = logging.getLogger(__name__)


class Explorer:
    """An HTTP server that shows one run; only this machine can reach it.

    Parameters
    ----------
    run : ExplorableRun
        The run.
    port : int
        The port. 0 selects any free port.

    Attributes
    ----------
    url : str
        The link to the page. It contains the token that every request needs.

    Examples
    --------
    >>> import agglo, tempfile
    >>> from agglo.explore import Explorer, open_tree
    >>> tree = agglo.hac(agglo.neighbor_graph([[0.0], [1.0], [5.0]], 2, "euclidean"))
    >>> explorer = Explorer(open_tree(tree, ["cats", "dogs", "planets"], None))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     explorer.save(f"{folder}/tree.html")
    >>> explorer.start() is explorer
    True
    >>> explorer.url.startswith("http://127.0.0.1:")
    True
    >>> explorer.close()
    >>> explorer.wait()  # returns at once, because the server is closed
    """

    def __init__(self, run: ExplorableRun, port: int = 0) -> None:
        self.run = run
        self.token = secrets.token_urlsafe(24)
        self._server = _Server(self, port)
        self.port: int = self._server.server_port
        self.url = f"http://{_HOST}:{self.port}/?token={self.token}"
        self._thread: threading.Thread | None = None
        self._n_responses = 0

    def start(self) -> Explorer:
        """Start serving in a daemon thread."""
        if self._thread is None:
            self._thread = threading.Thread(
                target=self._server.serve_forever, args=(0.1,), name="agglo explore", daemon=True
            )
            self._thread.start()
        return self

    def save(self, path: str | os.PathLike[str], max_bytes: int = MAX_BYTES) -> None:
        """Write a self-contained HTML page to ``path``; see :func:`agglo.explore.page.render_page`."""
        save_page(self.run, path, max_bytes)

    def _count_response(self) -> None:
        """Count a response; after every 20 responses, release the mapped pages of the tree file."""
        self._n_responses += 1
        if self._n_responses % _RELEASE_EVERY == 0:
            release_pages(self.run.tree)

    def wait(self) -> None:
        """Block until the server is closed, or until Ctrl-C raises ``KeyboardInterrupt``."""
        while self._thread is not None and self._thread.is_alive():
            self._thread.join(0.2)

    def close(self) -> None:
        """Stop the server."""
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
        """Return an HTML frame with a self-contained page, which a notebook shows without the server."""
        return render_frame(self.run)


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128
    max_wait = 60.0  # seconds that a connection may take to send its next request

    def __init__(self, explorer: Explorer, port: int) -> None:
        self.explorer = explorer
        self.connections: set[Any] = set()
        self.waiting: dict[Any, float] = {}  # idle connections, and the time when each became idle
        self.slots = threading.BoundedSemaphore(_MAX_COMPUTED)
        super().__init__((_HOST, port), _Handler)

    def process_request(self, request: Any, client_address: Any) -> None:
        if len(self.connections) >= _MAX_CONNECTIONS:
            self._drop_waiting()
        if len(self.connections) >= _MAX_CONNECTIONS:  # all connections are in use
            with contextlib.suppress(OSError):
                request.sendall(_BUSY)
            self.shutdown_request(request)
            return
        self.connections.add(request)
        self.waiting[request] = time.monotonic()
        super().process_request(request, client_address)

    def _drop_waiting(self) -> None:
        """Close the longest idle connection, so that idle connections do not block new ones."""
        waiting = list(self.waiting.items())  # a copy, because other threads change the dict
        if waiting:
            self._close(min(waiting, key=itemgetter(1))[0])

    def service_actions(self) -> None:
        """Close connections that have been idle too long; the base class calls this several times a second."""
        before = time.monotonic() - self.max_wait
        for connection, since in list(self.waiting.items()):
            if since < before:
                self._close(connection)

    def _close(self, connection: Any) -> None:
        self.waiting.pop(connection, None)
        self.connections.discard(connection)
        with contextlib.suppress(OSError):  # the client may have just closed the connection
            connection.shutdown(socket.SHUT_RDWR)

    def shutdown_request(self, request: Any) -> None:
        self.connections.discard(request)
        self.waiting.pop(request, None)
        super().shutdown_request(request)

    def server_close(self) -> None:
        super().server_close()
        for connection in list(self.connections):  # browsers keep connections open, and would still be served
            self._close(connection)

    def handle_error(self, request: Any, client_address: Any) -> None:
        error = sys.exception()
        if not isinstance(error, ConnectionError | TimeoutError):  # clients may disconnect at any time
            _log.error("a connection failed: %s", describe_error(error))


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server_version = "agglo"
    sys_version = ""
    timeout = 60  # seconds that one read or write may take
    server: _Server

    def handle_one_request(self) -> None:
        """Read one request and respond."""
        self.server.waiting[self.connection] = time.monotonic()
        super().handle_one_request()

    def do_GET(self) -> None:
        """Respond to GET."""
        self.server.waiting.pop(self.connection, None)
        self._headers_sent = False
        try:
            self._check_request()
            self._route()
        except BadRequestError as error:
            self._reject(HTTPStatus.BAD_REQUEST, str(error))
        except _ForbiddenError as error:
            self._reject(HTTPStatus.FORBIDDEN, str(error))
        except (ConnectionError, TimeoutError):
            raise
        except Exception as error:
            cause = describe_error(error)
            _log.error("the response to %s failed: %s", self.path.partition("?")[0][:100], cause)
            if self._headers_sent:  # no error response is possible; the incomplete body shows the error
                self.close_connection = True
                return
            self._reject(HTTPStatus.INTERNAL_SERVER_ERROR, f"the response failed: {cause}")

    def do_HEAD(self) -> None:
        """Respond to HEAD: the headers of GET, without a body."""
        self.do_GET()

    def send_error(self, code: int, message: str | None = None, explain: str | None = None) -> None:
        """Reject a request that cannot be parsed, or whose method is not supported."""
        self.request_version = self.protocol_version  # the default is HTTP/0.9, without headers
        if code == HTTPStatus.NOT_IMPLEMENTED:
            self._reject(
                HTTPStatus.METHOD_NOT_ALLOWED, "this method is not supported: use GET", {"Allow": "GET, HEAD"}
            )
            return
        self._reject(HTTPStatus(code), message or HTTPStatus(code).phrase)

    def _check_request(self) -> None:
        explorer = self.server.explorer
        # Prevent DNS rebinding: reject requests for a foreign host name that resolves to this machine.
        own = [[f"{name}:{explorer.port}"] for name in (_HOST, "localhost")]
        if self.headers.get_all("Host") not in own:
            raise _ForbiddenError("the Host header must be this server's own address: open the printed link")
        if "Transfer-Encoding" in self.headers or self.headers.get("Content-Length", "0").strip() != "0":
            raise BadRequestError("a request must not have a body: omit Content-Length and Transfer-Encoding")
        if not self.path.isascii():
            raise BadRequestError("the URL contains characters that are not ASCII: percent-encode them as UTF-8")

    def _route(self) -> None:
        try:
            url = urlsplit(self.path)
        except ValueError as error:
            raise BadRequestError(f"the URL cannot be parsed ({error}): request a path like /api/run") from None
        if url.path in STATIC:
            name, content_type = STATIC[url.path]
            self._send(files("agglo.explore").joinpath("static", name).read_bytes(), content_type)
        elif url.path in api.ROUTES:
            self._respond(url.path, url.query)
        else:
            paths = ", ".join([*STATIC, *api.ROUTES])
            self._reject(HTTPStatus.NOT_FOUND, f"there is no path {url.path[:100]}: request one of {paths}")

    def _respond(self, path: str, query_string: str) -> None:
        explorer = self.server.explorer
        query = _parse_query(query_string)
        token = (query.pop("token", None) or [self.headers.get("X-Agglo-Token", "")])[0]
        if not secrets.compare_digest(token.encode(), explorer.token.encode()):
            raise _ForbiddenError("the token is missing or wrong: open the printed link")
        handler = api.ROUTES[path]
        arguments = parse_arguments(handler, query)
        with self.server.slots:
            result = handler(explorer.run, **arguments)
            content = b"" if isinstance(result, api.File) else _encode_json(result)
            explorer._count_response()
        if isinstance(result, api.File):
            self._send_file(result)
        else:
            self._send(content, _JSON)

    def _send_file(self, file: api.File) -> None:
        """Send a file in parts, so that only one part is in memory at a time."""
        chunked = self.request_version != "HTTP/1.0"
        headers = {"Content-Disposition": f'attachment; filename="{file.name}"'}
        headers |= {"Transfer-Encoding": "chunked"} if chunked else {"Connection": "close"}
        if self.command == "HEAD":
            self._send_head(file.content_type, headers)
            return
        part = self._next_part(file)  # generated before the headers, so that a failure gets an error response
        self._send_head(file.content_type, headers)
        while part is not None:
            if part:  # an empty chunk would end the body
                self.wfile.write(b"%x\r\n%b\r\n" % (len(part), part) if chunked else part)
            part = self._next_part(file)
        if chunked:
            self.wfile.write(b"0\r\n\r\n")

    def _next_part(self, file: api.File) -> bytes | None:
        with self.server.slots:
            return next(file.parts, None)

    def _reject(self, status: HTTPStatus, message: str, headers: Mapping[str, str] | None = None) -> None:
        # Close the connection: the next bytes may be the body of the rejected request, not a new request.
        self.close_connection = True
        self._send(_encode_json({"error": message}), _JSON, status, {"Connection": "close", **(headers or {})})

    def _send(
        self,
        content: bytes,
        content_type: str,
        status: HTTPStatus = HTTPStatus.OK,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        self._send_head(content_type, {"Content-Length": str(len(content)), **(headers or {})}, status)
        if self.command != "HEAD":
            self.wfile.write(content)

    def _send_head(
        self, content_type: str, headers: Mapping[str, str], status: HTTPStatus = HTTPStatus.OK
    ) -> None:
        fixed = {
            "Content-Type": content_type,
            "Cache-Control": "no-store",
            "Content-Security-Policy": _POLICY,
            "Referrer-Policy": "no-referrer",
            "X-Content-Type-Options": "nosniff",
        }
        self.send_response(status)
        for name, value in {**fixed, **headers}.items():
            self.send_header(name, value)
        self._headers_sent = True
        self.end_headers()

    def log_message(self, *_: Any) -> None:
        """Do not log requests: the log would hide the link in the terminal."""


class _ForbiddenError(Exception):
    """A request without a valid token, or with a foreign Host header."""


def describe_error(error: BaseException | None) -> str:
    """Return the type and the message of an error as one line of text."""
    message = " ".join(str(error).split())
    return f"{type(error).__name__}: {message}"[:500]


def _parse_query(text: str) -> dict[str, list[str]]:
    try:
        return parse_qs(
            text, keep_blank_values=True, strict_parsing=bool(text), errors="strict", max_num_fields=50
        )
    except UnicodeDecodeError:
        raise BadRequestError(
            "the URL has percent-encoded bytes that are not UTF-8, such as a lone surrogate: encode it as UTF-8"
        ) from None
    except ValueError as error:
        raise BadRequestError(f"the query string cannot be parsed ({error}): pass name=value&name=value") from None


def _encode_json(value: Any) -> bytes:
    return api.to_json(value).encode("utf-8", "replace")
