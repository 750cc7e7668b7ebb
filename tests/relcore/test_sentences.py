"""No sentence of a report contradicts a number beside it. The inputs are random; the printed verdicts are
read and compared with the printed numbers and limits. The 200 of `check` are in passport/test_check.py.
"""

import re

import numpy as np
import pytest

from relcore.audit.anchor_audit import PairAudit
from relcore.base.numbers import MINUS, beside, percent_beside
from relcore.compare.reports import comparison_report
from relcore.drift.check import DriftCheck
from relcore.linking.bootstrap import _Bootstrap
from relcore.linking.clusters import ClusterFit
from relcore.linking.held_out import HeldOut
from relcore.linking.link import BootstrapSpec
from relcore.migrate.cross_fitting import QueryScores, Resampling
from relcore.migrate.verdict import MOVES, verdict_of
from relcore.passport.change import ROUNDED
from relcore.passport.passport import Passport
from relcore.represent.representations import ProjectionSpec
from relcore.scores.comparison import score_representations
from relcore.spaces.matching import match
from relcore.spaces.space import LatentSpace

FAST = 24
ALL = 200
DRAWS = [*range(FAST), *(pytest.param(draw, marks=pytest.mark.slow) for draw in range(FAST, ALL))]
NUMBER = rf"[+{MINUS}]?[\d,]*\.?\d+"


def number(text):
    return float(re.search(NUMBER, text)[0].replace(MINUS, "-").replace(",", ""))


def cells(text, start):
    """The cells of the first line of a printed table that begins so."""
    line = next(line for line in text.splitlines() if line.strip().startswith(start))
    return re.split(r" {2,}", line.strip())


def drawn(draw, n, d):
    """A space, another version of it, and what was done."""
    rng = np.random.default_rng((52, draw))
    centres = rng.normal(size=(5, d)) * rng.choice((0.0, 2.0))
    X = centres[np.arange(n) % 5] + rng.normal(size=(n, d)) * np.geomspace(1, 0.2, d) + rng.choice((0, 1))
    turn = np.linalg.qr(rng.normal(size=(d, d)))[0]
    size = float(rng.choice((0.001, 0.01, 0.03, 0.1, 0.2, 0.3, 0.5, 1, 2)))
    noise = size * rng.normal(size=X.shape)
    changes = {
        "copy": lambda: X.copy(),
        "noise": lambda: X + noise,
        "turned": lambda: X @ turn,
        "turned, noise": lambda: X @ turn + noise / 10,
        "unrelated": lambda: rng.normal(size=X.shape),
        "lengths": lambda: X * rng.uniform(1 - min(size, 0.9), 1 + size, (n, 1)),
        "one length": lambda: X * np.where(np.arange(n) == 3, 1 + size, 1)[:, None],
        "cut": lambda: X[:, : d // 2],
        "extended": lambda: np.c_[X, rng.normal(size=(n, 2))],
        "part": lambda: np.where(np.arange(n)[:, None] < n * rng.uniform(0, 0.4), noise, X),
        "rounded": lambda: np.round(X / size) * size,
        "swapped": lambda: X[np.r_[1, 0, 2:n]],
    }
    kind = [*changes][draw % len(changes)]
    rows = changes[kind]().astype(np.float32)
    rows[~rows.any(axis=1)] = 0.01
    return X.astype(np.float32), rows, kind


def ids(n):
    return [f"r{row}" for row in range(n)]


def test_numbers_beside_limits_keep_their_order():
    rng = np.random.default_rng(0)
    for _ in range(500):
        limit = rng.uniform(0.1, 0.9)
        value = limit + rng.normal() * 10 ** rng.uniform(-7, -1)
        printed, beside_it = map(number, beside(value, limit))
        assert (printed > beside_it) == (value > limit)
        share, needed = map(number, percent_beside(value, limit))
        assert (share > needed) == (value > limit)
    assert beside(-0.0003, 0) == (f"{MINUS}.0003", ".0000")
    assert beside(0.3, 0.3) == (".300", ".300")
    assert percent_beside(0.748, 0.75) == ("74.8 %", "75.0 %")


# Passports.


@pytest.mark.parametrize("draw", DRAWS)
def test_a_passport_names_the_change_that_its_numbers_show(draw):
    n = int(np.random.default_rng(draw).choice((12, 24, 40)))
    old, new, _ = drawn(draw, n, 8)
    text = Passport.of(LatentSpace(old, ids(n))).check(new).report().text()
    kind, _, told = text.partition(":")
    lengths = re.findall(NUMBER, cells(text, "length, new ÷ old (median")[-1])
    low, high = map(number, lengths)
    assert low <= number(cells(text, "length, new ÷ old (median")[-2]) <= high
    if kind == "Same":
        assert low >= 0.99
        assert high <= 1.01
    if kind == "Rounded":
        assert low >= 1 - ROUNDED / 3
        assert high <= 1 + ROUNDED / 3
    if kind == "Rescaled":
        assert "other lengths" in told
        assert low < 0.99 or high > 1.01
    if kind in ("Rotated", "Other model"):
        correlated = cells(text, "cosines between anchors (correlation; same shape")
        apart = cells(text, "largest change between two anchors (same shape")
        alike = number(correlated[1]) >= number(correlated[0].partition("from")[2])
        alike &= number(apart[1]) <= number(apart[0].partition("at most")[2])
        assert alike == ("the same shape" in told)
    if kind in ("Changed recipe", "Related model", "Other model") and "p that" in text:
        p = cells(text, "p that coordinates agree by chance")
        agree = number(p[1]) <= number(p[0].partition("at most")[2])
        assert agree == ("other coordinates" not in told)
    if kind in ("Changed recipe", "Related model"):
        centred = cells(text, "cosine after centring (same model")
        same = number(centred[1]) >= number(centred[0].partition("from")[2])
        assert same == ("the same coordinates" in told)
    if kind in ("Cut", "Extended"):
        before, now = map(int, re.search(r"first (\d+) of (\d+) dimensions", text).groups())
        assert before < now
    if kind == "Mixed":
        share, k, of, *_ = map(number, re.findall(NUMBER, told.partition("vectors, the others")[2]))
        assert share == pytest.approx(100 * k / of, abs=0.5)


# Drift.


@pytest.mark.parametrize("draw", DRAWS)
def test_drift_alarms_where_its_numbers_exceed_the_thresholds(draw):
    n = int(np.random.default_rng(draw).choice((30, 120, 300)))
    old, new, _ = drawn(draw, n, 8)
    labels = None
    if draw % 3 == 0:
        labels = [f"c{row % 2}" for row in range(n)]
    spaces = [LatentSpace(one, ids(n), name=name, labels=labels) for one, name in ((old, "v1"), (new, "v2"))]
    report = DriftCheck(k=5).run(spaces).report()
    text = report.text()
    alarms = set()
    for line in text.splitlines():
        row = re.match(
            r"\s*(All embedded again|New queries, old vectors|Broken rows)\s{2,}(.+?)\s{2,}(.+?)\s{2,}"
            r"(\S+)\s+(< )?(\S+)\s+(\S+)\s+(\S+)( +alarm)?$",
            line,
        )
        if row:
            value, surely, threshold = number(row[4]), number(row[7]), number(row[8])
            assert (surely > threshold) == bool(row[9]), line
            if row[9]:
                alarms.add(row[1])
                noise = 0 if row[5] else number(row[6])
                assert value - noise > threshold - 1e-9, line
    for situation in ("All embedded again", "New queries, old vectors"):
        [told] = re.findall(rf"^{situation}: (.*)", text, re.M)
        apart = "cannot be compared" in told
        assert told.startswith("alarm") == (apart or bool(alarms & {situation, "Broken rows"})), told
        if told.startswith("alarm, "):
            value = number(told.partition("alarm, ")[2].partition(" (")[0][-12:])
            allowed = number(told.partition("allowed: ")[2])
            assert value > allowed, told
    first = text.splitlines()[0]
    assert ("no drift" in first) == (not alarms and "cannot be compared" not in text)
    if "it cannot replace 'v1'" in first:
        assert "All embedded again" in alarms
    if "only after all rows are embedded again" in first:
        assert "All embedded again" not in alarms


def test_one_lost_row_of_5000_is_not_printed_as_nothing():
    X = np.random.default_rng(0).normal(size=(5000, 4)).astype(np.float32)
    spaces = LatentSpace(X, ids(5000), name="v1"), LatentSpace(X[1:], ids(5000)[1:], name="v2")
    text = DriftCheck(n_queries=50).run(spaces).report().text()
    assert "missing rows .0002 (share of the old rows that the new version lacks; allowed: .000" in text


# Link.


@pytest.mark.parametrize("draw", range(ALL))
def test_link_prints_each_measure_beside_the_limit_that_decides(draw):
    rng = np.random.default_rng(draw)
    null = tuple(rng.uniform(0.05, 0.1, 4))
    error = rng.uniform(0, 0.02)
    least = max(null) + max(0.02, 4 * error)
    again = rng.choice((np.nan, 0.7 + rng.normal() * 10 ** rng.uniform(-5, 0)))
    again = float(np.clip(again, 0, 1))
    found = HeldOut(least + rng.normal() * 10 ** rng.uniform(-6, -1), error, null, 100, again)
    told = found.in_words
    mean, above = re.search(rf"mean CSLS is ({NUMBER}) \(needed: above ({NUMBER});", told).groups()
    enough = number(mean) > number(above)
    if "none of" in told:
        same = False
    else:
        share, needed = re.search(r"for ([\d.]+) % of .* \(needed: ([\d.]+) %\)", told).groups()
        same = float(share) >= float(needed)
    assert (enough and same) == found.linked
    assert (", but " in told) == (enough != same)


@pytest.mark.parametrize("draw", range(ALL))
def test_link_without_pairs_prints_the_limits_of_its_two_fits(draw):
    rng = np.random.default_rng(draw)
    X, Y = (LatentSpace(rng.normal(size=(40, 4)), ids(40)) for _ in range(2))
    task = _Bootstrap(X, Y, np.empty((2, 0), np.int64), None, 3, 0)
    chance = rng.uniform(0.1, 0.4)
    near = 10 ** rng.uniform(-6, -0.5, 2) * rng.choice((-1, 1), 2)
    fit = ClusterFit(np.eye(4), chance + near[0], chance, np.eye(4), task.X[:10], min(0.75 + near[1] / 2, 1))
    verdict, reason, _ = task.judge_linked(fit)
    cosine, above = re.search(rf"cosine of ({NUMBER}) \(needed: above ({NUMBER}),", reason).groups()
    share, needed = re.search(
        r"put ([\d.]+) % of them in the same place \(needed: ([\d.]+) %\)", reason
    ).groups()
    enough = number(cosine) > number(above) and float(share) >= float(needed)
    assert enough == (verdict == "linked") == reason.startswith("Two")


@pytest.mark.parametrize(
    "draw", [0, 1, 4, *(pytest.param(one, marks=pytest.mark.slow) for one in range(5, 60))]
)
def test_the_headline_of_link_says_what_its_reason_shows(draw):
    old, new, _ = drawn(draw, 100, 6)
    spaces = LatentSpace(old, ids(100)), LatentSpace(new, ids(100))
    outcome = BootstrapSpec(n_anchors=40, n_seeds=15, k=5).run(spaces)
    text = outcome.report().text()
    verdict = re.match(r"Linked|Not found|Cannot tell", text)[0]
    mean = re.search(rf"mean CSLS is ({NUMBER}) \(needed: above ({NUMBER});", text)
    again = re.search(r"for ([\d.]+) % of .* rows \(needed: ([\d.]+) %\)", text)
    enough = bool(again) and number(mean[1]) > number(mean[2]) and float(again[1]) >= float(again[2])
    assert enough == (verdict == "Linked" or "But no set of links" in text)
    assert ("no link is sure" in text) == (verdict != "Linked")
    if right := re.search(r"(All|[\d,]+ of) (\d+) links?(?: of (\d+))?.*are right", text):
        most = int(right[2])
        assert right[1] == "All" or int(right[1].split()[0]) < most
        assert number(re.search(r"Estimated without the hidden ids: (\S+) %", text)[1]) >= 95


# Audits of anchors.


@pytest.mark.parametrize("draw", DRAWS)
def test_an_audit_counts_no_fewer_wrong_pairs_than_it_may_suspect(draw):
    rng = np.random.default_rng(draw)
    n = 80
    old, new, _ = drawn(draw, n, 6)
    anchors = ids(int(rng.choice((12, 30, 60))))
    partners = list(anchors)
    wrong = rng.choice(len(anchors), int(rng.integers(0, len(anchors) // 2)), replace=False)
    for first, second in zip(wrong, np.roll(wrong, 1), strict=True):
        partners[first] = anchors[second]
    audit = PairAudit(tuple(anchors), tuple(partners), k=3)
    text = audit.run((LatentSpace(old, ids(n)), LatentSpace(new, ids(n)))).report().text()
    headline = text.splitlines()[0]
    listed = len(re.findall(rf"^\s*r\d+\s+r\d+\s+{NUMBER}$", text, re.M))
    suspects = re.match(r"(\d+) of (\d+) pairs (?:is|are) suspect", headline)
    about = re.search(r"bout (\d+) of (\d+) pairs are wrong \(95 %: (\d+) to (\d+)\)", headline)
    if about:
        k, of, low, high = map(int, about.groups())
        assert low <= k <= high <= of == len(anchors)
    if suspects:
        assert int(suspects[1]) <= int(suspects[2]) == len(anchors)
        assert listed == min(int(suspects[1]), 20)
        assert about
        assert int(about[4]) > 0
    elif headline.startswith(("None", "Cannot tell")):
        assert not listed
    else:
        high = re.search(r"At most (\d+) of|to (\d+)\)", headline)
        assert listed == min(int(high[1] or high[2]), 20)
    for _, value, low, high in re.findall(
        rf"(\S+)  +({NUMBER}) \(95 %: ({NUMBER}) … ({NUMBER})\)", text.partition("change, 95 %")[2]
    ):
        assert number(low) <= number(value) <= number(high)


# Comparisons.


@pytest.mark.parametrize("draw", DRAWS)
def test_the_headline_of_a_comparison_repeats_its_table_and_its_chance(draw):
    n = 60
    old, new, _ = drawn(draw, n, 6)
    labels = [f"c{row % 3}" for row in range(n)]
    names = ("a", "b")
    pair = match(
        *(
            LatentSpace(one, ids(n), name=name, labels=labels)
            for one, name in zip((old, new), names, strict=True)
        )
    )
    anchors = ids(20)
    scores = score_representations(
        pair, ("absolute", "relative"), anchors, ProjectionSpec(), k=5, labels=np.array(labels)
    )
    text = comparison_report(scores, pair, anchors).text()
    first = re.search(r"For (?:about )?([\d.]+) % of the rows, .* is the same row, by similarities", text)
    chance = number(re.search(r"By chance: ([\d.]+) %", text)[1])
    held_out = n - len(anchors)
    assert chance == pytest.approx(100 / held_out, rel=0.2)
    rows = [re.split(r" {2,}", line.strip()) for line in text.splitlines()]
    [mrr] = [row for row in rows if row[0] == "relative" and "MRR" in row]
    value = number(mrr[mrr.index("MRR") + 1])
    assert value >= float(first[1]) / 100 - 0.006, "a rank of 1 counts 1"
    for row in rows:
        if row[0] in ("absolute", "relative") and "…" in row[-1]:
            low, high = (number(end) for end in row[-1].split("…"))
            assert low - 5e-4 <= number(row[-2]) <= high + 5e-4, row
    if "below chance" in text:
        below = [row for row in rows if row[0] == "absolute" and "…" in row[-1]]
        scored = (
            next(place for place, cell in enumerate(row[1:], 2) if not re.search(r"\d", cell))
            for row in below
        )
        pairs = zip(below, scored, strict=True)
        assert any(number(row[place]) <= number(row[-1].split("…")[0]) for row, place in pairs), text


# Migrations.


@pytest.mark.parametrize("draw", DRAWS)
def test_a_migration_moves_only_where_its_printed_gain_is_clear(draw):
    rng = np.random.default_rng(draw)
    n = int(rng.choice((20, 100, 400)))
    base = rng.uniform(0.2, 0.6, n)
    scores = {"keep": QueryScores(base)}
    for name in ("bridge", "twice", "re-embed"):
        gain = rng.normal() * 10 ** rng.uniform(-4, -1)
        scores[name] = QueryScores(base + gain + rng.normal(0, 10 ** rng.uniform(-4, -1), n))
    found = verdict_of(
        scores, Resampling(n, draws=500), k=10, on="made up", weight=0.5, relevance="judgements"
    )
    text = found.sentence
    told = {
        "bridge": rf"with a bridge \(({NUMBER}), 95 %: ({NUMBER}) … ({NUMBER})\)",
        "twice": rf"counted [.\d]+ × \(({NUMBER}), 95 %: ({NUMBER}) … ({NUMBER})\)",
        "re-embed": rf"embedded again \(({NUMBER}), 95 %: ({NUMBER}) … ({NUMBER})\)",
    }
    gains = {name: tuple(map(number, re.search(one, text).groups())) for name, one in told.items()}
    close = re.search(r"\((.*) (?:is|are) too close to call\)", text)
    [moved] = [name for name, move in {**MOVES, "undecided": "Undecided"}.items() if text.startswith(move)]
    assert found.is_clear == (close is None)
    for name, (value, low, high) in gains.items():
        assert low <= value + 1e-3
        assert value - 1e-3 <= high
        if moved == name and not (close and "keeping the old model" in close[1]):
            assert low > 0, text
    if moved == "keep" and "nothing is better" in text:
        assert all(high <= 0.0105 or value < 0 for value, _, high in gains.values()), text
        assert not any(low > 0 for _, low, _ in gains.values()), text
    harms = "do not re-embed" in found.headline or "can only harm" in text
    assert harms == (gains["re-embed"][2] < 0)
