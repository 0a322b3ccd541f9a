"""What a night stores as JSON: one Struct a file. No figure is computed here.

    store/nights/DAY/manifest.json      Manifest

A key that is missing in a file of a former version has its default; a key that no version knows is refused, since
writing the file again would lose it. The Structs of one stage alone stand beside its code and begin with `Stored`.
Written and read by `store.write_struct` and `store.read_struct`.
"""

from __future__ import annotations

from typing import Any, ClassVar, TypeAlias, TypeVar

import msgspec
from msgspec import UNSET, UnsetType

T = TypeVar("T")

Figure: TypeAlias = int | float | None  # null: unknown, which is not zero
Plain: TypeAlias = dict[str, Any]  # what came from ragbench.yaml, as it was dumped


class Stored(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A JSON object of the store. A field that is UNSET is left out of the file."""


def if_set(value: T | UnsetType) -> T | None:
    """`value`, None where its key is not in the file."""
    return None if value is UNSET else value


class Result(Stored, frozen=True):
    """A file of a night's folder, one a night."""

    FILE: ClassVar[str]  # its name


class Manifest(Result, frozen=True, kw_only=True):
    """manifest.json: the conditions of a night.

    Attributes:
        day: the night, YYYY-MM-DD.
        release: id of the release whose questions were asked.
        examples: questions of the night.
        window: first and last day of the requests that the release holds; null without one.
        sample: N of `run --sample N`; null: all questions.
        systems: system -> version of its answers.
        fixed: systems that give a question the same answer at every ask.
        answered_first: system -> share of the questions answered when first asked.
        judge: the section `judge` of the settings.
        judge_label: how the judge is named wherever it is shown.
        metrics: in the order of the settings.
        templates: metric -> hash of the evaluator's version and template.
        settings: all of the settings; null in manifests that do not hold them.
        settings_hash: of the settings.
        code_version: of this package.
        warnings: one line each.
    """

    FILE: ClassVar[str] = "manifest.json"

    day: str = ""
    release: str
    examples: int | None = None
    window: tuple[str | None, str | None] = (None, None)
    sample: int | None = None
    systems: dict[str, str] = {}
    fixed: list[str] = []
    answered_first: dict[str, Figure] = {}
    judge: Plain = {}
    judge_label: str | None = None
    metrics: list[str] = []
    templates: dict[str, str] = {}
    settings: Plain | None = None
    settings_hash: str | None = None
    code_version: str | None = None
    warnings: list[str] = []

    @property
    def judge_model(self) -> str | None:
        """The judge's model, its provider where it has none."""
        return self.judge.get("model") or self.judge.get("provider")
