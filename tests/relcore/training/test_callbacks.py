"""Callbacks for trainers: with the libraries if they are installed, and with a trainer that calls the same
methods."""

from types import SimpleNamespace

import numpy as np
import pytest

import relcore
from relcore.base.errors import SpaceError
from relcore.training import callbacks

torch = pytest.importorskip("torch")
LAYER = "bert.encoder.layer.1"
PROBE = torch.arange(20 * 4, dtype=torch.float32).reshape(20, 4) / 80


def test_a_trainer_of_transformers_is_watched(tmp_path):
    pytest.importorskip("accelerate")
    from transformers import BertConfig, BertForSequenceClassification, Trainer, TrainingArguments

    sizes = {"hidden_size": 8, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 8}
    model = BertForSequenceClassification(BertConfig(vocab_size=30, max_position_embeddings=8, **sizes))
    rng = np.random.default_rng(0)
    tokens = torch.from_numpy(rng.integers(1, 30, (24, 6)))
    items = [{"input_ids": one, "labels": int(one[0] % 2)} for one in tokens]
    told = {"report_to": [], "use_cpu": True, "save_strategy": "no", "disable_tqdm": True, "logging_steps": 2}
    arguments = TrainingArguments(str(tmp_path / "out"), max_steps=6, **told)
    probe = {"input_ids": tokens, "attention_mask": torch.ones_like(tokens)}
    callback = relcore.watch_trainer(tmp_path / "run", probe, layers=LAYER, budget=None)
    trainer = Trainer(model=model, args=arguments, train_dataset=items, callbacks=[callback])
    trainer.train()
    run = relcore.open_run(tmp_path / "run")
    assert run.steps.tolist() == [0, 1, 2, 3, 4, 5, 6]
    assert run.metrics["loss"][0].tolist() == [2, 4, 6]
    assert run.layers == (LAYER,)
    assert not run.growing
    after = relcore.encode(model, probe, layers=LAYER, budget=None)[LAYER]
    np.testing.assert_allclose(run.rows(-1), after.vectors, atol=1e-6)


def test_lightning_is_watched(tmp_path):
    lightning = pytest.importorskip("pytorch_lightning")

    class Module(lightning.LightningModule):
        def __init__(self):
            super().__init__()
            self.inner = torch.nn.Linear(4, 2)

        def forward(self, rows):
            return self.inner(rows)

        def training_step(self, batch, number):
            loss = self(batch).square().mean()
            self.log("loss", loss)
            return loss

        def configure_optimizers(self):
            return torch.optim.SGD(self.parameters(), 0.1)

    quiet = {"logger": False, "enable_checkpointing": False, "enable_progress_bar": False}
    callback = relcore.watch_lightning(tmp_path / "run", PROBE, budget=None)
    trainer = lightning.Trainer(
        max_epochs=3, accelerator="cpu", enable_model_summary=False, callbacks=[callback], **quiet
    )
    module = Module()
    trainer.fit(module, torch.utils.data.DataLoader(PROBE, batch_size=10))
    run = relcore.open_run(tmp_path / "run")
    assert run.steps.tolist() == [0, 1, 2, 3, 4, 5, 6]
    assert run.metrics["loss"][0].tolist() == [2, 4, 6]
    np.testing.assert_allclose(run.rows(-1), module(PROBE).detach().numpy(), atol=1e-6)


class FakeCallback:
    """The part of a callback's base class that both libraries have."""


def test_a_trainer_that_calls_the_same_methods_is_watched(tmp_path, monkeypatch):
    monkeypatch.setattr(callbacks, "import_module", lambda name: SimpleNamespace(Callback=FakeCallback))
    model = torch.nn.Linear(4, 2)
    trainer = SimpleNamespace(estimated_stepping_batches=float("inf"), global_step=0, callback_metrics={})
    callback = relcore.watch_lightning(tmp_path / "run", PROBE, budget=None)
    callback.on_train_start(trainer, model)
    for step in (0, 1, 1, 2):  # two batches are gathered for the second step
        trainer.global_step = step
        callback.on_train_batch_end(trainer, model, None, None, 0)
    trainer.callback_metrics = {"accuracy": torch.tensor(0.5), "matrix": torch.ones(2, 2)}
    callback.on_train_epoch_end(trainer, model)
    callback.on_exception(trainer, model, KeyboardInterrupt())
    run = relcore.open_run(tmp_path / "run")
    assert run.steps.tolist() == [0, 1, 2]
    assert run.metric("accuracy").tolist()[-1] == 0.5
    assert "matrix" not in run.metrics
    assert callback.run is None


def test_without_lightning_the_error_tells_what_to_install(monkeypatch):
    def missing(name):
        raise ModuleNotFoundError(name=name.partition(".")[0])

    monkeypatch.setattr(callbacks, "import_module", missing)
    with pytest.raises(SpaceError, match="pip install lightning"):
        relcore.watch_lightning("run", PROBE)
