"""Templates to HTML: everything escaped, one file, and a Content-Security-Policy that allows that file alone."""

from __future__ import annotations

import base64
import hashlib
from functools import cache
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from ragbench_dagster.reporting.report import sanitise
from ragbench_dagster.reporting.report.page_data import NightView
from ragbench_dagster.reporting.report.section import SECTIONS
from ragbench_dagster.reporting.report.standings import coverage_words

TEMPLATES = Path(__file__).parent / "templates"


@cache
def environment() -> Environment:
    """Autoescape is on for every template: the names end in .j2, which the default would not know."""
    env = Environment(
        loader=FileSystemLoader(TEMPLATES, encoding="utf-8"), autoescape=True, undefined=StrictUndefined,
        trim_blocks=True, lstrip_blocks=True, keep_trailing_newline=True,
    )  # fmt: skip
    for filter_ in (
        sanitise.number,
        sanitise.signed,
        sanitise.percent,
        sanitise.p_value,
        sanitise.milliseconds,
        sanitise.money,
        sanitise.flat,
        sanitise.letters,
    ):
        env.filters[filter_.__name__] = filter_
    env.globals["number"] = sanitise.number
    env.globals["coverage_words"] = coverage_words
    env.globals["x"] = scale
    env.globals["sections"] = SECTIONS
    env.globals["drawn"] = drawn
    return env


def drawn(name: str, night: NightView) -> Markup:
    """The section `name` of the page, as its macro draws it."""
    section = SECTIONS[name]
    macro = getattr(environment().get_template(section.template).module, section.macro)
    html: Markup = macro(night, name) if section.macro == "plain" else macro(night)
    return html


def scale(value: float, low: float, high: float, width: float = 120) -> str:
    """Where `value` stands on a line of `width` px from `low` to `high`, as SVG writes it."""
    share = 0.0 if high == low else (min(max(value, low), high) - low) / (high - low)
    return f"{4 + share * (width - 8):.1f}"


def render(template: str, **values: Any) -> str:
    """The page of `template`, with style and script inline and their hashes in its policy."""
    style, script = _asset("page.css"), _asset("page.js")
    policy = (
        f"default-src 'none'; style-src '{_hash(style)}'; script-src '{_hash(script)}'; img-src data:; "
        "base-uri 'none'; form-action 'none'"
    )
    return environment().get_template(template).render(style=style, script=script, policy=policy, **values)


def _asset(name: str) -> str:
    return (TEMPLATES / name).read_text(encoding="utf-8").replace("\r\n", "\n")


def _hash(content: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(content.encode("utf-8")).digest()).decode("ascii")
