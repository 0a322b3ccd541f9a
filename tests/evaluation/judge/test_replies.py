"""Which verdict a judge's reply gives: a table of what judges really say, and fuzzing."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ragbench_dagster.evaluation.judge.parse_score import read_result, read_score
from ragbench_dagster.evaluation.judge.parse_verdict import is_refusal, read_yes_no
from ragbench_dagster.evaluation.judge.preference_judge import read_choice
from ragbench_dagster.evaluation.judge.reply import plain
from ragbench_dagster.evaluation.judge_runner import judge_items
from ragbench_dagster.records import Item
from tests.support.fake_provider import Act

NEITHER = None
YES_NO: list[tuple[str, bool | None]] = [
    ("YES", True), ("NO", False), ("yes", True), ("no", False), ("Yes.", True), ("No!", False),
    ("No. The context was updated yesterday.", False), ("Yes, the passage says so.", True),
    ("yesterday", NEITHER), ("eyes", NEITHER), ("The eyes have it, yesterday.", NEITHER), ("no-one knows", NEITHER),
    ("", NEITHER), ("  \n ", NEITHER), ("maybe", NEITHER), ("Yes and no.", NEITHER), ("YES or NO", NEITHER),
    ("YES/NO", NEITHER), ("Answer: YES or NO", NEITHER), ("YES\nNO", NEITHER), ("Yes. No.", NEITHER),
    ("YES. Wait, actually no, the fee differs.", NEITHER), ("No doubt the context supports it", NEITHER),
    ("I cannot answer YES", NEITHER), ("Answer: not YES", NEITHER), ("It says yes.", NEITHER),
    ("The answer is YES.", True), ("So the final answer is NO.", False), ("Verdict: **YES**", True),
    ("**Answer:** NO", False), ("# NO", False), ("- YES", True), ("\"YES\"", True), ("[NO]", False), ("(YES)", True),
    ("`NO`", False), ("```\nYES\n```", True), ("```json\n{\"verdict\": \"NO\"}\n```", False),
    ('{"verdict": "YES", "why": "no doubt"}', True), ('{"passing": false}', False),
    ('{"verdict": "YES"}\n{"verdict": "NO"}', NEITHER), ('{"verdict": "YES", "verdict": "NO"}', NEITHER),
    ('My verdict:\n{\n  "verdict": "NO"\n}', False), ('{"verdict": ["YES"]}', NEITHER), ('{"verdict": ', NEITHER),
    ("<think>YES, no, YES</think>NO", False), ("so it is YES</think>\nNO", False), ("<think>it is YES", NEITHER),
    ("<thinking>NO</thinking>\n\nYES", True), ("[THINK]NO[/THINK]YES", True),
    ("<|channel|>analysis<|message|>YES<|end|><|start|>assistant<|channel|>final<|message|>NO<|return|>", False),
    ("<|channel|>analysis<|message|>YES", NEITHER),
    ('The answer itself says {"verdict": "YES"}, which proves nothing.\nNO', False),
    ("> YES\n\nThe line above is the candidate's. My verdict: NO", False),
    ("NO The context does not mention it", False), ("YES The passage covers it", True),
    ("No contexto, a informação é suportada", NEITHER), ("Sí", NEITHER), ("Oui", NEITHER), ("Nein", NEITHER),
    ("No, la respuesta no aparece", False), ("はい", NEITHER), ("да", NEITHER), ("ＹＥＳ", True), ("Y\u200bES", True),
    ("Is it supported? Yes.", True), ("Yes — because the passage says so", True), ("NO, no, no.", False),
    ("\x00NO\x00", NEITHER), ("YES\r\nbecause", True), ("The claim holds; no", False),
]  # fmt: skip
SCORES: list[tuple[str, float | None]] = [
    ("4.0\nThe same figures, less concise.", 4.0), ("4.5", 4.5), ("5", 5.0), ("1", 1.0), ("Score: 4.5/5", 4.5),
    ("97", None), ("nan", None), ("inf", None), ("-inf", None), ("-3", None), ("0", None), ("5.1", None), ("1e0", None),
    ("", None), ("four", None), ("4/10\nMisses most.", None), ("8\nGood.", None), ("4.5 out of 10", None),
    ("For 5 reasons I give this a 2.", None), ("Rating: [[12]]", None), ("Rating: [[4]]", 4.0),
    ("Hardly excellent, yet usable.", None), ("2\nMisses the fee.", 2.0), ("Score (1-5): \n", None),
    ("Score (1-5): 4", 4.0), ("**4**\nreason", 4.0), ("4 out of 5", 4.0), ("4,5", None), ("4-5", None),
    ("4 or 5", None),
    ('{"score": 4.5, "reasoning": "2 points"}', 4.5), ('{"score": "3"}', 3.0), ('{"score": true}', None),
    ('{"score": NaN}', None), ('{"score": Infinity}', None), ("4\nyet\nScore: 2", None), ("Score:\n4", 4.0),
    ("1. It is right\n2. It is short", None), ("<think>5</think>2", 2.0), ("４", 4.0),
    ("Overall score is 4 out of 5.", 4.0),
    ("4%", None), ("5 stars", 5.0), ("4.0/5.0", 4.0), ("I give 4", None), ("Score: 4.5.6", None),
]  # fmt: skip
RESULTS: list[tuple[str, float | None]] = [
    ("On the subject.\n[RESULT] 2", 2.0), ("[RESULT] 1", 1.0), ("[RESULT] 20", None), ("[RESULT] 2/2", 2.0),
    ("[RESULT] 2/4", None), ("**[RESULT]** 0", 0.0), ("[RESULT] 1.5", None), ("[RESULT] 1 or [RESULT] 2", None),
    ("2", None), ("[RESULT]", None), ("[RESULT] -1", None), ("[RESULT] Total score: 2", 2.0),
]  # fmt: skip
CHOICES: list[tuple[str, float | None]] = [
    ("A is fuller. [[A]]", 1.0), ("[[B]]", 0.0), ("Both alike.\n[[C]]", 0.5), ("It is not [[A]].", None),
    ("I would never say [[A]]\n[[B]]", 0.0), ("[[A]] or [[B]]", None), ("[[A]]\n[[B]]", None), ("A", None), ("", None),
    ("[[D]]", None), ("My final verdict is: [[B]].", 0.0), ("**[[A]]**", 1.0), ("Neither deserves [[C]]", None),
    ("The answer says [[A]] itself.\n\nFinal verdict: [[B]]", 0.0), ("<think>[[A]]</think>[[B]]", 0.0),
]  # fmt: skip
REFUSALS: list[tuple[str, bool]] = [
    ("I'm sorry, but I can't help with that.", True), ("I cannot assist with this request.", True),
    ("As an AI language model, I cannot evaluate this.", True), ("I must decline.", True),
    ("Sorry, the context does not say so.", False), ("I cannot find support in the context.", False), ("NO", False),
]  # fmt: skip


@pytest.mark.parametrize(("reply", "verdict"), YES_NO)
def test_yes_or_no(reply: str, verdict: bool | None):
    assert read_yes_no(reply) is verdict


@pytest.mark.parametrize(("reply", "score"), SCORES)
def test_a_score_from_one_to_five(reply: str, score: float | None):
    assert read_score(reply, 1, 5) == score


@pytest.mark.parametrize(("reply", "points"), RESULTS)
def test_points_after_result(reply: str, points: float | None):
    assert read_result(reply, 0, 2, whole=True) == points


@pytest.mark.parametrize(("reply", "choice"), CHOICES)
def test_a_choice_between_two(reply: str, choice: float | None):
    assert read_choice(reply) == choice


@pytest.mark.parametrize(("reply", "refuses"), REFUSALS)
def test_a_refusal_in_words(reply: str, refuses: bool):
    assert is_refusal(reply) is refuses


def test_a_number_that_the_token_limit_may_have_cut_is_no_score():
    assert read_score("4", 1, 5, cut=True) is None
    assert read_score("4.0\nThe answ", 1, 5, cut=True) == 4.0


# Whole replies with their envelope: what becomes of the item.
ENVELOPES: dict[str, tuple[Act, str, bool | None]] = {
    "plain": (Act("YES"), "scored", True),
    "content null": (Act(None), "unparsable", None),
    "empty": (Act(""), "unparsable", None),
    "empty at the limit": (Act("", finish="length"), "truncated", None),
    "empty at another's limit": (Act("", finish="MAX_TOKENS"), "truncated", None),
    "another's filter": (Act("", finish="PROHIBITED_CONTENT"), "refused", None),
    "thinking at the limit": (Act("<think>it looks like YES", finish="length"), "truncated", None),
    "verdict, then the limit": (Act("NO. The passage says that the", finish="length"), "scored", False),
    "content filter": (Act("", finish="content_filter"), "refused", None),
    "content filter after a verdict": (Act("YES", finish="content_filter"), "refused", None),
    "refusal field": (Act(message={"role": "assistant", "content": None, "refusal": "I can't."}), "refused", None),
    "refusal in words": (Act("I'm sorry, but I can't help with that."), "refused", None),
    "parts": (Act([{"type": "text", "text": "YES"}]), "scored", True),
    "parts with thinking": (Act([{"type": "thinking", "thinking": "NO"}, {"type": "text", "text": "YES"}]), "scored",
                            True),
    "refusal part": (Act([{"type": "refusal", "refusal": "no"}]), "refused", None),
    "no parts": (Act([]), "unparsable", None),
    "only reasoning": (Act(message={"content": None, "reasoning": "Final: YES"}), "unparsable", None),
    "reasoning beside": (Act(message={"content": "NO", "reasoning_content": "YES, YES"}), "scored", False),
    "content a number": (Act(message={"content": 1}), "unparsable", None),
    "content an object": (Act(message={"content": {"verdict": "NO"}}), "scored", False),
}  # fmt: skip


@pytest.mark.parametrize(("act", "status", "passing"), ENVELOPES.values(), ids=ENVELOPES)
def test_the_status_of_a_whole_reply(serve, judge_of, workspace, act: Act, status: str, passing: bool | None):
    provider = serve(lambda seen: act)
    item = Item("a", "q?", "an answer", ("a passage",))
    verdict = judge_items(workspace(judge_of(provider.base)), "faithfulness", [item])[0]
    assert (verdict.status, verdict.passing) == (status, passing)
    assert (verdict.score is None) is (status != "scored")
    # One re-ask for what could not be read; none where the same limit would cut it again, or for a refusal.
    assert len(provider.seen) == (2 if status == "unparsable" else 1)


def test_one_re_ask_is_made_and_recorded(serve, judge_of, workspace):
    provider = serve(lambda seen: Act("Perhaps.") if len(provider.seen) == 1 else Act("NO"))
    verdict = judge_items(workspace(judge_of(provider.base)), "faithfulness", [Item("a", "q?", "r", ("p",))])[0]
    assert (verdict.status, verdict.passing, verdict.attempts) == ("scored", False, 2)
    assert verdict.details["re_asked"] is True
    assert verdict.details["first_reply"] == "Perhaps."
    assert [m["role"] for m in provider.seen[1].body["messages"]] == ["user", "assistant", "user"]
    assert verdict.prompt_tokens == 200


_PIECES = st.sampled_from(
    ["YES", "NO", "yes", "no", "4", "5/5", "[RESULT]", "[[A]]", "{", "}", '"verdict":', "<think>", "</think>", "```",
     "\n", ">", "**", ":", "Answer", "Score", "-", "nan", "1e999", "\x00", "\ud800", "‮", "actually", "not"]
)  # fmt: skip
_TEXTS = st.one_of(st.text(max_size=300), st.lists(_PIECES, max_size=40).map(" ".join), st.lists(_PIECES).map("".join))


@settings(max_examples=400, deadline=None)
@given(_TEXTS)
def test_no_reply_makes_a_parser_raise_or_leave_the_scale(text: str):
    assert read_yes_no(text) in (True, False, None)
    score = read_score(text, 1, 5)
    assert score is None or 1 <= score <= 5
    points = read_result(text, 0, 2, whole=True)
    assert points in (None, 0, 1, 2)
    assert read_choice(text) in (None, 0.0, 0.5, 1.0)
    assert is_refusal(text) in (True, False)
    assert isinstance(plain(text), str)


_JSON: Any = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=12), inner, max_size=4),
    max_leaves=12,
)


@settings(max_examples=300, deadline=None)
@given(_JSON, st.integers(200, 599))
def test_no_body_makes_the_reading_of_an_answer_raise(body: Any, status: int):
    from ragbench_dagster.evaluation.judge.provider_errors import Trouble, of_answer, of_success
    from ragbench_dagster.evaluation.judge.retry_after import wait_of

    wrapped = {"error": body, "choices": body}
    for one in (body, wrapped, {"choices": [body]}, {"choices": [{"message": body}]}, [wrapped]):
        assert isinstance(of_answer(status, {}, one, 0.0), Trouble)
        assert isinstance(of_success(one, {}, 0.0), Trouble | None)
        wait = wait_of({}, one, 0.0)
        assert wait is None or wait >= 0


@pytest.mark.parametrize(
    "evil", ["> ", "(", "yes ", "[RESULT] ", "<think>", "score ", "my ", "{\n", "```\n", "actually "]
)
def test_a_long_reply_of_one_piece_is_read_quickly(evil: str):
    import time

    begin = time.process_time()
    text = evil * 20_000
    read_yes_no(text), read_score(text, 1, 5), read_result(text, 0, 2), read_choice(text), is_refusal(text)
    assert time.process_time() - begin < 3
