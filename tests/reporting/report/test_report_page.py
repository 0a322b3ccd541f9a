"""The page as a file: same bytes, under 2 MB, its policy allows itself alone, and every missing part reads well."""

import base64
import hashlib
import re
import time
from html.parser import HTMLParser

import pytest

from ragbench_dagster.reporting.report import write_report
from ragbench_dagster.results import GateDecision
from ragbench_dagster.store import read_json
from tests.support.hostile_texts import CATEGORIES, DAYS, METRIC, SYSTEM, TEXTS
from tests.support.pages import finish

LOGGED = "systems: {logged: {kind: logged}}\n"


class Reader(HTMLParser):
    """Elements with their attributes, and all text outside style and script."""

    def __init__(self, html: str) -> None:
        super().__init__(convert_charrefs=True)
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.text: list[str] = []
        self.raw: dict[str, list[str]] = {"style": [], "script": []}
        self.inside = ""
        self.feed(html)
        self.close()

    def handle_starttag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))
        if tag in self.raw:
            self.inside = tag

    def handle_endtag(self, tag):
        if tag == self.inside:
            self.inside = ""

    def handle_data(self, data):
        if self.inside:
            self.raw[self.inside].append(data)
        else:
            self.text.append(data)

    def named(self, tag):
        return [attrs for name, attrs in self.elements if name == tag]


@pytest.fixture(scope="module")
def html(hostile):
    return hostile.page.read_bytes().decode("utf-8")


@pytest.fixture(scope="module")
def read(html):
    return Reader(html)


def test_the_verdict_and_its_reasons_come_before_everything_else(html, hostile):
    gate = hostile.ws.result(hostile.day, GateDecision)
    assert gate.verdict == "fail"
    assert html.index("✗ FAIL") < html.index("Reasons") < html.index('id="metrics"')
    assert f"{SYSTEM}: hit_rate@5" in gate.reasons[0]
    assert gate.reasons[0].split("]")[0] in "".join(Reader(html).text)


def test_hostile_texts_make_no_element_and_no_attribute(read):
    tags = {tag for tag, _ in read.elements}
    assert not tags & {"img", "iframe", "object", "embed", "i", "form-action", "base"}
    assert len(read.named("script")) == 1
    assert len(read.named("style")) == 1
    for tag, attributes in read.elements:
        assert not [name for name in attributes if name.startswith("on") or name == "style"], tag
        assert not (attributes.get("href") or "").strip().lower().startswith(("javascript", "http", "//")), tag
        assert "src" not in attributes


def test_hostile_texts_are_shown_as_they_are(read):
    text = "".join(read.text)
    for attack in TEXTS[:5] + TEXTS[7:9]:
        assert attack.splitlines()[0] in text
    for category in CATEGORIES[:3]:
        assert category in text


def test_control_and_bidirectional_characters_are_named_not_obeyed(html):
    assert not re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\u200f\u2028]", html)
    for name in ("U+202E", "U+0000", "U+001B", "U+2066", "U+200F"):
        assert f"[{name}]" in html


def test_a_question_of_100_kb_is_cut_and_counted(html):
    assert html.count("needle ") > 0
    assert re.search(r"\[1\d\d,\d{3} more characters\]", html)


def test_the_policy_allows_this_style_and_this_script_and_nothing_else(html, read):
    policy = next(a["content"] for a in read.named("meta") if a.get("http-equiv") == "Content-Security-Policy")
    for tag in ("style", "script"):
        blob = "".join(read.raw[tag]).encode("utf-8")
        mark = base64.b64encode(hashlib.sha256(blob).digest()).decode()
        assert f"{tag}-src 'sha256-{mark}'" in policy
    assert policy.startswith("default-src 'none';")
    assert "unsafe" not in policy
    assert html.index("Content-Security-Policy") < html.index("<style>")


def test_each_chart_shows_as_many_points_as_there_are_values(html, hostile):
    """vega-lite#5202 and kin: a name with dots, brackets or colons as a field's name gave empty charts."""
    summary = read_json(hostile.ws.night(hostile.day) / "summary.json")
    charts = re.findall(r'<figure class="chart">.*?</figure>', html, re.S)
    trends = [c for c in charts if 'id="trend-' in c]
    assert len(trends) == 5  # four metrics, and `answered`, which `logged` has not
    for chart in trends:
        title = re.search(r"<bdi>(.*?)</bdi>", chart)[1]
        values = [p["value"] for s in summary["trend"].values() for p in s.get(title, ())]
        assert len(values) == (1 if title == "answered" else 2) * len(DAYS)
        assert len(marks(chart, "symbol")) == sum(v is not None for v in values)
    histograms = [c for c in charts if 'id="latency-' in c]
    assert len(histograms) == 2
    for chart, system in zip(histograms, (SYSTEM, "logged"), strict=True):
        counts = summary["systems"][system]["latency"]["histogram"]["counts"]
        assert len(marks(chart, "rect")) == len(counts)
        assert system != SYSTEM or "gpt-4.1" in chart


def marks(chart, kind):
    """The drawn marks of a kind: paths below Vega's group of it."""
    found = re.findall(rf'<g class="mark-{kind} role-mark[^"]*"[^>]*>(.*?)</g>', chart, re.S)
    return [path for group in found for path in re.findall(r"<path [^>]*>", group)]


def test_every_slice_of_an_odd_name_has_its_row(html):
    section = html[html.index('id="slices"') : html.index('id="cases"')]
    text = "".join(Reader(section).text)
    for category in CATEGORIES[:3]:
        assert text.count(category) == 2 * 4 + 1
    assert METRIC in text


def test_slices_stand_in_the_order_of_harm(html):
    section = html[html.index('id="slices"') : html.index('id="cases"')]
    harms = [float(v) for v in re.findall(r'<td class="n" data-v="([^"]*)">', section)[::4]]
    assert harms == sorted(harms, reverse=True)


def test_ids_are_unique(read):
    ids = [attributes["id"] for _, attributes in read.elements if attributes.get("id")]
    assert len(ids) == len(set(ids))


def test_the_same_night_gives_the_same_bytes_in_any_time_zone(hostile, monkeypatch):
    before = hostile.page.read_bytes()
    index = (hostile.ws.store / "nights" / "index.html").read_bytes()
    for zone in ("America/New_York", "Asia/Tokyo"):
        monkeypatch.setenv("TZ", zone)
        time.tzset()
        assert write_report(hostile.ws, hostile.day).read_bytes() == before
    monkeypatch.undo()
    time.tzset()
    assert (hostile.ws.store / "nights" / "index.html").read_bytes() == index


def test_an_older_night_keeps_its_page_when_newer_ones_come(hostile):
    older = hostile.ws.night(DAYS[0]) / "report.html"
    before = older.read_bytes()
    write_report(hostile.ws, DAYS[0])
    assert older.read_bytes() == before


def test_the_index_lists_every_night_newest_first(hostile):
    html = (hostile.ws.store / "nights" / "index.html").read_text("utf-8")
    links = [a["href"] for a in Reader(html).named("a") if a.get("href")]
    assert links == [f"{day}/report.html" for day in DAYS[::-1] for _ in range(2)]
    assert html.count("✗ fail") >= 3


def test_5000_examples_stay_under_2_mb_and_5_seconds_of_cpu(maker):
    made = maker(
        LOGGED + 'metrics: [faithfulness, "hit_rate@5", "mrr@10"]', 5_000, categories=[f"c{i}" for i in range(30)]
    )
    worst = "answer with three-byte characters: 質問 " * 80
    made.release = made.make_release(query=[f"{worst} {i}" for i in range(5_000)])
    figures = {m: [0.0] * 5_000 for m in ("faithfulness", "hit_rate@5", "mrr@10")}
    for day in ("2026-11-19", "2026-11-20"):
        made.night({"one": figures, "two": figures}, day=day)
        made.calibrated(["faithfulness"], day=day)
        finish(made.ws, day)
    start = time.process_time()
    path = write_report(made.ws, "2026-11-20")
    assert time.process_time() - start < 5
    assert path.stat().st_size < 2_000_000
    html = path.read_text("utf-8")
    assert "of 10,000 are on this page" in html
    assert "ragbench failures --date 2026-11-20 -n 30000" in html


def test_a_single_night_without_labels_judge_or_thresholds_reads_well(maker):
    made = maker(LOGGED + 'metrics: ["hit_rate@5"]\ndataset: {min_examples: 10}', n=20)
    made.night({"logged": {"hit_rate@5": [None] * 20}}, latency=None)
    text = " ".join("".join(Reader(finish(made.ws, "2026-11-20").read_text("utf-8")).text).split())
    assert "INCONCLUSIVE" in text
    assert "not applicable to any question: are there labels" in text
    assert "The trend begins with the second night" in text
    assert "No judge was checked this night" in text
    assert "No answer lost a mark" in text
    assert "The gate tested nothing. Set thresholds" in text
    assert "None" not in text
    assert "nan" not in text.lower().split()


def test_a_night_where_nothing_was_scored_says_so_instead_of_zero(maker):
    made = maker(LOGGED + "metrics: [faithfulness]", n=20)
    made.night({"logged": {"faithfulness": ["error"] * 15 + ["refused"] * 5}})
    text = " ".join("".join(Reader(finish(made.ws, "2026-11-20").read_text("utf-8")).text).split())
    assert "nothing scored: 15 errors, 5 refused" in text
    assert "0.000" not in text[text.index("Metrics") : text.index("The judge against people")]


def test_a_page_can_be_written_before_the_gate_decided(maker):
    made = maker(LOGGED + "metrics: [faithfulness]", n=20)
    made.night({"logged": {"faithfulness": [1.0] * 20}})
    assert "NO GATE" in write_report(made.ws, "2026-11-20").read_text("utf-8")


def test_a_broken_release_leaves_the_verdicts_readable_without_the_questions(maker):
    made = maker(LOGGED + "metrics: [faithfulness]", n=20)
    made.night({"logged": {"faithfulness": [0.0] * 20}})
    finish(made.ws, "2026-11-20")
    (made.ws.release(made.release) / "examples.parquet").unlink()
    page = write_report(made.ws, "2026-11-20").read_text("utf-8")
    assert "(no text)" in page
    assert "feedback on 3" in page
