"""Files of every kind that must not be believed, through a real command: a code, one line, little memory, no hang."""

import json
import subprocess
import sys
from pathlib import Path

MOST_MIB, MOST_S = 600, 60


def test_every_hostile_workspace_is_told_in_one_line(tmp_path):
    script = str(Path(__file__).parents[1] / "support" / "hostile_doctor.py")
    subprocess.run([sys.executable, script, "build", tmp_path], check=True, timeout=300)
    done = subprocess.run(
        [sys.executable, script, "run", tmp_path], capture_output=True, text=True, timeout=MOST_S * 10, check=False
    )
    rows = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("[")]
    index = json.loads((tmp_path / "index.json").read_text())
    assert [row[0] for row in rows] == [name for name, _ in index], done.stderr[-500:]
    assert len(rows) > 40
    wrong = []
    for (name, code, err, seconds, peak), (_, codes) in zip(rows, index, strict=True):
        lines = [line for line in err.splitlines() if line.startswith("ragbench: ")]
        told = len(lines) == (1 if code else 0) and "Traceback" not in err and "internal error" not in err
        if not (code in codes and told and seconds < MOST_S and peak < MOST_MIB):
            wrong.append((name, code, lines, seconds, peak))
    assert wrong == []
