"""What vision and text encoders share: a transformers model from a folder, whole or refused, and its hidden states."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from relcore.spaces import SpaceError

if TYPE_CHECKING:
    import torch


class LayerSpec(Protocol):
    """The settings that both encoders have."""

    model: str
    layers: tuple[int, ...]
    pooling: str
    outputs: tuple[str, ...]
    title: str


def load_transformer(
    spec: LayerSpec, folder: Path, need: Callable[[torch.nn.Module], None], other_poolings: str
) -> torch.nn.Module:
    """The model of a folder, from safetensors only and without code of its own.

    Raises
    ------
    SpaceError
        No model that transformers knows, weights missing, or what `need` raises for a model of another kind.
    """
    from safetensors import SafetensorError
    from transformers import AutoModel

    try:
        model, notes = AutoModel.from_pretrained(
            folder, use_safetensors=True, local_files_only=True, trust_remote_code=False, output_loading_info=True
        )
    except (OSError, ValueError, KeyError, RuntimeError, ImportError, SafetensorError) as error:
        raise SpaceError(
            f"model {spec.model!r}: expected a transformers model, got one that cannot be loaded ({error})"
        ) from error
    need(model)
    # transformers fills what the file lacks with random numbers and only warns; the pooler alone is often left out.
    missing = sorted(key for key in notes["missing_keys"] if spec.pooling == "pooled" or not key.startswith("pooler."))
    if missing:
        raise SpaceError(
            f"model {spec.model!r}: expected all weights of a {type(model).__name__}, got {len(missing)} missing, first "
            f"{missing[0]!r}; save the model whole" + (f", or pool by {other_poolings}" if spec.pooling == "pooled" else "")
        )
    return model


def pooled_output(spec: LayerSpec, found: Any, model: torch.nn.Module, other_poolings: str) -> torch.Tensor:
    """What the model pools by itself, (m, …); SpaceError where it does not."""
    matrix = getattr(found, "pooler_output", None)
    if matrix is None:
        raise SpaceError(
            f"{spec.title}: expected a model that pools by itself, got a {type(model).__name__}; "
            f"choose pooling {other_poolings}"
        )
    return matrix


def hidden_states(spec: LayerSpec, found: Any) -> Sequence[torch.Tensor]:
    """All hidden states, the embedding first; the layers of the spec are among them, or it is a SpaceError."""
    states = [*found.hidden_states[:-1], found.last_hidden_state]  # CLIP's last hidden state lacks the final norm
    if any(not -len(states) <= layer < len(states) for layer in spec.layers):
        raise SpaceError(
            f"{spec.title}: expected layers from 0 (the embedding) to {len(states) - 1}, or -1 and below counted "
            f"from the end, got {spec.layers}"
        )
    return states
