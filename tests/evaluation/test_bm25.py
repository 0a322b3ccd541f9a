"""The built-in system: its ranking, its quality floor, its answers."""

import json
import math
from collections import Counter
from pathlib import Path
from types import SimpleNamespace

import pytest
import pytrec_eval
from llama_index.core.schema import QueryBundle

from ragbench_dagster.errors import UserError
from ragbench_dagster.evaluation import bm25
from ragbench_dagster.evaluation.retrieval import stage_retrieval
from ragbench_dagster.text.terms import content_stems

DOCUMENTS = {
    "keys": "Rotate a key. Press Rotate beside the key. The old secret keeps working for 72 hours.",
    "limits": "Rate limits. Hatch allows 2 requests a second. Nest allows 10.",
    "plans": "What does it cost? Nest costs 29 euros a month. VAT is added.",
    "same-b": "identical words here",
    "same-a": "identical words here",
}


def write_corpus(folder: Path, documents: dict[str, str] = DOCUMENTS) -> SimpleNamespace:
    path = folder / "corpus.jsonl"
    lines = (json.dumps({"doc_id": key, "text": text}) for key, text in documents.items())
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return SimpleNamespace(corpus=path)


def engine(**params: int) -> bm25.Bm25QueryEngine:
    return bm25.Bm25QueryEngine(bm25.Bm25Retriever(bm25.Bm25Index(DOCUMENTS), params.get("top_k", 10)))


def test_scores_are_those_of_lucenes_bm25() -> None:
    """Against the formula of the paper, worked out here: idf * tf / (tf + k1 (1 - b + b |d| / avgdl))."""
    index = bm25.Bm25Index(DOCUMENTS)
    docs = {key: content_stems(text) for key, text in DOCUMENTS.items()}
    mean = sum(map(len, docs.values())) / len(docs)
    query = content_stems("nest requests a second")
    expected = {}
    for key, found in docs.items():
        counts = Counter(found)
        score = 0.0
        for word in query:
            n = sum(word in other for other in docs.values())
            idf = math.log(1 + (len(docs) - n + 0.5) / (n + 0.5))
            tf = counts[word]
            score += idf * tf / (tf + bm25.K1 * (1 - bm25.B + bm25.B * len(found) / mean))
        expected[key] = score
    found = {index.ids[i]: score for i, score in index.top("nest requests a second", 10)}
    assert found == pytest.approx({k: v for k, v in expected.items() if v > 0}, rel=1e-5)


def test_equal_scores_are_ordered_by_id_even_where_the_list_is_cut() -> None:
    index = bm25.Bm25Index(DOCUMENTS)
    assert [index.ids[i] for i, _ in index.top("identical words", 10)] == ["same-a", "same-b"]
    assert [index.ids[i] for i, _ in index.top("identical words", 1)] == ["same-a"]


@pytest.mark.parametrize("query", ["", "???", "zebra", "\x00\u202e", "the of and"])
def test_a_question_that_shares_no_word_retrieves_nothing_and_says_so(query: str) -> None:
    response = engine().query(query)
    assert response.source_nodes == []
    assert str(response) == bm25.NOT_FOUND


def test_an_empty_corpus_answers_nothing() -> None:
    index = bm25.Bm25Index({"only": "..."})
    assert index.top("word", 5) == []


def test_the_answer_is_made_of_sentences_of_the_passage_and_skips_titles_and_questions() -> None:
    answer = str(engine().query("how long does the old secret work after I rotate a key?"))
    assert "The old secret keeps working for 72 hours." in answer
    assert all(sentence.strip(". ") in DOCUMENTS["keys"] for sentence in answer.split(". "))
    assert str(engine().query("what does it cost?")).startswith("Nest costs 29 euros")


def test_it_is_a_llama_index_retriever_and_engine_with_a_configurable_length() -> None:
    found = engine(top_k=1).retrieve(QueryBundle("key limits nest"))
    assert len(found) == 1
    assert found[0].node.node_id in DOCUMENTS
    assert found[0].score > 0


def test_the_index_is_built_once_a_process_and_anew_for_another_corpus(tmp_path: Path) -> None:
    workspace = write_corpus(tmp_path)
    first = bm25.build(workspace)
    assert bm25.build(workspace, top_k=3).retriever.index is first.retriever.index
    write_corpus(tmp_path, {"other": "another text"})
    assert bm25.build(workspace).retriever.index.ids == ["other"]


def test_of_equally_good_sentences_the_first_answers_whatever_the_order_of_sets() -> None:
    """A set has another order in each process: a plain sum over one differed in its last digit and chose at random."""
    documents = {}
    for n in range(60):
        stems = [f"word{n}x{i}" for i in range(9)]
        turned = [stems[(i * step) % 9] for step in (1, 2, 4, 5) for i in range(9)]
        parts = [" ".join(turned[i : i + 9]).capitalize() + f" part{i // 9}." for i in range(0, 36, 9)]
        documents[f"d{n:02d}"] = " ".join(parts)
        for i in range(9):  # so that the words differ in weight
            documents[f"x{n:02d}-{i}"] = " ".join(stems[: i + 1])
    index = bm25.Bm25Index(documents)
    for n in range(60):
        query = " ".join(f"word{n}x{i}" for i in range(9))
        assert bm25.extract(query, [documents[f"d{n:02d}"]], index, 1).endswith("part0.")


@pytest.mark.parametrize("params", [{"top_k": 0}, {"top_k": "ten"}, {"top_k": True}, {"max_sentences": 0}])
def test_a_parameter_out_of_range_is_named(params: dict, tmp_path: Path) -> None:
    with pytest.raises(UserError, match=f"params.{next(iter(params))}"):
        bm25.build(write_corpus(tmp_path), **params)


def test_no_corpus_is_one_line(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"corpus\.jsonl: cannot be read"):
        bm25.build(SimpleNamespace(corpus=tmp_path / "corpus.jsonl"))


def test_quality_floor_and_equality_with_trec_eval_on_all_of_feedbackqa(shared: Path) -> None:
    folder = shared / "data" / "retrieval_feedbackqa"

    def read(name: str) -> list[dict]:
        return [json.loads(x) for x in (folder / name).read_text("utf-8").split("\n") if x.strip()]

    relevant: dict[str, dict[str, int]] = {}
    for row in read("qrels.jsonl"):
        if row["relevance"] > 0:
            relevant.setdefault(row["query_id"], {})[row["doc_id"]] = row["relevance"]
    system = bm25.build(SimpleNamespace(corpus=folder / "corpus.jsonl"))
    rows, run = [], {}
    for question in read("queries.jsonl"):
        nodes = system.retrieve(QueryBundle(question["query"]))
        found = [node.node.node_id for node in nodes]
        rows.append(
            {"query_id": question["query_id"], "expected": list(relevant[question["query_id"]]), "retrieved": found}
        )
        run[question["query_id"]] = {doc: 1.0 / (i + 1) for i, doc in enumerate(found)} or {"none": 0.0}
    (summary,) = stage_retrieval(rows, [5, 10], summary=True)
    assert summary["queries"] == len(rows) > 3900
    assert summary["hit_rate@5"]["mean"] >= 0.63
    assert summary["mrr@10"]["mean"] >= 0.50

    names = {"success.5", "P.5", "recall.5", "map_cut.5", "ndcg_cut.5", "recip_rank"}
    theirs = pytrec_eval.RelevanceEvaluator(relevant, names).evaluate(run)
    for ours, name in [
        ("hit_rate@5", "success_5"), ("precision@5", "P_5"), ("recall@5", "recall_5"), ("ap@5", "map_cut_5"),
        ("ndcg@5", "ndcg_cut_5"), ("mrr@10", "recip_rank"),
    ]:  # fmt: skip
        mean = math.fsum(row[name] for row in theirs.values()) / len(theirs)
        assert summary[ours]["mean"] == pytest.approx(mean, abs=1e-9), ours
