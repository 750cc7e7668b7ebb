"""What earlier versions wrote still opens, is written again to the same bytes, and draws the same numbers.

`tests/data/earlier/<version>` is what that version wrote. Users have such files. If a test fails, change the
code, never the files.
"""

import copy
import hashlib
import json
import re
import shutil
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from pandas.api.types import is_numeric_dtype
from sklearn.neighbors import NearestNeighbors

from app.workspace import Workspace, from_query, from_session_file, to_query
from relcore import __version__
from relcore.base import records
from relcore.base.earlier import FORMER_DATA, FORMER_FIGURES, FORMER_STUDIES
from relcore.base.errors import SpaceError
from relcore.base.names import FIGURES, PLUGIN_STUDIES, STUDIES
from relcore.catalog.catalog import SpaceSpec
from relcore.compare.pictures import exportable
from relcore.encoders.dataset import DatasetSpec
from relcore.encoders.encoder import Encoder, encoder_from_json
from relcore.stitch.stitching import StitchSpec
from relcore.studies.study import StudySpec
from tests.plugins.conftest import _installed
from tests.session_files import to_session_file

EARLIER = sorted((Path(__file__).parent / "data" / "earlier").glob("v*"))
# The coordinates differ from those of the files. Version 0.1.0 used scikit-learn's t-SNE and not openTSNE's.
# UMAP repeats only on one machine with the same versions; on others, a different last bit of a product leads
# to another map of the same neighbours.
REDRAWN = {"comparison-tsne", "comparison-umap"}
COLOURED_ANEW = {"inversion"}  # the classes of errors that give colours follow the data since 0.1.0
# Training amplifies differences in the last bit of a product, so these repeat only on the processor that
# wrote them.
OF_ONE_PROCESSOR = {
    *("bootstrap", "bootstrap-paper", "bootstrap-scores"),
    *("cross-domain", "plane-codes", "reconstruction", "reconstruction-mse", "rescale-input"),
    *("rescale-layers", "try-it", "try-it-picture", "zero-shot"),
}
# Their spaces come from TF-IDF and an SVD. The last bits, and so the digests, depend on the processor. On
# other processors they are drawn without digests.
ENCODED = {"cross-lingual"}
# Five anchors determine a rotation in five of the hundred dimensions; the last bits of a product decide the others.
UNDETERMINED = {"scores-words": ("form", "procrustes")}
# Version 0.1.0 took the low end of CKA's chance level from a distribution that begins above the smallest scores.
LOW_END = {"all-pairs", "scores", "scores-words"}
SLOW = {"comparison-umap", "comparison-tsne", "study"}
PATHS = [path for folder in EARLIER for path in sorted((folder / "recipes").glob("*.json"))]
FIGURE_OF = {path: json.loads(path.read_text(encoding="utf-8"))["figure"] for path in PATHS}
RECIPES = [
    pytest.param(
        path.parents[1],
        path.stem,
        marks=[pytest.mark.slow] if path.stem in SLOW else [],
        id=f"{path.parents[1].name}-{path.stem}",
    )
    for path in PATHS
    if FIGURE_OF[path] in FIGURES
]


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    """One for all figures here, so that an encoder that several of them show is trained once."""
    return tmp_path_factory.mktemp("store")


@pytest.fixture(autouse=True)
def among_the_files(monkeypatch, tmp_path, store, request):
    monkeypatch.setenv("RELSCOPE_STORE", str(store))
    monkeypatch.delenv("RELSCOPE_SCHEDULER", raising=False)
    shutil.copytree(request.getfixturevalue("folder") / "files", tmp_path / "files")
    monkeypatch.chdir(tmp_path)


def processor():
    """A digest of what decides the last bits of float32 arithmetic; "" where the system does not tell."""
    try:
        told = Path("/proc/cpuinfo").read_text(encoding="utf-8")
    except OSError:
        return ""
    parts = [
        found[1]
        for found in (re.search(rf"{name}\s*: (.*)", told) for name in ("model name", "flags"))
        if found
    ]
    return hashlib.blake2b(" ".join(parts).encode(), digest_size=8).hexdigest()


def of_this_processor(folder):
    return (folder / "processor.txt").read_text().strip() == processor()


def need_processor(folder, name, among=OF_ONE_PROCESSOR):
    if name in among and not of_this_processor(folder):
        pytest.skip("trained on another processor, where the last digits differ")


def for_this_processor(folder, name, text):
    if name not in ENCODED or of_this_processor(folder):
        return text
    for digest in json.loads(text)["digests"]:
        text = text.replace(f'"{digest}"', '""')
    return text


def of_this_version(text):
    version = json.loads(text)["relscope"]
    return text.replace(f'"relscope": "{version}"', f'"relscope": "{__version__}"', 1)


def assert_same_table(found, expected, same_numbers=True):
    """Assert that the numbers are equal, and that cells with equal texts still have equal texts: wording may
    change, groups of rows may not.
    """
    assert found.shape == expected.shape
    for (_, got), (name, known) in zip(found.items(), expected.items(), strict=True):
        if is_numeric_dtype(known) and not same_numbers:
            np.testing.assert_array_equal(np.isfinite(got), np.isfinite(known), err_msg=name)
        elif is_numeric_dtype(known):
            np.testing.assert_allclose(
                got.to_numpy(float), known.to_numpy(float), rtol=1e-5, atol=1e-5, err_msg=name
            )
        else:
            np.testing.assert_array_equal(pd.factorize(got)[0], pd.factorize(known)[0], err_msg=name)


def assert_same_neighbours(found, expected, k=10):
    """In each map of two columns, x and y, the k rows nearest to a row are those of the earlier map more often than by
    chance, by ten standard errors of independent rows."""
    for place in np.flatnonzero(expected.columns.str.endswith(" x")):
        nearest = []
        for table in (found, expected):  # names of columns have changed, their order has not
            rows = table.iloc[:, [place, place + 1]].dropna().to_numpy(float)
            nearest.append(NearestNeighbors(n_neighbors=k).fit(rows).kneighbors(return_distance=False))
        kept = [len({*one} & {*other}) / k for one, other in zip(*nearest, strict=True)]
        chance = k / (len(kept) - 1)
        bound = chance + 10 * np.sqrt(chance * (1 - chance) / (k * len(kept)))
        assert np.mean(kept) > bound, expected.columns[place]


@pytest.fixture
def packages(tmp_path):
    with _installed(tmp_path):
        yield


@pytest.mark.usefixtures("packages")
@pytest.mark.parametrize(("folder", "name"), RECIPES)
def test_a_recipe_draws_the_same_numbers_and_is_written_to_the_same_bytes(folder, name):
    need_processor(folder, name)
    written = for_this_processor(
        folder, name, (folder / "recipes" / f"{name}.json").read_text(encoding="utf-8")
    )
    drawn = exportable(json.loads(written))
    assert drawn.bytes("json").decode() == of_this_version(written)
    found = drawn.table()
    expected = pd.read_csv(folder / "tables" / f"{name}.csv")
    # Compare tables as they are in a file, where empty cells equal NaN, and True equals "True".
    through_file = pd.read_csv(pd.io.common.StringIO(found.to_csv(index=False, float_format="%.8g")))
    assert len(through_file) == len(expected)
    if "anchor" in expected:  # where some anchors are not drawn, 0.1.0 numbered those that are
        for one in (through_file, expected):
            one["anchor"] = one.anchor.rank(method="dense")
    if name in UNDETERMINED:
        column, value = UNDETERMINED[name]
        through_file, expected = (one[one[column] != value] for one in (through_file, expected))
    if name in COLOURED_ANEW:
        through_file, expected = (one.drop(columns="category") for one in (through_file, expected))
    if name in LOW_END:
        of_cka = expected.get("metric", pd.Series("linear CKA", expected.index)) == "linear CKA"
        low = through_file.null_low[of_cka]
        assert low.between(0, through_file.chance[of_cka])[low.notna()].all()
        through_file.loc[of_cka, "null_low"] = expected.null_low[of_cka]
    assert_same_table(through_file, expected, same_numbers=name not in REDRAWN)
    if name in REDRAWN:
        assert_same_neighbours(through_file, expected)


@pytest.mark.usefixtures("packages")
@pytest.mark.parametrize(("folder", "name"), RECIPES)
def test_a_setting_that_is_unknown_missing_or_of_another_type_is_taken_as_it_was(folder, name):
    need_processor(folder, name, OF_ONE_PROCESSOR | ENCODED)
    recipe = json.loads((folder / "recipes" / f"{name}.json").read_text(encoding="utf-8"))
    differing = []
    for path, change, expected in json.loads((folder / "changed.json").read_text())[name]:
        try:
            written = exportable(changed(recipe, path, change)).bytes("json").decode()
            found = hashlib.blake2b(with_version_of(recipe, written).encode(), digest_size=8).hexdigest()
        except SpaceError:
            found = "refused"
        if found != expected:
            differing.append((path, change, expected, found))
    assert differing == []


def changed(recipe, path, change):
    """The recipe, in which one setting is left out ("drop"), added ("add") or replaced by a number
    ("number")."""
    recipe = copy.deepcopy(recipe)
    inner = recipe
    for step in path[:-1]:
        inner = inner[step]
    if change == "drop":
        del inner[path[-1]]
    else:
        inner[path[-1]] = 3
    return recipe


def with_version_of(recipe, text):
    return text.replace(f'"relscope": "{__version__}"', f'"relscope": "{recipe["relscope"]}"', 1)


@pytest.mark.parametrize("folder", EARLIER)
def test_every_figure_of_the_version_opens_or_is_refused_with_the_study_that_draws_it(folder):
    figures = {FIGURE_OF[path] for path in PATHS if path.parents[1] == folder}
    assert len(figures) == 27
    assert figures <= {*FIGURES, *FORMER_FIGURES}
    assert set(FORMER_FIGURES.values()) <= {*STUDIES, *PLUGIN_STUDIES, ""}
    for path in PATHS:
        if FIGURE_OF[path] in FORMER_FIGURES:
            with pytest.raises(
                SpaceError, match=r"an earlier version of Relscope opens it; (now the study '|this)"
            ):
                exportable(json.loads(path.read_text(encoding="utf-8")))


READ_AND_WRITE = {
    "space": (SpaceSpec.from_json, SpaceSpec.to_json),
    "dataset": (DatasetSpec.from_json, DatasetSpec.to_json),
    "encoder": (encoder_from_json, Encoder.to_record),
    "study": (StudySpec.from_json, StudySpec.to_json),
    "stitching": (partial(records.from_json, StitchSpec), records.to_json),
}


@pytest.mark.parametrize("kind", READ_AND_WRITE)
@pytest.mark.parametrize("folder", EARLIER)
def test_specs_are_read_and_written_again_in_the_same_order(folder, kind):
    read, write = READ_AND_WRITE[kind]
    for described in json.loads((folder / "specs.json").read_text())[kind]:
        if {described.get("source"), described.get("encoder")} & {*FORMER_DATA}:
            with pytest.raises(SpaceError, match="an earlier version of Relscope opens"):
                read(described)
            continue
        if described.get("study") in FORMER_STUDIES:
            with pytest.raises(SpaceError, match=r"version 0\.1\.0 of Relscope opens it"):
                read(described)
            continue
        if kind == "study" and described["study"] in PLUGIN_STUDIES:
            with pytest.raises(SpaceError, match="expected the package relscope-studies, which has it"):
                read(described)
            continue
        assert json.dumps(write(read(described))) == json.dumps(described)
        with pytest.raises(SpaceError):
            read(described | {"unknown_setting": 3})


@pytest.mark.parametrize("name", ["session", "session-first"])
@pytest.mark.parametrize("folder", EARLIER)
def test_a_session_file_and_its_permalink_open_and_are_written_again(folder, name):
    written = (folder / f"{name}.json").read_text(encoding="utf-8")
    workspace, digests = from_session_file(written)
    assert to_session_file(workspace, digests) == of_this_version(written)
    link = json.loads((folder / "permalinks.json").read_text())[name]
    assert to_query(workspace) == link
    assert to_query(from_query(link, Workspace())) == link
