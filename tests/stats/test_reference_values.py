"""Published and measured reference values: another implementation's figures, never our own output."""

import json

import numpy as np
import pytest

from ragbench_dagster.calibration.agreement import stage_agreement
from ragbench_dagster.stats import agreement_tables, correction
from ragbench_dagster.stats.agreement_tables import Table
from ragbench_dagster.stats.intervals import wilson
from ragbench_dagster.stats.paired import mcnemar, tango
from ragbench_dagster.stats.power import detectable_loss, holm, pairs_to_pass
from ragbench_dagster.stats.preference import davidson


def rows_of(shared, name):
    text = (shared / "data" / name / "rows.jsonl").read_text(encoding="utf-8")
    return [json.loads(line) for line in text.split("\n") if line.strip()]


@pytest.mark.parametrize(
    ("passing", "n", "low", "high"),
    [(349, 426, 0.779906, 0.852886), (0, 50, 0.0, 0.0713476), (194, 200, 0.936106, 0.986180)],
)
def test_wilson(passing, n, low, high):
    assert wilson(passing, n) == pytest.approx((low, high), abs=5e-7)


@pytest.mark.parametrize(
    ("gains", "losses", "n", "low", "high"),
    [
        (40, 20, 160, 0.030865, 0.218064),
        (1, 7, 21, -0.517232, -0.026003),
        (6, 16, 161, -0.124023, -0.005433),
        (44, 48, 763, -0.030326753, 0.019710435),
    ],
)
def test_tango_score_interval(gains, losses, n, low, high):
    assert tango(gains, losses, n) == pytest.approx((low, high), abs=6e-7)


def test_exact_mcnemar_of_gpt4_against_davinci():
    assert mcnemar(44, 48) == pytest.approx(0.754651749610, abs=1e-12)


def test_holm():
    assert holm([0.01, 0.04, 0.03, 0.005, 0.2]) == pytest.approx([0.04, 0.09, 0.09, 0.025, 0.2])


@pytest.mark.parametrize(
    ("path", "threshold", "table", "accuracy", "kappa", "low", "high"),
    [
        ("judge.gpt-4", None, (345, 80, 53, 285), 0.825688, 0.649648, 0.592, 0.700),
        ("judge.text-davinci-003", None, (349, 77, 52, 289), 0.831812, 0.661915, 0.605, 0.711),
        ("judge.bem", 0.5000001, (316, 110, 40, 300), 0.804178, 0.611431, 0.553, 0.663),
    ],
)
def test_agreement_on_nq301(shared, path, threshold, table, accuracy, kappa, low, high):
    """The page gives (tp, fp, fn, tn) with the judge's verdict first: its fp is our fn."""
    found = stage_agreement(rows_of(shared, "calib_nq301"), "human.correctness", path, threshold)
    tp, fp, fn, tn = table
    assert sorted([found["table"]["fp"], found["table"]["fn"]]) == sorted([fp, fn])
    assert (found["table"]["tp"], found["table"]["tn"], found["n"]) == (tp, tn, sum(table))
    assert found["accuracy"] == pytest.approx(accuracy, abs=5e-7)
    assert found["kappa"] == pytest.approx(kappa, abs=5e-7)
    assert found["ci"]["kappa"] == pytest.approx([low, high], abs=2e-3)


@pytest.mark.parametrize(
    ("name", "table", "kappa", "spearman"),
    [
        ("rl_f", (202, 13, 8, 29), 0.685000, 0.564857),
        ("rb_llm", (211, 4, 27, 10), 0.338863, 0.312835),
        ("rb_agg", (136, 79, 6, 31), 0.258926, 0.391487),
    ],
)
def test_agreement_on_mtrag(shared, name, table, kappa, spearman):
    found = stage_agreement(rows_of(shared, "calib_mtrag"), "human.faithfulness", f"judge.{name}", 0.5)
    assert sorted(found["table"].values()) == sorted(table)
    assert found["kappa"] == pytest.approx(kappa, abs=5e-7)
    assert found["spearman"] == pytest.approx(spearman, abs=5e-7)


@pytest.fixture
def nq301(shared):
    rows = rows_of(shared, "calib_nq301")
    human = np.array([row["human"]["correctness"] for row in rows], dtype=float)
    judge = np.array([row["judge"]["text-davinci-003"] for row in rows], dtype=float)
    return human, judge


@pytest.mark.parametrize(
    ("weight", "value", "low", "high"),
    [
        (None, 0.51999921, 0.46215746, 0.57784096),
        (1.0, 0.52557319, 0.45383306, 0.59731331),
        (0.0, 0.515, 0.44573600, 0.58426400),
    ],
)
def test_prediction_powered_mean(nq301, weight, value, low, high):
    human, judge = nq301
    found = correction.ppi_plus(human[:200], judge[:200], judge[200:], weight)
    assert (found.value, *found.interval) == pytest.approx((value, low, high), abs=3e-8)


def test_correction_from_labels_on_the_same_answers(nq301):
    human, judge = nq301
    sample = correction.LabelledSample(judge[:200], human[:200], np.ones(200))
    found = correction.from_labels(judge, None, sample)
    assert found.value == pytest.approx(0.51999981, abs=1e-8)  # Tenenbein
    assert found.interval == pytest.approx((0.4620, 0.5773), abs=1.5e-3)  # Jeffreys (a), by draws


def lang_reiczigel(passing, n, t, z=1.959963984540054):
    """Closed-form check of method (b): Lang and Reiczigel (2014, Prev. Vet. Med. 113:13)."""
    m1, m0 = t.positives, t.negatives
    size = n + z * z
    q = (passing + z * z / 2) / size
    se, sp = (t.tp + 1) / (m1 + 2), (t.tn + 1) / (m0 + 2)
    youden = se + sp - 1
    p = (q + sp - 1) / youden
    part1, part0 = se * (1 - se) / (m1 + 2), sp * (1 - sp) / (m0 + 2)
    error = np.sqrt(q * (1 - q) / size + p * p * part1 + (1 - p) ** 2 * part0) / youden
    shift = 2 * z * z * (p * part1 - (1 - p) * part0)
    return float(np.clip(p + shift - z * error, 0, 1)), float(np.clip(p + shift + z * error, 0, 1))


def test_correction_from_a_calibration_set(nq301):
    human, judge = nq301
    table = Table.of(human[:200], judge[:200])
    assert (table.tp, table.fp, table.fn, table.tn) == (85, 18, 18, 79)
    passing = float(judge[200:].sum())
    found = correction.rogan_gladen(passing, 567, correction.JudgeDraws.of(table))
    assert found.value == pytest.approx(0.53152899, abs=1e-8)
    assert found.interval == pytest.approx((0.4226, 0.6414), abs=2e-3)  # Jeffreys (b), by draws
    closed = lang_reiczigel(passing, 567, table)
    assert closed == pytest.approx((0.42456063, 0.63922203), abs=1e-8)
    assert found.interval == pytest.approx(closed, abs=5e-3)


def test_lang_reiczigel_as_published():
    """Lang and Reiczigel 2014: 113 of 167 pass, 21 of 23 and 12 of 17; failure rate .1456 to .6124."""
    low, high = lang_reiczigel(113, 167, Table(tp=21, fp=5, fn=2, tn=12))
    assert (1 - high, 1 - low) == pytest.approx((0.1456, 0.6124), abs=5e-5)


@pytest.mark.parametrize(("n", "effect"), [(200, 0.092), (1000, 0.043), (5000, 0.034)])
def test_smallest_detectable_loss(n, effect):
    assert detectable_loss(n, 200, margin=0.03, discordance=0.1) == pytest.approx(effect, abs=6e-4)


@pytest.mark.parametrize(("discordance", "pairs"), [(0.02, 175), (0.05, 437), (0.1, 873), (0.2, 1745)])
def test_pairs_needed_to_pass(discordance, pairs):
    assert pairs_to_pass(0.03, discordance) == pytest.approx(pairs + 2.5 / 0.03, abs=1)


PUDDING = """12 19 22 16; 13 16 19 12; 23 19 19 10; 14 18 23 13; 24 23 19 9; 34 19 20 15; 15 13 19 18; 25 16 20 12
35 16 15 17; 45 17 14 16; 16 18 21 12; 26 22 20 12; 36 13 18 10; 46 14 19 18; 56 11 21 12"""


def pudding():
    wins, ties = np.zeros((6, 6)), np.zeros((6, 6))
    for line in PUDDING.replace("\n", ";").split(";"):
        pair, first, second, tie = line.split()
        i, j = int(pair[0]) - 1, int(pair[1]) - 1
        wins[i, j], wins[j, i] = float(first), float(second)
        ties[i, j] = ties[j, i] = float(tie)
    return wins, ties


def test_davidson_on_the_pudding_data():
    """Davidson 1970; worths, nu and errors as the PlackettLuce vignette prints them (to 1e-4), and the optimum."""
    found = davidson([str(i) for i in range(1, 7)], *pudding())
    assert found.share == pytest.approx([0.1388033, 0.1730015, 0.1617474, 0.1653730, 0.1586854, 0.2023894], abs=5e-7)
    assert found.share == pytest.approx([0.1388005, 0.1729985, 0.1617420, 0.1653930, 0.1586805, 0.2023855], abs=1e-4)
    assert np.exp(found.log_nu) == pytest.approx(0.7468230, abs=5e-7)
    assert found.deviance == pytest.approx(1619.419, abs=5e-4)
    against_first = found.log_worth - found.log_worth[0]
    assert against_first[1:] == pytest.approx([0.2202, 0.1530, 0.1751, 0.1339, 0.3771], abs=5e-5)
    assert found.errors[1:] == pytest.approx([0.1872, 0.1935, 0.1882, 0.1927, 0.1924], abs=5e-5)
    assert (found.log_nu, found.log_nu_error) == pytest.approx((-0.2919, 0.0825), abs=5e-5)


def test_bradley_terry_on_journal_citations():
    """Stigler 1994, as in the R package BradleyTerry2; log worth against Biometrika."""
    cited = {  # (winner, loser): citations of the winner by the loser
        ("Biometrika", "CommStat"): 730, ("CommStat", "Biometrika"): 33,
        ("Biometrika", "JASA"): 498, ("JASA", "Biometrika"): 320,
        ("Biometrika", "JRSSB"): 221, ("JRSSB", "Biometrika"): 284,
        ("CommStat", "JASA"): 68, ("JASA", "CommStat"): 813,
        ("CommStat", "JRSSB"): 17, ("JRSSB", "CommStat"): 276,
        ("JASA", "JRSSB"): 142, ("JRSSB", "JASA"): 325,
    }  # fmt: skip
    names = ["Biometrika", "CommStat", "JASA", "JRSSB"]
    wins = np.zeros((4, 4))
    for (one, other), count in cited.items():
        wins[names.index(one), names.index(other)] = count
    found = davidson(names, wins, np.zeros((4, 4)))
    assert found.log_worth[1:] - found.log_worth[0] == pytest.approx([-2.949072, -0.479570, 0.268954], abs=5e-7)
    assert found.log_nu is None


def test_winners_of_ragchecker(shared):
    """Sign of (overall b - a) against people's winner: accuracy .619718 on 142 pairs."""
    rows = rows_of(shared, "pairwise_ragchecker")
    right = 0
    for row in rows:
        a, b = row["judge"]["ragchecker_a_b"]["overall"]
        right += row["human"]["winner"] == ("b" if b > a else "a" if a > b else "tie")
    assert len(rows) == 142
    assert right / len(rows) == pytest.approx(0.619718, abs=5e-7)


def test_area_under_the_curve_of_bem(shared):
    """Scores of a published judge: the area equals the chance that a good answer scores above a bad one."""
    rows = rows_of(shared, "calib_nq301")
    pairs = [(r["human"]["correctness"], r["judge"]["bem"]) for r in rows if r["judge"].get("bem") is not None]
    human, scores = np.array(pairs, dtype=float).T
    good, bad = scores[human == 1], scores[human == 0]
    wins = (good[:, None] > bad[None, :]).mean() + (good[:, None] == bad[None, :]).mean() / 2
    assert agreement_tables.roc_auc(human, scores)[0] == pytest.approx(wins, abs=1e-12)
