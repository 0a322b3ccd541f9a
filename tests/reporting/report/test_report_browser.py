"""The page in a real browser: no network, no console line, usable by mouse, keyboard, reader, phone and printer."""

import re
from pathlib import Path

import pytest

from tests.support.hostile_texts import CATEGORIES, DAYS, METRIC, SYSTEM

SIZES = [(1440, "light"), (1440, "dark"), (390, "light"), (390, "dark")]
SERIOUS = ("serious", "critical")


@pytest.fixture(scope="session")
def axe_source():
    """axe-core, as the test dependency axe-playwright-python carries it."""
    package = pytest.importorskip("axe_playwright_python", reason="no axe-core: pip install axe-playwright-python")
    return (Path(package.__file__).parent / "axe.min.js").read_text("utf-8")


def faults(page, axe_source):
    # evaluate() is the debugger's, which the page's policy does not bind; a script element would be refused
    page.evaluate(axe_source)
    found = page.evaluate("axe.run(document, {resultTypes: ['violations']})")
    return [
        f"{v['id']}: {node['html'][:200]}" for v in found["violations"] if v["impact"] in SERIOUS for node in v["nodes"]
    ]


@pytest.mark.parametrize(("width", "scheme"), SIZES)
def test_hostile_texts_do_nothing(visit, hostile, width, scheme):
    page = visit(hostile.page, width=width, scheme=scheme).page
    page.evaluate("for (const d of document.querySelectorAll('details')) d.open = true")
    assert page.evaluate("window.pwned") is None
    assert page.locator("script").count() == 1
    assert page.locator("#case-list img, #case-list svg, #case-list style, #case-list iframe").count() == 0
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    assert page.locator(".case").count() > 100


@pytest.mark.parametrize(("width", "scheme"), SIZES)
def test_axe_finds_no_serious_fault(visit, hostile, axe_source, width, scheme):
    page = visit(hostile.page, width=width, scheme=scheme).page
    # All cases and rows have the same markup, and axe takes a minute for hundreds of them.
    page.evaluate("for (const c of document.querySelectorAll('.case:nth-child(n+6), tr:nth-child(n+6)')) c.remove()")
    page.locator(".case summary").first.click()
    page.locator("details.fine summary").first.click()
    page.locator(".chart details summary").first.click()
    assert faults(page, axe_source) == []


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_no_serious_fault_in_the_index(visit, hostile, axe_source, scheme):
    page = visit(hostile.ws.store / "nights" / "index.html", scheme=scheme).page
    assert faults(page, axe_source) == []


def test_the_verdict_is_seen_without_scrolling(visit, hostile):
    for width in (390, 1440):
        page = visit(hostile.page, width=width).page
        box = page.locator(".word").bounding_box()
        assert box["y"] + box["height"] < 300
        assert "FAIL" in page.locator("h1").inner_text()


def test_a_failing_question_is_two_clicks_away(visit, hostile):
    page = visit(hostile.page).page
    link = page.locator("a[data-metric]").filter(has_text="below full marks").first
    link.click()
    system = page.locator("#f-system option:checked").inner_text()
    metric = page.locator("#f-metric option:checked").inner_text()
    shown = page.locator(".case:visible")
    assert shown.count() > 0
    shown.first.locator("summary").click()
    assert shown.first.get_attribute("open") is not None
    body = shown.first.inner_text()
    assert system in body
    assert metric in body
    for part in ("Question", "Answer", "Expected answer", "Retrieved", "Verdicts", "Where"):
        assert part in body
    assert re.search(r"e\d{5}", body)


def test_search_and_filters_narrow_the_list_and_reset_brings_it_back(visit, hostile):
    page = visit(hostile.page).page
    everything = page.locator(".case:visible").count()
    page.get_by_label("Search question").fill("ONTOGGLE details")
    found = page.locator(".case:visible")
    assert 0 < found.count() < everything
    assert str(found.count()) in page.get_by_role("status").inner_text()
    page.get_by_label("Search question").fill("no such words anywhere")
    assert page.locator(".case:visible").count() == 0
    assert page.get_by_text("No question matches").is_visible()
    page.get_by_role("button", name="Reset").click()
    assert page.locator(".case:visible").count() == everything
    page.get_by_label("Category").select_option(label=CATEGORIES[0])
    page.get_by_label("System", exact=True).select_option(label=SYSTEM)
    page.get_by_label("Metric", exact=True).select_option(label=METRIC)
    for case in page.locator(".case:visible").all():
        assert CATEGORIES[0] in case.text_content()
        assert SYSTEM in case.text_content()
    page.get_by_label("Status").select_option(label="error")
    for case in page.locator(".case:visible").all():
        assert "error" in case.text_content()


def test_the_list_sorts_by_requests(visit, hostile):
    page = visit(hostile.page).page
    page.get_by_label("Sort by").select_option("weight")
    weights = [float(c.get_attribute("data-weight")) for c in page.locator(".case").all()]
    assert weights == sorted(weights, reverse=True)


def test_a_table_sorts_by_a_click_on_its_column(visit, hostile):
    page = visit(hostile.page).page
    table = page.locator("#slices table")
    button = table.get_by_role("button", name="value")
    for order, direction in ((True, "descending"), (False, "ascending")):
        button.click()
        assert button.locator("xpath=..").get_attribute("aria-sort") == direction
        values = [float(c.get_attribute("data-v")) for c in table.locator("tbody td:nth-child(5)").all()]
        assert values == sorted(values, reverse=order)


def test_a_link_to_a_case_opens_it(visit, hostile):
    first = visit(hostile.page)
    anchor = first.page.locator(".case").nth(7).get_attribute("id")
    page = first.page
    page.goto(f"{first.url}#{anchor}")
    page.reload()
    assert page.locator(f"#{anchor}").get_attribute("open") is not None
    assert page.evaluate("document.activeElement.closest('.case').id") == anchor


def test_everything_is_reached_by_keyboard(visit, hostile):
    page = visit(hostile.page).page
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.className") == "skip"
    page.locator("#f-text").focus()
    page.keyboard.type("needle")
    for _ in range(7):  # five selects, Reset, then the first case
        page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.tagName") == "SUMMARY"
    page.keyboard.press("Enter")
    assert page.evaluate("document.activeElement.parentElement.open") is True
    page.locator("#slices table").get_by_role("button", name="harm").focus()
    page.keyboard.press("Space")
    assert page.locator("#slices th[aria-sort]").count() == 1


def test_dark_mode_changes_the_charts_too(visit, hostile):
    seen = {}
    for scheme in ("light", "dark"):
        page = visit(hostile.page, scheme=scheme).page
        ground = page.evaluate("getComputedStyle(document.body).backgroundColor")
        line = page.evaluate("getComputedStyle(document.querySelector('.chart svg .mark-symbol path')).fill")
        seen[scheme] = (ground, line)
    assert seen["light"][0] != seen["dark"][0]
    assert seen["light"][1] != seen["dark"][1]


def test_it_prints_with_the_shown_cases_open(visit, hostile, tmp_path):
    page = visit(hostile.page).page
    page.get_by_label("Search question").fill("needle")
    shown = page.locator(".case:visible").count()
    page.pdf(path=tmp_path / "page.pdf", format="A4")
    assert (tmp_path / "page.pdf").stat().st_size > 10_000
    page.emulate_media(media="print")
    page.evaluate("window.dispatchEvent(new Event('beforeprint'))")
    assert page.locator("nav.sections").is_visible() is False
    assert page.locator(".case[open]:visible").count() == min(shown, 50)
    page.evaluate("window.dispatchEvent(new Event('afterprint'))")
    assert page.locator(".case[open]").count() == 0


def test_without_script_the_questions_can_still_be_read(visit, hostile):
    page = visit(hostile.page, java_script_enabled=False).page
    assert page.locator("#filters").is_visible() is False
    page.locator(".case summary").first.click()
    assert page.locator(".case").first.get_by_text("Expected answer").is_visible()


def test_the_index_leads_to_a_night_and_back(visit, hostile):
    page = visit(hostile.ws.store / "nights" / "index.html", width=390).page
    page.get_by_role("link", name=DAYS[1]).first.click()
    assert DAYS[1] in page.title()
    page.get_by_role("link", name="All nights").click()
    assert "All nights" in page.title()
