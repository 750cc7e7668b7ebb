"""What vision and text encoders share: their settings, the loading of complete transformers models, and hidden states."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from relcore.sources.encoder import Encoder
from relcore.sources.model_folder import content_of_model, where_of_model
from relcore.sources.settings import setting
from relcore.spaces import SpaceError

if TYPE_CHECKING:
    import torch

_MOST_LAYERS = 1000
_POOLINGS = {"mean": "", "cls": " CLS", "pooled": " pooled"}


class Layered(Encoder):
    """One space for each of the `layers`, all of them from a single pass."""

    layers: tuple[int, ...]

    @property
    def outputs(self) -> tuple[str, ...]:
        return tuple("last layer" if layer == -1 else f"layer {layer}" for layer in self.layers)

    def only(self, output: str) -> Encoder:
        return replace(self, layers=(self.layers[self.outputs.index(output)],))

    def with_outputs_of(self, other: Encoder) -> Encoder | None:
        if type(other) is not type(self) or vars(other) | {"layers": ()} != vars(self) | {"layers": ()}:
            return None
        return replace(self, layers=tuple(sorted({*self.layers, *other.layers})))


@dataclass(frozen=True)
class PretrainedEncoder(Layered):
    """A transformers model from a folder or the hub.

    Attributes
    ----------
    model : str
        A folder that `save_pretrained` wrote, with what prepares the items, or a hub's name.
    layers : tuple of int
        0 is the embedding, 1 the first block or stage, …; -1 the last, with the model's final norm where it has one.
    pooling : "mean", "cls" or "pooled"
        The mean over tokens or patches; the first token; or what the model itself makes of its last layer.
    """

    model: str = setting(placeholder="owner/model, or a folder", note=where_of_model)
    layers: tuple[int, ...] = setting((-1,), help="0 the embedding, 1 the first, -1 the last; several: 4, 8, 12.")
    pooling: Literal["mean", "cls", "pooled"] = setting(
        "mean", choices={"mean": "Mean", "cls": "Class token", "pooled": "The model's own"}
    )

    other_poolings: ClassVar[str]  # than the model's own, for messages

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.pooling == "pooled" and self.layers != (-1,):
            raise SpaceError(
                f"pooling 'pooled' is of the last layer; expected layers (-1,), got {self.layers}, or choose pooling "
                f"{self.other_poolings}"
            )

    @property
    def title(self) -> str:
        return f"{Path(self.model).name}{_POOLINGS[self.pooling]}"

    def content(self) -> str:
        return content_of_model(self.model)


def load_transformer(spec: PretrainedEncoder, folder: Path, need: Callable[[torch.nn.Module], None]) -> torch.nn.Module:
    """The model of a folder, from safetensors only and without code of its own.

    Raises
    ------
    SpaceError
        No model that transformers knows, weights missing, or what `need` raises for a model of another kind.
    """
    from transformers import AutoConfig, AutoModel

    ours: dict[str, Any] = {"local_files_only": True, "trust_remote_code": False}
    try:
        config = AutoConfig.from_pretrained(folder, **ours)
        _need_layers(config)
        model, notes = AutoModel.from_pretrained(folder, config=config, use_safetensors=True, output_loading_info=True, **ours)
    except Exception as error:  # each model's class raises what a wrong configuration leads to: ZeroDivisionError, …
        reason = " ".join(str(error).split()) or type(error).__name__
        raise SpaceError(
            f"model {spec.model!r:.200}: expected a transformers model, got one that cannot be loaded ({reason:.200}); save it "
            "again with model.save_pretrained(folder)"
        ) from error
    need(model)
    # transformers fills missing weights with random numbers and only warns. The pooler alone is often missing.
    missing = sorted(key for key in notes["missing_keys"] if spec.pooling == "pooled" or not key.startswith("pooler."))
    if missing:
        raise SpaceError(
            f"model {spec.model!r}: expected all weights of a {type(model).__name__}, got {len(missing)} missing, first "
            f"{missing[0]!r}; save the model whole"
            + (f", or pool by {spec.other_poolings}" if spec.pooling == "pooled" else "")
        )
    return model


def _need_layers(config: Any) -> None:
    """Raise a ValueError unless the numbers of layers are ones that a model has: all are made before weights are read."""
    for one in (config, getattr(config, "text_config", None), getattr(config, "vision_config", None)):
        layers = getattr(one, "num_hidden_layers", 1)
        if not isinstance(layers, int) or not 1 <= layers <= _MOST_LAYERS:
            raise ValueError(f"{layers!r:.20} layers, where 1 to {_MOST_LAYERS:,} were expected")


def pooled_output(spec: PretrainedEncoder, found: Any, model: torch.nn.Module) -> torch.Tensor:
    """The model's own pooled output, (m, …); SpaceError if it has none."""
    matrix = getattr(found, "pooler_output", None)
    if matrix is None:
        raise SpaceError(
            f"{spec.title}: expected a model that pools by itself, got a {type(model).__name__}; "
            f"choose pooling {spec.other_poolings}"
        )
    return matrix


def hidden_states(spec: PretrainedEncoder, found: Any) -> Sequence[torch.Tensor]:
    """All hidden states, the embedding first; SpaceError if a layer of the spec is not among them."""
    states = [*found.hidden_states[:-1], found.last_hidden_state]  # CLIP's last hidden state lacks the final norm
    if any(not -len(states) <= layer < len(states) for layer in spec.layers):
        raise SpaceError(
            f"{spec.title}: expected layers from 0 (the embedding) to {len(states) - 1}, or -1 and below counted "
            f"from the end, got {spec.layers}"
        )
    return states
