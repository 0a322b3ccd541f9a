"""A process that forks one warm `ragbench` command after another, so that a disturbed night costs two seconds, not ten.

Started by `Forks`; reads one JSON object a line and answers with one. What disturbs a command is done by the fork to
itself, from outside of the product: the product has no hook for it.

    {"argv": [...], "said": FILE, "disturb": {...}}  -> {"pid": N}
    {"wait": N}                                      -> {"code": exit code, or -signal}
"""

import contextlib
import datetime
import importlib
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

# Imported once for all commands; some other modules of a night cannot be imported out of order.
WARM = frozenset(
    "alembic dagster dagster_shared grpc httpx jinja2 llama_index networkx numpy openai pandas phonenumbers"
    " presidio_analyzer pyarrow ragbench_dagster scipy spacy sqlalchemy".split()
)


class Forks:
    """The other side: starts commands and waits for them."""

    def __init__(self) -> None:
        command = [sys.executable, "-m", "tests.support.night_forks"]
        self._server = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def _ask(self, **what):
        self._server.stdin.write(json.dumps(what) + "\n")
        self._server.stdin.flush()
        return json.loads(self._server.stdout.readline())

    def start(self, root, *argv, job=False, **disturb):
        """Start `ragbench run`, or another command; (pid, file of what it prints)."""
        said = Path(tempfile.mkstemp(prefix="said-")[1])
        argv = argv or ("run", "--workspace", root, "--date", "2026-11-20")
        asked = {"argv": [str(a) for a in argv], "said": str(said), "disturb": disturb, "root": str(root), "job": job}
        asked["key"] = str(root.parent.name)
        return self._ask(**asked)["pid"], said

    def end(self, started):
        """(exit code or -signal, what it printed) of a command that was started."""
        pid, said = started
        code = self._ask(wait=pid)["code"]
        text = said.read_text("utf-8", "replace")
        said.unlink()
        return code, text

    def run(self, root, *argv, **disturb):
        return self.end(self.start(root, *argv, **disturb))

    def close(self) -> None:
        self._server.stdin.close()
        self._server.wait(30)


def serve() -> None:
    import ragbench_dagster.cli  # noqa: F401

    with tempfile.TemporaryDirectory() as folder:
        modules = Path(folder) / "modules"
        for line in sys.stdin:
            asked = json.loads(line)
            if "wait" in asked:
                answer = {"code": os.waitstatus_to_exitcode(os.waitpid(asked["wait"], 0)[1])}
                _warm(modules)
            else:
                pid = os.fork()
                if pid == 0:
                    _command(asked, modules)
                answer = {"pid": pid}
            print(json.dumps(answer), flush=True)


def _warm(modules: Path) -> None:
    """Import what the first command imported; none of it starts a thread."""
    with contextlib.suppress(FileNotFoundError, ValueError):
        names = json.loads(modules.read_text())
        for name in names:
            if name not in sys.modules and name.split(".")[0] in WARM:
                with contextlib.suppress(Exception):
                    importlib.import_module(name)


def _command(asked: dict, modules: Path) -> None:
    """In the fork: a command as from a shell; never returns."""
    os.setsid()
    out = os.open(asked["said"], os.O_WRONLY)
    for stream in (1, 2):
        os.dup2(out, stream)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    sys.stdin = open(0)  # noqa: SIM115 - for as long as the process lives
    os.environ["JUDGE_KEY"] = asked["key"]  # by which the provider knows whose call it is; no stored byte holds it
    code: object = 0
    try:
        disturb = asked["disturb"]
        _steady_latency()
        if "kill" in disturb:
            given = {name: disturb[name] for name in ("kill", "seen", "only") if name in disturb}
            _kill_where_not_yet(Path(asked["root"]), **given)
        if "log" in disturb:
            _change_log(Path(disturb["log"]), disturb["opening"], disturb["data"])
        if "clock" in disturb:
            _set_clock(disturb["clock"])
        if asked["job"]:
            code = _as_the_daemon(Path(asked["root"]))
        else:
            sys.argv = ["ragbench", *asked["argv"]]
            from ragbench_dagster.cli import main

            main()
    except SystemExit as leaving:
        code = leaving.code
    except BaseException:
        import traceback

        traceback.print_exc()
        code = 70
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        if not modules.exists():
            modules.write_text(json.dumps(sorted(sys.modules)))
        os._exit(code if isinstance(code, int) else 0)


def _steady_latency() -> None:
    """Every answer of an engine takes 1 ms: summary, leaderboard and report hold latencies, which differ by nature."""
    from ragbench_dagster.evaluation.systems.system import Clock

    Clock.latency_ms = property(lambda clock: 1.0)


def _kill_where_not_yet(root: Path, kill: int, seen: str, only: list[str] | None = None) -> None:
    """Send signal `kill` to this process after a file of the store is put in place, once a process; 0 only lists them.

    The file `seen` holds the places that had their turn; `only`: places that end so.
    """
    sent: list[str] = []

    def after(move):
        def moved(source, target, **more):
            result = move(source, target, **more)
            place = str(target).removeprefix(str(root))
            had = Path(seen).read_text().splitlines() if os.path.exists(seen) else []
            wanted = place.startswith("/store/") and "/cache/" not in place
            if wanted and place not in had and not sent and (only is None or place.endswith(tuple(only))):
                sent.extend([place] if kill else [])
                with open(seen, "a") as file:
                    file.write(place + "\n")
                os.kill(os.getpid(), kill)
            return result

        return moved

    os.replace, os.rename = after(os.replace), after(os.rename)


def _change_log(path: Path, opening: int, data: str | None) -> None:
    """At the `opening`th time that a log file is opened, before it is read: append `data`; None: cut it to half."""
    from ragbench_dagster.traffic.files import Source

    opens, count = Source.open, [0]

    def changed(self, file):
        stream = opens(self, file)
        count[0] += self.local(file).resolve() == path.resolve()
        if count[0] == opening and self.local(file).resolve() == path.resolve():
            count[0] += 1
            if data is None:
                os.truncate(path, path.stat().st_size // 2)
            elif data == "":
                os.truncate(path, 0)
            else:
                with open(path, "a") as log:
                    log.write(data)
        return stream

    Source.open = changed


def _set_clock(moment: str) -> None:
    """The machine's clock shows `moment` (ISO 8601 with a zone) from now on."""
    real = time.time
    shift = datetime.datetime.fromisoformat(moment).timestamp() - real()

    class Shifted(datetime.datetime):
        @classmethod
        def now(cls, tz=None):
            return datetime.datetime.fromtimestamp(real() + shift, tz)

    time.time = lambda: real() + shift
    import ragbench_dagster.orchestration.runs  # noqa: F401

    for name, module in list(sys.modules.items()):
        if name.startswith("ragbench_dagster") and getattr(module, "datetime", None) is datetime.datetime:
            module.datetime = Shifted
        if name.startswith("dagster"):  # which asks its clock through these two
            for asked in ("get_current_datetime", "get_current_timestamp"):
                if hasattr(module, asked):
                    now = (lambda: Shifted.now(datetime.UTC)) if asked.endswith("datetime") else time.time
                    setattr(module, asked, now)


def _as_the_daemon(root: Path) -> int:
    """What the daemon starts: the runs that the log-file sensor asks for, then the schedule's night."""
    import dagster as dg

    from ragbench_dagster.orchestration.build import build_definitions
    from ragbench_dagster.orchestration.instance import open_instance
    from ragbench_dagster.orchestration.resources import WorkspaceResource
    from ragbench_dagster.orchestration.runs import run_job
    from ragbench_dagster.orchestration.sensors import RANGE_END, RANGE_START
    from ragbench_dagster.store import Workspace

    instance = open_instance(Workspace.open(root))
    resource = WorkspaceResource(root=str(root))
    defs = build_definitions({"workspace": resource})
    sensor = defs.resolve_sensor_def("log_files")
    context = dg.build_sensor_context(instance, definitions=defs, resources={"workspace": resource})
    for asked in sensor.evaluate_tick(context).run_requests or []:
        days = (asked.tags.get(RANGE_START, asked.partition_key), asked.tags.get(RANGE_END, asked.partition_key))
        run_job(defs, instance, asked.job_name, days).require_success()
        print(f"the sensor's {asked.job_name} of {days[0]} to {days[1]} is done", flush=True)
    run_job(defs, instance, "nightly", ("2026-11-20", "2026-11-20")).require_success()
    return 0


if __name__ == "__main__":
    serve()
