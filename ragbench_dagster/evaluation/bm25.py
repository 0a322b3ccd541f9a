"""The built-in system: BM25 over `corpus.jsonl` with extractive answers. It needs no key, model or network.

A LlamaIndex retriever and query engine over bm25s (Lu 2024, arXiv 2407.03618; scores as Lucene's BM25). It is a
baseline to compare with, not a product: an answer is the best sentences of the best passage, word for word.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

import bm25s
import numpy as np
from llama_index.core.base.base_query_engine import BaseQueryEngine
from llama_index.core.base.base_retriever import BaseRetriever
from llama_index.core.base.response.schema import RESPONSE_TYPE, Response
from llama_index.core.schema import NodeWithScore, QueryBundle, TextNode

from ragbench_dagster.errors import UserError
from ragbench_dagster.text.terms import content_stems, sentences, stem, words

PURE = True  # an answer depends on the question, the corpus and this code alone
NOT_FOUND = "The documents do not say anything about this."
K1, B = 1.5, 0.75  # the usual values; measured best of four pairs on retrieval_feedbackqa


class Bm25Index:
    """An immutable index of passages.

    Args:
        documents: doc_id to text.
    """

    def __init__(self, documents: dict[str, str]) -> None:
        self.ids = sorted(documents)
        self.texts = [documents[doc_id] for doc_id in self.ids]
        tokens = [content_stems(text) for text in self.texts]
        self._bm25 = bm25s.BM25(k1=K1, b=B, method="lucene", backend="numpy")
        if any(tokens):
            self._bm25.index(tokens, show_progress=False)
        self._known = set(self._bm25.vocab_dict) if any(tokens) else set()
        counts: dict[str, int] = {}
        for found in tokens:
            for word in set(found):
                counts[word] = counts.get(word, 0) + 1
        self._idf = {w: math.log(1 + (len(tokens) - n + 0.5) / (n + 0.5)) for w, n in counts.items()}
        self._nodes: dict[int, TextNode] = {}

    def top(self, query: str, k: int) -> list[tuple[int, float]]:
        """(position, score) of the best k passages; none that shares no word. Equal scores: by doc_id."""
        asked = content_stems(query) or [stem(word) for word in words(query)]
        asked = [word for word in asked if word and word in self._known]
        if not asked or k < 1:
            return []
        scores = self._bm25.get_scores(asked)
        if k < len(scores):
            floor = np.partition(scores, -k)[-k]
            found = np.flatnonzero((scores >= floor) & (scores > 0))
        else:
            found = np.flatnonzero(scores > 0)
        order = found[np.lexsort((found, -scores[found]))][:k]
        return [(int(i), float(scores[i])) for i in order]

    def node(self, position: int) -> TextNode:
        """The passage at `position` as a node; its id is the doc_id."""
        if position not in self._nodes:
            self._nodes[position] = TextNode(id_=self.ids[position], text=self.texts[position])
        return self._nodes[position]

    def weight(self, word: str) -> float:
        """Inverse document frequency of a stem, in nats; 0 for a word of no passage."""
        return self._idf.get(word, 0.0)


class Bm25Retriever(BaseRetriever):
    """LlamaIndex retriever over a `Bm25Index`.

    Args:
        index: the passages.
        top_k: passages returned, at most.
    """

    def __init__(self, index: Bm25Index, top_k: int = 10) -> None:
        self.index = index
        self.top_k = top_k
        super().__init__()

    def _retrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        found = self.index.top(query_bundle.query_str, self.top_k)
        return [NodeWithScore(node=self.index.node(i), score=score) for i, score in found]


class Bm25QueryEngine(BaseQueryEngine):
    """LlamaIndex query engine that answers with sentences of the passages found.

    Args:
        retriever: finds the passages.
        max_sentences: sentences of an answer, at most.
    """

    def __init__(self, retriever: Bm25Retriever, max_sentences: int = 3) -> None:
        self.retriever = retriever
        self.max_sentences = max_sentences
        super().__init__(callback_manager=None)

    def _get_prompt_modules(self) -> dict[str, Any]:
        return {}

    def retrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        return self.retriever.retrieve(query_bundle)

    def _query(self, query_bundle: QueryBundle) -> RESPONSE_TYPE:
        nodes = self.retriever.retrieve(query_bundle)
        texts = [found.node.get_content() for found in nodes[:3]]
        answer = extract(query_bundle.query_str, texts, self.retriever.index, self.max_sentences)
        return Response(response=answer or NOT_FOUND, source_nodes=nodes)

    async def _aquery(self, query_bundle: QueryBundle) -> RESPONSE_TYPE:
        return self._query(query_bundle)


def extract(query: str, passages: Sequence[str], index: Bm25Index, limit: int) -> str:
    """The sentences of the best passage that answer `query` best, in their order.

    A sentence scores the summed idf of the query's stems in it. A passage further down the ranking answers
    instead of the first only where its best sentence holds clearly more of the question.

    Returns:
        Empty text where no passage shares a word with the question.
    """
    asked = set(content_stems(query)) or {stem(word) for word in words(query)}
    best: tuple[float, list[str], list[float]] = (0.0, [], [])
    for rank, passage in enumerate(passages):
        parts = sentences(passage)
        # fsum: a set has another order in each process, and a sum of floats would have another last digit.
        scores = [math.fsum(index.weight(w) for w in asked.intersection(content_stems(part))) for part in parts]
        top = max(scores, default=0.0) / (1 + 0.25 * rank)
        if top > best[0]:
            best = (top, parts, scores)
    _, parts, scores = best
    if not parts:
        return ""
    # A title or a question of the passage announces an answer and is none: what follows it is.
    speaks = [i for i, part in enumerate(parts) if not part.endswith("?") and len(words(part)) > 3]
    speaks = speaks or list(range(len(parts)))
    peak = max(range(len(parts)), key=lambda i: (scores[i], -i))
    after = [i for i in speaks if i >= peak] or speaks[-1:]
    chosen = set(after[:2])
    for i in sorted(speaks, key=lambda i: (-scores[i], i)):
        if len(chosen) < limit and scores[i] > 0:
            chosen.add(i)
    return " ".join(parts[i] for i in sorted(chosen)[:limit])


@lru_cache(maxsize=4)
def _index(path: Path, changed_ns: int, size: int) -> Bm25Index:
    """One index a process for each state of a corpus file."""
    from ragbench_dagster.dataset.labels import read_corpus

    return Bm25Index(read_corpus(path))


def build(workspace: Any, top_k: int = 10, max_sentences: int = 3) -> Bm25QueryEngine:
    """The query engine over a workspace's corpus; `params` in `ragbench.yaml` are passed by keyword.

    Args:
        workspace: `store.Workspace`, or anything with the path `corpus`.
        top_k: passages retrieved, 1 or more.
        max_sentences: sentences of an answer, 1 or more.

    Raises:
        UserError: no corpus, or a parameter out of range.
    """
    for name, value in (("top_k", top_k), ("max_sentences", max_sentences)):
        if not isinstance(value, int) or isinstance(value, bool) or value < 1:
            raise UserError(f"params.{name}: {value!r} must be a whole number of 1 or more")
    path = Path(workspace.corpus)
    try:
        state = path.stat()
    except OSError as fault:
        raise UserError(f"{path.name}: cannot be read; bm25 needs a corpus of {{doc_id, text}} lines") from fault
    return Bm25QueryEngine(Bm25Retriever(_index(path, state.st_mtime_ns, state.st_size), top_k), max_sentences)
