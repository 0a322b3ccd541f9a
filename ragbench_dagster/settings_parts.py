"""The sections of `ragbench.yaml`, a frozen model each. How the file is read belongs to `settings`."""

from __future__ import annotations

import difflib
import re
from datetime import date
from typing import Annotated, Any, Literal, NamedTuple
from zoneinfo import ZoneInfo

from pydantic import BaseModel, ConfigDict, Field, PlainValidator, SerializeAsAny, field_validator, model_validator

from ragbench_dagster import masking
from ragbench_dagster.credentials import USER_IN_URL, Concealed, looks_secret, secrets_in
from ragbench_dagster.registry import member

Share = Annotated[float, Field(ge=0, le=1)]
# Bounds that no honest setting meets: a slip of the hand must not start a million workers or wait for a year.
Seconds = Annotated[float, Field(gt=0, le=7 * 86_400)]
Workers = Annotated[int, Field(ge=1, le=4096)]
# Fields of a log line that traffic.fields can map; `source_nodes.*` is looked up in each retrieved passage.
LOG_FIELDS = (
    "timestamp", "query", "request_id", "response", "source_nodes", "source_nodes.node_id", "source_nodes.score",
    "source_nodes.text", "latency_ms", "category", "user_id", "model", "conversation_id", "history",
)  # fmt: skip
# What `traffic.format` may be: the `LogFormat` of each.
LOG_FORMATS: dict[str, str] = {
    "ragbench": "ragbench_dagster.traffic.parse:FORMAT",
    "langfuse": "ragbench_dagster.traffic.traces.langfuse:FORMAT",
    "openinference": "ragbench_dagster.traffic.traces.openinference:FORMAT",
}
# Which id of a LlamaIndex node the labels speak of: its own, its document's (ref_doc_id), or one in its metadata.
NODE_IDS = r"^(node|document|metadata\..+)$"


class Model(BaseModel):
    """Frozen, strict about unknown keys."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False, hide_input_in_errors=True)


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
    source: Concealed = Concealed("logs")  # folder in the workspace, or an fsspec URL; secrets as ${NAME}
    format: str = "ragbench"  # a key of LOG_FORMATS
    start: date | None = Field(None, ge=date(2000, 1, 1))  # first day (UTC); default: the first day found in the logs
    timezone: str = "UTC"  # of times without a zone
    sample: Sample = Sample()
    fields: dict[str, str | FieldMap] = {}  # ours: theirs
    where: dict[str, Any] = {}  # path: value or list of values; other lines are not requests
    quarantine_max: Share = 0.05  # share of bad lines of a day above which the check fails

    @field_validator("format")
    @classmethod
    def _known_format(cls, value: str) -> str:
        if value not in LOG_FORMATS:
            raise ValueError(f"{value!r} is no format{near(value, LOG_FORMATS)}; known are {', '.join(LOG_FORMATS)}")
        return value

    @field_validator("fields")
    @classmethod
    def _known_fields(cls, value: dict[str, Any]) -> dict[str, Any]:
        for name in value:
            if name not in LOG_FIELDS:
                raise ValueError(f"{name!r} is no field of a log line{near(name, LOG_FIELDS)}")
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
    processes: int = Field(1, ge=1, le=256)  # worker processes for a backfill

    @field_validator("ner", mode="before")
    @classmethod
    def _yaml_word(cls, value: Any) -> Any:
        """YAML reads a bare `off` as false."""
        return {True: "on", False: "off"}.get(value, value) if isinstance(value, bool) else value


class Dedupe(Model):
    one_edit: bool = True
    semantic: bool = False  # needs the `semantic` extra
    # Cosine. At 0.88, 98 % of the merged pairs of real questions have one intent (tests/bench).
    semantic_threshold: float = Field(0.88, ge=0, le=1)


WINDOW_LAG = 6  # days from a refresh day, a Monday at the latest, to the last night that its release serves


class Dataset(Model):
    window_days: int = Field(90, ge=1, le=3660)  # days
    refresh: Literal["weekly", "daily", "monday"] = "weekly"
    min_examples: int = Field(200, ge=0)  # fewer: the gate is inconclusive
    duplicate_rate_max: Share = 0.98
    dedupe: Dedupe = Dedupe()

    @property
    def reach_days(self) -> int:
        """Days up to a night that its release may hold: the window ends up to `WINDOW_LAG` days before the night."""
        return self.window_days + WINDOW_LAG


# Settings of a system that change no answer.
_NOT_IN_VERSION = {"timeout_s", "concurrency", "version", "rpm", "private", "retry_after_s", "max_requests"}


class SystemBase(Model):
    """What every kind of system can be told; a kind adds its own keys."""

    timeout_s: Seconds = 30  # seconds an answer may take
    concurrency: Workers = 8  # answers in flight
    # Seconds after the first pass at which questions that failed are asked again; []: never.
    retry_after_s: tuple[Annotated[float, Field(ge=0, le=86_400)], ...] = (600, 1800)
    version: str | None = None  # set by hand; else derived from the settings and the code
    model: str | None = None  # the generator's model, to warn of a judge that grades itself
    kind: str  # a key of SYSTEM_KINDS

    def identity(self) -> dict[str, Any]:
        """The settings that answers depend on: a change of them is another version of the system."""
        return self.model_dump(mode="json", exclude=_NOT_IN_VERSION)


class EngineSystem(SystemBase):
    """Code that answers: a LlamaIndex engine or any callable, by import path."""

    kind: Literal["engine"]
    engine: str  # module:factory
    params: dict[str, Any] = {}
    ids: str = Field("node", pattern=NODE_IDS)


class RetrieverSystem(SystemBase):
    """Code that retrieves and does not answer, by import path."""

    kind: Literal["retriever"]
    engine: str
    params: dict[str, Any] = {}
    ids: str = Field("node", pattern=NODE_IDS)


class HttpSystem(SystemBase):
    """An HTTP endpoint that answers a question with JSON."""

    kind: Literal["http"]
    url: Concealed  # may name variables: "https://rag.example.com/answer?code=${PROD_CODE}"
    private: bool = False  # a public name may lead to a private network
    method: Literal["POST", "GET"] = "POST"
    headers: dict[str, Concealed] = {}  # values may name variables: "Bearer ${MY_TOKEN}"
    request: dict[str, str | FieldMap] = {"query": "query"}  # ours: theirs; a FieldMap's const is sent as it is
    response: dict[str, str | FieldMap] = {"response": "response", "source_nodes": "source_nodes"}
    rpm: float | None = Field(None, ge=0.01)  # requests a minute
    deadline_s: Seconds = 300  # seconds for one question with all attempts and the waits between them

    @field_validator("headers", mode="before")
    @classmethod
    def _secrets_stand_in_variables(cls, value: Any) -> Any:
        for fault in secrets_in(value, ("headers",)):
            raise ValueError(fault.removeprefix("headers."))
        return value

    def identity(self) -> dict[str, Any]:
        """Without the headers' values: keys rotate without a new system, and a header may hold one in clear."""
        shown = super().identity()
        return shown | {"headers": sorted(shown["headers"])}


class LoggedSystem(SystemBase):
    """The answers that the logs hold."""

    kind: Literal["logged"]
    max_age_days: int = Field(6, ge=0, le=3660)  # how many days before the night an answer may come from
    max_requests: int = Field(2_000, ge=1, le=10_000_000)  # sampled requests of the last 7 days that are judged


class SystemKind(NamedTuple):
    """One kind of system.

    Args:
        settings: its section of `systems`, or `module:class` of it.
        build: `module:function` that makes the system: `(name, settings, version, workspace) -> System`.
    """

    settings: type[SystemBase] | str
    build: str

    @property
    def model(self) -> type[SystemBase]:
        """The class of its settings."""
        model: type[SystemBase] = member(self.settings) if isinstance(self.settings, str) else self.settings
        return model


_SYSTEMS = "ragbench_dagster.evaluation.systems"
SYSTEM_KINDS: dict[str, SystemKind] = {
    "engine": SystemKind(EngineSystem, f"{_SYSTEMS}.engine:build"),
    "retriever": SystemKind(RetrieverSystem, f"{_SYSTEMS}.engine:build"),
    "http": SystemKind(HttpSystem, f"{_SYSTEMS}.http:build"),
    "logged": SystemKind(LoggedSystem, f"{_SYSTEMS}.logged:build"),
}


def _of_its_kind(value: Any) -> SystemBase:
    if isinstance(value, SystemBase):
        return value
    kinds = ", ".join(SYSTEM_KINDS)
    if not isinstance(value, dict) or value.get("kind") is None:
        raise ValueError(f"kind is missing; it is one of {kinds}")
    kind = value["kind"]
    if not isinstance(kind, str) or kind not in SYSTEM_KINDS:
        shown = repr(kind)[:30] if not looks_secret(str(kind)) else "this"
        raise ValueError(f"kind: {shown} is none{near(str(kind), SYSTEM_KINDS)}; it is one of {kinds}")
    return SYSTEM_KINDS[kind].model.model_validate(value)


SystemSettings = Annotated[SerializeAsAny[SystemBase], PlainValidator(_of_its_kind)]


class Concurrency(Model):
    min: Workers = 1
    start: Workers = 8
    max: Workers = 128

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
    api_base: Concealed | None = None  # secrets as ${NAME}
    private: bool = False  # the name in api_base may lead to a private network
    # The variable's NAME. A pasted key is refused (and never shown): it would end up in messages.
    api_key_env: str = Field("OPENAI_API_KEY", pattern=r"^([A-Za-z_][A-Za-z0-9_]{0,63})?$")
    context_window: int | None = Field(None, ge=256)  # tokens
    read: Literal["text", "logprobs"] = "text"
    logprob_threshold: float | None = None  # default: fitted on the calibration set
    temperature: float | None = 0  # null: not sent
    seed: int | None = None
    max_tokens: int | None = Field(None, ge=1)
    max_completion_tokens: int | None = Field(None, ge=1)  # reasoning models
    extra: dict[str, Any] = {}  # further request parameters
    timeout_s: Seconds = 60  # seconds for one attempt
    deadline_s: Seconds = 300  # seconds for one item with all attempts and waits
    max_attempts: int = Field(6, ge=1, le=100)  # HTTP requests for one call: the first and its retries
    rpm: float | None = Field(None, gt=0)  # requests a minute
    tpm: float | None = Field(None, gt=0)  # tokens a minute
    concurrency: Concurrency = Concurrency()
    price: Price | None = None
    budget_usd: float | None = Field(None, ge=0)  # for one run, over all that it causes
    allow_floating: bool = False
    long_context: Literal["truncated", "per_passage"] = "truncated"
    metrics: dict[str, dict[str, Any]] = {}  # METRIC: settings that differ for it
    templates: dict[str, str] = {}  # METRIC: file with the user's own prompt
    guidelines: list[str] = []  # rules for the guideline metric
    evaluators: dict[str, str] = {}  # METRIC: module:factory of any LlamaIndex BaseEvaluator

    @field_validator("api_base", mode="before")
    @classmethod
    def _without_user(cls, value: Any) -> Any:
        if isinstance(value, str) and USER_IN_URL.match(value):
            raise ValueError("a chat API takes no user:password@; put the key's variable into api_key_env")
        return value

    @model_validator(mode="after")
    def _complete(self) -> Judge:
        masking.watch([self.api_key_env])
        if self.provider != "embedded" and not self.model:
            raise ValueError(f"judge.model is needed with provider {self.provider}")
        if self.max_tokens and self.max_completion_tokens:
            raise ValueError("set max_tokens or max_completion_tokens, not both")
        for metric, change in self.metrics.items():
            allowed = set(Judge.model_fields) - {"metrics", "evaluators", "templates", "guidelines"}
            for key in change:
                if key == "budget_usd":
                    raise ValueError(
                        f"metrics.{metric}.budget_usd: one cap holds for all of a run; set judge.budget_usd"
                    )
                if key not in allowed:
                    raise ValueError(f"metrics.{metric}.{key}: unknown key{near(key, allowed)}")
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
    margin: float | None = None  # largest loss against the baseline that is acceptable, 0 to below 1
    baseline: str = "accepted"  # accepted, last_passed, a night (YYYY-MM-DD) or a system
    per: Literal["question", "request", "both"] = "question"  # each question counts once, or as often as it was asked
    slices: dict[str, float] = {}  # category: floor
    coverage: Share | None = None  # share of applicable items that must be scored; default: gate.min_coverage
    role: Literal["primary", "guard"] = "primary"
    severity: Literal["fail", "warn"] = "fail"

    @field_validator("baseline", mode="before")
    @classmethod
    def _yaml_date(cls, value: Any) -> Any:
        """YAML makes a date of a bare 2026-11-01."""
        return value.isoformat() if type(value) is date else value


class Gate(Model):
    systems: Literal["all"] | list[str] = "all"
    min_coverage: Share = 0.90  # share of applicable items that must be scored
    min_examples: int | None = None  # default: dataset.min_examples
    # A night, or a month of 30 nights, of an unchanged system fails by chance at most 1 time in 20.
    false_fails: Literal["night", "month"] = "night"


class Tracking(Model):
    mlflow_uri: Concealed | None = (
        None  # secrets as ${NAME}; sqlite (a file in the store), sqlite:///FILE, or a server's http address
    )
    experiment: str = "ragbench"
    wandb_project: str | None = None
    wandb_mode: Literal["online", "offline"] = "offline"
    artifacts: Literal["all", "tables", "none"] = "all"  # all: the report too, which holds scrubbed questions


class Alerts(Model):
    # The variable's NAME; apprise URLs, one a line. A pasted URL is refused, and never shown.
    urls_env: str = Field("RAGBENCH_ALERT_URLS", pattern=r"^[A-Za-z_][A-Za-z0-9_]{0,63}$")


def near(word: str, known: Any) -> str:
    match = difflib.get_close_matches(word, sorted(known), 1)
    return f", did you mean {match[0]!r}?" if match else ""
