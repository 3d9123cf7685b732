"""The search page inside Fossil's own frame, in a real browser."""

from __future__ import annotations

import shutil
from collections.abc import Iterator

import pytest
from fossil_program import SampleRepository, query, serving

import outcrop
from outcrop.surfaces.cli.program import main

playwright = pytest.importorskip("playwright.sync_api")
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="no Chromium here")

FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-background-networking"]


@pytest.fixture(scope="module", params=["", "darkmode"])
def address(
    request: pytest.FixtureRequest, sample: SampleRepository, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[str]:
    """A server that shows everybody everything, in Fossil's usual skin and in a dark one."""
    folder = tmp_path_factory.mktemp("browser")
    repository = sample.copy(folder)
    query(repository, "UPDATE user SET cap = 'hojr2' WHERE login = 'nobody'")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HOME", str(folder))
        patch.delenv("XDG_CACHE_HOME", raising=False)
        patch.setenv("OUTCROP_EMBEDDER", "hash")
        with outcrop.open(repository) as index:
            index.build()
        assert main(["fossil", "install-ext", str(folder / "ext")]) == 0
        skin = ("--skin", request.param) if request.param else ()
        with serving(sample.fossil, repository, "", "--extroot", folder / "ext", *skin) as address:
            yield address


@pytest.fixture
def page(address: str) -> Iterator[object]:
    with playwright.sync_playwright() as play:
        browser = play.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        page = browser.new_page(base_url=address)
        page.set_default_timeout(60_000)
        page.said = []
        page.on("console", lambda message: page.said.append(message.text))
        page.on("pageerror", lambda error: page.said.append(str(error)))
        yield page
        browser.close()


def test_a_person_asks_reads_more_and_opens_the_page_in_fossil(page, address: str) -> None:
    page.goto("ext/search")
    assert page.locator(".mainmenu").count() == 1  # Fossil's own frame
    assert page.title().endswith("Search")
    assert page.evaluate("document.activeElement.id") == "oc-q"
    page.keyboard.type('the "animals" of the zoo')
    page.keyboard.press("Enter")
    page.wait_for_selector(".oc-hits")
    assert page.url.startswith(f"{address}ext/search?q=")
    assert "the ”animals” of the zoo – search" in page.title()
    hit = page.locator("[data-oc-hit]").first
    assert "README.md" in hit.inner_text()
    assert {mark.lower() for mark in hit.locator("mark").all_inner_texts()} == {"animals", "zoo"}
    # Filters act at once, by the script that Fossil's nonce lets through.
    page.locator(".oc-kinds label", has_text="code").click()
    page.wait_for_url("**kind=code**")
    page.fill("#oc-q", "step_100")
    page.keyboard.press("Enter")
    page.wait_for_url("**q=step_100**")
    hit = page.locator("[data-oc-hit]").first
    before = hit.locator(".oc-lines").inner_text()
    hit.locator("[data-oc-more]").click()
    page.wait_for_function(
        "length => document.querySelector('[data-oc-hit] .oc-lines').innerText.length > length", arg=len(before)
    )
    assert "def step_100" in hit.locator(".oc-lines").inner_text()
    hit.locator("[data-oc-open]").click()
    page.wait_for_url("**/artifact/**ln=**")
    assert "def step_100" in page.inner_text("body")
    assert page.said == []


def test_it_works_without_scripts_and_on_a_narrow_screen(address: str) -> None:
    with playwright.sync_playwright() as play:
        browser = play.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        page = browser.new_page(base_url=address, java_script_enabled=False, viewport={"width": 360, "height": 700})
        page.set_default_timeout(60_000)
        page.goto("ext/search?q=bears+asleep&kind=wiki")
        assert "Asleep" in page.inner_text(".oc-hits")
        assert page.locator(".oc-hits").bounding_box()["width"] <= 360
        page.locator(".oc-nav >> text=Catalog").click()
        page.wait_for_url("**/ext/search/catalog")
        assert "technotes" in page.inner_text(".oc")
        browser.close()


def test_the_text_can_be_read_in_both_skins(page) -> None:
    axe = pytest.importorskip("axe_playwright_python.sync_playwright").Axe()
    page.goto("ext/search?q=animals")
    found = axe.run(page, context=".oc", options={"runOnly": ["color-contrast", "label", "button-name", "link-name"]})
    assert [(node["html"], node["any"]) for each in found.response["violations"] for node in each["nodes"]] == []
