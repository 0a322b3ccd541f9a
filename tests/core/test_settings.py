"""ragbench.yaml: every default, and every fault named by its key in one line."""

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragbench_dagster.errors import UserError
from ragbench_dagster.settings import Settings, parse_settings


def test_an_empty_file_is_valid():
    assert parse_settings("") == Settings()
    assert parse_settings("judge:\n").judge.provider == "embedded"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("judge: {modle: x}", "judge.modle: unknown key, did you mean 'model'?"),
        ("systems: {a-b: {kind: logged}}", "'a-b'"),
        ("systems: {a: {kind: loged}}", "systems.a"),
        ("systems: {a: {kind: http, urll: x, url: y}}", "systems.a.urll: unknown key, did you mean 'url'?"),
        ("thresholds: {relevancy: {mni: 0.5}}", "thresholds.relevancy.mni: unknown key, did you mean 'min'?"),
        ("a: 1\na: 2", "line 2: key 'a' stands twice"),
        ("metrics: [hit_rate]", "hit_rate@5"),
        ("metrics: [faithfullness]", "did you mean 'faithfulness'?"),
        ("- 1", "must hold keys and values"),
        ("dataset: {dedupe: {one_edt: 1}}", "did you mean 'one_edit'?"),
        ("traffic: {sample: {rate: 1.5}}", "traffic.sample.rate"),
        ("traffic: {timezone: Mars/Olympus}", "no such time zone"),
        ("judge: {provider: openai}", "judge.model is needed"),
        ("judge: {concurrency: {min: 9, start: 8}}", "min <= start <= max"),
        ("x: [", "line 1"),
        ("traffic: {start: 2026-99-99}", "month"),
        ("thresholds: {faithfulness: {min: 75}}", "75.0 is no share"),
        ("metrics: [nope]", "ragbench.yaml: metrics: 'nope' is no metric"),
    ],
)
def test_a_fault_is_one_line_that_names_the_key(text, said):
    with pytest.raises(UserError) as fault:
        parse_settings(text)
    assert said in str(fault.value)
    assert str(fault.value).startswith("ragbench.yaml: ")
    assert "\n" not in str(fault.value)


def test_a_pasted_key_is_refused_and_not_shown():
    with pytest.raises(UserError) as fault:
        parse_settings("judge: {api_key_env: sk-abc123secret}")
    assert "judge.api_key_env" in str(fault.value)
    assert "abc123" not in str(fault.value)


@pytest.mark.parametrize(
    ("model", "pinned"),
    [
        ("gpt-4o-2024-08-06", True),
        ("claude-sonnet-4-20250514", True),
        ("gpt-4o", False),
        ("llama-3.1-70b", False),
        ("gpt-4-1106-preview", False),
        ("qwen@sha256:" + "a" * 64, True),
        ("model-2024-13-06", False),
        ("v20240806123", False),
    ],
)
def test_a_judge_is_pinned_when_its_name_says_which_model_answers(model, pinned):
    settings = parse_settings(f"judge: {{provider: openai_like, model: '{model}'}}")
    assert settings.judge.pinned is pinned


def test_a_revision_set_by_hand_pins_any_name():
    assert parse_settings("judge: {provider: openai_like, model: local, revision: r7}").judge.pinned


def test_a_metric_may_have_a_judge_of_its_own():
    text = "judge: {provider: openai_like, model: a-2024-01-01, metrics: {correctness: {model: b-2024-01-01}}}"
    judge = parse_settings(text).judge
    assert judge.for_metric("correctness").model == "b-2024-01-01"
    assert judge.for_metric("faithfulness").model == "a-2024-01-01"


@given(st.text(max_size=200))
def test_any_text_is_settings_or_a_user_error(text):
    with contextlib.suppress(UserError):
        assert isinstance(parse_settings(text), Settings)
