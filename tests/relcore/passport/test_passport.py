"""Passports: a file that is a space, what is said of a known change, and a reader of 40 lines without Relscope."""

import hashlib
import json
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from relcore import LatentSpace, load_space
from relcore.base.errors import SpaceError
from relcore.base.rows import unit_rows
from relcore.cli import main
from relcore.passport.check import chart_of
from relcore.passport.passport import Passport, PassportCard, check
from relcore.stores.index import StoredRows, Target, write_index
from tests.relcore.stores.stores import place_of

N, D = 32, 64
IDS = tuple(f"a sentence, number {row}" for row in range(N))


@pytest.fixture
def vectors():
    return np.random.default_rng(0).normal(size=(N, D)).astype(np.float32) + 0.2


@pytest.fixture
def passport(vectors):
    return Passport(IDS, vectors, PassportCard("model", prompt="query: "))


@pytest.fixture
def file(passport, tmp_path):
    passport.save(tmp_path / "model.safetensors")
    return tmp_path / "model.safetensors"


def rotation(seed=1):
    return np.linalg.qr(np.random.default_rng(seed).normal(size=(D, D)))[0]


CHANGES = {
    "same": lambda X: X * (1 + 1e-6),
    "rounded": lambda X: X.astype(np.float16).astype(np.float32),
    "rescaled": lambda X: unit_rows(X),
    "cut": lambda X: unit_rows(X[:, :40]),
    "rotated": lambda X: X @ rotation(),
    "changed recipe": lambda X: X + np.random.default_rng(2).normal(size=X.shape),
    "other model": lambda X: np.random.default_rng(3).normal(size=X.shape),
}


@pytest.mark.parametrize("kind", CHANGES)
def test_a_known_change_is_named_with_its_evidence(kind, passport, vectors):
    Y = CHANGES[kind](vectors)
    found = check(passport, Y)
    assert found.kind == kind
    grams = (each / np.linalg.norm(each, axis=1, keepdims=True) for each in (vectors, Y))
    old, new = (each @ each.T for each in grams)
    vectors = vectors[:, : Y.shape[1]]
    U, V = (each / np.linalg.norm(each, axis=1, keepdims=True) for each in (vectors, Y))
    assert found.cosine.value == pytest.approx(np.vecdot(U, V).mean(), abs=1e-6)
    apart = np.triu_indices(N, 1)
    assert found.gram.value == pytest.approx(np.corrcoef(old[apart], new[apart])[0, 1], abs=1e-5)
    for one in (found.cosine, found.gram):
        assert one.low <= one.value + 1e-9
        assert one.value <= one.high + 1e-9
    assert found.sentence.startswith(kind.capitalize())


def on_grid(X, levels, axis):
    step = np.abs(X).max(axis=axis, keepdims=True) / levels
    return np.round(X / step) * step


CLOSE = {
    "int8 by row": ("rounded", lambda X, noise: on_grid(X, 127, 1)),
    "int8 by dimension": ("rounded", lambda X, noise: on_grid(X, 127, 0)),
    "4 bits": ("rounded", lambda X, noise: on_grid(X, 7, 1)),
    "a model in 16 bits": ("rounded", lambda X, noise: X + 0.004 * noise),
    "noise": ("changed recipe", lambda X, noise: X + 0.05 * noise),
    "cut to a quarter, rounded": ("cut", lambda X, noise: X[:, :16].astype(np.float16)),
    "second half zero": ("cut", lambda X, noise: X * (np.arange(D) < 32)),
    "cut, noise": ("other model", lambda X, noise: (X + noise)[:, :32]),
    "rotated, noise": ("rotated", lambda X, noise: (X + 0.02 * noise) @ rotation()),
}


@pytest.mark.parametrize("change", CLOSE)
def test_cut_vectors_and_noise_are_not_taken_for_something_else(change, passport, vectors):
    """A cut vector was another model, noise of 5 % a rounding."""
    kind, made = CLOSE[change]
    found = check(passport, made(vectors, np.random.default_rng(9).normal(size=vectors.shape)))
    assert found.kind == kind
    if kind == "cut":
        assert found.cosine.value > 0.99


@pytest.mark.parametrize("n_others", [2, 10, 16, 28])
@pytest.mark.parametrize("of", ["rotated", "other model", "cut"])
def test_an_index_of_two_models_is_mixed_and_names_the_others(of, n_others, passport, vectors):
    """Of 30 % rotated rows it was a changed recipe."""
    other = (
        vectors @ rotation() if of != "other model" else np.random.default_rng(3).normal(size=vectors.shape)
    )
    some = np.sort(np.random.default_rng(n_others).choice(N, n_others, replace=False))
    mixed = vectors.astype(np.float16).astype(np.float32)
    mixed[some] = other[some]
    found = check(passport, mixed[:, :40] if of == "cut" else mixed)
    assert (found.kind, found.others) == ("mixed", tuple(IDS[row] for row in some))
    assert f"{100 * n_others / N:.0f} % of the anchors come from another model or recipe" in found.sentence


def test_the_figure_of_cut_vectors_compares_what_both_have(passport, vectors):
    own, other = chart_of(passport, LatentSpace(vectors[:, :40], IDS)).lines
    np.testing.assert_allclose(own.x, 1, atol=1e-5)
    assert np.abs(other.x).max() < 0.9


def test_anchors_in_another_order_are_not_mixed(passport, vectors):
    order = np.r_[np.arange(8), 8 + np.random.default_rng(10).permutation(N - 8)]
    assert check(passport, vectors[order]).kind in ("changed recipe", "other model")
    assert not check(passport, vectors[order]).others
    by_chance = np.r_[vectors[:2], np.random.default_rng(11).normal(size=(N - 2, D))]
    assert not check(passport, by_chance).others


def test_a_wider_space_of_the_same_shape_is_rotated_and_another_is_another_model(passport, vectors):
    wide = (
        np.pad(vectors, ((0, 0), (0, 16))) @ np.linalg.qr(np.random.default_rng(4).normal(size=(80, 80)))[0]
    )
    found = check(passport, wide)
    assert (found.kind, found.cosine, found.widths) == ("rotated", None, (D, 80))
    assert check(passport, np.random.default_rng(5).normal(size=(N, 80))).kind == "other model"


def test_rows_are_found_by_id_in_a_larger_space_and_by_order_without_ids(passport, vectors):
    rng = np.random.default_rng(6)
    order = rng.permutation(N + 100)
    ids = np.array([*IDS, *(f"other {row}" for row in range(100))])[order]
    rows = np.vstack([vectors, rng.normal(size=(100, D))])[order]
    assert check(passport, LatentSpace(rows, ids)).kind == "same"
    found = check(passport, LatentSpace(vectors[:10], IDS[:10]))
    assert (found.n, found.missing) == (10, 22)
    assert found.caution.startswith("Compared on 10 anchors: 22 anchors of the passport were not found; with")
    assert not check(passport, vectors).caution
    with pytest.raises(SpaceError, match="got 0 of their ids; embed the anchors again"):
        check(passport, LatentSpace(rows, [f"x{row}" for row in range(len(rows))]))
    with pytest.raises(
        SpaceError, match=r"expected all 32 anchors in the passport's order.*got 31 rows without"
    ):
        check(passport, vectors[:31])


def test_the_file_keeps_all_and_is_a_space(passport, file, vectors):
    again = Passport.load(file)
    assert (again.ids, again.card) == (passport.ids, passport.card)
    np.testing.assert_array_equal(again.vectors, vectors)
    assert again.to_bytes() == file.read_bytes()
    space = load_space(file)
    assert tuple(space.ids) == IDS
    np.testing.assert_array_equal(space.vectors, vectors)
    np.testing.assert_allclose(passport.gram, unit_rows(vectors) @ unit_rows(vectors).T, atol=1e-6)


@pytest.mark.parametrize("place", [0, 4, 60, 300, -400, -1])
def test_a_damaged_file_is_refused(file, place):
    content = bytearray(file.read_bytes())
    content[place] ^= 1
    file.write_bytes(content)
    with pytest.raises(SpaceError, match=r"model\.safetensors: "):
        Passport.load(file)


def test_a_cut_file_another_and_too_few_anchors_are_refused(file, tmp_path, vectors):
    file.write_bytes(file.read_bytes()[:-1])
    with pytest.raises(
        SpaceError, match="expected a passport as safetensors, got another file or a damaged one"
    ):
        Passport.load(file)
    from safetensors.numpy import save_file

    save_file({"vectors": vectors}, tmp_path / "space.safetensors")
    with pytest.raises(SpaceError, match=r"without 'relscope\.passport'"):
        Passport.load(tmp_path / "space.safetensors")
    with pytest.raises(SpaceError, match="expected 8 to 4,096 anchors, got 7"):
        Passport(IDS[:7], vectors[:7])
    Passport(IDS, vectors * 0).save(file)
    with pytest.raises(SpaceError, match="zero vectors of 'a sentence, number 0'"):
        Passport.load(file)
    with pytest.raises(SpaceError, match="zero vectors of 'a sentence, number 3'"):
        Passport.of(LatentSpace(np.where(np.arange(N)[:, None] == 3, 0, vectors), IDS))


def test_on_the_command_line_a_check_is_a_gate(file, tmp_path, vectors, capsys):
    np.save(tmp_path / "new.npy", vectors @ rotation())
    check_new = ["passport", "check", str(file), str(tmp_path / "new.npy")]
    assert main([*check_new, "--json"]) == 1
    told = json.loads(capsys.readouterr().out)
    assert (told["checks"][0]["change"], told["alarm"], told["passport"]["model"]) == (
        "rotated",
        True,
        "model",
    )
    assert main([*check_new, "--gate", "rotated"]) == 0
    assert "Rotated: the same shape" in capsys.readouterr().out
    (tmp_path / "texts.txt").write_text("\n".join(IDS))
    np.save(tmp_path / "v.npy", vectors)
    made = str(tmp_path / "made.safetensors")
    given = ["--vectors", str(tmp_path / "v.npy"), "--model", "model", "--prompt", "query: "]
    assert main(["passport", "make", str(tmp_path / "texts.txt"), *given, "-o", made]) == 0
    assert Passport.load(made).card == Passport.load(file).card
    assert Path(made).read_bytes() == file.read_bytes()
    capsys.readouterr()


def test_wrong_inputs_are_one_line_with_the_fix(file, tmp_path, vectors, capsys):
    for name, content in {"few": vectors[:9], "nan": vectors * np.nan, "new": vectors}.items():
        np.save(tmp_path / f"{name}.npy", content)
    (tmp_path / "cut.safetensors").write_bytes(file.read_bytes()[:3000])
    (tmp_path / "texts.txt").write_text("\n".join(IDS))
    (tmp_path / "twice.txt").write_text("\n".join(["a", *IDS[1:], "a"]))
    new, out = tmp_path / "new.npy", ["-o", tmp_path / "made.safetensors"]
    for told, *arguments in (
        ("expected two files", "check", file),
        ("expected a passport as safetensors, got another file", "check", tmp_path / "texts.txt", new),
        ("expected a passport as safetensors, got another file", "check", tmp_path / "cut.safetensors", new),
        ("name one of the files in it", "check", tmp_path, new),
        ("got 9 rows without ids; embed the anchors again", "check", file, tmp_path / "few.npy"),
        ("hold NaN or infinite values", "check", file, tmp_path / "nan.npy"),
        ("give --encoder or --vectors", "make", tmp_path / "texts.txt", *out),
        ("give --encoder or --vectors", "make", "bundled", *out),
        ("expected distinct texts, got 'a' again", "make", tmp_path / "twice.txt", "--vectors", new, *out),
        (
            "expected 32 rows, one per text, got 9",
            "make",
            tmp_path / "texts.txt",
            "--vectors",
            tmp_path / "few.npy",
            *out,
        ),
        ("expected where to write, got no -o", "make", new),
    ):
        assert main(["passport", *map(str, arguments)]) == 2
        err = capsys.readouterr().err
        assert told in err
        assert err.count("\n") == 1


@pytest.mark.parametrize("kind", ["parquet", "lancedb"])
def test_a_store_is_checked_by_the_anchors_ids_or_by_those_that_it_knows(
    kind, file, vectors, tmp_path, capsys
):
    rng = np.random.default_rng(7)
    own = [f"row {row}" for row in range(N)]
    rows = np.vstack([vectors, rng.normal(size=(100, D)).astype(np.float32)])
    (tmp_path / "own.txt").write_text("\n".join(own))
    for name, ids in (("texts", list(IDS)), ("own", own)):
        place = place_of(kind, tmp_path / name)
        (tmp_path / name).mkdir()
        ids = [*ids, *(f"other {row}" for row in range(100))]
        write_index(place, [StoredRows(ids, rows)], Target(len(ids), D))
        given = ["--ids", str(tmp_path / "own.txt")] * (name == "own")
        assert main(["passport", "check", str(file), place.text, *given, "--json"]) == 0
        told = json.loads(capsys.readouterr().out)["checks"][0]
        assert (told["change"], told["n"]) == ("same", N)
    made = ["passport", "make", place.text, *given, "-o", str(tmp_path / "made.safetensors")]
    assert main(made) == 0
    assert Passport.load(tmp_path / "made.safetensors").ids == tuple(own)
    capsys.readouterr()
    (tmp_path / "own.txt").write_text("row 1")
    assert main(["passport", "check", str(file), place.text, *given]) == 2
    assert "expected 32 ids, one per anchor, got 1" in capsys.readouterr().err


def test_pictures_are_anchors_by_their_pixels_whatever_their_file(tmp_path, vectors, capsys):
    rng = np.random.default_rng(8)
    pixels = rng.integers(0, 255, (N, 4, 5, 3), dtype=np.uint8)
    pixels[9] = pixels[3]
    for suffix in ("png", "bmp"):
        (tmp_path / suffix).mkdir()
        for row, one in enumerate(pixels):
            Image.fromarray(one).save(tmp_path / suffix / f"{row:02}.{suffix}")
        np.save(tmp_path / "v.npy", vectors)
        make = [
            "passport",
            "make",
            str(tmp_path / suffix),
            "--pictures",
            "--vectors",
            str(tmp_path / "v.npy"),
        ]
        assert main([*make, "-o", str(tmp_path / f"{suffix}.safetensors")]) == 0
    png, bmp = (Passport.load(tmp_path / f"{suffix}.safetensors") for suffix in ("png", "bmp"))
    first = hashlib.sha256(np.array([5, 4], "<u4").tobytes() + pixels[0].tobytes()).hexdigest()
    assert (png.ids[0], len(png.ids)) == (f"sha256:{first}", N - 1)
    assert png.ids == bmp.ids
    np.testing.assert_array_equal(png.vectors, np.delete(vectors, 9, axis=0))
    capsys.readouterr()
    assert (
        main(["passport", "make", str(tmp_path / "png"), "--pictures", "-o", str(tmp_path / "x.safetensors")])
        == 2
    )
    assert "give --vectors, or --encoder" in capsys.readouterr().err


def test_migrate_makes_a_bridge_of_two_passports_the_same_as_of_their_vectors(tmp_path):
    rng = np.random.default_rng(0)
    old = rng.normal(size=(300, 12))
    new = old @ np.linalg.qr(rng.normal(size=(12, 12)))[0] + 0.1 * rng.normal(size=old.shape)
    ids = tuple(map(str, range(300)))
    for name, rows in (("old", old), ("new", new)):
        rows = rows.astype(np.float32)
        Passport(ids, rows).save(tmp_path / f"{name}.safetensors")
        np.savez(tmp_path / f"{name}.npz", matrix=rows, ids=ids)
    written = []
    for suffix in ("safetensors", "npz"):
        pair = [str(tmp_path / f"{name}.{suffix}") for name in ("old", "new")]
        assert main(["migrate", *pair, "--export", str(tmp_path / f"of {suffix}")]) == 0
        written.append((tmp_path / f"of {suffix}" / "adapter.safetensors").read_bytes())
    assert written[0] == written[1]


def test_the_reader_of_the_documentation_needs_numpy_alone(file, tmp_path, vectors):
    page = (Path(__file__).parents[3] / "docs" / "passport.md").read_text(encoding="utf-8")
    (tmp_path / "reader.py").write_text(re.search(r"```python\n(\"\"\"Reads.*?)```", page, re.DOTALL)[1])
    np.save(tmp_path / "new.npy", vectors @ rotation())
    script = "import sys; import reader; ids, vectors, gram, header = reader.read('model.safetensors'); import numpy as np;"
    script += "print(ids[3], vectors.shape, header['card']['model'], reader.same_shape(gram, np.load('new.npy')) > .999,"
    script += " 'relcore' in sys.modules, 'safetensors' in sys.modules)"
    run = subprocess.run(
        [sys.executable, "-c", script], cwd=tmp_path, env={}, capture_output=True, text=True, check=True
    )
    assert run.stdout.split() == f"{IDS[3]} ({N}, {D}) model True False False".split()


@pytest.mark.slow
def test_the_recipe_is_named_where_the_model_is_at_hand(tmp_path, capsys):
    texts = [
        f"The {thing} is {state}."
        for thing in ("train", "dog", "river", "letter")
        for state in ("late", "new", "lost")
    ]
    (tmp_path / "texts.txt").write_text("\n".join(texts))
    make = ["passport", "make", str(tmp_path / "texts.txt"), "--encoder", "minilm", "-o"]
    assert main([*make, str(tmp_path / "old.safetensors")]) == 0
    for name, more in {"query": ["--prompt", "query: "], "cls": ["--pooling", "cls"]}.items():
        assert main([*make, str(tmp_path / f"{name}.safetensors"), *more]) == 0
        capsys.readouterr()
        pair = [str(tmp_path / f"{each}.safetensors") for each in ("old", name)]
        assert main(["passport", "check", *pair, "--encoder", "minilm", "--json"]) == 1
        told = json.loads(capsys.readouterr().out)["checks"][0]
        assert told["change"] == "changed recipe"
        assert (
            told["recipe"]
            == {
                "query": "the prompt 'query: ', pooling mean, layer 6",
                "cls": "the prompt '', pooling cls, layer 6",
            }[name]
        )
