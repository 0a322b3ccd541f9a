#!/usr/bin/env python3
"""Makes the sample workspace's logs, labels, calibration rows and scrubbing rows from `parts/`.

    python3 data/make_sample.py [--to DIR]

What people typed, what the assistant answered and how people judged it is written by hand in `parts/`. This
script adds what a log adds: time, repeats, typing habits, personal data (all made up, in reserved ranges),
conversations, re-delivered lines and broken ones. Standard library only; the same parts give the same bytes
(gzip: the same content, as zlib builds differ in how they compress).
"""

from __future__ import annotations

import argparse
import datetime as dt
import gzip
import hashlib
import json
import math
import random
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
FIRST_DAY, DAYS, SEED = dt.date(2026, 8, 15), 100, 20260815
WEEKDAY, WEEKEND, KEPT = 76, 46, 4  # requests a day, about; passages handed to the assistant's model
NEW_MODEL = dt.date(2026, 10, 5)  # the assistant was updated on this day
WORDS = re.compile(r"[a-z0-9_äöüßéèçñíóáú]+")
MARK = re.compile(r"\[\[([A-Z_]+)\|(.*?)\]\]")
SLOT = re.compile(r"\{(name|email|phone|card|iban|ssn|ip|address|url|secret|host|user|key|whsec)\}")
NEAR = {"a": "s", "e": "r", "i": "o", "o": "p", "t": "r", "n": "m", "s": "d", "r": "e", "l": "k", "u": "i"}
LETTERS = "ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz23456789"


def rows(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").split("\n") if line.strip()]


def dump(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


class Ranker:
    """BM25 over the corpus: what the imaginary assistant's search finds."""

    def __init__(self, corpus: dict[str, str]) -> None:
        self.bags = {i: Counter(WORDS.findall(f"{i.replace('-', ' ')} {t}".lower())) for i, t in corpus.items()}
        self.mean = sum(b.total() for b in self.bags.values()) / len(self.bags)
        self.seen = Counter(w for bag in self.bags.values() for w in bag)

    def scores(self, query: str) -> dict[str, float]:
        found: dict[str, float] = {}
        for word in WORDS.findall(query.lower()):
            weight = math.log(1 + (len(self.bags) - self.seen[word] + 0.5) / (self.seen[word] + 0.5))
            for doc, bag in self.bags.items():
                if n := bag[word]:
                    length = 0.25 + 0.75 * bag.total() / self.mean
                    found[doc] = found.get(doc, 0.0) + weight * n * 2.2 / (n + 1.2 * length)
        return found


class Sample:
    """Everything that is written by hand, and the one random generator that arranges it."""

    def __init__(self, parts: Path, corpus: Path) -> None:
        self.rng = random.Random(SEED)
        self.corpus = {row["doc_id"]: row["text"] for row in rows(corpus)}
        self.ranker = Ranker(self.corpus)
        self.values = json.loads((parts / "values.json").read_text(encoding="utf-8"))
        self.talk = json.loads((parts / "talk.json").read_text(encoding="utf-8"))
        files = sorted((parts / "questions").glob("*.jsonl"))
        self.questions = [{**row, "category": path.stem} for path in files for row in rows(path)]
        self.by_text = {row["q"]: row for row in self.questions}
        self.conversations = rows(parts / "conversations.jsonl")
        order = list(range(len(self.questions)))
        self.rng.shuffle(order)
        self.popularity = [1 / (place + 50) ** 0.6 for place in order]
        for i, row in enumerate(self.questions):
            self.popularity[i] *= 5.0 if row["q"] in self.talk["often"] else 1.0 if row["docs"] else 0.35
        self.count = 0

    def person(self) -> str:
        return f"{self.rng.choice(self.values['first'])} {self.rng.choice(self.values['last'])}"

    def filled(self, *texts: str) -> list[str]:
        """The texts with every slot filled; one value for one slot, as one person types."""
        name = self.person()
        made: dict[str, str] = {}

        def value(match: re.Match[str]) -> str:
            slot = match[1]
            if slot not in made:
                if slot == "name":
                    made[slot] = name if self.rng.random() < 0.7 else name.lower()
                elif slot in ("email", "user"):
                    user = name.lower().replace(" ", self.rng.choice("._")) + self.rng.choice(["", "", "7", "88"])
                    made[slot] = user if slot == "user" else f"{user}@{self.rng.choice(self.values['mail_host'])}"
                elif slot in ("key", "whsec"):
                    start = "whsec_" if slot == "whsec" else self.rng.choice(["twk_live_", "twk_test_"])
                    made[slot] = start + "".join(self.rng.choices(LETTERS, k=24))
                else:
                    made[slot] = self.rng.choice(self.values[slot])
            return made[slot]

        return [SLOT.sub(value, text) for text in texts]

    def typo(self, text: str) -> str:
        """One slip in one word of five letters or more; digits and codes are left alone."""
        words = list(re.finditer(r"(?<![\w/{>.-])[a-z]{5,}(?![\w}/.-])", text))
        if not words:
            return text
        word = self.rng.choice(words)
        i = word.start() + self.rng.randrange(1, len(word[0]) - 1)
        before, here, after = text[:i], text[i], text[i + 1 :]
        slips = (after, here + here + after, after[0] + here + after[1:], NEAR.get(here, "e") + after)
        return before + self.rng.choice(slips)

    def typed(self, text: str) -> str:
        """The question as somebody types it this time."""
        roll, pick = self.rng.random(), self.rng.choice
        if roll < 0.52:
            return text
        if roll < 0.62:
            loud = text if SLOT.search(text) or len(text) > 40 else text.upper()
            return pick([text.lower(), text[:1].upper() + text[1:], loud])
        if roll < 0.72:
            bare = text.rstrip("?! ")
            ends = ("", "?", "??", " ?", "...")
            return pick([*(bare + end for end in ends), "  " + text, text.replace(" ", "  ", 1)])
        if roll < 0.83:
            return self.typo(text)
        if roll < 0.94:
            return pick(
                [pick(self.talk["greetings"] + self.talk["politeness"]) + text, text + pick(self.talk["closings"])]
            )
        return text if SLOT.search(text) else pick(self.talk["personal"]).replace("{q}", text)

    def nodes(self, question: dict[str, Any], missed: bool) -> list[dict[str, Any]]:
        """Retrieved passages, the best with text; `missed` leaves out the right ones, as a search sometimes does."""
        found = self.ranker.scores(question["q"])
        for doc in question["docs"]:
            found[doc] = max(found.values(), default=4.0) * self.rng.uniform(0.8, 1.3)
        if missed:
            found = {doc: score for doc, score in found.items() if doc not in question["docs"]}
        for doc in ("getting-started", "support", "errors-format", "plans-overview"):
            found.setdefault(doc, 0.2 + len(doc) / 100)
        best = sorted(found.items(), key=lambda item: (-item[1], item[0]))[:10]
        made: list[dict[str, Any]] = [{"node_id": doc, "score": round(s / (s + 6), 4)} for doc, s in best]
        return [{**node, "text": self.corpus[node["node_id"]]} for node in made[:KEPT]] + made[KEPT:]

    def answer(self, question: dict[str, Any], day: dt.date, missed: bool) -> str:
        """Mostly right; wrong or refused where the search missed, and now and then anyway."""
        roll, newer = self.rng.random(), day >= NEW_MODEL
        if missed or roll < (0.02 if newer else 0.035):
            if "bad" in question and roll < 0.5:
                return question["bad"]
            return self.rng.choice(self.talk["refusals"])
        if "bad" in question and roll < (0.14 if newer else 0.2):
            return question["bad"]
        if roll > 0.95:
            return self.rng.choice(self.talk["openings"]) + question["ans"]
        return question["ans"] + (self.rng.choice(self.talk["endings"]) if roll > 0.91 else "")

    def request(self, question: dict[str, Any], time: dt.datetime, user: str, **more: Any) -> dict[str, Any]:
        self.count += 1
        missed = bool(question["docs"]) and self.rng.random() < 0.06
        text = question["q"] if "history" in more else self.typed(question["q"])
        query, answer = self.filled(text, self.answer(question, time.date(), missed))
        row = {
            "timestamp": time.isoformat(timespec="milliseconds").replace("+00:00", "Z"),
            "request_id": "req_" + hashlib.sha256(f"{SEED}:{self.count}".encode()).hexdigest()[:16],
            "query": query,
            "response": answer,
            "source_nodes": self.nodes(question, missed),
            "latency_ms": round(min(28000.0, self.rng.lognormvariate(math.log(870), 0.45)) + 40 * len(answer) / 10),
            "category": question["category"],
            "model": "heron-2026-10-01" if time.date() >= NEW_MODEL else "heron-2026-06-12",
            **more,
        }
        if self.rng.random() < 0.93:
            row["user_id"] = user
        return row

    def day(self, day: dt.date) -> list[dict[str, Any]]:
        """One day's requests in the order of their time."""
        mean = WEEKEND if day.weekday() >= 5 else WEEKDAY
        made: list[dict[str, Any]] = []
        for _ in range(round(mean * self.rng.uniform(0.85, 1.15))):
            hour = min(23, max(0, int(self.rng.gauss(13.5, 4))))
            time = dt.datetime(day.year, day.month, day.day, hour, tzinfo=dt.UTC)
            time += dt.timedelta(milliseconds=self.rng.randrange(3_600_000))
            user = f"u{1000 + int(self.rng.paretovariate(0.9) * 7) % 900}"
            if self.rng.random() < 0.035:
                made += self.conversation(time, user)
            else:
                made.append(self.request(self.rng.choices(self.questions, self.popularity)[0], time, user))
        return sorted(made, key=lambda row: (row["timestamp"], row["request_id"]))

    def conversation(self, time: dt.datetime, user: str) -> Iterator[dict[str, Any]]:
        """A question and its follow-ups; some loggers keep the history, some only the conversation's id."""
        talk = self.rng.choice(self.conversations)
        first = self.by_text[talk["first"]]
        key = "conv_" + hashlib.sha256(f"{SEED}:c{self.count}".encode()).hexdigest()[:12]
        keeps = self.rng.random() < 0.7
        history: list[str] = []
        for turn in [first, *talk["turns"]]:
            more: dict[str, Any] = {"conversation_id": key}
            if history:
                more["history"] = list(history) if keeps else []
            row = self.request({"category": first["category"], **turn}, time, user, **more)
            history += [row["query"], row["response"]]
            yield row
            time += dt.timedelta(seconds=self.rng.randrange(15, 120))

    def broken(self, good: dict[str, Any]) -> bytes:
        """A line as a crashed logger, a bad deployment or a wrong pipe leaves it."""
        line = dump(good).encode()
        bad_utf8 = line.replace(b'"response": "', b'"response": "\xc3\x28', 1)
        others: list[Any] = [{k: v for k, v in good.items() if k != "query"}, {**good, "timestamp": "2026-13-41 25:61"}]
        others += [{**good, "query": ["how", "much"]}, [good["query"], good["response"]]]
        kinds = [line[: len(line) // 3], bad_utf8, b"Traceback (most recent call last):"]
        kinds += [dump(other).encode() for other in others]
        return self.rng.choice(kinds)

    def logs(self) -> Iterator[tuple[str, bytes]]:
        """Name and content of each day's file."""
        late: list[bytes] = []
        for number in range(DAYS):
            day = FIRST_DAY + dt.timedelta(days=number)
            lines, late = late, []
            for row in self.day(day):
                lines.append(dump(row).encode())
                roll = self.rng.random()
                if roll < 0.008:  # delivered twice
                    lines.append(lines[-1])
                elif roll < 0.010:  # and once more, the next day
                    late.append(lines[-1])
                elif roll < 0.0135:
                    lines.append(self.broken(row))
            yield f"{day}.jsonl.gz", b"\n".join(lines) + b"\n"

    def labels(self) -> Iterator[dict[str, Any]]:
        for row in self.questions:
            if "ref" in row:
                label = {"query": self.filled(row["q"])[0], "expected_doc_ids": row["docs"]}
                yield {**label, "expected_answer": row["ref"], "category": row["category"]}

    def calibration(self, path: Path) -> Iterator[dict[str, Any]]:
        """Parts name a question and judge an answer: f(aithfulness), v (relevancy), c(orrectness)."""
        names = {"f": "faithfulness", "v": "relevancy", "c": "correctness"}
        for number, row in enumerate(rows(path), 1):
            question = self.by_text[row["q"]]
            yield {
                "id": f"cal-{number:03d}",
                "query": self.filled(question["q"])[0],
                "contexts": [self.corpus[doc] for doc in row.get("docs", question["docs"])],
                "response": row["r"],
                "reference": question["ref"],
                "human": {names[key]: row[key] for key in names if key in row},
            }


def marked(line: str) -> dict[str, Any]:
    """`mail me at [[EMAIL_ADDRESS|a@example.com]]` as text and spans."""
    text, spans, at = "", [], 0
    line = line.replace("\\n", "\n")
    for match in MARK.finditer(line):
        text += line[at : match.start()]
        spans.append({"start": len(text), "end": len(text) + len(match[2]), "type": match[1]})
        text, at = text + match[2], match.end()
    return {"text": text + line[at:], "spans": spans}


def write(path: Path, found: Iterator[dict[str, Any]]) -> None:
    path.write_bytes("".join(dump(row) + "\n" for row in found).encode())


def main() -> None:
    parser = argparse.ArgumentParser(description="Make the sample workspace's data from parts/.")
    parser.add_argument("--to", type=Path, default=HERE, help="folder to write into (default: this one)")
    to: Path = parser.parse_args().to
    parts = HERE / "parts"
    sample = Sample(parts, HERE / "corpus.jsonl")
    for folder in ("logs", "calibration"):
        (to / folder).mkdir(parents=True, exist_ok=True)
    for name, content in sample.logs():
        (to / "logs" / name).write_bytes(gzip.compress(content, 9, mtime=0))
    write(to / "labels.jsonl", sample.labels())
    write(to / "calibration" / "answers.jsonl", sample.calibration(parts / "calibration.jsonl"))
    lines = (parts / "scrub.txt").read_text(encoding="utf-8").split("\n")
    write(to / "scrub_labels.jsonl", (marked(line) for line in lines if line and not line.startswith("#")))


if __name__ == "__main__":
    main()
