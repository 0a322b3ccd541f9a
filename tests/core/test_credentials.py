"""A secret never stands in ragbench.yaml, and nothing that is printed, stored or hashed holds one."""

from __future__ import annotations

import json
import pickle

import pytest

from ragbench_dagster.credentials import HIDDEN, Concealed, looks_secret, without_secrets
from ragbench_dagster.errors import UserError
from ragbench_dagster.settings import Settings, parse_settings
from ragbench_dagster.settings_parts import HttpSystem, Judge
from ragbench_dagster.store import digest

S = "hUnter2pw"  # a secret that no shape gives away
J = "provider: openai_like, model: m-2024-01-01"

REFUSED = [
    (f"judge: {{{J}, api_base: 'https://me:{S}@gw.example/v1'}}", "api_key_env"),
    (f"judge: {{{J}, api_base: 'https://{S}@gw.example/v1'}}", "api_key_env"),
    (f"judge: {{{J}, api_base: 'https://gw.example/v1?api-key={S}'}}", "${JUDGE_API_KEY}"),
    (f"judge: {{{J}, api_base: 'https://gw.example/v1?v=1&subscription_key={S}'}}", "${JUDGE_SUBSCRIPTION_KEY}"),
    (f"judge: {{{J}, metrics: {{relevancy: {{api_base: 'https://gw.example/?sig={S}'}}}}}}", "${"),
    (f"judge: {{{J}, extra: {{api_key: {S}}}}}", "${JUDGE_API_KEY}"),
    (f"ledger: 'postgresql+psycopg://me:{S}@db.example/rag'", "${LEDGER_PASSWORD}"),
    (f"ledger: 'postgresql://db.example/rag?user=me&password={S}'", "${LEDGER_PASSWORD}"),
    (f"tracking: {{mlflow_uri: 'https://me:{S}@mlflow.example'}}", "${MLFLOW_PASSWORD}"),
    (f"traffic: {{source: 's3://key:{S}@bucket/logs'}}", "${TRAFFIC_PASSWORD}"),
    (f"traffic: {{source: 'simplecache::https://x.example/l.jsonl?X-Amz-Signature={S}'}}", "${TRAFFIC_X_AMZ_SIGNATURE}"),
    (f"systems: {{prod: {{kind: http, url: 'https://x.example/a?code={S}'}}}}", "${PROD_CODE}"),
    (f"systems: {{prod: {{kind: http, url: 'https://u:{S}@x.example/a'}}}}", "${PROD_PASSWORD}"),
    (f"systems: {{prod: {{kind: http, url: 'https://x.example/', headers: {{X-Api-Key: {S}}}}}}}", "${PROD_X_API_KEY}"),
    (f"systems: {{prod: {{kind: http, url: 'https://x.example/', headers: {{Authorization: Bearer {S}}}}}}}", "Bearer ${PROD_AUTHORIZATION}"),
    (f"systems: {{prod: {{kind: http, url: 'https://x.example/', headers: {{Cookie: 'sid={S}'}}}}}}", "${PROD_COOKIE}"),
    (f"systems: {{prod: {{kind: http, url: 'https://x.example/', request: {{query: q, key: {{path: auth.api_key, const: {S}}}}}}}}}", "${"),
    (f"systems: {{prod: {{kind: engine, engine: 'a:b', params: {{api_key: {S}}}}}}}", "${PROD_API_KEY}"),
    (f"systems: {{prod: {{kind: engine, engine: 'a:b', params: {{db: {{dsn: 'mysql://me:{S}@h/d'}}}}}}}}", "${PROD_DB_DSN_PASSWORD}"),
    ("systems: {prod: {kind: engine, engine: 'a:b', params: {model: sk-abcdefghijklmnop1234}}}", "${PROD_MODEL_KEY}"),
    (f"systems: {{prod: {{kind: engine, engine: 'a:b', params: {{dsn: 'host=h user=u password={S}'}}}}}}", "${PROD_DSN_PASSWORD}"),
    (f"systems: {{prod: {{kind: http, url: 'https://x.example/', request: {{query: q, dsn: {{const: 'Server=h;Pwd={S};'}}}}}}}}", "PASSWORD}"),
    (f"alerts: {{urls_env: 'slack://{S}/x'}}", "alerts.urls_env"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "named"), REFUSED)
def test_a_secret_in_the_file_is_refused_by_one_line_that_names_the_variable(text: str, named: str) -> None:
    with pytest.raises(UserError) as fault:
        parse_settings(text)
    line = str(fault.value)
    assert line.startswith("ragbench.yaml: ")
    assert named in line
    assert "\n" not in line
    for secret in (S, "sk-abcdefghijklmnop1234"):
        assert secret not in line
        assert secret not in repr(fault.value.__cause__)
        assert secret not in str(fault.value.__cause__)


TAKEN = [
    f"judge: {{{J}, api_base: 'https://gw.example/v1?api-version=2024-02-01&api-key=${{GW_KEY}}'}}",
    "ledger: 'postgresql+psycopg://me:${DB_PASSWORD}@db.example/rag?sslmode=require'",
    "ledger: 'postgresql+psycopg://me@db.example/rag'",
    "ledger: verdicts.db",
    "tracking: {mlflow_uri: 'https://${MLFLOW_USER}:${MLFLOW_PASSWORD}@mlflow.example'}",
    "tracking: {mlflow_uri: sqlite}",
    "traffic: {source: 'abfs://logs@account.dfs.core.windows.net/2026', fields: {user_id: auth.session_key, query: token}}",
    "traffic: {source: 's3://bucket/prefix', sample: {salt: a-long-salt-of-2026-11}}",
    "systems: {prod: {kind: http, url: 'https://x.example/a?code=${PROD_CODE}&top_k=5', headers: {Accept: application/json, X-Tenant: acme-prod-2}}}",
    "systems: {prod: {kind: http, url: 'https://x.example/1f0c6f3e-7a7b-4d6e-9b1a-2f3c4d5e6f70/run', request: {query: key, session: {const: none}}}}",
    "systems: {prod: {kind: engine, engine: 'a:b', params: {api_key: '${MY_KEY}', api_key_env: OPENAI_API_KEY, key: title, model: gpt-4o-2024-08-06}}}",
    f"judge: {{{J}, extra: {{eos_token: '</s>', top_p: 1, user: ragbench}}}}",
]  # fmt: skip


@pytest.mark.parametrize("text", TAKEN)
def test_what_holds_no_secret_is_taken(text: str) -> None:
    settings = parse_settings(text)
    assert Settings.model_validate(json.loads(settings.model_dump_json(by_alias=True))) == settings


def test_a_value_of_a_variable_is_in_nothing_that_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    text = "systems: {p: {kind: http, url: 'https://x.example/?code=${P_CODE}', headers: {X-Api-Key: '${P_KEY}'}}}"
    before = parse_settings(text)
    monkeypatch.setenv("P_CODE", S)
    monkeypatch.setenv("P_KEY", S)
    settings = parse_settings(text)
    system = settings.systems["p"]
    assert isinstance(system, HttpSystem)
    assert system.url.reveal("url") == f"https://x.example/?code={S}"
    for kept in (repr(settings), str(settings.model_dump()), settings.model_dump_json(), pickle.dumps(settings)):
        assert S not in (kept if isinstance(kept, str) else kept.decode("latin-1"))
    assert digest(settings.model_dump(mode="json")) == digest(before.model_dump(mode="json"))
    assert settings == before
    assert {"P_CODE", "P_KEY", "OPENAI_API_KEY", "RAGBENCH_ALERT_URLS"} <= settings.variables()


def test_what_came_around_the_check_is_still_shown_compared_and_hashed_without_it() -> None:
    one, other = (Concealed(f"https://me:{secret}@gw.example/v1?api-key={secret}") for secret in (S, "another1"))
    assert f"{one}" == str(one) == f"https://{HIDDEN}@gw.example/v1?api-key={HIDDEN}"
    assert one == other
    assert hash(one) == hash(other)
    assert S not in repr(one) + repr(pickle.loads(pickle.dumps(one)))
    judge = Judge.model_construct(api_base=one)
    assert S not in judge.model_dump_json() + repr(judge)


def test_a_variable_that_is_not_set_is_named() -> None:
    with pytest.raises(UserError, match=r"^judge.api_base: the environment variable RAGBENCH_NOT_SET is not set"):
        Concealed("https://x/?key=${RAGBENCH_NOT_SET}").reveal("judge.api_base")


@pytest.mark.parametrize("word", ["2026-11-20", "gpt-4o-2024-08-06", "documents/setup/linux", "part-00001", "ragbench_dagster.evaluation.bm25", "text-embedding-3-large", "application/json", "en_core_web_sm"])  # fmt: skip
def test_words_are_no_secrets(word: str) -> None:
    assert not looks_secret(word)
    assert without_secrets(word) == word
