"""`RelativeLayer`, maps between spaces, and `Stitched`, as PyTorch modules. Only this module of relcore
imports torch at once."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from io import BytesIO
from pathlib import Path
from typing import Any, Literal, TypeAlias, get_args

import numpy as np
import torch
from torch import Tensor, nn

from relcore.base.access import expand_home
from relcore.base.errors import SpaceError, missing_library, need_one_of
from relcore.base.rows import NO_LENGTH
from relcore.base.writing import new_folder
from relcore.nn.capture import undisturbed

SimilarityName: TypeAlias = Literal["cosine", "angular", "euclidean", "l1", "quantised"]


def unit(X: Tensor) -> Tensor:
    """The rows of X (n, d), scaled to length 1. A row that is too short to have a direction becomes zero."""
    squares = (X * X).sum(dim=-1, keepdim=True)
    known = squares >= NO_LENGTH
    return torch.where(known, X / torch.where(known, squares, 1).sqrt(), 0)


def need_width(X: Tensor, width: int) -> None:
    """Raise a SpaceError unless the rows of X have this width."""
    if X.shape[-1] != width:
        raise SpaceError(f"X: expected rows (n, {width}), got a tensor of shape {tuple(X.shape)}")


class UnitRows(nn.Module):  # type: ignore[misc]  # mypy does not read torch
    """Scales each row to length 1."""

    def forward(self, X: Tensor) -> Tensor:
        return unit(X)


class AffineMap(nn.Module):  # type: ignore[misc]  # mypy does not read torch
    """The map (x − start) · matrix + end of rows (n, d_in) to (n, d_out). With `unit`, x − start is scaled to
    length 1 first.

    Examples
    --------
    >>> import torch
    >>> from relcore.nn import AffineMap
    >>> AffineMap(torch.eye(2) * 3, end=torch.tensor([1.0, 0.0]))(torch.tensor([[1.0, 2.0]])).tolist()
    [[4.0, 6.0]]
    """

    def __init__(self, matrix: Any, start: Any = None, end: Any = None, *, unit: bool = False) -> None:
        super().__init__()
        matrix = _tensor(matrix)
        if start is None:
            start = np.zeros(matrix.shape[0])
        if end is None:
            end = np.zeros(matrix.shape[1])
        self.register_buffer("matrix", matrix)
        self.register_buffer("start", _tensor(start))
        self.register_buffer("end", _tensor(end))
        self.unit = unit

    def extra_repr(self) -> str:
        return f"{self.matrix.shape[0]} → {self.matrix.shape[1]}"

    def forward(self, X: Tensor) -> Tensor:
        need_width(X, self.matrix.shape[0])
        X = X - self.start
        if self.unit:
            X = unit(X)
        return X @ self.matrix + self.end


class RelativeLayer(nn.Module):  # type: ignore[misc]  # mypy does not read torch
    """Describes each row (n, d) of a batch by its similarities (n, k) to the anchors, as `RelativeProjection`
    does for finished rows. It is differentiable.

    Parameters
    ----------
    anchors : matrix (k, d), optional
        Fixed anchors. They are buffers, so they are in the `state_dict`.
    encoder : nn.Module, optional
        With `inputs`, the anchors are the outputs of this network for these inputs, computed again at each
        call, so that gradients also flow through the anchors. The layer holds the network without owning it.
    inputs : tensor (k, …), optional
    similarity : {"cosine", "angular", "euclidean", "l1", "quantised"}
        "quantised" needs centroids, so it comes from ``RelativeProjection(similarity="quantised").fit(X)
        .to_torch()``. Its gradient is that of the row itself, because a nearest centroid has none.
    center : bool
        Whether to subtract `mean`, or if it is not given, the mean of the anchors.
    mean : row (d,), optional
    whiten : bool
        Whether to multiply by (K + ridge · I)^(−1/2), with the cosines K (k, k) of the anchors. It needs the
        cosine.
    ridge : float
    centroids : matrix (c, d), optional

    Raises
    ------
    SpaceError
        Neither anchors nor an encoder with inputs, or both; an unknown similarity; whitening with another
        similarity than the cosine.

    Examples
    --------
    >>> import torch
    >>> from relcore.nn import RelativeLayer
    >>> encoder = torch.nn.Linear(8, 4)
    >>> layer = RelativeLayer(encoder=encoder, inputs=torch.rand(10, 8))
    >>> layer(encoder(torch.rand(3, 8))).shape
    torch.Size([3, 10])
    """

    def __init__(
        self,
        anchors: Any = None,
        *,
        encoder: nn.Module | None = None,
        inputs: Tensor | None = None,
        similarity: str = "cosine",
        center: bool = True,
        mean: Any = None,
        whiten: bool = False,
        ridge: float = 0.3,
        centroids: Any = None,
    ) -> None:
        super().__init__()
        need_one_of("similarity", similarity, get_args(SimilarityName))
        if (anchors is None) == (encoder is None) or (encoder is None) != (inputs is None):
            raise SpaceError("anchors: expected anchors (k, d), or an encoder with inputs; give one of these")
        if whiten and similarity != "cosine":
            raise SpaceError(
                f"whiten: expected similarity 'cosine', got {similarity!r}; whitening needs inner products"
            )
        if whiten and not ridge > 0:
            raise SpaceError(f"ridge: expected a number above 0, got {ridge!r}")
        if similarity == "quantised" and centroids is None:
            raise SpaceError(
                "centroids: expected centroids for 'quantised', got none; make the layer by"
                " RelativeProjection(similarity='quantised').fit(X).to_torch()"
            )
        self.similarity = similarity
        self.center = center
        self.whiten = whiten
        self.ridge = ridge
        self._encoder = [] if encoder is None else [encoder]  # in a list, so that its weights are not ours
        for name, value in (
            ("anchors", anchors),
            ("inputs", inputs),
            ("mean", mean),
            ("centroids", centroids),
        ):
            if value is None:  # torch.export cannot trace empty buffers
                setattr(self, name, None)
            else:
                self.register_buffer(name, _tensor(value))
        if anchors is not None and self.anchors.ndim != 2:
            raise SpaceError(
                "anchors: expected the vectors of the anchors (k, d), got a tensor of shape"
                f" {tuple(self.anchors.shape)}; of a space and ids, these are space.vectors[space.rows(ids)]"
            )

    def extra_repr(self) -> str:
        k = len(self.inputs if self._encoder else self.anchors)
        told = f"{k} anchors, similarity={self.similarity!r}, center={self.center}"
        if self.whiten:
            told += f", whiten=True, ridge={self.ridge}"
        return told

    def forward(self, X: Tensor) -> Tensor:
        anchors = self._encoder[0](self.inputs) if self._encoder else self.anchors
        need_width(X, anchors.shape[-1])
        if self.center:
            mean = anchors.mean(dim=0) if self.mean is None else self.mean
            X = X - mean
            anchors = anchors - mean
        if self.similarity == "euclidean":
            return -_distances(X, anchors)
        if self.similarity == "l1":
            return -(X[:, None] - anchors).abs().sum(dim=2)
        X = unit(X)
        anchors = unit(anchors)
        if self.similarity == "quantised":
            return self._quantised(X) @ self._quantised(anchors).T
        if self.whiten:
            return X @ (anchors.T @ _inverse_root(anchors, self.ridge))
        cosines = X @ anchors.T
        if self.similarity == "cosine":
            return cosines
        # The gradient of the angle is not finite at −1 and 1, so it is 0 there.
        inside = cosines.abs() < 1
        angles = torch.where(inside, cosines, 0).arccos()
        return 1 - torch.where(inside, angles, cosines.detach().clamp(-1, 1).arccos()) / torch.pi

    def _quantised(self, X: Tensor) -> Tensor:
        scores = X @ self.centroids.T - (self.centroids**2).sum(dim=1) / 2
        nearest = self.centroids[scores.argmax(dim=1)]
        return X + (nearest - X).detach()


def _distances(X: Tensor, anchors: Tensor) -> Tensor:
    """The distances (n, k), with gradient 0 where a row is an anchor. They come from differences, because
    products of large rows lose digits."""
    squares = ((X[:, None] - anchors) ** 2).sum(dim=2)
    apart = squares > 0
    return torch.where(apart, torch.where(apart, squares, 1).sqrt(), 0)


_STEPS = 24  # of the iteration; enough for condition numbers up to 1e6


def _inverse_root(anchors: Tensor, ridge: float) -> Tensor:
    """(K + ridge · I)^(−1/2) of unit anchors (k, d), in float64, by the Newton–Schulz iteration. The gradient
    of eigenvectors is not finite where eigenvalues are equal."""
    A = anchors.double()
    k = len(A)
    eye = torch.eye(k, dtype=A.dtype, device=A.device)
    K = A @ A.T + ridge * eye
    scale = torch.linalg.matrix_norm(K)
    root = K / scale
    inverse = eye
    for _ in range(_STEPS):  # Newton and Schulz: quadratic convergence, products only
        step = 1.5 * eye - 0.5 * inverse @ root
        root = root @ step
        inverse = step @ inverse
    return (inverse / scale.sqrt()).to(anchors.dtype)


def _tensor(value: Any) -> Tensor:
    """The value as a tensor that shares no memory with it; float32 unless it is a tensor already."""
    if isinstance(value, Tensor):
        return value.detach().clone()
    value = getattr(value, "vectors", value)  # of a space
    return torch.tensor(np.asarray(value, dtype=np.float32))


class Stitched(nn.Module):  # type: ignore[misc]  # mypy does not read torch
    """The encoder of one model, a translation and the head of another model, as one module.

    Examples
    --------
    >>> import torch
    >>> from relcore.nn import Stitched
    >>> stitched = Stitched(torch.nn.Linear(8, 4), torch.nn.Identity(), torch.nn.Linear(4, 2))
    >>> stitched(torch.rand(3, 8)).shape
    torch.Size([3, 2])
    """

    def __init__(self, encoder: nn.Module, translation: nn.Module, head: nn.Module) -> None:
        super().__init__()
        for name, part in (("encoder", encoder), ("translation", translation), ("head", head)):
            if not isinstance(part, nn.Module):
                raise SpaceError(
                    f"{name}: expected a PyTorch module, got {type(part).__name__}; of a fitted estimator,"
                    " give .to_torch()"
                )
        self.encoder = encoder
        self.translation = translation
        self.head = head

    def forward(self, X: Tensor) -> Tensor:
        return self.head(self.translation(self.encoder(X)))

    def save(self, folder: str | Path, example: Tensor, onnx: bool = False) -> None:
        """Write the module to a folder, from which it runs without Relscope.

        ``model.safetensors`` has the weights, and ``model.pt2`` the program of torch.export for any number of
        items: ``torch.export.load("model.pt2").module()(X)``. With `onnx`, ``model.onnx`` is a graph with the
        input "X" and the output "Y", also for any number of items. `example` is a batch of at least two
        inputs.

        Raises
        ------
        SpaceError
            torch.export cannot trace the module; an operation that ONNX lacks; the package onnx is missing.
        """
        from safetensors.torch import save

        items = torch.export.Dim("items", min=1)
        graph = b""
        with undisturbed(self):
            with _traced("torch.export", "another module"):
                program = torch.export.export(self, (example,), dynamic_shapes=({0: items},))
            if onnx:
                graph = self._onnx(example)
        with new_folder(expand_home(folder)) as written:
            weights = {
                name: one.detach().cpu().contiguous().clone() for name, one in self.state_dict().items()
            }
            (written / "model.safetensors").write_bytes(save(weights))
            torch.export.save(program, written / "model.pt2")
            if graph:
                (written / "model.onnx").write_bytes(graph)

    def _onnx(self, example: Tensor) -> bytes:
        if find_spec("onnx") is None:  # the exporter's own error names no extra
            raise missing_library("onnx")
        content = BytesIO()
        names = {"X": {0: "items"}, "Y": {0: "items"}}
        with _traced("ONNX", "onnx=False"), warnings.catch_warnings():
            # The newer exporter needs onnxscript, takes some 20 times as long, and its graphs give the same.
            warnings.simplefilter("ignore")
            torch.onnx.export(
                self,
                (example,),
                content,
                dynamo=False,
                input_names=["X"],
                output_names=["Y"],
                dynamic_axes=names,
            )
        return content.getvalue()


@contextmanager
def _traced(what: str, instead: str) -> Iterator[None]:
    try:
        yield
    except Exception as error:  # torch raises many kinds
        lines = str(error).strip().splitlines()
        raise SpaceError(
            f"stitched: expected a module that {what} can trace, got {type(error).__name__}:"
            f" {' '.join(lines[:1]):.200}; use {instead}"
        ) from error
