"""A real browser for tests of the explorer."""

import contextlib
import shutil
import tempfile
from pathlib import Path

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
    """Start a browser with a profile of its own: the machine's, else the one that Playwright downloaded."""
    with tempfile.TemporaryDirectory() as profile, sync_playwright() as playwright:
        found = next(filter(None, map(shutil.which, NAMES)), playwright.chromium.executable_path)
        if not Path(found).exists():
            raise FileNotFoundError(
                f"tests of the explorer need Chromium: none of {', '.join(NAMES)} is on the path, and there is "
                f"no {found}. Run ./run-tests, which installs it, or playwright install chromium"
            )
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


if __name__ == "__main__":
    with chromium() as context:
        print("Chromium", context.browser.version if context.browser else "starts")
