"""`ragbench.yaml` as frozen models. Every key has a default, an empty file is valid.

Unknown and wrong keys are named in a one-line `UserError`. Secrets are never in the file: only the
names of environment variables are. No logic of any stage belongs here.
"""

from __future__ import annotations

import difflib
import re
from datetime import date
from pathlib import Path
from typing import Annotated, Any, Literal
from zoneinfo import ZoneInfo

import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError, ValidationInfo, field_validator, model_validator

from ragbench_dagster.errors import UserError

METRICS_JUDGED = (
    "faithfulness", "relevancy", "correctness", "answer_relevancy", "context_relevancy", "guideline",
    "semantic_similarity",
)  # fmt: skip
COST = "cost_per_question_usd"
LIMITED = rf"latency_p(50|95|99)_ms|{COST}"  # thresholds beside metrics; each needs max
METRICS_RETRIEVAL = ("hit_rate", "mrr", "precision", "recall", "ap", "ndcg")
Share = Annotated[float, Field(ge=0, le=1)]
# Fields of a log line that traffic.fields can map; `source_nodes.*` is looked up in each retrieved passage.
LOG_FIELDS = (
    "timestamp", "query", "request_id", "response", "source_nodes", "source_nodes.node_id", "source_nodes.score",
    "source_nodes.text", "latency_ms", "category", "user_id", "model", "conversation_id", "history",
)  # fmt: skip
# Which id of a LlamaIndex node the labels speak of: its own, its document's (ref_doc_id), or one in its metadata.
NODE_IDS = r"^(node|document|metadata\..+)$"


class Model(BaseModel):
    """Frozen, strict about unknown keys."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class Sample(Model):
    rate: Share = 0.10  # share of each category and day that is kept
    min_per_category: int = Field(5, ge=0)  # requests kept of each category and day, at least
    salt: str = "v1"  # another salt draws another sample


class FieldMap(Model):
    """Where a field stands in somebody else's log line."""

    path: str | None = None  # dotted path, `a.b[0].c`
    factor: float | None = None  # multiplies a number: 1000 turns seconds into ms
    json_string: bool = Field(False, alias="json")  # the value is a string that holds JSON
    const: Any = None  # the same value for every line


class Traffic(Model):
    source: str = "logs"  # folder in the workspace, or an fsspec URL
    format: Literal["ragbench", "langfuse", "openinference"] = "ragbench"
    start: date | None = None  # first day (UTC); default: the first day found in the logs
    timezone: str = "UTC"  # of times without a zone
    sample: Sample = Sample()
    fields: dict[str, str | FieldMap] = {}  # ours: theirs
    where: dict[str, Any] = {}  # path: value or list of values; other lines are not requests
    quarantine_max: Share = 0.05  # share of bad lines of a day above which the check fails

    @field_validator("fields")
    @classmethod
    def _known_fields(cls, value: dict[str, Any]) -> dict[str, Any]:
        for name in value:
            if name not in LOG_FIELDS:
                raise ValueError(f"{name!r} is no field of a log line{_near(name, LOG_FIELDS)}")
        return value

    @field_validator("timezone")
    @classmethod
    def _known_zone(cls, value: str) -> str:
        try:
            ZoneInfo(value)
        except Exception as fault:
            raise ValueError(f"no such time zone: {value!r}") from fault
        return value


class Recognizer(Model):
    """One of the user's own recognisers: a pattern, or a Presidio recogniser by import path."""

    entity: str  # the placeholder's name, e.g. CUSTOMER_ID
    regex: str | None = None
    import_path: str | None = None  # module:factory
    score: float = Field(0.8, ge=0, le=1)

    @field_validator("regex")
    @classmethod
    def _compiles(cls, value: str | None) -> str | None:
        if value is not None:
            try:
                re.compile(value)
            except re.error as fault:
                raise ValueError(f"not a regular expression: {fault}") from fault
        return value


class Scrub(Model):
    entities: Literal["default"] | list[str] | dict[str, Any] = "default"  # a list, or {ENTITY: true|false|option}
    ner: Literal["auto", "off", "on"] = "auto"  # auto: a spaCy model where one is installed
    countries: list[str] = []  # ISO codes whose national ids are looked for, beside the defaults
    allow: list[str] = []  # never personal: product names
    recognizers: list[Recognizer] = []
    floor: dict[str, Share] = {}  # ENTITY or all: recall below which the release is held
    processes: int = Field(1, ge=1)  # worker processes for a backfill


class Dedupe(Model):
    one_edit: bool = True
    semantic: bool = False  # needs the `semantic` extra
    # Cosine. At 0.88, 98 % of the merged pairs of real questions have one intent (tests/bench).
    semantic_threshold: float = Field(0.88, ge=0, le=1)


class Dataset(Model):
    window_days: int = Field(90, ge=1)  # days
    refresh: Literal["weekly", "daily", "monday"] = "weekly"
    min_examples: int = Field(200, ge=0)  # fewer: the gate is inconclusive
    duplicate_rate_max: Share = 0.98
    dedupe: Dedupe = Dedupe()


class SystemBase(Model):
    timeout_s: float = Field(30, gt=0)  # seconds an answer may take
    concurrency: int = Field(8, ge=1)  # answers in flight
    version: str | None = None  # set by hand; else derived from the settings and the code
    model: str | None = None  # the generator's model, to warn of a judge that grades itself


class EngineSystem(SystemBase):
    kind: Literal["engine"]
    engine: str  # module:factory
    params: dict[str, Any] = {}
    ids: str = Field("node", pattern=NODE_IDS)


class RetrieverSystem(SystemBase):
    kind: Literal["retriever"]
    engine: str
    params: dict[str, Any] = {}
    ids: str = Field("node", pattern=NODE_IDS)


class HttpSystem(SystemBase):
    kind: Literal["http"]
    url: str
    method: Literal["POST", "GET"] = "POST"
    headers: dict[str, str] = {}  # values may name variables: "Bearer ${MY_TOKEN}"
    request: dict[str, str | FieldMap] = {"query": "query"}  # ours: theirs; a FieldMap's const is sent as it is
    response: dict[str, str | FieldMap] = {"response": "response", "source_nodes": "source_nodes"}
    rpm: float | None = Field(None, gt=0)  # requests a minute


class LoggedSystem(SystemBase):
    kind: Literal["logged"]
    max_age_days: int = Field(6, ge=0)  # how many days before the night an answer may come from


SystemSettings = Annotated[EngineSystem | RetrieverSystem | HttpSystem | LoggedSystem, Field(discriminator="kind")]


class Concurrency(Model):
    min: int = Field(1, ge=1)
    start: int = Field(8, ge=1)
    max: int = Field(128, ge=1)

    @model_validator(mode="after")
    def _ordered(self) -> Concurrency:
        if not self.min <= self.start <= self.max:
            raise ValueError("min <= start <= max must hold")
        return self


class Price(Model):
    input: float = Field(ge=0)  # USD per million prompt tokens
    output: float = Field(ge=0)  # USD per million completion tokens


class Judge(Model):
    provider: Literal["embedded", "openai", "openai_like"] = "embedded"
    model: str | None = None
    revision: str | None = None  # set by hand, it pins a judge whose name holds no date
    api_base: str | None = None
    api_key_env: str = "OPENAI_API_KEY"  # the variable's NAME
    context_window: int | None = Field(None, ge=256)  # tokens
    read: Literal["text", "logprobs"] = "text"
    logprob_threshold: float | None = None  # default: fitted on the calibration set
    temperature: float | None = 0  # null: not sent
    seed: int | None = None
    max_tokens: int | None = Field(None, ge=1)
    max_completion_tokens: int | None = Field(None, ge=1)  # reasoning models
    extra: dict[str, Any] = {}  # further request parameters
    timeout_s: float = Field(60, gt=0)  # seconds for one attempt
    deadline_s: float = Field(300, gt=0)  # seconds for one item with all attempts and waits
    max_attempts: int = Field(6, ge=1)  # HTTP requests for one call: the first and its retries
    rpm: float | None = Field(None, gt=0)  # requests a minute
    tpm: float | None = Field(None, gt=0)  # tokens a minute
    concurrency: Concurrency = Concurrency()
    price: Price | None = None
    budget_usd: float | None = Field(None, ge=0)  # for one run
    allow_floating: bool = False
    long_context: Literal["truncated", "per_passage"] = "truncated"
    metrics: dict[str, dict[str, Any]] = {}  # METRIC: settings that differ for it
    templates: dict[str, str] = {}  # METRIC: file with the user's own prompt
    guidelines: list[str] = []  # rules for the guideline metric
    evaluators: dict[str, str] = {}  # METRIC: module:factory of any LlamaIndex BaseEvaluator

    @model_validator(mode="after")
    def _complete(self) -> Judge:
        if self.provider != "embedded" and not self.model:
            raise ValueError(f"judge.model is needed with provider {self.provider}")
        if self.max_tokens and self.max_completion_tokens:
            raise ValueError("set max_tokens or max_completion_tokens, not both")
        for metric, change in self.metrics.items():
            allowed = set(Judge.model_fields) - {"metrics", "evaluators", "templates", "guidelines"}
            for key in change:
                if key not in allowed:
                    raise ValueError(f"metrics.{metric}.{key}: unknown key{_near(key, allowed)}")
        return self

    def for_metric(self, metric: str) -> Judge:
        """The judge of one metric: the overrides of `metrics.METRIC` applied."""
        change = self.metrics.get(metric)
        if not change:
            return self
        merged = {**self.model_dump(exclude={"metrics"}), **change}
        return Judge.model_validate(merged)

    @property
    def pinned(self) -> bool:
        """True when the name holds a date or a sha256 digest, or `revision` is set (design 11)."""
        if self.provider == "embedded" or self.revision:
            return True
        name = self.model or ""
        dated = re.search(r"(?<!\d)20\d{2}(-?)(0[1-9]|1[0-2])\1(0[1-9]|[12]\d|3[01])(?!\d)", name)
        return bool(dated or re.search(r"@sha256:[0-9a-f]{12,64}", name))


class Calibration(Model):
    source: str = "calibration"  # folder of *.jsonl
    sentinel: int = Field(300, ge=0)  # rows judged afresh every night
    min_kappa: float = Field(0.4, ge=-1, le=1)
    drift_alarm: float = Field(0.01, gt=0, lt=1)  # false alarms a night, all evaluators together
    max_fooled: Share = 0.10  # share of injection probes that may fool the judge


class Threshold(Model):
    min: float | None = None
    max: float | None = None
    margin: float | None = Field(None, ge=0)  # largest loss against the baseline that is acceptable
    baseline: str = "last_passed"  # a system, a night (YYYY-MM-DD) or last_passed
    slices: dict[str, float] = {}  # category: floor
    coverage: Share | None = None  # share of applicable items that must be scored; default: gate.min_coverage
    role: Literal["primary", "guard"] = "primary"
    severity: Literal["fail", "warn"] = "fail"


class Gate(Model):
    systems: Literal["all"] | list[str] = "all"
    min_coverage: Share = 0.90  # share of applicable items that must be scored
    min_examples: int | None = None  # default: dataset.min_examples


class Tracking(Model):
    mlflow_uri: str | None = None  # sqlite (a file in the store), sqlite:///FILE, or a server's http address
    experiment: str = "ragbench"
    wandb_project: str | None = None
    wandb_mode: Literal["online", "offline"] = "offline"
    artifacts: Literal["all", "tables", "none"] = "all"  # all: the report too, which holds scrubbed questions


class Alerts(Model):
    urls_env: str = "RAGBENCH_ALERT_URLS"  # the variable's NAME; apprise URLs, one a line


class Settings(Model):
    traffic: Traffic = Traffic()
    scrub: Scrub = Scrub()
    dataset: Dataset = Dataset()
    systems: dict[str, SystemSettings] = {}
    judge: Judge = Judge()
    metrics: list[str] = ["faithfulness", "relevancy", "correctness", "hit_rate@5", "mrr@10"]
    calibration: Calibration = Calibration()
    thresholds: dict[str, Threshold] = {}
    pairwise: list[tuple[str, str]] = []  # [candidate, baseline]
    slices: list[str] = ["category"]  # columns of the release to slice by
    gate: Gate = Gate()
    backend: Literal["local", "ray", "batch"] = "local"
    ledger: str | None = None  # SQLAlchemy URL; default: SQLite in the store
    tracking: Tracking = Tracking()
    alerts: Alerts = Alerts()

    @field_validator("systems")
    @classmethod
    def _names(cls, value: dict[str, Any]) -> dict[str, Any]:
        for name in value:
            if not re.fullmatch(r"[a-z][a-z0-9_]*", name):
                raise ValueError(f"{name!r}: a system's name matches [a-z][a-z0-9_]*")
        return value

    @field_validator("thresholds")
    @classmethod
    def _measured(cls, value: dict[str, Threshold], info: ValidationInfo) -> dict[str, Threshold]:
        """A threshold on what is not measured is told before the night, not after it."""
        metrics = info.data.get("metrics", [])
        for name, threshold in value.items():
            if re.fullmatch(LIMITED, name):
                if threshold.max is None:
                    raise ValueError(f"{name} needs max, for example {{max: 4000}}")
            elif name not in metrics:
                raise ValueError(f"{name} is not among metrics; add it there, or see latency_p95_ms, {COST}")
            elif not threshold.slices and threshold.min is threshold.max is threshold.margin is None:
                raise ValueError(f"{name} needs min, max, margin or slices")
        return value

    @model_validator(mode="after")
    def _known_metrics(self) -> Settings:
        own = set(self.judge.evaluators)
        for metric in self.metrics:
            base, at, k = metric.partition("@")
            if at and base in METRICS_RETRIEVAL and k.isdigit() and int(k) > 0:
                continue
            if (not at and base in METRICS_JUDGED) or metric in own:
                continue
            hint = f", k is explicit: {base}@5" if base in METRICS_RETRIEVAL else _near(base, METRICS_JUDGED)
            raise ValueError(f"metrics: {metric!r} is no metric{hint}")
        return self

    @field_validator("backend")
    @classmethod
    def _built(cls, value: str) -> str:
        if value != "local":
            raise ValueError(f"{value} is not part of this version; use local")
        return value

    @property
    def judged_metrics(self) -> list[str]:
        return [m for m in self.metrics if "@" not in m]

    @property
    def retrieval_metrics(self) -> list[str]:
        return [m for m in self.metrics if "@" in m]

    @property
    def min_examples(self) -> int:
        return self.gate.min_examples if self.gate.min_examples is not None else self.dataset.min_examples


def _near(word: str, known: Any) -> str:
    match = difflib.get_close_matches(word, sorted(known), 1)
    return f", did you mean {match[0]!r}?" if match else ""


def _explain(fault: ValidationError) -> str:
    """The first fault as `key: what is wrong`, without echoing long values."""
    error = fault.errors(include_url=False)[0]
    tags = {"engine", "retriever", "http", "logged"}
    where = [str(p) for i, p in enumerate(error["loc"]) if not (i == 2 and p in tags and error["loc"][0] == "systems")]
    key = ".".join(where) or "file"
    if error["type"] == "extra_forbidden":
        model: Any = Settings
        for part in where[:-1]:
            field = model.model_fields.get(part) if hasattr(model, "model_fields") else None
            model = field.annotation if field else None
        known = model.model_fields if hasattr(model, "model_fields") else ()
        return f"{key}: unknown key{_near(where[-1], known)}"
    return f"{key}: {error['msg'].removeprefix('Value error, ')}"


class _UniqueLoader(yaml.SafeLoader):
    """YAML that refuses a key written twice: the second would silently win."""


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
    try:
        raw = yaml.load(text, _UniqueLoader)
    except yaml.MarkedYAMLError as fault:
        line = fault.problem_mark.line + 1 if fault.problem_mark else "?"
        raise UserError(f"{name}: line {line}: {fault.problem}; correct the YAML") from fault
    except yaml.YAMLError as fault:
        raise UserError(f"{name}: not YAML: {str(fault).splitlines()[0]}") from fault
    if raw is None:
        raw = {}
    if not isinstance(raw, dict):
        raise UserError(f"{name}: the file must hold keys and values, not a {type(raw).__name__}")
    try:
        return Settings.model_validate({k: v for k, v in raw.items() if v is not None})
    except ValidationError as fault:
        raise UserError(f"{name}: {_explain(fault)}") from fault


def load_settings(path: Path) -> Settings:
    """Settings of a workspace's `ragbench.yaml`; a missing file means all defaults."""
    try:
        text = path.read_text(encoding="utf-8-sig")
    except FileNotFoundError:
        return Settings()
    except (OSError, UnicodeDecodeError) as fault:
        raise UserError(f"{path.name}: cannot be read ({fault.__class__.__name__}); save it as UTF-8 text") from fault
    return parse_settings(text, path.name)
