"""Deduplication against its targets, side by side with MinHash libraries on the same rows.

    python -m tests.bench.bench_dedupe [--rows 100000] [--peers] [--million]

Prints one JSON object. CPU seconds are of this process, one thread; memory is its peak.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import resource
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from ragbench_dagster.dataset.canonical import normalise
from ragbench_dagster.dataset.dedupe import stage_dedupe
from ragbench_dagster.dataset.phrases import read_list
from ragbench_dagster.settings import Dedupe
from tests.support.planted import Planted, code_pairs, plant, real_questions, strangers, swapped_pairs

SHARED = Path(os.environ.get("RAGBENCH_SHARED") or Path(__file__).resolve().parents[3] / "shared")


def ours(texts: list[str]) -> list[str]:
    rows = stage_dedupe(({"id": number, "query": text} for number, text in enumerate(texts)), Dedupe())
    return [row["cluster"] for row in rows]


def score(rows: list[Planted], clusters: list[str], is_word: Callable[[str], bool]) -> dict[str, Any]:
    """Recall per planted kind, and the share of real questions that lost their identity to another one."""
    home: dict[int, str] = {}
    for row, cluster in zip(rows, clusters, strict=True):
        if row.kind == "real":
            home[row.base] = cluster
    found: dict[str, list[bool]] = {}
    for row, cluster in zip(rows, clusters, strict=True):
        if row.kind != "real":
            right = cluster == home[row.base]
            found.setdefault(row.kind, []).append(right)
            if row.kind == "typo" and row.word_after != " " and not is_word(row.word_after):
                found.setdefault("typo, no word, digit or space", []).append(right)
    reals = [row.text for row in rows if row.kind == "real"]
    equal = len({normalise(text) for text in reals})
    return {
        "recall": {kind: round(sum(hits) / len(hits), 4) for kind, hits in sorted(found.items())},
        "real questions lost, %": round(100 * (equal - len(set(home.values()))) / len(reals), 3),
        "equal without politeness, %": round(100 * (len(reals) - equal) / len(reals), 3),
    }


def pairs_merged(pairs: list[tuple[str, str]]) -> int:
    """Pairs that become one cluster, each pair deduplicated on its own."""
    return sum(len(set(ours(list(pair)))) == 1 for pair in pairs)


def _tokens(text: str) -> set[str]:
    return set(re.findall(r"\w+", text.lower()))


def _union(count: int, edges: list[tuple[int, int]]) -> list[str]:
    parent = list(range(count))

    def find(i: int) -> int:
        while parent[i] != i:
            parent[i] = parent[parent[i]]
            i = parent[i]
        return i

    for a, b in edges:
        parent[find(a)] = find(b)
    return [str(find(i)) for i in range(count)]


def with_rensa(texts: list[str]) -> list[str]:
    """LSH by rensa, decided by exact Jaccard .7 of the words."""
    import rensa

    sets = [_tokens(text) for text in texts]
    hashes = []
    for words in sets:
        minhash = rensa.RMinHash(num_perm=128, seed=1)
        minhash.update(sorted(words))
        hashes.append(minhash)
    index = rensa.RMinHashLSH(threshold=0.7, num_perm=128, num_bands=16)
    edges = []
    for number, minhash in enumerate(hashes):
        edges += [(number, other) for other in index.query(minhash) if _jaccard(sets[number], sets[other]) >= 0.7]
        index.insert(number, minhash)
    return _union(len(texts), edges)


def with_datasketch(texts: list[str]) -> list[str]:
    """LSH by datasketch, decided by exact Jaccard .7 of the words."""
    from datasketch import MinHash, MinHashLSH

    sets = [_tokens(text) for text in texts]
    index = MinHashLSH(threshold=0.7, num_perm=128)
    edges = []
    hashes = MinHash.generator([[word.encode() for word in sorted(words)] for words in sets], num_perm=128, seed=1)
    for number, minhash in enumerate(hashes):
        edges += [(number, int(o)) for o in index.query(minhash) if _jaccard(sets[number], sets[int(o)]) >= 0.7]
        index.insert(str(number), minhash)
    return _union(len(texts), edges)


def _jaccard(one: set[str], other: set[str]) -> float:
    return len(one & other) / (len(one | other) or 1)


ENGINES = {"ragbench": ours, "rensa": with_rensa, "datasketch": with_datasketch}


def timed(engine: str, rows: int) -> dict[str, Any]:
    """One engine on the planted rows in a process of its own, so that memory and time are its own."""
    done = subprocess.run(
        [sys.executable, "-m", "tests.bench.bench_dedupe", "--engine", engine, "--rows", str(rows)],
        capture_output=True,
        check=True,
        text=True,
    )
    return json.loads(done.stdout)


def one_engine(engine: str, count: int) -> dict[str, Any]:
    from english_words import get_english_words_set

    questions = real_questions(SHARED)
    rows = plant(questions, count, (read_list("openings.txt"), read_list("closings.txt")))
    others = strangers(questions, 5000)
    texts = [row.text for row in rows]
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    start = time.process_time()
    clusters = ENGINES[engine](texts)
    spent = time.process_time() - start
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    words = get_english_words_set(["web2", "gcide"], lower=True)
    result = {
        "rows": len(rows),
        "cpu_s": round(spent, 2),
        "peak_mb": round(peak / 1024),
        "above_the_texts_mb": round((peak - before) / 1024),
        **score(rows, clusters, lambda word: word.replace("'", "") in words),
    }
    if engine == "ragbench":
        same = sum(normalise(row.text) == normalise(row.original) for row in others)
        result["recall"]["polite, another hand"] = round(same / len(others), 4)
        result["swapped pairs merged of 1000"] = pairs_merged(swapped_pairs())
        codes = code_pairs()
        result["one-edit code pairs merged, %"] = round(100 * pairs_merged(codes) / len(codes), 2)
    return result


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=100_000)
    parser.add_argument("--peers", action="store_true", help="rensa and datasketch too")
    parser.add_argument("--million", action="store_true", help="a million rows too")
    parser.add_argument("--engine", choices=sorted(ENGINES), help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.engine:
        print(json.dumps(one_engine(options.engine, options.rows)))
        return
    result = {"ragbench": timed("ragbench", options.rows)}
    if options.peers:
        result |= {engine: timed(engine, options.rows) for engine in ("rensa", "datasketch")}
    if options.million:
        result["ragbench, a million"] = timed("ragbench", 1_000_000)
    print(json.dumps(result, indent=1))


if __name__ == "__main__":
    main()
