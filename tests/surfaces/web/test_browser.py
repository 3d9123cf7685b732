"""The page in a real browser: keys, lines that unfold, no script at all, narrow and wide, light and dark, and axe."""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, Page, expect, sync_playwright
from repositories import commit, git, write
from serve_process import serving
from web_client import make_kettle, open_kettle

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
ARGUMENTS = ["--no-sandbox", "--disable-gpu", "--disable-background-networking"]

QUESTION = "/ext/search?q=boil+the+water"

STEP = """def step_{0}(kettle):
    \"\"\"Step {0} of making tea with boiling water.\"\"\"
    kettle.level = {0}
    return kettle.level + {0}"""

LONG = "\n\n".join(STEP.format(number) for number in range(40))


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    folder = make_kettle(tmp_path_factory.mktemp("browser") / "kettle")
    write(folder, {"src/tea.py": LONG + "\n"})
    commit(folder)
    git(folder, "update-ref", "refs/remotes/origin/main", "HEAD")
    with open_kettle(folder) as index:
        index.build()
    with serving(folder) as running:
        yield running.base


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    if CHROMIUM is None:
        pytest.skip("chromium is not installed")
    with sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=CHROMIUM, args=ARGUMENTS)
        yield started
        started.close()


@pytest.fixture
def page(browser: Browser, base: str) -> Iterator[Page]:
    context = browser.new_context(base_url=base, viewport={"width": 1000, "height": 800})
    opened = context.new_page()
    trouble: list[str] = []
    opened.on("pageerror", lambda error: trouble.append(str(error)))
    opened.on("console", lambda message: trouble.append(message.text) if message.type == "error" else None)
    yield opened
    context.close()
    assert trouble == []


def test_a_question_is_typed_sent_and_part_of_the_address(page: Page) -> None:
    page.goto("/")
    box = page.get_by_label("Question")
    expect(box).to_be_focused()
    box.press_sequentially("limescale")
    box.press("Enter")
    expect(page).to_have_url(re.compile(r"/ext/search\?q=limescale$"))
    expect(page.get_by_role("article").first).to_contain_text("vinegar")
    page.get_by_label("Question").fill("guarantee")
    page.get_by_role("button", name="Search").click()
    expect(page).to_have_url(re.compile(r"q=guarantee$"))
    page.go_back()
    expect(page.get_by_label("Question")).to_have_value("limescale")


def test_filters_act_at_once_and_stay(page: Page) -> None:
    page.goto(QUESTION)
    page.get_by_role("radio", name="keyword").check()
    expect(page).to_have_url(re.compile(r"mode=keyword"))
    page.get_by_role("checkbox", name="documents").check()
    expect(page).to_have_url(re.compile(r"kind=doc"))
    expect(page.locator(".oc-hit .oc-tag").first).to_have_text("doc")
    expect(page.locator(".oc-kinds input:checked")).to_have_count(1)
    page.get_by_label("Project").select_option("*")
    expect(page).to_have_url(re.compile(r"project=(\*|%2A)"))
    expect(page).to_have_url(re.compile(r"kind=doc"))


def test_keys_walk_the_hits_and_open_one(page: Page) -> None:
    page.goto(QUESTION)
    page.keyboard.press("j")
    expect(page.locator("#hit-1 [data-oc-open]")).to_be_focused()
    page.keyboard.press("j")
    expect(page.locator("#hit-2 .oc-on")).to_have_count(1)
    page.keyboard.press("k")
    expect(page.locator("#hit-1 [data-oc-open]")).to_be_focused()
    page.keyboard.press("/")
    expect(page.get_by_label("Question")).to_be_focused()
    page.keyboard.type("j/")
    page.keyboard.press("ArrowDown")
    expect(page.locator("#hit-1 [data-oc-open]")).to_be_focused()
    page.keyboard.press("Enter")
    expect(page).to_have_url(re.compile(r"/ext/view\?"))
    expect(page.locator(".oc-chosen").first).to_be_in_viewport()


def test_more_lines_unfold_in_place_until_there_are_no_more(page: Page) -> None:
    page.goto("/ext/search?q=step_20&mode=keyword&path=src/tea.py")
    hit = page.locator("#hit-1")
    before = hit.locator(".oc-line").count()
    hit.locator("[data-oc-more]").click()
    expect(hit.locator(".oc-line").nth(before)).to_be_attached()
    expect(hit.locator(".oc-chosen").first).to_be_attached()
    counted = hit.locator(".oc-line").count()
    page.keyboard.press("m")
    expect(hit.locator(".oc-line").nth(counted)).to_be_attached()
    link = hit.locator("[data-oc-more]")
    for _ in range(30):
        expect(hit.locator("[aria-busy]")).to_have_count(0)
        if not link.is_visible():
            break
        link.click()
    expect(link).to_be_hidden()
    expect(hit.locator(".oc-line")).to_have_count(len(LONG.splitlines()))


def test_everything_works_without_a_script(browser: Browser, base: str) -> None:
    context = browser.new_context(base_url=base, java_script_enabled=False)
    page = context.new_page()
    page.goto("/")
    page.get_by_label("Question").fill("limescale")
    page.get_by_role("radio", name="keyword").check()
    page.get_by_role("button", name="Search").click()
    expect(page.get_by_role("article").first).to_contain_text("vinegar")
    expect(page).to_have_url(re.compile("mode=keyword"))
    page.locator("#hit-1 [data-oc-more]").click()
    expect(page.get_by_role("heading", level=1)).to_contain_text("guide.md")
    expect(page.locator(".oc-chosen").first).to_be_in_viewport()
    page.get_by_role("link", name="Back to the results").click()
    expect(page.get_by_label("Question")).to_have_value("limescale")
    context.close()


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [375, 900, 1400])
def test_nothing_is_wider_than_the_window_and_axe_finds_nothing(
    browser: Browser, base: str, scheme: str, width: int
) -> None:
    context = browser.new_context(base_url=base, viewport={"width": width, "height": 900}, color_scheme=scheme)  # type: ignore[arg-type]
    page = context.new_page()
    addresses = [
        "/ext/search",
        QUESTION,
        QUESTION + "&mode=keyword&kind=doc",
        "/ext/search?q=zyzzyva&mode=keyword",
        "/ext/search?q=water&kind=nonsense",
        "/ext/view?path=src/kettle.py&lines=10-14&q=water",
        "/ext/view?path=lab/heat.ipynb",
        "/ext/catalog",
        "/ext/nowhere",
    ]
    # axe looks at the same markup whatever the width; one width and the narrow one see every rule of the sheet.
    trouble = []
    for address in addresses:
        page.goto(address)
        assert page.evaluate("document.documentElement.scrollWidth") <= width, address
        if width != 900:
            found = Axe().run(page)
            trouble += [f"{address}\n{found.generate_report()}"] if found.violations_count else []
    context.close()
    assert trouble == [], "\n".join(trouble)


def test_a_token_is_typed_once(browser: Browser, tmp_path: Path) -> None:
    folder = make_kettle(tmp_path / "kettle")
    with serving(folder, "--token-ref", "PAGE_TOKEN", PAGE_TOKEN="correct-horse-battery") as running:
        context = browser.new_context(base_url=running.base)
        page = context.new_page()
        page.goto("/")
        expect(page.get_by_role("heading", level=1)).to_have_text("Token required")
        assert Axe().run(page).violations_count == 0
        page.get_by_label("Token").fill("wrong")
        page.keyboard.press("Enter")
        expect(page.get_by_role("alert")).to_be_visible()
        page.get_by_label("Token").fill("correct-horse-battery")
        page.get_by_role("button", name="Sign in").click()
        expect(page.get_by_label("Question")).to_be_visible()
        page.goto("/ext/catalog")
        expect(page.get_by_role("heading", level=1)).to_have_text("Catalog")
        context.close()
