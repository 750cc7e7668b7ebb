"""The Reconstruction tab without a browser: choices, cost, jobs, results from the store."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import pytest
from streamlit.testing.v1 import AppTest

from relcore.base.numbers import short
from relcore.encoders.dataset import DatasetSpec
from relcore.encoders.datasets import load_dataset
from relcore.stitch.autoencoders import AutoencoderSpec, PictureSpec
from relcore.stitch.reconstruction import ReconstructionSpec, disparities
from relcore.tasks.task import task_job

PICTURES = PictureSpec(DatasetSpec("digits"), n_train=60)
SPECS = [
    ReconstructionSpec(PICTURES, AutoencoderSpec(form, epochs=1), (0, 1), 20)
    for form in ("absolute", "relative")
]
PLANES = ReconstructionSpec(PICTURES, AutoencoderSpec(width=2, epochs=2), (0, 1), 20)


def page():
    from app.stitch import reconstruction as reconstruction_panel

    reconstruction_panel.draw(None)


class Panel:
    """The tab alone, on sixty pictures, two runs of one epoch."""

    def __init__(self) -> None:
        self.at = AppTest.from_function(page, default_timeout=300)
        self.run()
        for key, value in (("train", 60), ("anchors", 20), ("epochs", 1), ("runs", 2)):
            self.change("number_input", f"reconstruct.{key}", value)
        self.change("button_group", "reconstruct.forms", ["absolute", "relative"])
        self.change("button_group", "reconstruct.families", ["AE"])

    def run(self) -> Panel:
        self.at.run()
        assert not self.at.exception, [error.value for error in self.at.exception]
        return self

    def change(self, kind: str, key: str, value) -> Panel:
        (found,) = (one for one in getattr(self.at, kind) if one.key.startswith(key))
        found.set_value(value)
        return self.run()

    def button(self, key: str):
        return next((one for one in self.at.button if one.key == key), None)

    @property
    def text(self) -> str:
        return "\n".join(
            one.value for kind in (self.at.caption, self.at.markdown, self.at.info) for one in kind
        )


@pytest.fixture
def engine(one_worker, monkeypatch):
    monkeypatch.delenv("RELSCOPE_DATA", raising=False)
    for module in ("jobs", "stitch.reconstruction_jobs", "stitch.reconstruction_setup"):
        monkeypatch.setattr(f"app.{module}.engine", lambda: one_worker)
    return one_worker


def test_the_first_view_says_what_it_is_about_what_is_trained_and_what_that_costs(engine):
    at = AppTest.from_function(page, default_timeout=300).run()
    assert not at.exception
    assert "codes relative to the same anchors are" in at.info[0].value
    captions = "\n".join(one.value for one in at.caption)
    assert "1,438 of 1,797 pictures to train on, 359 held out" in captions
    labels = [one.label for one in at.button]
    assert any(re.fullmatch(r"Train 18 autoencoders · about \d+ \w+", label) for label in labels), labels
    assert any(re.fullmatch(r"Train 3 planes · about \d+ \w+", label) for label in labels), labels


def test_training_is_one_job_a_kind_and_its_result_stands_there(engine):
    panel = Panel()
    assert panel.button("reconstruct.start").label.startswith("Train 4 autoencoders")
    panel.button("reconstruct.start").click()
    panel.run()
    jobs = [job for job in engine.jobs() if job.function is task_job]
    assert sorted(job.title for job in jobs) == ["AE, absolute · digits", "AE, relative · digits"]
    digest = load_dataset(PICTURES.dataset).digest
    assert {job.key for job in jobs} == {replace(spec, dataset_digest=digest).key() for spec in SPECS}
    for job in jobs:
        assert job.wait(240).state == "done", job.status().error
    panel.run()
    assert panel.button("reconstruct.start") is None
    assert "over 359 held-out pictures; the error of the mean picture is" in panel.text
    table = panel.at.dataframe[0].value
    assert table["model"].tolist() == ["AE, absolute", "AE, relative"]
    found = SPECS[1].stored(engine.store).mse
    assert table["not stitched"][1].startswith(f"{(found[0, 0] + found[1, 1]) / 2:.2f} ± ")
    assert "not stitched over 2 runs, stitched over 2 ordered pairs" in panel.text
    assert "Published" not in panel.text


def test_what_is_stored_shows_at_once_and_only_the_rest_is_trained(engine):
    for spec in (*SPECS, PLANES):
        spec.stored(engine.store)
    panel = Panel()
    assert panel.button("reconstruct.start") is None
    assert panel.button("reconstruct.planes") is None
    labels = [metric.label for metric in panel.at.metric]
    assert labels[0] == "Disparity as they are"
    assert labels[1] in ("Disparity turned", "Disparity mirrored")
    assert float(panel.at.metric[1].value) <= float(panel.at.metric[0].value)
    panel.change("selectbox", "reconstruct-2.first", 1)
    assert "encoder 1 with its own decoder; lower row: with decoder 0" in panel.text
    panel.change("number_input", "reconstruct.runs", 3)
    assert panel.button("reconstruct.start").label.startswith("Train 2 autoencoders")  # of the third run
    assert panel.button("reconstruct.planes").label.startswith("Train 1 plane ")


def test_the_disparity_of_all_pairs_of_runs_stands_beside_that_of_one(engine):
    three = replace(PLANES, random_states=(0, 1, 2))
    codes = three.stored(engine.store).codes
    panel = Panel()
    panel.change("number_input", "reconstruct.runs", 3)
    found = disparities(codes)[np.triu_indices(3, 1)]
    told = (
        f"the disparity is {short(found.min(), 2)} to {short(found.max(), 2)}, median"
        f" {short(np.median(found), 2)}"
    )
    assert f"All 3 pairs of the 3 runs: after the best turn {told}" in panel.text


def test_nothing_chosen_is_said_and_nothing_breaks(engine):
    panel = Panel().change("button_group", "reconstruct.forms", [])
    assert "Choose at least one autoencoder and one kind of code." in panel.text
    assert panel.button("reconstruct.start") is None


def test_a_failure_is_told_and_can_be_tried_again(engine, monkeypatch):
    digest = load_dataset(PICTURES.dataset).digest
    key = replace(SPECS[0], dataset_digest=digest).key()
    broken = ReconstructionSpec(PICTURES, AutoencoderSpec("relative", epochs=1), (0, 1), 61)
    job = engine.submit(key, task_job, title="AE, absolute · digits", task=broken)
    assert job.wait(240).state == "failed"
    panel = Panel()
    assert any("expected at most 60" in warning.value for warning in panel.at.warning)
    panel.button(f"again-{key}").click()
    panel.run()
    assert engine.job(key).wait(240).state == "done"
    assert panel.run().at.dataframe[0].value["model"].tolist() == ["AE, absolute"]
