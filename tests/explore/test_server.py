import contextlib
import dataclasses
import http.client
import json
import logging
import os
import socket
import threading
import time

import pyarrow as pa
import pytest
from explorable import write_run
from forests import chain

from agglo.explore import Explorer, api, open_run, open_tree, server
from agglo.explore.items import Items
from agglo.explore.run import ExplorableRun


@pytest.fixture(scope="module")
def served(tmp_path_factory):
    folder = tmp_path_factory.mktemp("run") / "animals"
    write_run(folder)
    with Explorer(open_run(folder)) as explorer:
        yield explorer


def ask(explorer, target, method="GET", **headers):
    connection = http.client.HTTPConnection("127.0.0.1", explorer.port, timeout=60)
    with contextlib.closing(connection):
        connection.request(method, target, headers={"X-Agglo-Token": explorer.token, **headers})
        with connection.getresponse() as answer:
            return answer, answer.read()


def send(explorer, request):
    """Send bytes, and return everything received until the connection ends."""
    with socket.create_connection(("127.0.0.1", explorer.port), timeout=60) as connection:
        connection.sendall(request.replace(b"HOST", b"Host: 127.0.0.1:%d" % explorer.port))
        found = b""
        while part := connection.recv(65536):
            found += part
    return found


TARGETS = ["/", "/app.js", "/app.css", "/nowhere", "/api/run", "/api/view?node=30",
           "/api/children?node=30", "/api/node?node=0", "/api/items?node=30", "/api/search?text=frog",
           "/api/path?node=0", "/api/export?nodes=0", "/api/node?node=-1"]  # fmt: skip


def test_the_targets_are_all_there_are():
    paths = {target.partition("?")[0] for target in TARGETS}
    assert paths == {*server.STATIC, *api.ROUTES, "/nowhere"}


@pytest.mark.parametrize("target", TARGETS)
def test_head_is_get_without_a_body(served, target):
    got, content = ask(served, target)
    head, nothing = ask(served, target, "HEAD")
    assert (head.status, nothing) == (got.status, b"")
    assert content
    left = {"Date"}
    assert {k: v for k, v in head.getheaders() if k not in left} == {
        k: v for k, v in got.getheaders() if k not in left
    }


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE", "CONNECT", "BREW"])
def test_other_methods_are_not_allowed(served, method):
    answer, content = ask(served, "/api/run", method)
    assert (answer.status, answer.getheader("Allow")) == (405, "GET, HEAD")
    assert json.loads(content) == {"error": "this method is not supported: use GET"}


def test_no_other_site_shows_the_page_in_a_frame(served):
    for target in ("/", "/app.js", "/api/run", "/nowhere"):
        answer, _ = ask(served, target)
        policy = dict(
            part.strip().partition(" ")[::2] for part in answer.getheader("Content-Security-Policy").split(";")
        )
        assert policy["default-src"] == "'none'"
        assert policy["frame-ancestors"] == "'none'"


@pytest.mark.parametrize(
    ("request_", "status"),
    [
        (b"GET /" + b"x" * 70_000 + b" HTTP/1.1\r\nHOST\r\n\r\n", 414),
        (b"GET / HTTP/1.1\r\nHOST\r\nX: " + b"x" * 70_000 + b"\r\n\r\n", 431),
        (b"GET / HTTP/1.1\r\nHOST\r\n" + b"X: x\r\n" * 200 + b"\r\n", 431),
        (b"GET / HTTP/9.9\r\nHOST\r\n\r\n", 505),
        (b"nonsense\r\n\r\n", 400),
        (b"GET / nonsense HTTP/1.1\r\n\r\n", 400),
        (b"GET http://[ HTTP/1.1\r\nHOST\r\n\r\n", 400),
        (b"GET /api/search?text=\xff HTTP/1.1\r\nHOST\r\n\r\n", 400),
        (b"GET / HTTP/1.1\r\nHOST\r\nContent-Length: abc\r\n\r\n", 400),
        (b"GET / HTTP/1.1\r\nHOST\r\nContent-Length: -1\r\n\r\n", 400),
        (b"GET / HTTP/1.1\r\nHOST\r\nContent-Length: 99999999999999\r\n\r\n", 400),
        (b"GET / HTTP/1.1\r\nHOST\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 400),
        (b"GET / HTTP/1.1\r\n\r\n", 403),
        (b"GET / HTTP/1.1\r\nHOST\r\nHost: evil.example\r\n\r\n", 403),
        (b"GET / HTTP/1.1\r\nHost: evil.example\r\nHOST\r\n\r\n", 403),
    ],
)
def test_requests_that_cannot_be_read_are_refused_and_end_the_connection(served, request_, status, caplog):
    found = send(served, request_)
    head, _, body = found.partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 %d " % status)
    assert b"content-type: application/json" in head.lower()
    assert json.loads(body)["error"]
    assert caplog.records == []


def test_the_body_of_a_refused_request_is_not_read_as_another(served):
    inside = b"GET /api/run?token=%b HTTP/1.1\r\nHOST\r\n\r\n" % served.token.encode()
    for method in (b"GET", b"POST"):
        head = b"%b / HTTP/1.1\r\nHOST\r\nContent-Length: %d\r\n\r\n" % (method, len(inside))
        assert send(served, head + inside).count(b"HTTP/1.1 ") == 1


@pytest.mark.parametrize("text", ["%ED%A0%80", "%FF", "a%ED%BF%BFb"])
def test_a_lone_surrogate_in_a_question_is_refused(served, text):
    for target in (f"/api/search?text={text}", f"/api/view?node=0&colour={text}", f"/api/run?{text}=1"):
        answer, content = ask(served, target)
        assert answer.status == 400
        assert "not UTF-8, such as a lone surrogate" in json.loads(content)["error"]


def test_the_name_of_a_folder_may_be_no_text(tmp_path):
    opened = dataclasses.replace(open_tree(chain(3), None, None), title=os.fsdecode(b"run \xff"))
    with Explorer(opened) as explorer:
        answer, content = ask(explorer, "/api/run")
        assert (answer.status, json.loads(content)["title"]) == (200, "run ?")
        explorer.save(tmp_path / "page.html")
    assert '"title": "run ?"' in (tmp_path / "page.html").read_text("utf-8")


@pytest.mark.parametrize("error", [RuntimeError, KeyError, pa.ArrowInvalid, MemoryError, OSError, ValueError])
def test_an_error_of_our_own_is_an_answer_and_a_line_of_the_log(served, monkeypatch, caplog, capfd, error):
    def fail(opened):
        raise error("a cause\nof two lines")

    monkeypatch.setitem(api.ROUTES, "/api/run", fail)
    answer, content = ask(served, f"/api/run?token={served.token}")
    assert answer.status == 500
    message = json.loads(content)["error"]
    assert message.startswith(f"the response failed: {error.__name__}")
    assert "a cause" in message
    (record,) = caplog.records
    assert record.levelno == logging.ERROR
    assert "/api/run failed" in record.getMessage()
    assert "\n" not in record.getMessage()
    assert served.token not in record.getMessage()
    assert "Traceback" not in capfd.readouterr().err


def test_an_export_that_fails_half_way_does_not_look_whole(served, monkeypatch, caplog):
    def fail(opened):
        def parts():
            yield b"beginning"
            raise RuntimeError("a cause")

        return api.File("a.csv", "text/csv", parts())

    monkeypatch.setitem(api.ROUTES, "/api/run", fail)
    with pytest.raises(http.client.IncompleteRead):
        ask(served, "/api/run")
    assert "RuntimeError: a cause" in caplog.text


def test_old_clients_get_exports_without_chunks(served):
    request = b"GET /api/export?nodes=0&token=%b HTTP/1.0\r\nHOST\r\n\r\n" % served.token.encode()
    head, _, body = send(served, request).partition(b"\r\n\r\n")
    assert b"chunked" not in head
    assert body == b"".join(api.export(served.run, nodes=[0]).parts)


def test_a_slow_client_is_let_go(served, monkeypatch):
    monkeypatch.setattr(server._Server, "max_wait", 0.5)
    with socket.create_connection(("127.0.0.1", served.port), timeout=60) as connection:
        connection.sendall(b"GET / HTTP/1.1\r\n")
        connection.settimeout(0.05)
        for _ in range(2000):  # a byte at a time, each within the time that a single one may take
            try:
                connection.sendall(b"X")
                if connection.recv(1000) == b"":
                    break
            except TimeoutError:
                continue
            except ConnectionError:
                break
        else:
            pytest.fail("the server still waits")


def test_idle_connections_do_not_keep_others_out(served):
    idle = [socket.create_connection(("127.0.0.1", served.port), timeout=60) for _ in range(200)]
    try:
        answer, _ = ask(served, "/api/run")
        assert answer.status == 200
        threads = [thread for thread in threading.enumerate() if "process_request" in thread.name]
        assert len(served._server.connections) <= server._MAX_CONNECTIONS
        assert len(threads) < 200
    finally:
        for connection in idle:
            connection.close()


def test_more_requests_than_are_answered_at_once_are_refused(served, monkeypatch):
    monkeypatch.setattr(server, "_MAX_CONNECTIONS", 2)
    started, finish = threading.Semaphore(0), threading.Event()

    def wait(opened):
        started.release()
        finish.wait(60)
        return []

    monkeypatch.setitem(api.ROUTES, "/api/run", wait)
    asking = [threading.Thread(target=ask, args=(served, "/api/run")) for _ in range(2)]
    for _ in range(1000):  # connections of earlier requests may still be closing
        if not served._server.connections:
            break
        time.sleep(0.01)
    for thread in asking:
        thread.start()
        assert started.acquire(timeout=60)
    found = send(served, b"")
    finish.set()
    for thread in asking:
        thread.join()
    assert found.startswith(b"HTTP/1.1 503 ")
    assert ask(served, "/")[0].status == 200


def test_few_answers_are_computed_at_once(served, monkeypatch):
    running, most, lock = [], [], threading.Lock()
    full, count = threading.Event(), 3 * server._MAX_COMPUTED

    def watch(opened):
        with lock:
            running.append(1)
            most.append(len(running))
            if len(running) >= server._MAX_COMPUTED:
                full.set()
        full.wait(60)
        with lock:
            running.pop()
        return []

    monkeypatch.setitem(api.ROUTES, "/api/run", watch)
    asking = [threading.Thread(target=ask, args=(served, "/api/run")) for _ in range(count)]
    for thread in asking:
        thread.start()
    for thread in asking:
        thread.join()
    assert len(most) == count
    assert max(most) == server._MAX_COMPUTED


def test_a_reader_may_leave_in_the_middle_of_an_export(caplog):
    n = 3000
    items = Items(n, pa.table({"text": ["x" * 5000] * n}))
    tree = chain(n)
    with Explorer(ExplorableRun(tree, items, None, "title")) as explorer:
        nodes = ",".join(map(str, range(tree.n_nodes - 50, tree.n_nodes)))
        for _ in range(3):
            with socket.create_connection(("127.0.0.1", explorer.port), timeout=60) as connection:
                target = f"/api/export?nodes={nodes}&token={explorer.token}"
                connection.sendall(f"GET {target} HTTP/1.1\r\nHost: localhost:{explorer.port}\r\n\r\n".encode())
                assert connection.recv(1000).startswith(b"HTTP/1.1 200")
        assert ask(explorer, "/api/run")[0].status == 200
    assert caplog.records == []


def test_texts_of_any_characters_are_answered_as_they_are():
    texts = [
        "</script><script>alert(1)</script>",
        "a\u2028b\u2029c",
        "\u202eevil\u202c",
        "\0\x01\x1f",
        "x" * 10**6,
        "\ufeff",
    ]
    with Explorer(open_tree(chain(len(texts)), texts, {"</script>\u202e": texts})) as explorer:
        _, content = ask(explorer, f"/api/items?node={chain(len(texts)).n_nodes - 1}")
        shown = {item["point"]: item for item in json.loads(content)["items"]}
        for point, text in enumerate(texts):
            expected = text if len(text) <= 2000 else text[:1999] + "…"
            assert shown[point]["text"] == expected
            assert shown[point]["values"] == [expected]
