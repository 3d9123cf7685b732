"""Takes the screenshots in README.md and docs/web.md: indexes a folder, serves it, opens it in Chromium.

usage: screenshots.py FOLDER [QUESTION]

FOLDER is any repository or folder, such as the result of `make demo` (demo/stdlib). Needs the development
dependencies and a Chromium on the PATH. Writes docs/images/*.png.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path
from urllib.parse import urlencode

from playwright.sync_api import Browser, sync_playwright

IMAGES = Path(__file__).parent.parent / "docs" / "images"
QUESTION = "make a paragraph fit into eighty columns"

# Bytes of a screenshot, for slow connections.
MAX_BYTES = 150_000


def main() -> int:
    if len(sys.argv) < 2:
        print(__doc__, file=sys.stderr)
        return 2
    folder = sys.argv[1]
    question = sys.argv[2] if len(sys.argv) > 2 else QUESTION
    subprocess.run([sys.executable, "-m", "outcrop", "index", folder], check=True)
    command = [sys.executable, "-m", "outcrop", "serve", folder, "--port", "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        try:
            assert server.stdout is not None
            base = server.stdout.readline().strip().removesuffix("/search")
            with sync_playwright() as playwright:
                chromium = shutil.which("chromium") or shutil.which("chromium-browser")
                browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox", "--disable-gpu"])
                search = f"{base}/search?{urlencode({'q': question})}"
                # The model may still be loading for the first question.
                screenshot(browser, search, None)
                screenshot(browser, search, "search-light", height=760)
                screenshot(browser, search, "search-dark", scheme="dark", height=760)
                screenshot(browser, search, "search-narrow", width=390, height=760)
                screenshot(browser, f"{base}/catalog", "catalog", height=1050)
                browser.close()
        finally:
            server.terminate()
    return 0


def screenshot(
    browser: Browser, address: str, name: str | None, *, scheme: str = "light", width: int = 1040, height: int = 800
) -> None:
    """Open a page and, with a name, save its screenshot."""
    context = browser.new_context(
        viewport={"width": width, "height": height},
        color_scheme="dark" if scheme == "dark" else "light",
    )
    page = context.new_page()
    page.goto(address)
    if name is not None:
        IMAGES.mkdir(parents=True, exist_ok=True)
        path = IMAGES / f"{name}.png"
        page.screenshot(path=path)
        size = path.stat().st_size
        print(f"{path.name}: {size:,} bytes")
        assert size <= MAX_BYTES, f"{path} is too large"
    context.close()


if __name__ == "__main__":
    sys.exit(main())
