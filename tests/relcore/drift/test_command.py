from xml.etree import ElementTree

import numpy as np
import pandas as pd
import pytest

from relcore.cli import main
from relcore.drift.command import GATES

pytestmark = pytest.mark.usefixtures("own_store")


@pytest.fixture
def versions(tmp_path):
    rng = np.random.default_rng(0)
    labels = np.array(["red", "green", "blue"], dtype=object)[np.arange(120) % 3]
    vectors = rng.normal(size=(120, 6)) + 3 * rng.normal(size=(3, 6))[np.arange(120) % 3]
    turn, _ = np.linalg.qr(rng.normal(size=(6, 6)))
    made = {"v1": vectors, "turned": vectors @ turn, "noisy": vectors + rng.normal(size=vectors.shape)}
    for name, rows in made.items():
        table = pd.DataFrame({"id": [f"w{row}" for row in range(120)], "label": labels})
        table["vector"] = [row.astype(np.float32).tolist() for row in rows]
        table.to_parquet(tmp_path / f"{name}.parquet")


@pytest.mark.parametrize(
    ("new", "gated", "code"),
    [
        ("v1", "either", 0),
        ("turned", "either", 1),
        ("turned", "everything-new", 0),
        ("turned", "new-queries", 1),
        ("noisy", "everything-new", 1),
        ("noisy", "new-queries", 1),
        ("noisy", "planned", 0),
    ],
)
def test_exit_code_is_that_of_situation_that_decides(run, versions, new, gated, code):
    run(f"drift v1.parquet {new}.parquet --gate", gated, code=code)


@pytest.mark.parametrize(
    ("new", "gated", "failed", "skipped"),
    [("v1", "either", 0, 0), ("turned", "everything-new", 0, 8), ("zero", "planned", 1, 16)],
)
def test_junit_has_each_condition_with_its_limit(run, versions, tmp_path, new, gated, failed, skipped):
    """2 × 4 checks of each situation: over all rows and in 3 classes, and 5 + 3 × 4 of broken rows."""
    if new == "zero":
        table = pd.read_parquet(tmp_path / "v1.parquet")
        table.at[0, "vector"] = 0 * table["vector"][0]
        table.to_parquet(tmp_path / "zero.parquet")
    run(f"drift v1.parquet {new}.parquet --junit report.xml --gate", gated, code=int(failed > 0))
    root = ElementTree.parse(tmp_path / "report.xml").getroot()
    [suite] = root
    cases = suite.findall("testcase")
    assert len(cases) == 2 * 8 + 5 + 3 * 4
    failures = [case for case in cases if case.find("failure") is not None]
    counts = {"tests": len(cases), "failures": len(failures), "errors": 0}
    counts["skipped"] = sum(case.find("skipped") is not None for case in cases)
    assert {name: int(suite.get(name)) for name in counts} == counts
    assert counts["skipped"] == skipped
    assert len(failures) >= failed
    assert all("allowed: " in case.findtext("system-out") for case in cases)
    for case in failures:
        assert "allowed: " in case.find("failure").get("message")
        assert case.get("classname") == "relscope.drift.rows"


def test_an_error_replaces_the_junit_report_of_an_earlier_run(run, versions, tmp_path, capsys):
    run("drift v1.parquet v1.parquet --junit report.xml")
    assert main(["drift", "v1.parquet", "gone.parquet", "--junit", "report.xml"]) == 2
    [suite] = ElementTree.parse(tmp_path / "report.xml").getroot()
    assert (suite.get("tests"), suite.get("errors")) == ("1", "1")
    told = suite.find("testcase/error").get("message")
    assert "gone.parquet" in told
    assert told in capsys.readouterr().err


@pytest.mark.parametrize(
    ("new", "code", "told"), [("v1", 0, "passed, exit code 0"), ("noisy", 1, "alarm, exit code 1")]
)
def test_last_line_says_what_the_gate_decided(run, versions, new, code, told):
    shown = run(f"drift v1.parquet {new}.parquet --gate everything-new", code=code)
    assert shown.strip().endswith(f"--gate everything-new: {told}.")
    assert ("--gate planned passes" in shown) == (code == 1)


def test_one_broken_row_is_singular(run, versions, tmp_path):
    table = pd.read_parquet(tmp_path / "v1.parquet")
    table.at[0, "vector"] = 0 * table["vector"][0]
    table.to_parquet(tmp_path / "zero.parquet")
    shown = run("drift v1.parquet zero.parquet", code=1)
    assert "1 zero row ('w0')" in shown
    assert "Left out: 1 row zero in either version." in shown


def test_thresholds_come_from_a_file(run, versions, tmp_path):
    strict = "[everything_new]\nchurn = 1\nrho = 1\nclass_churn = 1\nclass_rho = 1\n"
    (tmp_path / "loose.toml").write_text(strict, encoding="utf-8")
    run("drift v1.parquet noisy.parquet --gate everything-new --thresholds loose.toml")
    with pytest.raises(SystemExit, match="0"):
        main(["drift", "--print-thresholds"])


def test_zero_and_missing_rows_alarm_and_new_rows_do_not(run, versions, tmp_path):
    table = pd.read_parquet(tmp_path / "v1.parquet")
    table[30:].to_parquet(tmp_path / "fewer.parquet")
    table["vector"] = [row * (number < 12) for number, row in enumerate(table["vector"])]
    table.to_parquet(tmp_path / "zero.parquet")
    for by in GATES:
        assert "108 zero rows" in run("drift v1.parquet zero.parquet --gate", by, code=1)
        run("drift v1.parquet fewer.parquet --gate", by, code=1)
        run("drift fewer.parquet v1.parquet --gate", by)
    run("drift v1.parquet fewer.parquet --shared")
