"""drift: exit codes, the formats, thresholds from a file, and what is refused."""

import numpy as np
import pandas as pd
import pytest

from relcore.cli import main
from relcore.commands.spaces import GATES
from relcore.drift.check import Thresholds, read_thresholds


@pytest.fixture
def versions(tmp_path):
    """v1; the same turned; and with noise as large as the rows."""
    rng = np.random.default_rng(0)
    labels = np.array(["red", "green", "blue"], dtype=object)[np.arange(120) % 3]
    vectors = rng.normal(size=(120, 6)) + 3 * rng.normal(size=(3, 6))[np.arange(120) % 3]
    turn, _ = np.linalg.qr(rng.normal(size=(6, 6)))
    made = {"v1": vectors, "turned": vectors @ turn, "noisy": vectors + rng.normal(size=vectors.shape)}
    for name, rows in made.items():
        table = pd.DataFrame({"id": [f"w{row}" for row in range(120)], "label": labels})
        table["vector"] = [row.astype(np.float32).tolist() for row in rows]
        table.to_parquet(tmp_path / f"{name}.parquet")
    return {name: f"{name}.parquet" for name in made}


@pytest.fixture
def gate(capsys):

    def gate(*arguments):
        code = main(["drift", *map(str, arguments)])
        out, err = capsys.readouterr()
        assert err == ""
        return code, out

    return gate


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
def test_exit_code_is_that_of_situation_that_decides(gate, versions, new, gated, code):
    assert gate(versions["v1"], versions[new], "--gate", gated)[0] == code


def test_thresholds_come_from_a_file(gate, versions, tmp_path, capsys):
    strict = "[everything_new]\nchurn = 1\nrho = 1\nclass_churn = 1\nclass_rho = 1\n"
    (tmp_path / "loose.toml").write_text(strict, encoding="utf-8")
    settings = ("--gate", "everything-new", "--thresholds", "loose.toml")
    assert gate(versions["v1"], versions["noisy"], *settings)[0] == 0
    with pytest.raises(SystemExit) as ended:
        main(["drift", "--print-thresholds"])
    assert ended.value.code == 0
    (tmp_path / "printed.toml").write_text(capsys.readouterr().out, encoding="utf-8")
    assert read_thresholds("printed.toml") == Thresholds()


def test_zero_and_missing_rows_alarm_in_both_situations_and_new_rows_do_not(gate, versions, tmp_path):
    table = pd.read_parquet(tmp_path / versions["v1"])
    table[30:].to_parquet(tmp_path / "fewer.parquet")
    table["vector"] = [row * (number < 12) for number, row in enumerate(table["vector"])]
    table.to_parquet(tmp_path / "zero.parquet")
    for by in GATES:
        code, text = gate(versions["v1"], "zero.parquet", "--gate", by)
        assert code == 1
        assert text.startswith(
            "Drift: 'zero' breaks rows that were whole in 'v1': 108 zero rows ('w12', 'w13', 'w14', …)."
        )
        assert gate(versions["v1"], "fewer.parquet", "--gate", by)[0] == 1
        assert gate("fewer.parquet", versions["v1"], "--gate", by)[0] == 0
    assert gate(versions["v1"], "fewer.parquet", "--shared")[0] == 0
