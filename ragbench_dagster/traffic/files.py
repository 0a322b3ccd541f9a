"""Which log files there are: a folder of the workspace, or an fsspec URL. What they hold belongs to `logs`.

A path may name a person (`logs/ana.lopez@example.org.jsonl`): `LogFile.path` stays in memory, and `name`, its
scrubbed form, is what may be stored or printed.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import date
from functools import cached_property
from ipaddress import ip_address
from itertools import pairwise
from pathlib import Path
from typing import IO, Any

from ragbench_dagster.errors import UserError
from ragbench_dagster.io.inputs import open_regular
from ragbench_dagster.store import Workspace
from ragbench_dagster.traffic.log_format import log_format
from ragbench_dagster.traffic.scrubbing.recognisers.names.lexicon import (
    COMMON,
    FIRST,
    KNOWN,
    LAST,
    NAME,
    ORDINARY,
    PRODUCT,
    STOP,
    lexicon,
)
from ragbench_dagster.traffic.scrubbing.spans import PLACEHOLDER
from ragbench_dagster.traffic.timestamps import day_number

# What a file's or a folder's name may say when it is stored or printed.
#
# A name has no sentence around it: `5551234567.jsonl` is a phone number without a word beside it, `maria.fernandez`
# has no capital. So here it is the other way round than in a text: dates, short numbers, ordinary words and versions
# stay, and what else could point at somebody is replaced.

# 2026-11-20, 20261120, 2026/11/20, and in one piece with an hour, minute and second: 20261120140509.
_DAY = re.compile(
    r"(?<!\d)(20\d\d)([-_/.]?)(0[1-9]|1[0-2])\2(0[1-9]|[12]\d|3[01])(?:(?:[01]\d|2[0-3])(?:[0-5]\d){0,2})?(?!\d)"
)
_TIME = re.compile(r"[-_/.]?(?:[01]\d|2[0-3])(?:[-_.]?[0-5]\d){0,2}")  # behind a day, and nothing behind it
_WORDS = frozenset(
    "log logs request requests query queries question questions traffic part parts date day month year hour daily hourly "
    "weekly monthly prod production staging stage dev test observations traces spans export exports rag search chat app "
    "api web all data stream events archive north south east west central host server worker shard batch empty json "
    "jsonl ndjson csv tsv parquet gz zst txt answers answer calibration labels label judged human graded sample backup "
    "january february march april may june july august september october november december snappy zstd utf old new raw clean node pod region zone eu us uk de fr es it".split()
)
_HARMLESS_NUMBER = 6  # digits in a row that count shards, hours and ports, and nobody
# One number, whatever stands between its digits: cards, phones and social security numbers are written in groups.
_NUMBER = re.compile(r"\+?\(?\d(?:[\d ()+._/-]*\d)?")
_OCTETS = re.compile(r"(?<!\d)(\d{1,3})[._-](\d{1,3})[._-](\d{1,3})[._-](\d{1,3})(?!\d)")
_COLONS = re.compile(r"(?<![0-9a-z])[0-9a-f:]*:[0-9a-f:]+(?![0-9a-z])", re.IGNORECASE)
_TOKEN = re.compile(r"[^\W_]+(?:'[^\W_]+)?")
_RANDOM = 8  # letters and digits mixed from which on a token is a key and not a version
_CAMEL = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])|[^A-Za-z]+")


def is_harmless(path: str) -> bool:
    """True of names made of dates, short numbers, pairs of letters and words of the trade: nothing has to be loaded."""
    if re.search(r"[^\w./=-]", path) or _without_numbers(path) != path:
        return False
    rest = re.sub(r"\bT\d{4,6}Z?\b", " ", _DAY.sub(" ", path))  # 20261120T140509Z
    tokens = re.findall(r"[^\W\d_]+|\d+", rest)
    return all(token.isdigit() or len(token) <= 2 or token.casefold() in _WORDS for token in tokens) and not any(
        _is_random(token) for token in _TOKEN.findall(rest)
    )


def plain_name(path: str, plain: Callable[[str], str]) -> str:
    """`path` with placeholders in place of what may point at a person, a key or a machine.

    Args:
        path: with `/` between folders.
        plain: `Scrubber.plain`, which knows addresses, cards and keys by their form.
    """
    if is_harmless(path):
        return path
    done = "/".join(plain(part) for part in path.split("/"))
    done = _outside(done, PLACEHOLDER, _without_numbers)
    return _outside(done, PLACEHOLDER, _without_words)


def _outside(text: str, kept: re.Pattern[str], change: Callable[[str], str]) -> str:
    """`change` done to what lies between the matches of `kept`."""
    out, at = [], 0
    for match in kept.finditer(text):
        out += [change(text[at : match.start()]), match[0]]
        at = match.end()
    return "".join([*out, change(text[at:])])


def _without_numbers(text: str) -> str:
    text = _COLONS.sub(lambda m: "<IP_ADDRESS>" if _is_address(m[0]) else m[0], text)
    return _outside(text, PLACEHOLDER, lambda rest: _NUMBER.sub(lambda m: _number(m[0]), rest))


def _number(text: str) -> str:
    """A run of digits and what may stand between them: days stay, with a time behind the last; the rest if short."""
    days = [m for m in _DAY.finditer(text) if _is_day(m)]
    if days and _TIME.fullmatch(text[days[-1].end() :]):
        return _short(text[: days[0].start()]) + text[days[0].start() :] if len(days) == 1 else text
    out, at = [], 0
    for day in days:
        out += [_short(text[at : day.start()]), day[0]]
        at = day.end()
    return "".join([*out, _short(text[at:])])


def _short(text: str) -> str:
    if not any(c.isdigit() for c in text):
        return text
    first, last = re.search(r"[+(\d]", text), re.search(r"\d(?=\D*$)", text)
    assert first is not None
    assert last is not None
    number = text[first.start() : last.end()]
    octets = _OCTETS.search(number)
    kind = ""
    if octets is not None and all(int(n) < 256 for n in octets.groups()):
        kind = "<IP_ADDRESS>"
    elif _digits(number) > _HARMLESS_NUMBER:
        kind = "<NUMBER>"
    return text[: first.start()] + (kind or number) + text[last.end() :]


def _digits(text: str) -> int:
    return sum(c.isdigit() for c in text)


def _is_address(text: str) -> bool:
    try:
        ip_address(text)
    except ValueError:
        return False
    return True


def _without_words(text: str) -> str:
    dates = [m.span() for m in _DAY.finditer(text) if _is_day(m)]
    tokens = [m for m in _TOKEN.finditer(text) if not any(a < m.end() and m.start() < b for a, b in dates)]
    names = {i for i, token in enumerate(tokens) if _is_name(token[0])}
    for i, (one, two) in enumerate(pairwise(tokens)):
        if two.start() - one.end() == 1 and _are_a_person(one[0], two[0]):
            names |= {i, i + 1}
    out, at = [], 0
    for i, token in enumerate(tokens):
        kind = "ID" if _is_random(token[0]) else "NAME" if i in names else ""
        if kind:
            out += [text[at : token.start()], f"<{kind}>"]
            at = token.end()
    return "".join([*out, text[at:]])


def _is_day(match: re.Match[str]) -> bool:
    try:
        date(int(match[1]), int(match[3]), int(match[4]))
    except ValueError:
        return False
    return True


def _is_random(token: str) -> bool:
    """A key of a session, a hash, an id: letters and digits mixed, and long."""
    digits = _digits(token)
    if len(token) < _RANDOM:
        return False
    pieces = _CAMEL.findall(token)
    # mariaFernandezDaily is made of words; eyJhbGciOi is made of nothing.
    return (digits >= 2 and len(token) - digits >= 2) or (len(pieces) >= 4 and len(token) < 3 * len(pieces))


def _is_name(token: str) -> bool:
    """A given or family name that is no ordinary word; also `fernandezm`, `mfernandez`, `mariaFernandez`, `maria2`."""
    word = token.strip("0123456789")
    folded = word.casefold()
    if len(word) < 3 or folded in _WORDS:
        return False
    parts = [p for p in _CAMEL.findall(word) if len(p) > 1]
    if len(parts) > 1 and any(_is_name(p) for p in parts if p != word):
        return True
    bits = lexicon().flags(folded)
    if bits & COMMON:
        return True
    if bits & (ORDINARY | PRODUCT | STOP):
        return False
    if bits & NAME:
        return True
    return not bits & KNOWN and _is_joined(folded)


def _is_joined(word: str) -> bool:
    """A given and a family name, or an initial and a family name, written as one word."""
    flags = lexicon().flags
    if len(word) >= 6 and (flags(word[1:]) & LAST or flags(word[:-1]) & LAST):
        return True
    return any(
        (flags(word[:i]) & FIRST and flags(word[i:]) & LAST) or (flags(word[:i]) & LAST and flags(word[i:]) & FIRST)
        for i in range(3, len(word) - 2)
    )


def _are_a_person(one: str, two: str) -> bool:
    """Two words that are names of a person together, although each is an everyday word too: `will.smith`."""
    if one.casefold() in _WORDS or two.casefold() in _WORDS or min(len(one), len(two)) < 3:
        return False
    first, last = lexicon().flags(one), lexicon().flags(two)
    return bool((first & FIRST and last & LAST) or (first & LAST and last & FIRST))


# Which log files there are: a folder of the workspace, or an fsspec URL. What they hold belongs to `logs`.

LFS_POINTER = b"version https://git-lfs.github.com/spec/v1"
# 2026-11-20, 20261120, 2026/11/20, year=2026/month=11/day=20; an hour may follow directly (2026112014)
_DATE = re.compile(
    r"(?<!\d)(20\d\d)[-_/.]?(?:[a-z]+=)?(0[1-9]|1[0-2])[-_/.]?(?:[a-z]+=)?(0[1-9]|[12]\d|3[01])"
    r"(?=\D|$|(?:\d\d){1,3}(?!\d))"
)
# What a remote store says of a file when its content changes.
_MARKS = ("size", "ETag", "etag", "md5Hash", "content_md5", "generation", "LastModified", "last_modified",
          "mtime", "updated", "created")  # fmt: skip


@dataclass(frozen=True)
class LogFile:
    """One log file."""

    path: str = field(repr=False)  # below the source; may name a person
    name: str  # its scrubbed form, unique
    key: str  # keyed hash of the path
    size: int  # bytes
    signature: str  # changes when the content does
    date: int | None  # the day its name speaks of, days since 1970


class Source:
    """`traffic.source`: lists and opens log files."""

    def __init__(self, ws: Workspace) -> None:
        self._ws = ws
        self._traffic = ws.settings.traffic
        self._where = self._traffic.source.reveal("traffic.source")
        self.remote = "://" in self._where
        self.ignored = 0  # files of the last listing that are of no known kind

    def files(self, plain: Callable[[str], str], known: dict[str, str] | None = None) -> list[LogFile]:
        """The log files, sorted by path; hidden and unknown kinds are left out.

        Args:
            plain: scrubs a name.
            known: names scrubbed before, by key.

        Raises:
            UserError: no such folder, or it cannot be listed.
        """
        found, known, self.ignored = [], known or {}, 0
        for path, size, signature in sorted(self._remote_list() if self.remote else self._local_list()):
            key = self._ws.keyed(f"file\0{path}")
            name = known.get(key) or self._name(path, key, plain)
            found.append(LogFile(path, name, key, size, signature, date_in(path)))
        return found

    def open(self, file: LogFile) -> IO[bytes]:
        """The file's bytes.

        Raises:
            UserError: it cannot be read, or is a Git LFS pointer.
        """
        try:
            stream: IO[bytes] = (
                self._fs.open(self._join(file.path), "rb") if self.remote else open_regular(self.local(file))
            )
            start = stream.read(len(LFS_POINTER))
            stream.seek(0)
        except UserError:
            raise
        except OSError as fault:
            raise UserError(f"{file.name}: cannot be read ({fault.strerror or 'I/O error'}); check it") from fault
        except Exception as fault:  # whatever a storage client raises
            raise UserError(f"{file.name}: cannot be read ({type(fault).__name__}); check access") from fault
        if start == LFS_POINTER:
            stream.close()
            raise UserError(f"{file.name}: this is a Git LFS pointer, run git lfs pull")
        return stream

    def local(self, file: LogFile) -> Path:
        return self._root / file.path if self._root.is_dir() else self._root

    @cached_property
    def _root(self) -> Path:
        return self._ws.root / Path(self._where).expanduser()

    def _local_list(self) -> Iterator[tuple[str, int, str]]:
        root = self._root
        if root.is_file():
            yield self._local_entry(root, root.name)
            return
        if not root.is_dir():
            raise UserError(f"{self._traffic.source}: no such folder; put the logs there or set traffic.source")
        for folder, folders, names in os.walk(root, onerror=self._unlistable):
            folders[:] = sorted(f for f in folders if not f.startswith((".", "_")))
            for name in names:
                path = os.path.join(folder, name)
                relative = os.path.relpath(path, root).replace(os.sep, "/")
                # A pipe or socket would block whoever opens it; a broken link is told when it is read.
                if self._is_log(relative) and (os.path.isfile(path) or os.path.islink(path)):
                    yield self._local_entry(Path(path), relative)

    def _local_entry(self, path: Path, relative: str) -> tuple[str, int, str]:
        try:
            stat = path.stat()
        except OSError as fault:
            raise UserError(
                f"{self._traffic.source}: a log file cannot be read ({fault.strerror}); check it"
            ) from fault
        # The change time catches a rewrite that kept size and modification time.
        return relative, stat.st_size, f"{stat.st_size}:{stat.st_mtime_ns}:{stat.st_ctime_ns}"

    def _unlistable(self, fault: OSError) -> None:
        raise UserError(f"{self._traffic.source}: cannot be listed ({fault.strerror}); check its permissions")

    @cached_property
    def _opened(self) -> tuple[Any, str]:
        import fsspec

        try:
            fs, root = fsspec.core.url_to_fs(self._where)
        except ImportError as fault:
            raise UserError(
                "traffic.source: its storage needs a package: pip install 'ragbench-dagster[s3]'"
            ) from fault
        except Exception as fault:
            raise UserError(f"traffic.source: no such storage ({type(fault).__name__}); check the URL") from fault
        return fs, str(root)

    @property
    def _fs(self) -> Any:
        return self._opened[0]

    def _join(self, path: str) -> str:
        root = self._opened[1]
        return root if root.rsplit("/", 1)[-1] == path else f"{root.rstrip('/')}/{path}"

    def _remote_list(self) -> Iterator[tuple[str, int, str]]:
        fs, root = self._opened
        try:
            fs.invalidate_cache()
            listed = fs.find(root, detail=True)
        except FileNotFoundError:
            listed = {}
        except Exception as fault:
            raise UserError(f"traffic.source: cannot be listed ({type(fault).__name__}); check access") from fault
        for full, info in listed.items():
            relative = full[len(root) :].lstrip("/") or full.rsplit("/", 1)[-1]
            if self._is_log(relative):
                marks = [f"{m}={info[m]}" for m in _MARKS if info.get(m) is not None]
                yield relative, int(info.get("size") or 0), "|".join(marks)

    def _is_log(self, relative: str) -> bool:
        parts = relative.lower().split("/")
        if any(p.startswith((".", "_")) for p in parts):
            return False
        form = log_format(self._traffic.format)
        if form.skipped.intersection(parts[:-1]):
            return False
        if parts[-1].removesuffix(".gz").endswith(form.suffixes):
            return True
        self.ignored += 1
        return False

    def _name(self, path: str, key: str, plain: Callable[[str], str]) -> str:
        if is_harmless(path):
            return path
        scrubbed = plain_name(path, plain)
        # Two people's files must not become one name.
        return path if scrubbed == path else f"{scrubbed}~{key[:8]}"


def date_in(path: str) -> int | None:
    """The last date in a path, as days since 1970."""
    for year, month, day in reversed(_DATE.findall(path)):
        try:
            return day_number(date(int(year), int(month), int(day)))
        except ValueError:
            continue
    return None
