import json
import shutil
from pathlib import Path

import numpy as np
import pytest

import relcore
from relcore.base.errors import SpaceError
from relcore.training.runs import step_of

torch = pytest.importorskip("torch")
RNG = np.random.default_rng(0)


@pytest.fixture
def run(tmp_path):
    with relcore.watch(tmp_path / "run", torch.nn.Linear(3, 2), torch.eye(3), labels=list("aab")) as watched:
        watched.step(loss=0.5)
    return watched.folder


def change(path, **new):
    path.write_text(json.dumps(json.loads(path.read_text()) | new))


def test_checkpoints_saved_as_files_are_a_run_of_their_common_rows(tmp_path):
    rows = {step: RNG.normal(size=(5, 3)).astype(np.float32) for step in (5, 20, 100)}
    ids = {5: list("abcde"), 20: list("edcba"), 100: list("abcdx")}
    for step, vectors in rows.items():
        space = relcore.LatentSpace(vectors, ids[step], labels=list("11222"))
        (tmp_path / "all").mkdir(exist_ok=True)
        relcore.save_space(space, tmp_path / "all" / f"model-epoch_{step}.npz")
    run = relcore.open_run(tmp_path / "all")
    assert run.steps.tolist() == [5, 20, 100]
    assert run.layers == ("output",)
    assert set(run.ids) == set("abcd")
    order = [list("abcde").index(one) for one in run.ids]
    np.testing.assert_array_equal(run.rows(0), rows[5][order])
    np.testing.assert_array_equal(run.rows(1), rows[20][::-1][order])
    assert [run.name for run in relcore.open_runs(tmp_path)] == ["all"]


def test_folders_that_encode_wrote_are_a_run_with_layers(tmp_path):
    for seed in (0, 1):
        for step in (0, 10):
            torch.manual_seed(seed + step)
            model = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.ReLU())
            layers = ["0", "output"]
            folder = tmp_path / f"seed{seed}" / f"step-{step}"
            folder.parent.mkdir(exist_ok=True)
            relcore.encode(
                model, np.eye(3), layers=layers, folder=folder, ids=list("abc"), labels=list("xyz")
            )
    first, second = relcore.open_runs(tmp_path)
    assert (first.name, first.steps.tolist(), first.layers) == ("seed0", [0, 10], ("0", "output"))
    assert second.rows(1, "0").shape == (3, 4)
    assert (first.ids.tolist(), first.labels.tolist()) == (list("abc"), list("xyz"))
    with pytest.raises(SpaceError, match=r"layer: expected one of .*, got 'conv'"):
        first.rows(0, "conv")


def test_steps_of_names():
    names = {
        "step-100.npy": 100,
        "3.safetensors": 3,
        "run2_step_40.npz": 40,
        "words.npy": None,
        "seed1-20.vec.gz": 20,
    }
    assert {name: step_of(Path(name)) for name in names} == names
    assert step_of(Path("seed1"), anywhere=False) is None


def test_unfinished_frames_and_files_are_left_out(run):
    whole = relcore.open_run(run)
    (run / "step-000000007").mkdir()
    (run / ".relscope~left").mkdir()
    (run / "notes.txt").write_text("no run")
    assert relcore.open_run(run).steps.tolist() == whole.steps.tolist() == [0, 1]
    (run / "metrics.json").unlink()
    assert dict(relcore.open_run(run).metrics) == {}


def test_damaged_runs_are_refused(run):
    card = run / "run.json"
    kept = card.read_bytes()
    frame = next(run.glob("step-*0/output.npy"))
    for new, message in (
        ({"files": ["../../secret"]}, "expected a file name for each layer"),
        ({"n": 4}, "expected 4 ids and labels"),
        ({"layers": ["output", "other"]}, "expected a file name for each layer"),
        ({"layout": 9}, "later version"),
        ({"n": "many"}, "expected a whole number"),
    ):
        change(card, **new)
        with pytest.raises(SpaceError, match=message):
            relcore.open_run(run)
        card.write_bytes(kept)
    np.save(frame, np.zeros((9, 2), np.float32))
    with pytest.raises(SpaceError, match="expected 3 rows"):
        relcore.open_run(run).rows(0)
    frame.write_bytes(frame.read_bytes()[:-8])
    with pytest.raises(SpaceError, match="cut short"):
        relcore.open_run(run).rows(0)
    np.save(frame, np.array([[object()]]), allow_pickle=True)
    with pytest.raises(SpaceError, match="pickled objects"):
        relcore.open_run(run).rows(0)
    change(run / "metrics.json", values={"loss": []})
    with pytest.raises(SpaceError, match="expected a value for each step"):
        relcore.open_run(run)


def test_a_folder_without_a_run_says_what_it_expects(tmp_path, run):
    for open_it in (relcore.open_run, relcore.open_runs):
        with pytest.raises(SpaceError, match="There is no folder"):
            open_it(tmp_path / "none")
        (tmp_path / "empty").mkdir(exist_ok=True)
        with pytest.raises(SpaceError, match="step-100"):
            open_it(tmp_path / "empty")
    shutil.copytree(run, tmp_path / "copy")
    with pytest.raises(SpaceError, match="a folder with 2"):
        relcore.open_run(tmp_path)
    with pytest.raises(SpaceError, match="frame: expected a number below 2, got 2"):
        relcore.open_run(run).rows(2)


def test_two_checkpoints_of_one_step_are_refused(tmp_path):
    for name in ("a-step1.npy", "b-step1.npy"):
        np.save(tmp_path / name, np.eye(3, dtype=np.float32))
    with pytest.raises(SpaceError, match="expected one file for each step"):
        relcore.open_run(tmp_path)


def test_labels_and_an_accuracy_lie_beside_checkpoints(tmp_path):
    for name in ("first", "second"):
        (tmp_path / name).mkdir()
        for step in (0, 10):
            np.save(tmp_path / name / f"step-{step}.npy", RNG.normal(size=(4, 3)))
    (tmp_path / "labels.txt").write_text("a\nb\nb\n7\n")
    (tmp_path / "second" / "metrics.csv").write_text("step,accuracy,loss\n10,0.9,\n0,0.1,2\n")
    first, second = relcore.open_runs(tmp_path)
    assert first.labels.tolist() == second.labels.tolist() == ["a", "b", "b", "7"]
    assert not first.metrics
    assert second.metric("accuracy").tolist() == [0.1, 0.9]
    assert second.metric("loss").tolist() == [2, 2]
    (tmp_path / "second" / "labels.txt").write_text("x\ny\n")
    with pytest.raises(
        SpaceError, match="expected 4 labels, one line for each row of the first checkpoint, got 2"
    ):
        relcore.open_runs(tmp_path)
    (tmp_path / "first" / "metrics.csv").write_text("epoch,accuracy\n1,2\n")
    with pytest.raises(SpaceError, match="expected columns step and accuracy"):
        relcore.open_run(tmp_path / "first")
    (tmp_path / "first" / "metrics.csv").write_text("step,accuracy\n1,high\n")
    with pytest.raises(SpaceError, match="got '1,high'"):
        relcore.open_run(tmp_path / "first")


def test_labels_of_saved_spaces_come_before_the_file(tmp_path):
    space = relcore.LatentSpace(np.eye(3), list("abc"), labels=list("xyz"))
    relcore.save_space(space, tmp_path / "step-1.npz")
    (tmp_path / "labels.txt").write_text("1\n2\n3\n")
    assert relcore.open_run(tmp_path).labels.tolist() == list("xyz")
