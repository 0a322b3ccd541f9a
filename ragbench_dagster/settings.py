"""`ragbench.yaml` as frozen models. Every key has a default, an empty file is valid.

Unknown and wrong keys are named in a one-line `UserError`. Secrets are never in the file: only the
names of environment variables are. No logic of any stage belongs here.
"""

from __future__ import annotations

import math
import re
from datetime import date
from pathlib import Path
from typing import Any, Literal, get_args, get_origin

import yaml
from pydantic import ValidationError, ValidationInfo, field_validator, model_validator

from ragbench_dagster import masking, metrics
from ragbench_dagster.credentials import Concealed, looks_secret, secrets_in, variables_of
from ragbench_dagster.errors import UserError
from ragbench_dagster.io.inputs import Undecodable, decoded, read_text
from ragbench_dagster.metrics import ANSWERED, COST, is_judged, is_retrieval, metric_of
from ragbench_dagster.runtime import RUNTIME
from ragbench_dagster.settings_parts import (
    LOG_FIELDS,
    SYSTEM_KINDS,
    Alerts,
    Calibration,
    Concurrency,
    Dataset,
    Dedupe,
    EngineSystem,
    FieldMap,
    Gate,
    HttpSystem,
    Judge,
    LoggedSystem,
    Model,
    Price,
    Recognizer,
    RetrieverSystem,
    Sample,
    Scrub,
    SystemBase,
    SystemSettings,
    Threshold,
    Tracking,
    Traffic,
    near,
)

_LONGEST = 1 << 20  # bytes of ragbench.yaml
_MOST_VALUES = 50_000
_DEEPEST = 60

__all__ = [
    "LOG_FIELDS",
    "Alerts",
    "Calibration",
    "Concurrency",
    "Dataset",
    "Dedupe",
    "EngineSystem",
    "FieldMap",
    "Gate",
    "HttpSystem",
    "Judge",
    "LoggedSystem",
    "Model",
    "Price",
    "Recognizer",
    "RetrieverSystem",
    "Sample",
    "Scrub",
    "Settings",
    "SystemBase",
    "SystemSettings",
    "Threshold",
    "Tracking",
    "Traffic",
    "load_settings",
    "parse_settings",
]


BASELINES = ("accepted", "last_passed")
# What every system has to hold where `thresholds` says nothing else (../docs/statistics.md).
DEFAULT_ANSWERED = Threshold(min=0.98, margin=0.01)


def _check_limit(name: str, threshold: Threshold) -> None:
    """A latency or cost threshold: an upper limit that can be missed, and nothing else."""
    if threshold.max is None:
        raise ValueError(f"{name} needs max, for example {{max: 4000}}")
    if not (math.isfinite(threshold.max) and threshold.max > 0):
        raise ValueError(f"{name}.max: {threshold.max} can never be missed; give a positive number")
    for key in ("min", "margin"):
        if getattr(threshold, key) is not None:
            raise ValueError(f"{name}.{key}: {name} has an upper limit alone; use max")
    if threshold.slices:
        raise ValueError(f"{name}.slices: {name} is tested over all questions; use max")


def _check_shares(name: str, threshold: Threshold) -> None:
    """Floors, ceilings and the margin of a metric lie on its scale, 0 to 1, and can be missed."""
    floors = {"min": threshold.min, "max": threshold.max, **{f"slices.{k}": v for k, v in threshold.slices.items()}}
    for key, floor in floors.items():
        if floor is not None and not 0 <= floor <= 1:
            raise ValueError(f"{name}.{key}: {floor} is no share; write 0.75 for 75 %")
    margin = threshold.margin
    if margin is not None and not 0 <= margin < 1:
        raise ValueError(f"{name}.margin: {margin} is no loss of a share from 0 to below 1; write 0.03 for 3 points")
    if threshold.min is not None and threshold.max is not None and threshold.min > threshold.max:
        raise ValueError(f"{name}: min {threshold.min} lies above max {threshold.max}; exchange them")


class Settings(Model):
    traffic: Traffic = Traffic()
    scrub: Scrub = Scrub()
    dataset: Dataset = Dataset()
    systems: dict[str, SystemSettings] = {}
    judge: Judge = Judge()
    metrics: list[str] = list(metrics.DEFAULT)
    calibration: Calibration = Calibration()
    thresholds: dict[str, Threshold] = {}
    pairwise: list[tuple[str, str]] = []  # [candidate, baseline]
    slices: list[str] = ["category"]  # columns of the release to slice by
    gate: Gate = Gate()
    backend: Literal["local", "ray", "batch"] = "local"
    ledger: Concealed | None = None  # SQLAlchemy URL, secrets as ${NAME}; default: SQLite in the store
    tracking: Tracking = Tracking()
    alerts: Alerts = Alerts()

    @model_validator(mode="before")
    @classmethod
    def _secrets_stand_in_variables(cls, value: Any) -> Any:
        """A secret in the file would be in every copy of it, in manifests and in error messages."""
        for fault in secrets_in(value):
            raise ValueError(fault)
        return value

    @model_validator(mode="after")
    def _masked(self) -> Settings:
        """From now on nothing from outside is shown or stored with the values of the variables named here."""
        masking.watch(self.variables())
        return self

    def variables(self) -> set[str]:
        """The environment variables that these settings name."""
        judges = [self.judge, *(self.judge.for_metric(metric) for metric in self.judge.metrics)]
        found = variables_of(self.model_dump()) | {self.alerts.urls_env}
        return found | {judge.api_key_env for judge in judges if judge.api_key_env}

    @field_validator("systems")
    @classmethod
    def _names(cls, value: dict[str, Any]) -> dict[str, Any]:
        for name in value:
            if not re.fullmatch(r"[a-z][a-z0-9_]*", name):
                shown = repr(name) if len(name) <= 30 and not looks_secret(name) else "a name here"
                raise ValueError(f"{shown}: a system's name matches [a-z][a-z0-9_]*")
        return value

    @field_validator("thresholds")
    @classmethod
    def _measured(cls, value: dict[str, Threshold], info: ValidationInfo) -> dict[str, Threshold]:
        """A threshold on what is not measured is told before the night, not after it."""
        measured = [*info.data.get("metrics", []), ANSWERED]
        for name, threshold in value.items():
            if metric_of(name).limited:
                _check_limit(name, threshold)
            elif name not in measured:
                raise ValueError(f"{name} is not among metrics; add it there, or see latency_p95_ms, {COST}")
            elif not threshold.slices and threshold.min is threshold.max is threshold.margin is None:
                raise ValueError(f"{name} needs min, max, margin or slices")
            else:
                _check_shares(name, threshold)
        return value

    @model_validator(mode="after")
    def _known_metrics(self) -> Settings:
        for metric in self.metrics:
            if metric in self.judge.evaluators and not is_judged(metric):
                raise ValueError(f"judge.evaluators.{metric}: no judge measures it; give the evaluator another name")
            if not metrics.is_known(metric) and metric not in self.judge.evaluators:
                raise ValueError(f"metrics: {metric!r} is no metric{metrics.unknown(metric)}")
        return self

    @model_validator(mode="after")
    def _known_baselines(self) -> Settings:
        systems = list(self.systems or ("logged", "bm25"))
        for name, threshold in self.thresholds.items():
            wanted = threshold.baseline
            if wanted in (*BASELINES, *systems):
                continue
            if re.fullmatch(r"\d{4}-\d{2}-\d{2}", wanted):
                try:
                    date.fromisoformat(wanted)
                    continue
                except ValueError:
                    pass
            known = ", ".join([*BASELINES, "a night (YYYY-MM-DD)", *systems])
            hint = near(wanted, [*BASELINES, *systems])
            raise ValueError(f"thresholds.{name}.baseline: {wanted!r} is no baseline{hint}; known are {known}")
        return self

    @field_validator("backend")
    @classmethod
    def _built(cls, value: str) -> str:
        if value != "local":
            raise ValueError(f"{value} is not part of this version; use local")
        return value

    @property
    def judged_metrics(self) -> list[str]:
        return [m for m in self.metrics if is_judged(m)]

    @property
    def retrieval_metrics(self) -> list[str]:
        return [m for m in self.metrics if is_retrieval(m)]

    @property
    def gate_thresholds(self) -> dict[str, Threshold]:
        """The thresholds that the gate tests: those of the file, and `answered` also where the file is silent."""
        return self.thresholds if ANSWERED in self.thresholds else {**self.thresholds, ANSWERED: DEFAULT_ANSWERED}

    @property
    def min_examples(self) -> int:
        return self.gate.min_examples if self.gate.min_examples is not None else self.dataset.min_examples


def _explain(fault: ValidationError, given: dict[str, Any]) -> str:
    """The first fault of `given` as `key: what is wrong`, without echoing long values."""
    error = fault.errors(include_url=False)[0]
    where = list(map(str, error["loc"]))
    key = ".".join(where)
    if not key:
        return str(error["msg"]).removeprefix("Value error, ")
    if error["type"] == "extra_forbidden":
        return f"{key}: unknown key{near(where[-1], _known_keys(error['loc'][:-1], given))}"
    return f"{key}: {error['msg'].removeprefix('Value error, ')}"


def _known_keys(path: tuple[Any, ...], given: dict[str, Any]) -> list[str]:
    """The keys that may stand at `path` of the file `given`; those of a system are its kind's."""
    model: Any = Settings
    for place, part in enumerate(path):
        if place == 1 and path[0] == "systems":
            model = SYSTEM_KINDS[given["systems"][part]["kind"]].model
        elif hasattr(model, "model_fields"):
            model = model.model_fields[part].annotation if part in model.model_fields else None
        elif get_origin(model) is dict:
            model = get_args(model)[1]
    return list(getattr(model, "model_fields", ()))


class _UniqueLoader(yaml.SafeLoader):
    """YAML that refuses a key written twice: the second would silently win."""

    def flatten_mapping(self, node: yaml.MappingNode) -> None:
        # `<<: [*a, *a]` doubles at each level: thirty lines of it would be a billion keys.
        super().flatten_mapping(node)
        if len(node.value) > _MOST_VALUES:
            raise yaml.MarkedYAMLError(problem="too many merged keys", problem_mark=node.start_mark)


def _unique_mapping(loader: yaml.SafeLoader, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
    seen = set()
    for key_node, _ in node.value:
        key = loader.construct_object(key_node, deep=True)
        if key in seen:
            raise yaml.MarkedYAMLError(problem=f"key {key!r} stands twice", problem_mark=key_node.start_mark)
        seen.add(key)
    return yaml.SafeLoader.construct_mapping(loader, node, deep)


_UniqueLoader.add_constructor(yaml.resolver.BaseResolver.DEFAULT_MAPPING_TAG, _unique_mapping)


def parse_settings(text: str, name: str = "ragbench.yaml") -> Settings:
    """Settings from YAML text.

    Raises:
        UserError: one line that names the file and the key.
    """
    raw = _loaded(text, name)
    if raw is None:
        raw = {}
    if not isinstance(raw, dict):
        raise UserError(f"{name}: the file must hold keys and values, not a {type(raw).__name__}")
    try:
        given = {k: v for k, v in raw.items() if v is not None}
        return decoded(Settings.model_validate, given)
    except Undecodable as fault:
        if isinstance(fault.__cause__, ValidationError):
            raise UserError(f"{name}: {_explain(fault.__cause__, given)}") from fault
        raise UserError(f"{name}: a value cannot be used ({fault}); correct it") from fault


def _loaded(text: str, name: str) -> Any:
    """What the YAML says, within bounds: neither its nesting nor its aliases may exhaust the machine."""
    try:
        raw = decoded(yaml.load, text, _UniqueLoader)
    except Undecodable as undecodable:
        fault = undecodable.__cause__
        if isinstance(fault, yaml.MarkedYAMLError):
            line = fault.problem_mark.line + 1 if fault.problem_mark else "?"
            raise UserError(f"{name}: line {line}: {fault.problem}; correct the YAML") from fault
        if isinstance(fault, ValueError) and str(fault):  # YAML makes dates: 2026-99-99
            raise UserError(f"{name}: {str(fault).splitlines()[0]}; correct the value") from fault
        if isinstance(fault, yaml.YAMLError):
            raise UserError(f"{name}: not YAML: {str(fault).splitlines()[0]}") from fault
        raise UserError(f"{name}: not usable YAML ({undecodable}); correct it") from fault
    waiting, seen = [(raw, 0)], 0
    while waiting:
        value, depth = waiting.pop()
        inner = list(value.values()) if isinstance(value, dict) else value if isinstance(value, list) else ()
        seen += len(inner)
        if seen > _MOST_VALUES or depth > _DEEPEST:  # an alias of an alias counts each time
            raise UserError(f"{name}: nested too deeply, or more than {_MOST_VALUES:,} values; correct the YAML")
        waiting += [(v, depth + 1) for v in inner]
    return raw


_read: dict[Path, tuple[str, Settings]] = RUNTIME.registry("settings")  # by file: its text and what it says


def load_settings(path: Path) -> Settings:
    """Settings of a workspace's `ragbench.yaml`; a missing file means all defaults.

    The file is read each time, for `dagster dev` lives for weeks and an editor may keep size and time of a file; it is
    parsed again only where its text changed.

    Raises:
        UserError: as `parse_settings`, or the file cannot be read.
    """
    try:
        text = read_text(path, _LONGEST)
    except UserError as fault:
        if isinstance(fault.__cause__, FileNotFoundError):
            return Settings()
        raise
    known = _read.get(path)
    if known is None or known[0] != text:
        known = _read[path] = text, parse_settings(text, path.name)
    return known[1]
