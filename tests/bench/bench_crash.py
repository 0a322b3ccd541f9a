"""kill -9 after every file that a night puts in place and at seeded random moments, each followed by a rerun.

    python -m tests.bench.bench_crash [MOMENTS=30] [SEED=7] [LANES=2]

Afterwards every stored file (SQLite's apart) and every ledger row is as after an undisturbed night, every verdict is
there, and the judge was asked again at most for the calls in flight. Prints one line a kill; ends with 1 otherwise.
About a minute of CPU for eight kills.
"""

import os
import random
import shutil
import signal
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from queue import SimpleQueue

from tests.support.disturbed_nights import NIGHT, WORKERS, differences, make, outcome, paid, provider
from tests.support.night_forks import Forks


def main(moments: int, seed: int, lanes: int) -> int:
    base = Path(tempfile.mkdtemp(prefix="ragbench-crash-"))
    idle: SimpleQueue[Forks] = SimpleQueue()
    with provider() as judge:
        first = make(base / "calm" / "ws", judge.base)
        servers = [Forks() for _ in range(lanes)]
        for number, server in enumerate(servers):  # each imports what a night needs
            code, said = server.run(first if number == 0 else make(base / f"warm{number}" / "ws", judge.base))
            assert code == NIGHT, said
            idle.put(server)
        calm, asked = outcome(first), paid(judge, first)
        print(
            f"undisturbed: {len(calm)} files and ledger rows, {asked.total()} calls, {len(asked)} prompts", flush=True
        )
        second = make(base / "again" / "ws", judge.base)
        begin = time.monotonic()
        servers[0].run(second, kill=0, seen=str(base / "places"))
        length = time.monotonic() - begin
        assert differences(second, calm) == []
        assert paid(judge, second) == asked
        places = (base / "places").read_text().splitlines()
        rng = random.Random(seed)
        kills: list[str | float] = [*places, *(rng.uniform(0.02, 1.0) * length for _ in range(moments))]
        print(f"{len(places)} places, {moments} moments of a night of {length:.1f} s, seed {seed}", flush=True)

        def disturbed(number: int, kill: str | float) -> tuple[bool, bool, int]:
            """(killed, as a calm night, calls paid again)"""
            server = idle.get()
            root = make(base / str(number) / "ws", judge.base)
            try:
                if isinstance(kill, str):
                    earlier = base / f"seen{number}"
                    earlier.write_text("".join(place + "\n" for place in places if place != kill))
                    code, _ = server.run(root, kill=signal.SIGKILL, seen=str(earlier))
                else:
                    started = server.start(root)
                    time.sleep(kill)
                    os.kill(started[0], signal.SIGKILL)  # not waited for yet, so the process id is still its own
                    code, _ = server.end(started)
                last, said = server.run(root)
            finally:
                idle.put(server)
            other, calls = differences(root, calm), paid(judge, root)
            again = calls.total() - len(calls)
            fine = last == NIGHT and not other and calls.keys() == asked.keys() and again <= WORKERS
            where = kill if isinstance(kill, str) else f"{kill:.2f} s"
            print(f"{number} {where}: {code}, then {last}; paid again {again}; other: {other[:5]}", flush=True)
            if not fine:
                print(said[-800:], flush=True)
            shutil.rmtree(root.parent)
            return code == -signal.SIGKILL, fine, again

        with ThreadPoolExecutor(lanes) as pool:
            ended = list(pool.map(disturbed, range(len(kills)), kills))
        for server in servers:
            server.close()
    shutil.rmtree(base)
    killed, bad, again = sum(e[0] for e in ended), sum(not e[1] for e in ended), [e[2] for e in ended]
    print(f"{len(kills)} nights, {killed} killed in time, {bad} with another outcome; "
          f"paid again: {sum(again)} calls, {max(again)} at most for one kill")  # fmt: skip
    return int(bad > 0)


if __name__ == "__main__":
    given = [int(value) for value in sys.argv[1:]]
    sys.exit(main(*given, *(30, 7, 2)[len(given) :]))
