"""The database of all verdicts. A verdict is paid for once: it is committed here as soon as it exists.

`verdicts` holds what need not be asked again, one row a key, never rewritten. `failures` holds what a night could
not judge (status `error` or `over_budget`); the next run asks those again. SQLite in the store, or any SQLAlchemy
URL in `ledger:`. How a key is made belongs in `cache_key.py`.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from time import monotonic, sleep
from types import TracebackType
from typing import Any, TypeVar

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.exc import SQLAlchemyError

from ragbench_dagster.access import private_file
from ragbench_dagster.credentials import without_secrets
from ragbench_dagster.errors import UserError
from ragbench_dagster.evaluation import cache_key, disks
from ragbench_dagster.evaluation.checkpoint import Spool
from ragbench_dagster.evaluation.ledger_tables import COSTS, FAILURES, RUNS, SCHEMA, VERDICTS, Entry, row_of
from ragbench_dagster.masking import mask
from ragbench_dagster.metrics import PAIRWISE
from ragbench_dagster.records import Verdict
from ragbench_dagster.store import Workspace
from ragbench_dagster.text.format import notice

T = TypeVar("T")

__all__ = ["TRANSIENT", "Entry", "Ledger", "check_disk", "location"]

TRANSIENT = frozenset(("error", "over_budget"))  # asked again by the next run
PATIENCE_S = 60.0  # for a database that another process holds
_BUSY_S = 1.0  # of it at a time inside the driver
_OFFER_S = 5.0  # between two offers of what is kept beside the database
_TELL_S = 30.0
_BATCH = 500  # keys in one SELECT: SQLite takes 999 parameters at least

_VERDICT_FIELDS = (
    "status", "score", "passing", "feedback", "raw", "served_model", "fingerprint", "prompt_tokens",
    "completion_tokens", "cost_usd", "attempts", "latency_ms", "wait_ms",
)  # fmt: skip


def location(ws: Workspace) -> str:
    """The ledger's SQLAlchemy URL: `ledger:` of ragbench.yaml (a URL or a path), else SQLite in the store.

    It may hold a password: nothing of it is printed or stored (see `Ledger.name`).
    """
    named = ws.settings.ledger.reveal("ledger") if ws.settings.ledger else ""
    if "://" in named:
        return named
    path = (ws.root / named) if named else ws.store / "ledger.db"
    return f"sqlite:///{path}"


def _url(text: str) -> sa.URL:
    try:
        return sa.make_url(text)
    except (SQLAlchemyError, ValueError):  # the message quotes the URL, password and all
        raise UserError(
            "ledger: in ragbench.yaml is not an SQLAlchemy URL; write a path, or postgresql+psycopg://USER:${NAME}@HOST/DB"
        ) from None


def check_disk(ws: Workspace) -> str | None:
    """One line where the ledger would lie on a network file system, which corrupts SQLite's WAL; else None."""
    url = _url(location(ws))
    if not url.drivername.startswith("sqlite") or not url.database or url.database == ":memory:":
        return None
    kind = disks.file_system(Path(url.database))
    if not disks.is_network(kind):
        return None
    return (
        f"{url.database}: lies on a network file system ({kind}), where SQLite's WAL locks up or corrupts; "
        "set ledger: in ragbench.yaml to a path on a local disk or to a PostgreSQL URL"
    )


class Ledger:
    """All verdicts of a workspace, for one thread.

    Args:
        url: SQLAlchemy URL; `sqlite://` keeps everything in memory.
        spool: file for verdicts that the database does not take; default: beside a SQLite file.
        waiting: called at once and every 30 s with a line while another process holds the database.

    What an earlier process could not hand in is taken in first.

    Raises:
        UserError: it cannot be opened, read or written; the line says what to do.
    """

    def __init__(self, url: str, spool: Path | None = None, waiting: Callable[[str], None] = lambda line: None) -> None:
        self._url = _url(url)
        self._waiting = waiting
        is_sqlite = self._url.get_backend_name() == "sqlite"
        self.name = self._url.database if is_sqlite else without_secrets(self._url.render_as_string(hide_password=True))
        dialect = sqlite if is_sqlite else postgresql
        insert = dialect.insert(VERDICTS).on_conflict_do_nothing(index_elements=["key"])
        failed = dialect.insert(FAILURES)
        columns = [c.name for c in FAILURES.columns if not c.primary_key]
        self._upsert = failed.on_conflict_do_update(
            index_elements=["key", "day", "system"],
            # A failure that is asked again and fails again has cost both.
            set_={n: failed.excluded[n] for n in columns}
            | {"cost_usd": FAILURES.c.cost_usd + failed.excluded.cost_usd},
        )
        begun = dialect.insert(RUNS)
        self._begin = begun.on_conflict_do_update(
            index_elements=["name"], set_={n: begun.excluded[n] for n in ("before_usd", "other_usd", "done")}
        )
        self._driver_error: Any = SQLAlchemyError
        on_disk = Path(self._url.database) if is_sqlite and self._url.database not in (None, "", ":memory:") else None
        spool = spool or (Path(f"{on_disk}.spool") if on_disk else None)
        self._spool = Spool(spool) if spool else None
        self._tried = 0.0  # when the spool was last offered to the database
        try:
            if on_disk:
                private_file(on_disk)
            # Every statement here is a transaction of its own: no round trips for BEGIN and COMMIT. The driver waits
            # for a lock only shortly, for meanwhile nothing else happens in this thread; `_patient` waits for long.
            options: dict[str, Any] = {"connect_args": {"timeout": _BUSY_S}} if is_sqlite else {}
            self._engine = sa.create_engine(self._url, isolation_level="AUTOCOMMIT", **options)
            if is_sqlite:
                sa.event.listen(self._engine, "connect", _sqlite_pragmas)
            compiled = insert.compile(dialect=self._engine.dialect)
            self._insert, self._insert_names = str(compiled), getattr(compiled, "positiontup", None)
            self._driver_error = getattr(self._engine.dialect.dbapi, "Error", SQLAlchemyError)
        except (OSError, ImportError, SQLAlchemyError) as fault:
            raise self._explain(fault) from fault
        self._connection = self._patient(self._connected)
        self.settle()

    def _connected(self) -> sa.Connection:
        SCHEMA.create_all(self._engine)
        COSTS.create(self._engine, checkfirst=True)  # a ledger of before has the table without it
        return self._engine.connect()

    @classmethod
    def open(cls, ws: Workspace) -> Ledger:
        """The workspace's ledger; made where there is none."""
        line = check_disk(ws)
        if line:
            raise UserError(line)
        url = _url(location(ws))
        beside = url.get_backend_name() == "sqlite"
        return cls(location(ws), None if beside else ws.store / "ledger.spool", notice)

    def get(self, keys: Sequence[str]) -> dict[str, Verdict]:
        """The verdicts that exist under `keys`; `details["from_ledger"]` is set on each."""
        found: dict[str, Verdict] = {}
        for start in range(0, len(keys), _BATCH):
            for row in self._rows(_GET, {"keys": list(keys[start : start + _BATCH])}):
                found[row[0]] = _verdict(row[1:])
        return found

    def held(self, keys: Sequence[str]) -> set[str]:
        """Those of `keys` that need not be asked again."""
        found: set[str] = set()
        for start in range(0, len(keys), _BATCH):
            found.update(row[0] for row in self._rows(_HELD, {"keys": list(keys[start : start + _BATCH])}))
        return found

    def keep(self, entry: Entry, verdict: Verdict) -> None:
        """Commit one verdict, or one failure of a night; a verdict that is there already stays as it is."""
        transient = verdict.status in TRANSIENT
        self._hand_in("failures" if transient else "verdicts", row_of(entry, verdict, transient))

    def _hand_in(self, table: str, row: dict[str, Any]) -> None:
        """Commit a row, or keep it beside the ledger while another process holds that.

        Raises:
            UserError: the database takes nothing any more; the row is kept beside it where that can be written.
        """
        spool = self._spool
        waits = spool is not None and spool.added > 0 and monotonic() - self._tried < _OFFER_S
        fault: Exception | None = None
        if not waits:
            try:
                self._tried = monotonic()
                if spool is not None and spool.added:
                    spool.take_in(self._write)
                self._write(table, row)
                return
            except (SQLAlchemyError, self._driver_error) as raised:
                fault = raised
        if spool is None:
            assert fault is not None
            raise self._explain(fault) from fault
        try:
            spool.add(table, row)
        except OSError as second:
            raise self._explain(fault or second) from second
        if fault is not None and not _is_locked(fault):
            raise self._explain(fault) from fault

    def _write(self, table: str, row: dict[str, Any]) -> None:
        """Commit one row; a verdict that is there already stays as it is."""
        if table == "failures":
            self._connection.execute(self._upsert, row)
            return
        values: Any = tuple(map(row.__getitem__, self._insert_names)) if self._insert_names else row
        # A commit a verdict is on the path of every call: the driver itself takes a third of Core's time.
        driver: Any = self._connection.connection.driver_connection
        driver.cursor().execute(self._insert, values)

    def settle(self) -> None:
        """Have the database take what is kept beside it, and wait for that.

        Raises:
            UserError: another process holds it for good; what is kept stays for the next start.
        """
        if self._spool is not None and self._spool.path.exists():
            spool = self._spool
            self._patient(lambda: spool.take_in(self._write))

    def _patient(self, what: Callable[[], T]) -> T:
        """`what()`, tried again while another process holds the database.

        Raises:
            UserError: any other fault, or a minute is over.
        """
        begin, told = monotonic(), float("-inf")
        while True:
            try:
                return what()
            except (OSError, SQLAlchemyError, self._driver_error) as fault:
                now = monotonic()
                if not _is_locked(fault) or now - begin > PATIENCE_S:
                    raise self._explain(fault) from fault
                if now - told >= _TELL_S:
                    told = now
                    self._waiting(f"waiting for the ledger {self.name}: another process holds it")
                sleep(0.05)

    def failures(self, day: str, system: str) -> dict[str, Verdict]:
        """What the night `day` could not judge of `system`: key to verdict."""
        query = sa.select(FAILURES).where(FAILURES.c.day == day, FAILURES.c.system == system)
        return {
            row.key: Verdict(row.status, feedback=row.feedback, attempts=row.attempts, cost_usd=row.cost_usd)
            for row in self._rows(query, {})
        }

    def forget_failures(self, day: str, system: str, evaluators: Iterable[str]) -> None:
        """A night is judged anew: what it could not judge before says nothing any more, but that it was paid for."""
        stale = (FAILURES.c.day == day, FAILURES.c.system == system, FAILURES.c.evaluator.in_(list(evaluators)))
        paid = sa.select(sa.func.coalesce(sa.func.sum(FAILURES.c.cost_usd), 0.0)).where(*stale)
        self.add_cost(day, float(self._rows(paid, {})[0][0]))
        self._commit(sa.delete(FAILURES).where(*stale), {})

    def begin_run(self, name: str) -> float:
        """USD that the run `name` has spent already: 0 for a new one; one that was not finished goes on."""
        row = self._rows(sa.select(RUNS.c.before_usd, RUNS.c.other_usd, RUNS.c.done).where(RUNS.c.name == name), {})
        paid = self._paid(name)
        if row and not row[0].done:
            return max(0.0, paid - float(row[0].before_usd)) + float(row[0].other_usd)
        self._commit(self._begin, {"name": name, "before_usd": paid, "other_usd": 0.0, "done": False})
        return 0.0

    def add_cost(self, name: str, usd: float) -> None:
        """USD that the run `name` spent and no row says."""
        if usd:
            self._commit(sa.update(RUNS).where(RUNS.c.name == name).values(other_usd=RUNS.c.other_usd + usd), {})

    def finish_run(self, name: str) -> None:
        """The run is over, and the next one of this name begins at 0; one that its budget stopped is not."""
        judged = sa.exists().where(VERDICTS.c.key == FAILURES.c.key)
        stopped = sa.select(FAILURES.c.key).where(FAILURES.c.day == name, FAILURES.c.status == "over_budget", ~judged)
        if not self._rows(stopped.limit(1), {}):
            self._commit(sa.update(RUNS).where(RUNS.c.name == name).values(done=True), {})

    def _paid(self, name: str) -> float:
        total = 0.0
        for table in (VERDICTS, FAILURES):
            query = sa.select(sa.func.coalesce(sa.func.sum(table.c.cost_usd), 0.0))
            total += float(self._rows(query.where(table.c.day == name, table.c.cost_usd > 0), {})[0][0])
        return total

    def forget(self, example_ids: Sequence[str], keys: Sequence[str] = (), pairs: Sequence[str] = ()) -> int:
        """Remove every row that says something of a person (the law, design rule 3).

        Nothing of them stays in SQLite's free pages or log; PostgreSQL's VACUUM is its administrator's.

        Args:
            example_ids: all rows of these examples.
            keys: these verdicts.
            pairs: comparisons of answers to these examples.

        Returns:
            How many verdicts went.
        """
        gone = 0
        for some, table in [(k, t) for k in cache_key.batched(keys, _BATCH) for t in (VERDICTS, FAILURES)]:
            gone += self._remove(table, table.c.key.in_(some))
        for some, table in [(p, t) for p in cache_key.batched(pairs, _BATCH) for t in (VERDICTS, FAILURES)]:
            gone += self._remove(table, table.c.example_id.in_(some), table.c.evaluator == PAIRWISE)
        for some, table in [(e, t) for e in cache_key.batched(example_ids, _BATCH) for t in (VERDICTS, FAILURES)]:
            gone += self._remove(table, table.c.example_id.in_(some))
        if self._url.get_backend_name() == "sqlite":
            self._commit(sa.text("VACUUM"), {})
            self._commit(sa.text("PRAGMA wal_checkpoint(TRUNCATE)"), {})
        return gone

    def _remove(self, table: sa.Table, *which: Any) -> int:
        """Delete rows; what a run has spent on them stays spent. Returns how many verdicts went."""
        paid = sa.select(table.c.day, sa.func.sum(table.c.cost_usd)).where(*which, table.c.cost_usd > 0)
        rows: Any = self._rows(paid.group_by(table.c.day), {})
        for day, usd in rows:
            self.add_cost(day, float(usd))
        gone = self._commit(sa.delete(table).where(*which), {})
        return gone if table is VERDICTS else 0

    def count(self) -> int:
        """How many verdicts there are."""
        return int(self._rows(sa.select(sa.func.count()).select_from(VERDICTS), {})[0][0])

    def clear(self) -> None:
        """Empty the ledger: for one in memory."""
        self._commit(sa.delete(VERDICTS), {})
        self._commit(sa.delete(FAILURES), {})

    def usage(self, evaluator: str, judge: str) -> dict[str, float]:
        """Means over an evaluator's paid verdicts: n, prompt_tokens, completion_tokens, attempts, latency_ms."""
        v = VERDICTS.c
        names = ("prompt_tokens", "completion_tokens", "attempts", "latency_ms")
        query = sa.select(sa.func.count(), *(sa.func.avg(v[name]) for name in names))
        row = tuple(self._rows(query.where(v.evaluator == evaluator, v.judge == judge, v.attempts > 0), {})[0])
        return dict(zip(("n", *names), (float(value or 0) for value in row), strict=True))

    def close(self) -> None:
        self._connection.close()
        self._engine.dispose()

    def __enter__(self) -> Ledger:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, fault: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _rows(self, query: sa.Select[Any], values: dict[str, Any]) -> Sequence[sa.Row[Any]]:
        def read() -> Sequence[sa.Row[Any]]:
            rows = self._connection.execute(query, values).fetchall()
            self._connection.rollback()  # a reader that keeps its snapshot would not see others' commits
            return rows

        return self._patient(read)

    def _commit(self, statement: Any, values: dict[str, Any]) -> int:
        def write() -> int:
            try:
                result = self._connection.execute(statement, values)
                self._connection.commit()
                return int(result.rowcount)
            except SQLAlchemyError:
                self._connection.rollback()
                raise

        return self._patient(write)

    def _explain(self, fault: Exception) -> UserError:
        said = str(getattr(fault, "orig", None) or fault)
        line = mask(said.split("\n")[0])
        remedies = {
            "disk is full": "free some space and run again",
            "readonly": "make it writable",
            "unable to open": "make its folder writable",
            "not a database": "damaged; restore it, or delete it and pay again",
            "malformed": "damaged; restore it, or delete it and pay again",
            "locked": "another process holds it; wait for it and run again",
            "No module": "install the driver, e.g. ragbench-dagster[postgres]",
        }
        what = next((text for word, text in remedies.items() if word in said), "see ledger: in ragbench.yaml")
        kept = ""
        if self._spool is not None and self._spool.path.exists():
            kept = f"; verdicts in hand are kept in {self._spool.path.name} beside it, the next start takes them in"
        return UserError(f"ledger {self.name}: {line}; {what}{kept}")


def _is_locked(fault: BaseException) -> bool:
    said = str(getattr(fault, "orig", None) or fault)
    return "locked" in said or "busy" in said


_GET = sa.select(VERDICTS.c.key, *(VERDICTS.c[name] for name in _VERDICT_FIELDS), VERDICTS.c.details).where(
    VERDICTS.c.key.in_(sa.bindparam("keys", expanding=True))
)
_HELD = sa.select(VERDICTS.c.key).where(VERDICTS.c.key.in_(sa.bindparam("keys", expanding=True)))


def _verdict(row: Sequence[Any]) -> Verdict:
    details = {**json.loads(row[-1]), "from_ledger": True}
    return Verdict(**dict(zip(_VERDICT_FIELDS, row[:-1], strict=True)), details=details)


def _sqlite_pragmas(connection: Any, _record: Any) -> None:
    # WAL and NORMAL: a killed process loses nothing; a machine that loses power, at most the last commits.
    cursor = connection.cursor()
    cursor.execute("PRAGMA journal_mode=WAL")
    cursor.execute("PRAGMA synchronous=NORMAL")
    # A checkpoint waits for the disk, and every call in flight with it: every 64 MB instead of every 4.
    cursor.execute("PRAGMA wal_autocheckpoint=16000")
    cursor.execute("PRAGMA secure_delete=ON")  # what is forgotten leaves no bytes behind
    cursor.close()
