"""The wheel, installed outside of the repository in an environment that has only the distributions it
requires.
"""

import csv
import re
import subprocess
import zipfile
from pathlib import Path

import numpy as np
import pytest

from tests.installed.wheel_environment import installed, run

ROOT = Path(__file__).parents[2]


@pytest.fixture
def files(tmp_path):
    """first.npy and second.npy: 400 rows in 8 dimensions, and the same rotated, with a little noise."""
    rng = np.random.default_rng(0)
    vectors = rng.normal(size=(400, 8))
    rotation, _ = np.linalg.qr(rng.normal(size=(8, 8)))
    np.save(tmp_path / "first.npy", vectors.astype(np.float32))
    np.save(
        tmp_path / "second.npy",
        (vectors @ rotation + 0.02 * rng.normal(size=vectors.shape)).astype(np.float32),
    )
    return tmp_path


@pytest.mark.slow
def test_a_wheel_brings_one_package_its_data_and_its_app(wheel):
    with zipfile.ZipFile(wheel) as archive:
        names = {name for name in archive.namelist() if ".dist-info/" not in name}
    listing = ["git", "ls-files", "--cached", "--others", "--exclude-standard", "relcore", "app", "pages"]
    tracked = subprocess.run(listing, cwd=ROOT, capture_output=True, text=True, check=True)
    app = [name for name in tracked.stdout.splitlines() if not name.startswith("relcore/")]
    app += [f"assets/{path.name}" for path in (ROOT / "assets").glob("*.*") if path.is_file()]
    expected = {name for name in tracked.stdout.splitlines() if name not in app}
    assert names == expected | {f"relcore/_app/{name}" for name in app}
    assert wheel.stat().st_size < 18_500_000  # 18.1 MB now


@pytest.mark.slow
def test_the_readme_works_with_the_dependencies_alone(wheel, files, tmp_path_factory):
    environment = installed(wheel, tmp_path_factory.mktemp("environment"))
    assert "torch" not in {path.name for path in environment.glob("lib/python*/site-packages/*")}
    python = environment / "bin" / "python"
    relscope = environment / "bin" / "relscope"
    text = (ROOT / "docs" / "scripts.md").read_text(encoding="utf-8")
    of_files, of_tables = re.findall(r"```python\n(.*?)```", text, flags=re.DOTALL)
    told = run(python, "-c", of_files, folder=files)
    score = re.fullmatch(r"mrr (\S+) \(k = 10, n = 300; chance (\S+) … (\S+)\)\n", told)
    assert float(score[1]) > 0.95
    assert float(score[3]) < 0.05
    assert (files / "panes.pdf").read_bytes().startswith(b"%PDF")
    store = {"RELSCOPE_STORE": str(files / "store")}
    told = run(python, "-c", of_tables, folder=files, **store)
    assert re.match(r"cka \S+ \(n = \S+; chance \S+ … \S+\)\n", told)
    table = run(
        relscope, "compare", "first.npy", "second.npy", "--anchors", "100", "--csv", folder=files, **store
    )
    scores = {
        (row["form"], row["metric"].split(",")[0]): float(row["score"])
        for row in csv.DictReader(table.splitlines())
    }
    assert scores["relative", "MRR"] > 0.95 > 0.2 > scores["absolute", "MRR"]
    bundled = run(relscope, "available", folder=files, **store)
    assert re.search(r"word2vec-novels +20,000 +100 ", bundled)
