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
