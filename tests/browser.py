"""A real browser for tests of the explorer."""

import contextlib
import shutil
import tempfile

from playwright.sync_api import sync_playwright

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-dev-shm-usage",
]


@contextlib.contextmanager
def chromium():
    """A browser with a profile of its own; an error with a remedy if there is none on this machine."""
    found = next(filter(None, map(shutil.which, NAMES)), None)
    if found is None:
        raise FileNotFoundError(
            f"the tests of the explorer need Chromium, and none of {', '.join(NAMES)} is on the path: install it, "
            "on Debian and Ubuntu with apt-get install chromium"
        )
    with tempfile.TemporaryDirectory() as profile, sync_playwright() as playwright:
        browser = playwright.chromium.launch_persistent_context(
            profile,
            executable_path=found,
            args=FLAGS,
            viewport={"width": 1280, "height": 800},
            accept_downloads=True,
            permissions=["clipboard-read", "clipboard-write"],
            color_scheme="light",
            reduced_motion="reduce",
        )
        browser.set_default_timeout(30_000)
        yield browser
        browser.close()
