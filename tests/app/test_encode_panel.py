import json
from types import SimpleNamespace

import numpy as np
import pytest

from relcore.catalog.encodings import encode, encode_job
from relcore.encoders.api import ApiText
from relcore.encoders.dataset import DatasetSpec
from relcore.encoders.datasets import load_dataset
from relcore.encoders.onnx_pictures import OnnxPictures
from relcore.encoders.vision import SmallVision
from tests.provider import provider

KEY = "sk-secret-0123456789"
DIGITS = DatasetSpec("digits", limit=40)
MLP = SmallVision("mlp", width=8, epochs=1)


@pytest.fixture
def tab(queue, make_session, monkeypatch):
    monkeypatch.delenv("RELSCOPE_DATA", raising=False)

    def open_tab(name="Bundled"):
        state = {"data.kind": name, "bundled.kind": "Texts and pictures"}
        return make_session(60, ("data",), state)

    return open_tab


def small(session):
    session.change("button_group", "encode.forms-images", ["small-vision"])
    session.change("number_input", "encode.limit", 40)
    session.change("multiselect", "encode.small-vision.architecture", ["mlp"])
    session.change("number_input", "encode.small-vision.width", 8)
    return session.change("number_input", "encode.small-vision.epochs", 1)


@pytest.mark.slow
def test_an_encoding_joins_the_session_as_one_step(tab, queue):
    encode(DIGITS, SmallVision("cnn", width=8, epochs=1), queue.store)
    session = small(tab())
    before = session.workspace
    session.click("encode.start")
    job = queue.jobs()[0]
    n_jobs = len(queue.jobs())
    assert job.function is encode_job
    assert job.wait(300).state == "done"
    session.run()
    (new,) = session.workspace.spaces[2:]
    assert (new.name, new.dataset, new.encoder) == ("MLP 8, state 0 · digits", DIGITS, MLP)
    assert session.button(key="encode.start").label == "Add to the session"  # it is in the store
    assert (session.workspace.source, session.workspace.target) == (before.source, before.target)
    assert "encode.compare" not in session.keys  # nothing yet that it could be compared with
    session.change("multiselect", "encode.small-vision.architecture", ["cnn"]).click("encode.start")
    names = ["MLP 8, state 0 · digits", "CNN 8, state 0 · digits"]
    assert [spec.name for spec in session.workspace.spaces[2:]] == names
    assert len(queue.jobs()) == n_jobs  # the second is in the store; Explore opens with the pair
    assert [session.workspace.source.name, session.workspace.target.name] == names
    assert set(session.workspace.anchors) <= {f"digits/{row}" for row in range(40)}
    for _ in range(2):  # to encode and to compare is one step
        session.click("history.undo")
    assert session.workspace == before


def test_a_file_that_cannot_be_encoded_changes_nothing(tab, tmp_path):
    (tmp_path / "bad.csv").write_text("text,label\n,x\nb,y\n")
    session = tab("Texts")
    before = session.workspace
    session.change("text_input", "data.path", str(tmp_path / "bad.csv"))
    (error,) = session.errors
    assert "empty" in error
    assert session.workspace == before


def test_the_network_is_not_asked_before_the_click(tab, monkeypatch):
    asked = []
    monkeypatch.setattr("relcore.encoders.datasets.hub_answers", lambda *_: asked.append(1) and False)
    session = tab("Texts").change("text_input", "data.path", "nobody/nothing")
    assert "is not on this machine and would be downloaded now" in session.everything
    assert not asked
    session.click("encode.download")
    assert asked
    assert "or the network to download it, got neither" in session.errors[0]


def test_texts_are_sent_to_a_provider_only_by_the_click(tab, queue, tmp_path, monkeypatch):
    submitted = []

    def submit(self, key, function, *, title, expected, here, **arguments):
        submitted.append((key, arguments))
        return SimpleNamespace(key=key)

    monkeypatch.setattr(type(queue), "submit", submit)
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    (tmp_path / "own.csv").write_text("id,text\n" + "".join(f"r{row},text {row}\n" for row in range(40)))
    with provider() as (server, address):
        host = address.removeprefix("http://")
        session = tab("Texts").change("text_input", "data.path", str(tmp_path / "own.csv"))
        session.change("button_group", "encode.forms-texts-own", ["api-text"])
        session.change("text_input", "encode.api-text.address", f"{address}/v1")
        session.change("text_input", "encode.api-text.model", "hashed")
        session.change("number_input", "encode.api-text.price", 100.0)
        shown = session.at.warning[-1].value.replace("\\", "").replace("\u2060", "")
        assert shown == (
            f"40 texts (about 108 tokens, $0.0108) are sent to the server {host} on this machine, with the key"
            " in $OPENAI_API_KEY."
        )
        assert session.button(key="encode.start").label == "Send and encode"
        assert not server.asked
        session.click("encode.start")
    [(_, arguments)] = submitted
    assert arguments["send_to"] == (host,)
    assert arguments["encoder"] == ApiText("hashed", f"{address}/v1", price=100.0)
    assert host not in str(session.workspace)


@pytest.mark.slow
def test_pictures_are_encoded_by_an_onnx_folder(tab, queue, tmp_path):
    """A graph that takes the mean of each channel; the job runs it in the confined process."""
    onnx = pytest.importorskip("onnx")
    helper = onnx.helper
    ends = [
        helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, shape)
        for name, shape in (("pixel_values", ["n", 3, 8, 8]), ("vectors", ["n", 3]))
    ]
    node = helper.make_node("ReduceMean", ["pixel_values"], ["vectors"], axes=[2, 3], keepdims=0)
    graph = helper.make_graph([node], "g", ends[:1], ends[1:])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    onnx.save(model, tmp_path / "model.onnx")
    processor = {"image_processor_type": "ViTImageProcessor", "size": {"height": 8, "width": 8}}
    (tmp_path / "preprocessor_config.json").write_text(json.dumps(processor))
    session = tab()
    session.change("button_group", "encode.forms-images", ["onnx-vision"])
    assert session.button(key="encode.start").disabled  # the form has no model yet
    session.change("number_input", "encode.limit", 40)
    session.change("text_input", "encode.onnx-vision.model", str(tmp_path))
    session.click("encode.start")
    assert queue.jobs()[0].wait(300).state == "done"
    session.run()
    (new,) = session.workspace.spaces[2:]
    assert new.encoder == OnnxPictures(str(tmp_path))
    images = load_dataset(DIGITS).items(0, 40)
    means = [np.asarray(image).mean() / 127.5 - 1 for image in images]
    np.testing.assert_allclose(new.load().vectors[:, 0], means, atol=1e-5)
