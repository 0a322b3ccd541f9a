"""Text and numbers as the page shows them: harmless, uncut unless it says so, and unknown is never 0."""

import re
from html.parser import HTMLParser

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from ragbench_dagster.reporting.report import sanitise
from ragbench_dagster.reporting.report.render import environment

any_text = st.text(st.characters(codec=None), max_size=300)
NAMED = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")


class Texts(HTMLParser):
    def __init__(self):
        super().__init__(convert_charrefs=True)
        self.tags, self.found = [], ""

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))

    def handle_data(self, data):
        self.found += data


@given(any_text)
@example("</p><script>x</script>")
@example("'\" onload=x &quot; &#x27;")
@example("\x00\ud800\u202e")
def test_any_text_stays_text_in_an_element_and_in_an_attribute(value):
    template = environment().from_string('<p title="{{ v }}">{{ v }}</p>')
    reader = Texts()
    reader.feed(template.render(v=sanitise.shown(value)))
    reader.close()
    expected = sanitise.shown(value)
    assert reader.tags == [("p", {"title": expected})]
    assert reader.found == expected


@given(any_text)
def test_no_character_is_left_that_acts_instead_of_showing(value):
    assert not NAMED.search(sanitise.shown(value))
    sanitise.shown(value).encode("utf-8")  # a lone surrogate would raise


@given(any_text, st.integers(1, 100))
def test_a_cut_is_counted(value, limit):
    shown = sanitise.shown(value, limit)
    cut = re.search(r" … \[([\d,]+) more characters\]$", shown)
    assert (cut is not None) == (len(value) - limit > 40)
    if cut:
        assert int(cut[1].replace(",", "")) == len(value) - limit


@given(any_text)
def test_flat_text_is_one_line(value):
    assert len(sanitise.flat(value).splitlines()) <= 1


@pytest.mark.parametrize("value", [None, float("nan"), float("inf")])
def test_unknown_is_a_dash_in_every_format(value):
    for form in (sanitise.number, sanitise.signed, sanitise.percent, sanitise.milliseconds, sanitise.p_value):
        assert form(value) == "–"


@pytest.mark.parametrize(
    ("form", "value", "shown"),
    [
        (sanitise.number, 0.0, "0.000"),
        (sanitise.number, 12_345, "12,345"),
        (sanitise.number, 12_345.6, "12,346"),
        (sanitise.number, True, "yes"),
        (sanitise.signed, -0.0004, "−0.0004"),
        (sanitise.signed, -0.01, "−0.010"),
        (sanitise.signed, 0.01, "+0.010"),
        (sanitise.percent, 1.0, "100 %"),
        (sanitise.percent, 0.9996, "> 99.9 %"),
        (sanitise.percent, 0.0001, "< 0.1 %"),
        (sanitise.percent, 0.971, "97.1 %"),
        (sanitise.milliseconds, 0.66, "0.66 ms"),
        (sanitise.milliseconds, 1_234.0, "1,234 ms"),
        (sanitise.milliseconds, 12_345.0, "12.3 s"),
        (sanitise.money, 0.0, "$ 0.00"),
        (sanitise.money, 0.00012, "$ 0.00012"),
        (sanitise.p_value, 1e-30, "< 0.0001"),
    ],
)
def test_numbers_are_shown_without_lying(form, value, shown):
    assert form(value) == shown
