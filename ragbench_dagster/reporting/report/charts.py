"""Charts as static SVG: Altair describes them, vl-convert draws them without a browser or network.

Two traps, met in the field (altair#284, vega-lite#5202): a name with a dot, bracket or colon is a path or a type for
Vega when it is a field's name. So data is long, with the fixed fields of this module, and every name is a value.
Colours are CSS variables, so that the page's dark mode and print reach into the drawing; the font that texts are
measured with comes with vl-convert, so that the bytes do not depend on the machine's fonts.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from markupsafe import Markup

from ragbench_dagster.reporting.report.sanitise import flat

SERIES = 6  # colours of the style sheet, --s1 to --s6; more systems repeat them with other shapes
SHAPES = ("circle", "square", "triangle-up", "diamond", "cross", "triangle-down")
_ROLES = re.compile(r' (?:role|aria-[a-z]+|xmlns:xlink|version)="[^"]*"')
INK, FAINT, GRID = "var(--ink)", "var(--muted)", "var(--line)"


@dataclass(frozen=True)
class Point:
    """A night's value of one series; None where it is unknown."""

    series: str
    night: str
    value: float | None
    low: float | None
    high: float | None


def colours(series: list[str]) -> list[str]:
    return [f"var(--s{i % SERIES + 1})" for i in range(len(series))]


def shapes(series: list[str]) -> list[str]:
    return [SHAPES[(i + i // SERIES) % len(SHAPES)] for i in range(len(series))]


def trend_svg(
    points: list[Point], series: list[str], marks: list[tuple[str, str]], floor: float | None = None
) -> Markup:
    """Values over nights with bands.

    Args:
        series: names in the order of their colours.
        marks: (night, letters) where conditions changed.
        floor: drawn as a dashed line.
    """
    import altair as alt

    names = [flat(s, 60) for s in series]
    rows = [
        {"series": flat(p.series, 60), "night": p.night, "value": p.value, "low": p.low, "high": p.high} for p in points
    ]
    known = [r for r in rows if r["value"] is not None]
    scale = alt.Scale(domain=_range(known, floor), zero=False, nice=False, clamp=True)
    x = alt.X("night", type="temporal", timeUnit="utcyearmonthdate", title=None, axis=_time_axis(alt, rows))
    y = alt.Y("value", type="quantitative", title=None, scale=scale, axis=alt.Axis(tickCount=5, format=".2f"))
    colour = alt.Color("series", type="nominal", scale=alt.Scale(domain=names, range=colours(names)), legend=None)
    shape = alt.Shape("series", type="nominal", scale=alt.Scale(domain=names, range=shapes(names)), legend=None)
    base = alt.Chart(alt.Data(values=known)).encode(x=x, color=colour)
    # A night without a value breaks the line: a bridge over it would be a claim.
    paths = alt.Chart(alt.Data(values=rows)).encode(x=x, color=colour)
    gap: Any = "break-paths-filter-domains"
    layers: list[Any] = []
    if floor is not None:
        layers.append(
            alt.Chart(alt.Data(values=[{"value": floor}]))
            .mark_rule(color=FAINT, strokeDash=[4, 3], strokeWidth=1.5)
            .encode(y=alt.Y("value", type="quantitative"))
        )
    if marks:
        told = [{"night": night, "letters": letters} for night, letters in marks]
        here = alt.Chart(alt.Data(values=told)).encode(x=x)
        layers.append(here.mark_rule(color=FAINT, strokeDash=[2, 3]))
        text = here.mark_text(color=INK, dy=-6, baseline="bottom", fontSize=10)
        layers.append(text.encode(text=alt.Text("letters", type="nominal"), y=alt.value(0)))
    band = paths.mark_area(opacity=0.16, invalid=gap).encode(
        y=alt.Y("low", type="quantitative", scale=scale), y2="high"
    )
    layers.append(band)
    layers.append(paths.mark_line(strokeWidth=2, invalid=gap).encode(y=y))
    layers.append(base.mark_point(filled=True, size=34, opacity=1).encode(y=y, shape=shape))
    return _draw(alt, alt.layer(*layers).properties(width=310, height=150))


def histogram_svg(edges: list[float], counts: list[int], lines: list[tuple[str, float]], colour: str) -> Markup:
    """Counts of times on a log scale, with lines at percentiles.

    Args:
        edges: bin edges in ms, one more than counts.
        lines: (label, ms).
    """
    import altair as alt

    bins = [{"start": a, "end": b, "count": n} for a, b, n in zip(edges[:-1], edges[1:], counts, strict=True)]
    scale = alt.Scale(type="log", domain=[edges[0], edges[-1]], nice=False)
    axis = alt.Axis(tickCount=5, format=",~g", labelOverlap=True, grid=False)
    x = alt.X("start", type="quantitative", scale=scale, title="ms", axis=axis)
    count = alt.Y("count", type="quantitative", title=None, axis=alt.Axis(tickCount=4, format="d"))
    bars = (
        alt.Chart(alt.Data(values=bins))
        .mark_bar(color=colour, opacity=0.75)
        .encode(x=x, x2="end", y=count, y2=alt.datum(0))
    )
    told = [{"start": ms, "label": label} for label, ms in lines if edges[0] <= ms <= edges[-1]]
    rules = alt.Chart(alt.Data(values=told)).mark_rule(color=INK, strokeDash=[3, 3]).encode(x=x)
    texts = (
        alt.Chart(alt.Data(values=told))
        .mark_text(color=INK, dy=-3, baseline="bottom", fontSize=10)
        .encode(x=x, y=alt.value(0), text=alt.Text("label", type="nominal"))
    )
    return _draw(alt, alt.layer(bars, rules, texts).properties(width=310, height=110))


def _range(known: list[dict[str, Any]], floor: float | None) -> list[float]:
    """The y axis: what is shown with some air, at least 0.1 high, within 0..1 for shares."""
    ends = [v for r in known for v in (r["low"], r["high"], r["value"]) if v is not None]
    ends += [floor] if floor is not None else []
    low, high = min(ends, default=0.0), max(ends, default=1.0)
    share = low >= 0 and high <= 1
    air = max(0.05 * (high - low), (0.1 - (high - low)) / 2, 0.005)
    low, high = low - air, high + air
    return [max(0.0, low), min(1.0, high)] if share else [low, high]


def _time_axis(alt: Any, rows: list[dict[str, Any]]) -> Any:
    nights = sorted({r["night"] for r in rows})
    step = max(1, -(-len(nights) // 5))
    # Spread from the last night backwards, so that tonight is always named.
    values = [f"{n}T00:00:00Z" for n in nights[::-1][::step][::-1]]
    expression = "utcFormat(toDate(datum.value), '%d %b')"
    return alt.Axis(values=values, labelExpr=expression, grid=False, labelOverlap=True, tickCount=len(values))


def _draw(alt: Any, chart: Any) -> Markup:
    import vl_convert

    done = (
        chart.configure(background="transparent", font="Liberation Sans", padding=2)
        .configure_view(stroke=None)
        .configure_axis(
            labelColor=FAINT, titleColor=FAINT, domainColor=GRID, tickColor=GRID, gridColor=GRID, labelFontSize=11,
            titleFontSize=11, titleFontWeight="normal",
        )
    )  # fmt: skip
    # The description is fixed and tests validate it: checking it against the schema again takes longer than drawing.
    spec = done.to_dict(validate=False)
    spec["config"]["aria"] = False
    svg = vl_convert.vegalite_to_svg(spec)
    # The page names the drawing as a whole and says it in words; roles inside would be images without a name.
    return Markup(_ROLES.sub("", svg))
