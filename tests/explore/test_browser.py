import csv
import re
from dataclasses import replace
from importlib.resources import files
from urllib.parse import urlsplit

import numpy as np
import pyarrow.csv
import pyarrow.parquet as pq
import pytest
from browser import chromium
from explorable import TEXTS, write_run
from forests import chain

import agglo
from agglo.explore import Explorer, api, open_run, open_tree
from agglo.explore.page import render_frame, save_page
from agglo.text.names import Names

pytestmark = pytest.mark.browser


@pytest.fixture(scope="module")
def browser():
    with chromium() as context:
        yield context


@pytest.fixture(scope="module")
def opened(tmp_path_factory):
    folder = tmp_path_factory.mktemp("run") / "animals"
    write_run(folder)
    return open_run(folder)


@pytest.fixture(scope="module")
def served(opened):
    with Explorer(opened) as explorer:
        yield explorer


@pytest.fixture
def page(browser):
    """Open a page that must not log errors, show dialogs, or send requests to other servers."""
    page = browser.new_page()
    wrong = []
    page.on("pageerror", lambda error: wrong.append(str(error)))
    page.on("console", lambda message: wrong.append(message.text) if message.type == "error" else None)
    page.on("dialog", lambda dialog: (wrong.append(dialog.message), dialog.dismiss()))
    page.on("request", lambda request: asked.append(request.url))
    asked = []
    yield page
    origin = urlsplit(page.url)[:2]
    page.close()
    assert wrong == []
    assert {urlsplit(url)[:2] for url in asked if not url.startswith(("data:", "blob:"))} <= {origin}


def visit(page, url):
    page.goto(url)
    page.wait_for_selector("body[data-shown]")


def shown(page, node, clusters=""):
    page.wait_for_function("at => document.body.dataset.shown?.startsWith(at)", arg=f"{node}/{clusters}")


def click(page, node, **options):
    """Click on the box of a node, near its top, which no other box covers."""
    box = page.evaluate("node => { const r = agglo.rectangle(node); return r && [r.x, r.y, r.width] }", node)
    assert box is not None, f"node {node} is not seen"
    x, y, width = box
    modifier = options.get("modifier")
    if modifier:
        page.keyboard.down(modifier)
    page.mouse.click(x + width / 2, y + 5)
    if modifier:
        page.keyboard.up(modifier)


def crumbs(page):
    return page.locator("#crumbs button").all_inner_texts()


def largest(opened):
    """Return the largest box below the root."""
    box = api.view(opened, node=opened.tree.n_nodes - 1, clusters=7).boxes[1]
    assert box.size > 2
    return box.node


def test_the_page_opens_and_draws(page, served):
    visit(page, served.url)
    assert page.title() == "animals – agglo explore"
    assert crumbs(page) == ["animals"]
    assert page.locator("#panel h1").inner_text() == "animals"
    colours = page.evaluate(
        """() => { const c = document.querySelector("#view");
        const data = new Uint32Array(c.getContext("2d").getImageData(0, 0, c.width, c.height).data.buffer);
        return new Set(data).size }"""
    )
    assert colours > 20, "boxes, and text on them"


def test_the_script_is_small_and_the_page_names_no_other_host():
    static = files("agglo.explore").joinpath("static")
    assert sorted(entry.name for entry in static.iterdir()) == ["app.css", "app.js", "index.html"]
    assert len(static.joinpath("app.js").read_bytes()) < 100_000
    for name in ("index.html", "app.css", "app.js"):
        assert not re.search(r"https?://(?!www\.w3\.org)", static.joinpath(name).read_text("utf-8"))


def test_a_click_zooms_in_and_the_browser_goes_back(page, served, opened):
    visit(page, served.url)
    root, node = opened.tree.n_nodes - 1, largest(opened)
    click(page, node)
    shown(page, node)
    assert crumbs(page) == ["animals", opened.name(node)]
    assert page.locator("#panel h1").inner_text() == opened.name(node)
    assert f"node={node}" in page.url
    page.go_back()
    shown(page, root)
    assert crumbs(page) == ["animals"]
    click(page, node)
    shown(page, node)
    page.locator("#crumbs button").first.click()
    shown(page, root)


def test_search_leads_to_an_item(page, served, opened):
    visit(page, served.url)
    page.keyboard.press("/")
    page.keyboard.type("white RHINO")
    page.locator("#hits [role=option]").first.wait_for()
    assert page.locator("#hits .said").inner_text() == "3 items found"
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    page.wait_for_function("() => document.querySelector('#panel .kind').textContent === 'Item'")
    found = page.locator("#panel h1").inner_text()
    assert found in TEXTS
    assert "white rhino" in found
    assert len(crumbs(page)) > 1, "it is zoomed to the cluster that the item is in"
    assert page.evaluate("node => agglo.rectangle(node) !== undefined", TEXTS.index(found))


def test_what_is_not_there_is_not_found(page, served):
    visit(page, served.url)
    page.fill("#query", "zebra")
    page.wait_for_function("() => document.querySelector('#hits .said')?.textContent === 'No items found'")


def test_every_position_of_the_slider_shows_other_clusters(page, served, opened):
    visit(page, served.url)
    slider = page.locator("#clusters")
    root = opened.tree.n_nodes - 1
    steps = api.view(opened, node=root).steps
    assert slider.get_attribute("max") == str(len(steps) - 1)
    slider.focus()
    page.keyboard.press("Home")
    pictures = set()
    for clusters in steps:
        shown(page, root, f"{clusters}")
        assert page.locator("#granularity").inner_text() == f"{clusters} clusters"
        page.wait_for_timeout(50)  # the page draws in the next frame
        pictures.add(page.evaluate("() => document.querySelector('#view').toDataURL()"))
        page.keyboard.press("ArrowRight")
    assert len(pictures) == len(steps) > 3
    assert page.evaluate("() => agglo.rectangle(0) !== undefined"), "items are seen"
    assert f"clusters={steps[-1]}" in page.url


@pytest.mark.parametrize("form", ["CSV", "Parquet"])
def test_selected_clusters_are_exported(page, served, opened, form, tmp_path):
    visit(page, served.url)
    node = largest(opened)
    click(page, node, modifier="Shift")
    assert page.locator(".chosen h2").inner_text() == "1 cluster selected"
    assert f"selected={node}" in page.url
    with page.expect_download() as waiting:
        page.get_by_role("button", name=f"Export {form}").click()
    path = tmp_path / waiting.value.suggested_filename
    assert path.name == f"clusters.{form.lower()}"
    waiting.value.save_as(path)
    table = pyarrow.csv.read_csv(path) if form == "CSV" else pq.read_table(path)
    points = opened.points(node).tolist()
    assert table["point"].to_pylist() == points
    assert table["text"].to_pylist() == [TEXTS[point] for point in points]
    page.get_by_role("button", name="Deselect", exact=True).click()
    assert page.locator(".chosen h2").count() == 0


def test_a_link_keeps_the_view(page, served, opened, browser):
    visit(page, served.url)
    node = largest(opened)
    click(page, node)
    shown(page, node)
    page.get_by_text("Icicle").click()
    page.select_option("#colour", "source")
    page.wait_for_selector("#legend .key")
    page.get_by_role("button", name="Select", exact=True).click()
    page.get_by_role("button", name="Copy link").click()
    page.get_by_role("button", name="Copied").wait_for()
    link = page.evaluate("() => navigator.clipboard.readText()")
    other = browser.new_page()
    visit(other, link)
    assert crumbs(other) == crumbs(page)
    assert other.locator("#mode input:checked").get_attribute("value") == "icicle"
    assert other.locator("#colour").input_value() == "source"
    assert other.locator(".chosen .link").inner_text() == opened.name(node)
    assert other.locator("#legend .key").all_inner_texts() == ["web", "book", "other, none or mixed"]
    other.close()


def test_texts_are_shown_as_they_are(page, served):
    visit(page, served.url)
    point = next(i for i, text in enumerate(TEXTS) if text.startswith("<script>"))
    page.fill("#query", "<script>")
    page.locator("#hits [role=option]").wait_for()
    page.keyboard.press("Enter")
    page.wait_for_function("text => document.querySelector('#panel h1').textContent === text", arg=TEXTS[point])
    assert page.locator("script").count() == 1, "the page's own"
    assert "count\n16" in page.locator("#panel dl").last.inner_text()


def test_the_keyboard_is_enough(page, served, opened):
    visit(page, served.url)
    view = page.locator("#view")
    view.focus()
    page.keyboard.press("ArrowRight")
    first = page.locator("#live").inner_text()
    assert re.search(r", (\d+ points|a single item), 1 of \d+$", first)
    page.keyboard.press("ArrowRight")
    assert re.search(r", 2 of \d+$", page.locator("#live").inner_text())
    page.keyboard.press("ArrowLeft")
    page.keyboard.press("Space")
    assert page.locator(".chosen h2").inner_text() == "1 cluster selected"
    page.keyboard.press("Enter")
    page.wait_for_function("() => document.querySelectorAll('#crumbs button').length > 1")
    depth = len(crumbs(page))
    page.keyboard.press("Backspace")
    page.wait_for_function("n => document.querySelectorAll('#crumbs button').length === n", arg=depth - 1)
    nameless = page.evaluate(
        """() => [...document.querySelectorAll("button, input, select, canvas")].filter(e => e.checkVisibility()
        && !(e.getAttribute("aria-label") || e.innerText || e.labels?.[0]?.innerText)).map(e => e.outerHTML)"""
    )
    assert nameless == []


def test_light_and_dark(page, served):
    page.emulate_media(color_scheme="dark")
    visit(page, served.url)
    theme = "() => document.documentElement.dataset.theme"
    paper = "() => getComputedStyle(document.body).backgroundColor"
    assert page.evaluate(theme) == "dark"
    dark = page.evaluate(paper)
    page.get_by_role("button", name="Switch between light and dark").click()
    assert page.evaluate(theme) == "light"
    assert page.evaluate(paper) != dark
    page.reload()
    page.wait_for_selector("body[data-shown]")
    assert page.evaluate(theme) == "light", "what was chosen stays"
    page.evaluate("() => localStorage.clear()")


def test_items_are_paged(page, served, opened):
    visit(page, served.url)
    page.wait_for_selector(".pages")
    assert page.locator(".pages span").inner_text() == "1–20 of 20"
    assert page.locator(".items .link").count() == 20
    page.locator(".items .link").first.click()
    page.wait_for_function("text => document.querySelector('#panel h1').textContent === text", arg=TEXTS[-1])


def test_one_file_works_from_a_disk(page, opened, tmp_path):
    path = tmp_path / "page.html"
    save_page(opened, path)
    visit(page, path.as_uri())
    node = largest(opened)
    click(page, node)
    shown(page, node)
    assert crumbs(page) == ["animals", opened.name(node)]
    page.fill("#query", "<script>")
    page.locator("#hits [role=option]").wait_for()
    page.keyboard.press("Enter")
    page.wait_for_function("() => document.querySelector('#panel h1').textContent.startsWith('<script>')")
    page.locator("#crumbs button").first.click()
    shown(page, opened.tree.n_nodes - 1)
    click(page, node, modifier="Shift")
    with page.expect_download() as waiting:
        page.get_by_role("button", name="Export CSV").click()
    waiting.value.save_as(tmp_path / "clusters.csv")
    table = pyarrow.csv.read_csv(tmp_path / "clusters.csv")
    assert sorted(table["point"].to_pylist()) == sorted(opened.points(node).tolist())


def test_a_stopped_server_is_reported(browser, opened):
    page = browser.new_page()
    with Explorer(opened) as explorer:
        visit(page, explorer.url)
    click(page, largest(opened))
    page.locator("#message").wait_for()
    assert page.locator("#message").inner_text() == "The server does not respond. Is agglo explore still running?"
    page.close()


def test_a_link_without_its_token_is_reported(browser, served):
    page = browser.new_page()
    page.goto(served.url.split("?")[0])
    page.locator("#message").wait_for()
    assert page.locator("#message").inner_text() == "the token is missing or wrong: open the printed link"
    page.close()


HOSTILE = [
    "</script><script>alert(1)</script>",
    "<!--<script>alert(2)</script>",
    "<img src=x onerror=alert(3)>",
    "a\u2028b\u2029c",
    "\u202eevil\u202c \u2066left",
    "\0\x01\x1f\x7f",
    '"}];alert(4);//',
    "{{7*7}} ${alert(5)} `",
    "&lt;b&gt; &amp;",
    "\ufeff\ufffe\U0010ffff",
    "=1+1",
    "@SUM(A1)",
    "long " * 100_000,
    "",
]


@pytest.fixture(scope="module")
def hostile():
    tree = chain(len(HOSTILE))
    inner = tree.n_nodes - tree.n_leaves
    names = Names(
        [HOSTILE[i % len(HOSTILE)] for i in range(inner)],
        [HOSTILE] * inner,
        [tree.leaves(node).tolist()[:5] for node in range(tree.n_leaves, tree.n_nodes)],
        [HOSTILE[i % len(HOSTILE)] for i in range(inner)],
        [HOSTILE[i % len(HOSTILE)] for i in range(inner)],
    )
    columns = {text[:40] or "empty": HOSTILE for text in HOSTILE}
    opened = open_tree(tree, HOSTILE, columns)
    return replace(opened, names=names.to_table(), title="</title></script>\u202e<b>")


@pytest.mark.parametrize("where", ["server", "file"])
def test_no_text_breaks_out_of_the_page(page, hostile, where, tmp_path):
    with Explorer(hostile) as explorer:
        explorer.save(tmp_path / "page.html")
        visit(page, explorer.url if where == "server" else (tmp_path / "page.html").as_uri())
        own = page.locator("script").count()
        assert own == (1 if where == "server" else 2)
        root = hostile.tree.n_nodes - 1
        assert page.title() == "</title></script>\u202e<b> – agglo explore"
        seen = [box.node for box in api.view(hostile, node=root).boxes if box.node >= 0]
        for node in (*seen[1:7], root):
            page.evaluate("node => { location.hash = `node=${node}` }", node)
            shown(page, node)
        if where == "server":
            for column in list(hostile.items.columns)[:4]:
                page.select_option("#colour", column)
        for text in (HOSTILE[0], HOSTILE[2], "=1+1"):
            page.fill("#query", text)
            page.locator("#hits [role=option]").first.wait_for()
        assert page.locator("script").count() == own
        assert page.locator("#panel img, #panel b, #hits img, #legend img").count() == 0
        page.wait_for_load_state("networkidle")


def test_texts_of_one_file_are_exported_without_formulas(page, hostile, tmp_path):
    save_page(hostile, tmp_path / "page.html")
    visit(page, (tmp_path / "page.html").as_uri())
    page.get_by_role("button", name="Select", exact=True).click()
    with page.expect_download() as waiting:
        page.get_by_role("button", name="Export CSV").click()
    waiting.value.save_as(tmp_path / "clusters.csv")
    with open(tmp_path / "clusters.csv", newline="", encoding="utf-8") as file:
        rows = list(csv.reader(file.read().replace("\0", "\\0").splitlines(keepends=True)))
    texts = {row[3] for row in rows[1:]}
    assert {"'=1+1", "'@SUM(A1)", HOSTILE[0]} <= texts
    assert not any(cell.startswith(("=", "@", "+", "-")) for row in rows for cell in row)


def show_in_notebook(page, run, path):
    """Show the frame of a run as in a notebook that was exported to HTML; return its document."""
    path.write_text(f"<!doctype html><meta charset=utf-8><body>{render_frame(run)}</body>", "utf-8")
    page.goto(path.as_uri())
    frame = page.frames[1]
    frame.wait_for_selector("body[data-shown]")
    return frame


def test_a_notebook_shows_a_page_that_needs_no_server(page, opened, tmp_path):
    frame = show_in_notebook(page, opened, tmp_path / "notebook.html")
    assert frame.evaluate("() => self.origin") == "null", "the page has no access to the notebook"
    node = largest(opened)
    spot = frame.evaluate("node => { const r = agglo.rectangle(node); return [r.x + r.width / 2, r.y + 5] }", node)
    frame.locator("body").click(position={"x": spot[0], "y": spot[1]})
    frame.wait_for_function("at => document.body.dataset.shown.startsWith(at)", arg=f"{node}/")
    frame.locator("#crumbs button").first.click()
    frame.locator("#theme").click()
    assert frame.evaluate("() => document.documentElement.dataset.theme") == "dark"
    assert not frame.locator("#share").is_visible()
    assert not frame.locator("#note").is_visible(), "nothing is left out"
    frame.get_by_role("button", name="Select", exact=True).click()
    with page.expect_download() as waiting:
        frame.get_by_role("button", name="Export CSV").click()
    waiting.value.save_as(tmp_path / "clusters.csv")
    assert pyarrow.csv.read_csv(tmp_path / "clusters.csv").num_rows == len(TEXTS)


def test_a_notebook_shows_what_is_left_out_of_a_large_tree(page, tmp_path, monkeypatch):
    monkeypatch.setattr("agglo.explore.page.FRAME_BYTES", 70_000)
    X = np.random.default_rng(0).normal(size=(2000, 3))
    run = open_tree(agglo.scc(agglo.neighbor_graph(X, 10)), None, None)
    frame = show_in_notebook(page, run, tmp_path / "notebook.html")
    note = frame.locator("#note").inner_text()
    clusters, all_clusters, items, points = (
        int(number.replace(",", "")) for number in re.findall(r"[\d,]+", note)
    )
    assert note.startswith("This page has only the ")
    assert 2 < clusters < all_clusters == run.tree.n_nodes - 2000
    assert 2 < items < points == 2000
    root = run.tree.n_nodes - 1
    steps = api.view(run, node=root).steps
    shown_steps = int(frame.locator("#clusters").get_attribute("max")) + 1
    assert 5 < shown_steps < len(steps)
    # A cluster whose parts are left out is drawn as one box.
    end = frame.evaluate(
        """async () => {
          const { data, children } = agglo.source;
          return data.boxes.findLast((box, i) => box.node >= agglo.run.points && !children[i].length).node;
        }"""
    )
    frame.evaluate("node => { location.hash = `node=${node}` }", end)
    frame.wait_for_function("at => document.body.dataset.shown.startsWith(at)", arg=f"{end}/")
    assert frame.evaluate("node => agglo.rectangle(node).width", end) > 300
    assert "Items in this page" in frame.locator(".items h2").inner_text()


@pytest.mark.parametrize("width", [390, 1280])
def test_the_page_fits_the_screen(page, served, width):
    page.set_viewport_size({"width": width, "height": 800})
    visit(page, served.url)
    assert page.evaluate("() => document.documentElement.scrollWidth") == width
