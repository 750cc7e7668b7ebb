"""Read what the layers of a PyTorch network give, and leave the network as it was.

`undisturbed` and `Capture` are used together::

    with undisturbed(model), Capture(model, ["conv*", "head.0"]) as capture:
        rows = capture(batch)  # {"conv1": tensor (m, d), …}, on the network's device
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any, Literal, Self, TypeAlias, get_args

import numpy as np

from relcore.base.errors import SpaceError, did_you_mean, need_one_of, quote

if TYPE_CHECKING:
    from torch import Tensor, nn

Pooling: TypeAlias = Literal["auto", "mean", "first", "last", "flat"]

OUTPUT = "output"  # the name of what the whole network returns
# The tensor of a network's output that has several, in this order; else the first one.
_KEYS = ("sentence_embedding", "last_hidden_state", "logits")


@contextmanager
def undisturbed(model: nn.Module) -> Iterator[None]:
    """Within the block, the network is in evaluation mode and computes no gradients.

    Afterwards, also after an error, everything is as before: the training mode of each module, the content of
    all buffers, whether gradients are computed, and the states of the random generators of torch (CPU and the
    network's GPUs), NumPy and Python.

    Weights and their gradients are not touched. A block costs a copy of the buffers.
    """
    import torch

    modes = {module: module.training for module in model.modules()}
    buffers = [(module, dict(module._buffers)) for module in model.modules()]
    contents = {id(one): one.detach().clone() for one in model.buffers()}
    devices = {one.device for one in (*model.parameters(), *model.buffers()) if one.device.type == "cuda"}
    drawn = random.getstate()
    drawn_by_numpy = np.random.get_state()  # noqa: NPY002  # a data set may draw from the global generator
    try:
        with torch.random.fork_rng(devices=sorted(devices, key=str)), torch.no_grad():
            model.eval()
            yield
    finally:
        random.setstate(drawn)
        np.random.set_state(drawn_by_numpy)  # noqa: NPY002
        for module, mode in modes.items():  # not by `train`, which some modules override
            module.training = mode
        for module, named in buffers:
            module._buffers.clear()
            module._buffers.update(named)
            for one in named.values():
                if one is not None and not torch.equal(one, contents[id(one)]):
                    one.data.copy_(contents[id(one)])


class Capture:
    """A network whose call on a batch returns the pooled outputs of some layers, all from one pass.

    It sets forward hooks at the start of a ``with`` block, and removes them at its end. It changes nothing
    else; see `undisturbed`.

    Parameters
    ----------
    model : nn.Module
    layers : str or list of str, optional
        Names of modules as in ``model.named_modules()``, or patterns such as ``"blocks.*"`` or
        ``"*.attention"``. "output" is what the whole network returns, which is the default.
    pooling : {"auto", "mean", "first", "last", "flat"}
        How the output of a layer becomes a row (d,) for each item. "mean" is the mean over places (m, d,
        height, width) or tokens (m, t, d). "first" and "last" are a token; without tokens they are an error.
        "flat" keeps all numbers. "auto" is "mean", and leaves outputs (m, d) as they are. Tokens that a mask
        hides do not count.

    Raises
    ------
    SpaceError
        No module has such a name.

    Examples
    --------
    >>> import torch
    >>> from relcore.nn.capture import Capture, undisturbed
    >>> model = torch.nn.Sequential(torch.nn.Conv2d(1, 4, 3), torch.nn.ReLU(), torch.nn.Flatten())
    >>> with undisturbed(model), Capture(model, ["0", "output"]) as capture:
    ...     rows = capture(torch.zeros(5, 1, 8, 8))
    >>> {layer: tuple(one.shape) for layer, one in rows.items()}
    {'0': (5, 4), 'output': (5, 144)}
    """

    def __init__(
        self, model: nn.Module, layers: str | Sequence[str] | None = None, pooling: Pooling = "auto"
    ) -> None:
        need_one_of("pooling", pooling, get_args(Pooling))
        self.model = getattr(model, "_orig_mod", model)  # a compiled network skips the hooks of its modules
        self.pooling = pooling
        self.names = matching_layers(self.model, layers)
        self._modules = dict(self.model.named_modules(remove_duplicate=False))
        self._outputs: dict[str, Any] = {}
        self._handles: list[Any] = []

    def __enter__(self) -> Self:
        for name in self.names:
            if name != OUTPUT or name in self._modules:
                self._handles.append(self._modules[name].register_forward_hook(self._keeper(name)))
        return self

    def __exit__(self, *_: object) -> None:
        for handle in self._handles:
            handle.remove()
        self._handles.clear()
        self._outputs.clear()

    def _keeper(self, name: str) -> Callable[..., None]:
        def keep(module: nn.Module, inputs: Any, output: Any) -> None:
            self._outputs[name] = output  # of a module that runs several times, the last output stays

        return keep

    def run(self, *inputs: Any, **named: Any) -> dict[str, Any]:
        """Run the network once, and return the output of each layer that runs for these inputs, as it is."""
        self._outputs.clear()
        try:
            whole = self.model(*inputs, **named)
        except Exception as error:
            shapes = ", ".join(_told(one) for one in (*inputs, *named.values()))
            error.add_note(f"The network got a batch of {shapes}; each item of the data is one row of it.")
            raise
        found = {OUTPUT: whole} | self._outputs
        self._outputs = {}
        return {name: found[name] for name in self.names if name in found}

    def outputs(self, *inputs: Any, **named: Any) -> dict[str, Tensor]:
        """Run the network once, and return the tensor of each layer. Of a layer that returns several, the
        first is taken.

        Raises
        ------
        SpaceError
            A layer does not run for these inputs, or returns no tensor.
        """
        found = self.run(*inputs, **named)
        if unused := [name for name in self.names if name not in found]:
            raise SpaceError(
                f"layers: expected layers that run for these inputs, got {quote(unused[:3])}, which do not;"
                " relcore.layers(model, example) lists those that do"
            )
        return {name: tensor_of(output, name) for name, output in found.items()}

    def __call__(
        self,
        *inputs: Any,
        n: int | None = None,
        mask: Tensor | None = None,
        n_places: int | None = None,
        **named: Any,
    ) -> dict[str, Tensor]:
        """Run the network once on a batch of n items, and return the rows (n, d) of each layer.

        `mask` (n, t) tells which tokens count. By default, n is the length of the first tensor, and the mask
        is the input `attention_mask`. If a picture has `n_places` patches, the tokens before these do not
        count in means.
        """
        if n is None:
            n = _length_of([*inputs, *named.values()])
        if mask is None:
            mask = named.get("attention_mask")
        outputs = self.outputs(*inputs, **named)
        return {
            name: pooled(output, self.pooling, n, mask, self._modules.get(name), name, n_places)
            for name, output in outputs.items()
        }


def _told(value: Any) -> str:
    """The shape of a tensor, or else the kind of an input."""
    if hasattr(value, "shape"):
        return f"shape {tuple(value.shape)}"
    return type(value).__name__


def matching_layers(model: nn.Module, layers: str | Sequence[str] | None) -> tuple[str, ...]:
    """The names of the layers that these names and patterns mean, in the order of the network's modules."""
    if layers is None:
        return (OUTPUT,)
    names_of = {module: name for name, module in model.named_modules()}
    if isinstance(layers, str) or not isinstance(layers, Iterable):
        layers = [layers]
    patterns = list(layers)
    known = [*dict.fromkeys([*dict(model.named_modules(remove_duplicate=False)), OUTPUT])]
    known.remove("")
    wanted: set[str] = set()
    for pattern in patterns:
        if not isinstance(pattern, str):
            own_name = names_of.get(pattern)
            instead = f"; give its name, {own_name!r}" if own_name else ""
            raise SpaceError(f"layers: expected names of modules, got {type(pattern).__name__}{instead}")
        found = [name for name in known if fnmatchcase(name, pattern) and name != OUTPUT]
        if pattern in known:  # names may contain the signs of patterns
            found = [pattern]
        if not found:
            raise SpaceError(
                f"layers: expected names of modules such as {quote(known[:3])}, got {pattern!r:.80}"
                f"{did_you_mean(pattern, known)}"
            )
        wanted.update(found)
    if not wanted:
        raise SpaceError("layers: expected at least one name, got none; leave it out for the output")
    return tuple(name for name in known if name in wanted)


def tensor_of(output: Any, name: str) -> Tensor:
    """The tensor that a module returns, or the first one of several."""
    import torch

    if isinstance(output, torch.Tensor):
        return output
    several: list[Any] = []
    if isinstance(output, Mapping):
        several = [output[key] for key in _KEYS if output.get(key) is not None] + [*output.values()]
    elif isinstance(output, tuple | list):
        several = [*output]
    for one in several:
        if isinstance(one, torch.Tensor):
            return one
        if isinstance(one, tuple | list | Mapping):
            return tensor_of(one, name)
    raise SpaceError(
        f"layer {name!r}: expected a module that returns a tensor, got {type(output).__name__}; name one of"
        " the modules in it"
    )


def _length_of(inputs: Sequence[Any]) -> int:
    for one in inputs:
        if isinstance(one, Mapping):
            one = next(iter(one.values()), None)
        if hasattr(one, "shape") and len(one.shape):
            return len(one)
    raise SpaceError("inputs: expected a tensor among them, got none; give the number n of items")


def pooled(
    output: Tensor,
    pooling: Pooling,
    n: int,
    mask: Tensor | None = None,
    module: nn.Module | None = None,
    name: str = OUTPUT,
    n_places: int | None = None,
) -> Tensor:
    """The rows (n, d) of the output of a layer for n items, by the rules of `Capture`. The `module` tells
    whether tokens or channels come first."""
    shape = tuple(output.shape)
    tokens_first = shape[:1] != (n,) or getattr(module, "batch_first", True) is False
    if output.ndim >= 3 and tokens_first and shape[1] == n:
        output = output.transpose(0, 1)
    if output.shape[:1] != (n,):
        raise SpaceError(
            f"layer {name!r}: expected an output for each of {n} items, got the shape {shape}; choose another"
            " layer"
        )
    if pooling == "flat" or output.ndim <= 2:
        if pooling in ("first", "last") and output.ndim <= 2:
            raise SpaceError(
                f"layer {name!r}: expected tokens (items, tokens, d) for the pooling {pooling!r}, got"
                f" {shape}; choose 'auto'"
            )
        return output.reshape(n, -1)
    channels = output.ndim > 3 or type(module).__name__.endswith("1d")  # before the places
    if channels and pooling in ("auto", "mean"):
        return output.flatten(2).mean(dim=2)
    if channels:
        raise SpaceError(
            f"layer {name!r}: expected tokens (items, tokens, d) for the pooling {pooling!r}, got {shape};"
            " choose 'auto' or 'flat'"
        )
    if n_places and mask is None and pooling in ("auto", "mean"):
        output = output[:, max(0, output.shape[1] - n_places) :]
    return _token_rows(output, pooling, mask)


def _token_rows(output: Tensor, pooling: Pooling, mask: Tensor | None) -> Tensor:
    import torch

    n, n_tokens, _ = output.shape
    if mask is None or tuple(mask.shape) != (n, n_tokens):  # a layer may merge tokens
        mask = torch.ones(n, n_tokens, device=output.device)
    known = mask.to(output.device) != 0
    if pooling in ("auto", "mean"):
        weights = known.float()
        weights = weights / weights.sum(dim=1, keepdim=True).clamp(min=1)
        return torch.bmm(weights[:, None].to(output.dtype), output)[:, 0]
    places = torch.arange(n_tokens, device=output.device).expand(n, -1)
    if pooling == "first":
        chosen = places.masked_fill(~known, n_tokens).amin(dim=1).clamp(max=n_tokens - 1)
    else:
        chosen = places.masked_fill(~known, 0).amax(dim=1)
    return output[torch.arange(n, device=output.device), chosen]
