"""Passports: a file that is a space, the kinds of change, and a reader of 40 lines without Relscope."""

import hashlib
import json
import re
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest
from PIL import Image
from safetensors.numpy import save_file

from relcore import LatentSpace, load_space
from relcore.base.errors import SpaceError
from relcore.base.rows import unit_rows
from relcore.cli import main
from relcore.passport.change import SAME_MODEL, SAMPLED
from relcore.passport.passport import Passport, PassportCard, check
from relcore.passport.pictures import chart_of
from relcore.stores.index import StoredRows, Target, write_index
from tests.relcore.stores.stores import place_of

N = 32
D = 64
IDS = tuple(f"a sentence, number {row}" for row in range(N))


def drawn(seed, *shape):
    return np.random.default_rng(seed).normal(size=shape or (N, D)).astype(np.float32)


@pytest.fixture
def vectors():
    return drawn(0) + np.float32(0.2)


@pytest.fixture
def passport(vectors):
    return Passport(IDS, vectors, PassportCard("model", prompt="query: "))


@pytest.fixture
def file(passport, tmp_path):
    passport.save(tmp_path / "model.safetensors")
    return tmp_path / "model.safetensors"


@pytest.fixture
def run(tmp_path, monkeypatch, capsys):
    """Run ``relscope passport`` in the folder of the files: its exit status, its output and its error."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "texts.txt").write_text("\n".join(IDS))

    def run(*arguments):
        return main(["passport", *map(str, arguments)]), *capsys.readouterr()

    return run


def rotated(X):
    return X @ np.linalg.qr(drawn(1, D, D))[0]


def on_grid(X, levels, axis):
    step = np.abs(X).max(axis=axis, keepdims=True) / levels
    return np.round(X / step) * step


CHANGES = {
    "same": ("same", lambda X, noise: X * (1 + 1e-6)),
    "float16": ("rounded", lambda X, noise: X.astype(np.float16).astype(np.float32)),
    "int8 by row": ("rounded", lambda X, noise: on_grid(X, 127, 1)),
    "int8 by dimension": ("rounded", lambda X, noise: on_grid(X, 127, 0)),
    "4 bits": ("rounded", lambda X, noise: on_grid(X, 7, 1)),
    "a model in 16 bits": ("rounded", lambda X, noise: X + 0.004 * noise),
    "unit length": ("rescaled", lambda X, noise: unit_rows(X)),
    "cut": ("cut", lambda X, noise: unit_rows(X[:, :40])),
    "cut to a quarter, rounded": ("cut", lambda X, noise: X[:, :16].astype(np.float16)),
    "second half zero": ("cut", lambda X, noise: X * (np.arange(D) < 32)),
    "rotated": ("rotated", lambda X, noise: rotated(X)),
    "rotated, noise": ("rotated", lambda X, noise: rotated(X + 0.02 * noise)),
    "noise": ("changed recipe", lambda X, noise: X + noise),
    "little noise": ("changed recipe", lambda X, noise: X + 0.05 * noise),
    "cut, noise": ("other model", lambda X, noise: (X + noise)[:, :32]),
    "unrelated": ("other model", lambda X, noise: noise),
}


@pytest.mark.parametrize("change", CHANGES)
def test_a_known_change_is_named_with_its_evidence(change, passport, vectors):
    """Before, a cut vector was another model, and noise of 5 % a rounding."""
    kind, made = CHANGES[change]
    Y = made(vectors, drawn(9))
    found = check(passport, Y)
    assert found.kind == kind
    assert found.sentence.startswith(kind.capitalize())
    (old, new) = (unit_rows(one) @ unit_rows(one).T for one in (vectors, Y))
    apart = np.triu_indices(N, 1)
    assert found.gram.value == pytest.approx(np.corrcoef(old[apart], new[apart])[0, 1], abs=1e-5)
    assert found.gram.low - 1e-9 <= found.gram.value <= found.gram.high + 1e-9
    if found.cosine:
        if change == "second half zero":
            width = 32
        else:
            width = Y.shape[1]
        cosines = np.vecdot(unit_rows(vectors[:, :width]), unit_rows(Y[:, :width]))
        assert found.cosine.value == pytest.approx(cosines.mean(), abs=1e-6)
        assert found.cosine.low - 1e-9 <= found.cosine.value <= found.cosine.high + 1e-9


@pytest.mark.parametrize("n_others", [2, 10, 28])
@pytest.mark.parametrize("of", ["rotated", "other model", "cut"])
def test_an_index_of_two_models_is_mixed_and_names_the_others(of, n_others, passport, vectors):
    """Before, an index with 30 % of rotated rows was a changed recipe."""
    if of == "other model":
        other = drawn(3)
    else:
        other = rotated(vectors)
    some = np.sort(np.random.default_rng(n_others).choice(N, n_others, replace=False))
    mixed = vectors.astype(np.float16).astype(np.float32)
    mixed[some] = other[some]
    found = check(passport, mixed[:, :40] if of == "cut" else mixed)
    assert (found.kind, found.others) == ("mixed", tuple(IDS[row] for row in some))
    assert f"{100 * n_others / N:.0f} % of the anchors come from another model or recipe" in found.sentence


@pytest.mark.parametrize("n_anchors", [16, 64, 300])
def test_two_swapped_rows_are_mixed_and_named(n_anchors):
    """Before, they were a changed recipe, and the advice was to embed all rows again."""
    vectors = drawn(n_anchors, n_anchors, D)
    ids = [f"text {row}" for row in range(n_anchors)]
    new = vectors.copy()
    new[[3, 9]] = new[[9, 3]]
    found = check(Passport(tuple(ids), vectors), new)
    assert (found.kind, found.others, found.exchanged) == ("mixed", (ids[3], ids[9]), (ids[3], ids[9]))
    assert "have the vector of another anchor" in found.sentence
    assert found.sentence.endswith("Give these vectors to the right ids again.")
    new[5] = drawn(1, D)
    found = check(Passport(tuple(ids), vectors), new)
    assert (found.kind, len(found.others), len(found.exchanged)) == ("mixed", 3, 2)


@pytest.mark.parametrize("longer", ["zeros", "repeated", "others"])
def test_appended_dimensions_are_not_a_cut(longer, passport, vectors):
    further = {"zeros": 0 * vectors, "repeated": vectors, "others": drawn(7)}[longer]
    found = check(passport, np.c_[vectors, further])
    assert (found.kind, found.cosine.value) == ("extended", pytest.approx(1))
    assert "the same vectors, followed by further dimensions" in found.sentence
    whole = Passport(IDS, np.c_[vectors, further])
    assert check(whole, vectors).kind == "cut"
    assert check(whole, np.c_[vectors, further]).kind == "same"


def test_a_changed_recipe_has_a_mean_cosine_from_the_limit_that_is_shown(passport, vectors):
    """Before, paraphrase-MiniLM, at a mean cosine of .30, had the same coordinates as MiniLM."""
    for share, kind in ((0.5, "changed recipe"), (2.5, "related model")):
        found = check(passport, vectors + share * drawn(9))
        assert found.kind == kind
        assert (found.centred >= SAME_MODEL) == (kind == "changed recipe")
        names = [line[0] for line in found.report().tables[0].shown]
        assert "cosine after centring (same model: from .50)" in names


def test_many_anchors_are_compared_by_a_sample_and_all_rows_one_by_one():
    vectors = drawn(0, SAMPLED + 100, 8)
    ids = tuple(map(str, range(len(vectors))))
    new = vectors.copy()
    new[[0, 300]] = drawn(1, 2, 8)
    found = check(Passport(ids, vectors), new)
    assert (found.kind, found.others) == ("mixed", ("0", "300"))
    assert (found.n, found.n_similar) == (SAMPLED + 100, SAMPLED)
    assert f"a sample of {SAMPLED} of them" in found.report().tables[0].caption


def test_the_figure_of_cut_vectors_compares_what_both_have(passport, vectors):
    own, other = chart_of(passport, LatentSpace(vectors[:, :40], IDS)).lines
    np.testing.assert_allclose(own.x, 1, atol=1e-5)
    assert np.abs(other.x).max() < 0.9


def test_anchors_in_another_order_are_not_mixed(passport, vectors):
    found = check(passport, np.r_[vectors[:8], np.random.default_rng(10).permutation(vectors[8:])])
    assert found.kind in ("changed recipe", "related model", "other model")
    assert not found.others
    assert not check(passport, np.r_[vectors[:2], drawn(11)[2:]]).others, "two of 32 may be equal by chance"


def test_a_wider_space_of_the_same_shape_is_rotated_and_another_is_another_model(passport, vectors):
    found = check(passport, np.pad(vectors, ((0, 0), (0, 16))) @ np.linalg.qr(drawn(4, 80, 80))[0])
    assert (found.kind, found.cosine, found.widths) == ("rotated", None, (D, 80))
    assert check(passport, drawn(5, N, 80)).kind == "other model"


def test_rows_are_found_by_id_in_a_larger_space_and_by_order_without_ids(passport, vectors):
    order = np.random.default_rng(6).permutation(N + 100)
    ids = np.array([*IDS, *(f"other {row}" for row in range(100))])[order]
    rows = np.r_[vectors, drawn(6, 100, D)][order]
    assert check(passport, LatentSpace(rows, ids)).kind == "same"
    found = check(passport, LatentSpace(vectors[:10], IDS[:10]))
    assert (found.n, found.missing) == (10, 22)
    assert found.caution.startswith("Compared on 10 anchors: 22 anchors of the passport were not found; with")
    assert not check(passport, vectors).caution
    for new, told in (
        (LatentSpace(rows, [f"x{row}" for row in order]), "got 0 of their ids; embed the anchors again"),
        (vectors[:31], "expected all 32 anchors in the passport's order.*got 31 rows without"),
    ):
        with pytest.raises(SpaceError, match=told):
            check(passport, new)


def test_the_file_keeps_all_and_is_a_space(passport, file, vectors):
    again = Passport.load(file)
    space = load_space(file)
    assert again.card == passport.card
    assert again.to_bytes() == file.read_bytes()
    assert again.ids == tuple(space.ids) == IDS
    np.testing.assert_array_equal(again.vectors, vectors)
    np.testing.assert_array_equal(space.vectors, vectors)
    np.testing.assert_allclose(passport.gram, unit_rows(vectors) @ unit_rows(vectors).T, atol=1e-6)


def test_damaged_files_others_and_too_few_anchors_are_refused(file, tmp_path, vectors):
    whole = file.read_bytes()
    for place in (0, 4, 60, 300, -400, -1):
        content = bytearray(whole)
        content[place] ^= 1
        file.write_bytes(content)
        with pytest.raises(SpaceError, match=r"model\.safetensors: "):
            Passport.load(file)
    file.write_bytes(whole[:-1])
    with pytest.raises(SpaceError, match="expected a passport as safetensors, got another file or a damaged"):
        Passport.load(file)
    save_file({"vectors": vectors}, file)
    with pytest.raises(SpaceError, match=r"without 'relscope\.passport'"):
        Passport.load(file)
    with pytest.raises(SpaceError, match="expected 8 to 4,096 anchors, got 7"):
        Passport(IDS[:7], vectors[:7])
    Passport(IDS, vectors * 0).save(file)
    with pytest.raises(SpaceError, match="zero vectors of 'a sentence, number 0'"):
        Passport.load(file)


def test_on_the_command_line_a_check_is_a_gate(file, run, vectors):
    np.save("new.npy", rotated(vectors))
    code, out, _ = run("check", file, "new.npy", "--json")
    told = json.loads(out)
    assert (code, told["alarm"], told["checks"][0]["change"]) == (1, True, "rotated")
    assert told["passport"]["model"] == "model"
    assert run("check", file, "new.npy", "--junit", "failed.xml")[0] == 1
    code, out, _ = run("check", file, "new.npy", "--gate", "rotated", "--junit", "passed.xml")
    assert code == 0
    for name, failures in (("failed.xml", "1"), ("passed.xml", "0")):
        [suite] = ElementTree.parse(name).getroot()
        assert (suite.get("tests"), suite.get("failures")) == ("1", failures)
        assert "Accepted by --gate: same, rounded" in suite.findtext("testcase/system-out")
    code, _, err = run("make", file, "-o", "again.safetensors", "--junit", "made.xml")
    [suite] = ElementTree.parse("made.xml").getroot()
    assert (code, suite.get("errors")) == (2, "1")
    assert "leave --junit out" in err
    code, out, _ = run("check", file, "new.npy")
    assert (
        "exit code 1: the change is larger than --gate rounded accepts. --gate rotated would accept it."
        in out
    )
    assert "Rotated: the same shape" in out
    np.save("v.npy", vectors)
    made = "--model", "model", "--prompt", "query: ", "-o", "made.safetensors"
    assert run("make", "texts.txt", "--vectors", "v.npy", *made)[0] == 0
    assert Path("made.safetensors").read_bytes() == file.read_bytes()


def test_wrong_inputs_are_one_line_with_the_fix(file, run, tmp_path, vectors):
    for name, content in {"few": vectors[:9], "nan": vectors * np.nan, "new": vectors}.items():
        np.save(f"{name}.npy", content)
    Path("cut.safetensors").write_bytes(file.read_bytes()[:3000])
    Path("twice.txt").write_text("\n".join(["a", *IDS[1:], "a"]))
    other = "expected a passport as safetensors, got another file"
    out = ("-o", "made.safetensors")
    for told, *arguments in (
        ("expected two files", "check", file),
        (other, "check", "texts.txt", "new.npy"),
        (other, "check", "cut.safetensors", "new.npy"),
        ("name one of the files in it", "check", tmp_path, "new.npy"),
        ("got 9 rows without ids; embed the anchors again", "check", file, "few.npy"),
        ("hold NaN or infinite values", "check", file, "nan.npy"),
        ("give --encoder or --vectors", "make", "texts.txt", *out),
        ("give --encoder or --vectors", "make", "bundled", *out),
        ("expected distinct texts, got 'a' again", "make", "twice.txt", "--vectors", "new.npy", *out),
        ("expected 32 rows, one per text, got 9", "make", "texts.txt", "--vectors", "few.npy", *out),
        ("expected a file or folder to write", "make", "new.npy"),
    ):
        code, _, error = run(*arguments)
        assert (code, error.count("\n")) == (2, 1)
        assert told in error


@pytest.mark.parametrize("kind", ["parquet", "lancedb"])
def test_a_store_is_checked_by_the_anchors_ids_or_by_those_that_it_knows(kind, file, run, vectors, tmp_path):
    own = [f"row {row}" for row in range(N)]
    Path("own.txt").write_text("\n".join(own))
    for ids, given in ((IDS, ()), (own, ("--ids", "own.txt"))):
        folder = tmp_path / ids[0]
        folder.mkdir()
        place = place_of(kind, folder)
        ids = [*ids, *(f"other {row}" for row in range(100))]
        write_index(place, [StoredRows(ids, np.r_[vectors, drawn(7, 100, D)])], Target(len(ids), D))
        code, out, _ = run("check", file, place.text, *given, "--json")
        told = json.loads(out)["checks"][0]
        assert (code, told["change"], told["n"]) == (0, "same", N)
    assert run("make", place.text, *given, "-o", "made.safetensors")[0] == 0
    assert Passport.load("made.safetensors").ids == tuple(own)
    Path("own.txt").write_text("row 1")
    code, _, error = run("check", file, place.text, *given)
    assert code == 2
    assert "expected 32 ids, one per anchor, got 1" in error


def test_pictures_are_anchors_by_their_pixels_whatever_their_file(run, vectors):
    pixels = np.random.default_rng(8).integers(0, 255, (N, 4, 5, 3), dtype=np.uint8)
    pixels[9] = pixels[3]
    np.save("v.npy", vectors)
    for suffix in ("png", "bmp"):
        Path(suffix).mkdir()
        for row, one in enumerate(pixels):
            Image.fromarray(one).save(Path(suffix) / f"{row:02}.{suffix}")
        made = "make", suffix, "--pictures", "-o", f"{suffix}.safetensors"
        assert run(*made, "--vectors", "v.npy")[0] == 0
    png, bmp = (Passport.load(f"{suffix}.safetensors") for suffix in ("png", "bmp"))
    first = hashlib.sha256(np.array([5, 4], "<u4").tobytes() + pixels[0].tobytes()).hexdigest()
    assert (png.ids[0], len(png.ids)) == (f"sha256:{first}", N - 1)
    assert png.ids == bmp.ids
    np.testing.assert_array_equal(png.vectors, np.delete(vectors, 9, axis=0))
    code, _, error = run(*made)
    assert code == 2
    assert "give --vectors, or --encoder" in error


def test_the_reader_of_the_documentation_needs_numpy_alone(file, tmp_path, vectors):
    page = (Path(__file__).parents[3] / "docs" / "passport.md").read_text(encoding="utf-8")
    (tmp_path / "reader.py").write_text(re.search(r"```python\n(\"\"\"Reads.*?)```", page, re.DOTALL)[1])
    np.save(tmp_path / "new.npy", rotated(vectors))
    script = "import sys, reader, numpy; ids, vectors, gram, header = reader.read('model.safetensors');"
    script += "same = reader.same_shape(gram, numpy.load('new.npy')) > .999;"
    script += "print(ids[3], vectors.shape, header['card']['model'], same, *{'relcore', 'safetensors'} & {*sys.modules})"
    command = [sys.executable, "-c", script]
    run = subprocess.run(command, cwd=tmp_path, env={}, capture_output=True, text=True, check=True)
    assert run.stdout == f"{IDS[3]} ({N}, {D}) model True\n"


@pytest.mark.slow
def test_the_recipe_is_named_where_the_model_is_at_hand(run):
    things = ("train", "dog", "river", "letter")
    states = ("late", "new", "lost")
    texts = [f"The {thing} is {state}." for thing in things for state in states]
    Path("texts.txt").write_text("\n".join(texts))
    make = "make", "texts.txt", "--encoder", "minilm", "-o"
    assert run(*make, "old.safetensors")[0] == 0
    for recipe, *more in (
        ("the prompt 'query: ', pooling mean, layer 6", "--prompt", "query: "),
        ("the prompt '', pooling cls, layer 6", "--pooling", "cls"),
    ):
        assert run(*make, "new.safetensors", *more)[0] == 0
        code, out, _ = run("check", "old.safetensors", "new.safetensors", "--encoder", "minilm", "--json")
        told = json.loads(out)["checks"][0]
        assert (code, told["change"], told["recipe"]) == (1, "changed recipe", recipe)


def test_an_onnx_model_makes_a_passport_and_is_recognised(run, tmp_path):
    pytest.importorskip("onnxruntime")
    code, out, _ = run(
        "make", "texts.txt", "--encoder", "onnx", "--prompt", "query: ", "-o", "new.safetensors"
    )
    assert code == 0
    assert "encoded by paraphrase-MiniLM-L3-v2" in out
    code, out, _ = run("make", "texts.txt", "--encoder", "onnx-text", "-o", "old.safetensors")
    assert code == 0
    code, out, _ = run("check", "old.safetensors", "new.safetensors", "--encoder", "onnx", "--json")
    assert code == 1
    assert "the prompt 'query: ', pooling mean" in out
