"""`hostile_doctor.py build ROOT` makes many hostile workspaces; `... run ROOT` runs `ragbench doctor` on each of them in
one process, whose memory is then the product's alone, and prints what each took, as JSON lines.
"""

import contextlib
import gzip
import io
import json
import os
import resource
import sys
import time
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from ragbench_dagster import cli

GOOD = {"timestamp": "2026-11-20T10:00:00Z", "query": "is it open?", "response": "yes"}
LINE = json.dumps(GOOD).encode() + b"\n"


def parquet(**columns):
    buffer = io.BytesIO()
    rows = len(next(iter(columns.values())))
    table = pa.table({"timestamp": [GOOD["timestamp"]] * rows, **columns})
    pq.write_table(table, buffer, compression="zstd")
    return buffer.getvalue()


def pipe(path):
    os.mkfifo(path.with_suffix(".pipe"))
    path.symlink_to(path.with_suffix(".pipe"))


def endless(path):
    path.symlink_to("/dev/zero")


def itself(path):
    path.symlink_to(path)


LOG, SETTINGS = "logs/2026-11-20.jsonl", "ragbench.yaml"


def codes_of(what, file):
    """A link that leads nowhere is as good as no file, where a file may be missing."""
    return (0, 2) if what is itself and file in ("corpus.jsonl", "labels.jsonl") else (2,)


def cases():
    """name: (file, bytes or what makes it, exit codes)"""
    return {
        **{f"{what.__name__} as {file}": (file, what, codes_of(what, file)) for what in (pipe, endless, itself)
           for file in (SETTINGS, "corpus.jsonl", "labels.jsonl", "calibration/a.jsonl", ".key", "logs/b.jsonl")},
        "nested settings": (SETTINGS, b"[" * 20_000, (2,)),
        "binary settings": (SETTINGS, b"\xff\xfe\x00" * 100, (2,)),
        "settings of 2 MiB": (SETTINGS, b"#" * (2 << 20), (2,)),
        "nested line": (LOG, LINE + b"[" * 3_000 + b"\n", (0, 2)),
        "nested line of 8 MiB": (LOG, LINE + b"[" * (8 << 20) + b"\n", (0, 2)),
        "line of 70 MiB": (LOG, LINE + b"x" * (70 << 20), (0, 2)),
        "gzip of 200 MiB of zeros": (LOG + ".gz", gzip.compress(LINE + b"\0" * (200 << 20)), (0, 2)),
        "gzip of a million blank lines": (LOG + ".gz", gzip.compress(LINE + b"\n" * 1_000_000), (0, 2)),
        "cut gzip": (LOG + ".gz", gzip.compress(LINE * 50)[:-9], (0, 2)),
        "only NULs": (LOG, b"\0" * 1_000_000, (2,)),
        "CSV with an open quote": ("logs/a.csv", b'timestamp,query\n2026-11-20T10:00:00Z,"' + b"x\n" * 500_000, (0, 2)),
        "Parquet of 8 MiB rows": ("logs/a.parquet", parquet(query=["x" * (8 << 20)] * 64), (0, 2)),
        "Parquet of a long row": ("logs/a.parquet", parquet(query=["a", "x" * (20 << 20)]), (0, 2)),
        "Parquet of a huge page": ("logs/a.parquet", parquet(query=["a", "x" * (100 << 20)]), (0, 2)),
        "Parquet of a long list": ("logs/a.parquet", parquet(query=["a"], history=pa.array([[None] * 50_000_000], pa.list_(pa.string()))), (0, 2)),
        "Parquet without a footer": ("logs/a.parquet", b"PAR1" + b"x" * 5000, (0, 2)),
        "Parquet that is a lie": ("logs/a.parquet", b"nonsense", (0, 2)),
        "nested labels": ("labels.jsonl", b'{"query": ' + b"[" * 100_000, (2,)),
        "labels of numbers": ("labels.jsonl", b'{"query": "q", "expected_doc_ids": {"a": 1' + b"0" * 5000 + b"}}", (2,)),
        "labels of bytes": ("labels.jsonl", b"{\xff\xff\n", (2,)),
        "nested corpus": ("corpus.jsonl", b"[" * 100_000, (2,)),
        "nested calibration": ("calibration/a.jsonl", b'{"query": ' + b"[" * 100_000, (2,)),
        "a human label of 400 digits": ("calibration/a.jsonl", b'{"query": "q", "response": "r", "human": {"relevancy": ' + b"9" * 400 + b"}}", (2,)),
        "a weight of 400 digits": ("calibration/a.jsonl", b'{"query": "q", "response": "r", "sample": {"release": 1, "system": 1, "example_id": 1, "answer_hash": 1, "weight": ' + b"9" * 400 + b"}}", (2,)),
        "a ledger of garbage": ("store/ledger.db", b"x" * 9000, (0, 2)),
        "a key of garbage": (".key", b"garbage", (2,)),
        "facts of garbage": ("store/traffic/2026-11-20/facts.json", b"[" * 100_000, (0, 2)),
        "a release of garbage": ("store/releases/r1/manifest.json", b"{", (0, 2)),
    }  # fmt: skip


def build(root):
    index = []
    for number, (name, (file, content, codes)) in enumerate(cases().items()):
        place(root / str(number), file, content)
        index.append([name, codes])
    (root / "index.json").write_text(json.dumps(index))


def place(root, file, content):
    path = root / file
    for folder in ("logs", "calibration"):
        (root / folder).mkdir(parents=True)
    path.parent.mkdir(parents=True, exist_ok=True)
    if not file.startswith("logs/") or file == "logs/b.jsonl":
        (root / LOG).write_bytes(LINE)
    if callable(content):
        content(path)
    else:
        path.write_bytes(content)


def doctor(root):
    out, err = io.TextIOWrapper(io.BytesIO(), "utf-8"), io.StringIO()
    sys.argv = ["ragbench", "doctor", "--workspace", str(root)]
    begin, code = time.monotonic(), 0
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            cli.main()
        except SystemExit as end:
            code = end.code or 0
    return code, err.getvalue(), time.monotonic() - begin


def peak_mib():
    """This program's own peak. `ru_maxrss` would also hold what the process was before it started this program."""
    try:
        status = Path("/proc/self/status").read_text("ascii")
    except FileNotFoundError:  # no Linux
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 20
    return int(status.split("VmHWM:")[1].split()[0]) >> 10


def run(root):
    for number, (name, _) in enumerate(json.loads((root / "index.json").read_text())):
        code, err, seconds = doctor(root / str(number))
        print(json.dumps([name, code, err, round(seconds, 1), peak_mib()]), flush=True)


if __name__ == "__main__":
    {"build": build, "run": run}[sys.argv[1]](Path(sys.argv[2]))
