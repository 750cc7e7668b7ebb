"""Batches of the inputs of a network: from arrays, lists of texts or pictures, and PyTorch's data sets."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from relcore.base.errors import SpaceError
from relcore.encoders.pictures import eight_bits
from relcore.encoders.transformers import padded

Prepare = Callable[[list[Any]], Any]  # m items → the inputs of a network


@dataclass
class InputBatch:
    """The inputs for m items: a tensor, tensors by name, or for a function a list. `rows` (m,) are the
    numbers of the items; `labels` (m,) is None if the data have none."""

    rows: np.ndarray
    inputs: Any
    labels: list[str] | None = None

    def __len__(self) -> int:
        return len(self.rows)

    def part(self, start: int, stop: int) -> InputBatch:
        """The same for some of the items, if a batch does not fit the memory of a device."""
        return InputBatch(self.rows[start:stop], _sliced(self.inputs, start, stop, len(self)))


def _sliced(inputs: Any, start: int, stop: int, n: int) -> Any:
    if isinstance(inputs, Mapping):
        return {name: _sliced(one, start, stop, n) for name, one in inputs.items()}
    if hasattr(inputs, "__len__") and len(inputs) == n:
        return inputs[start:stop]
    return inputs


class ItemBatches:
    """Items in memory, in batches of `size`. Long texts come first, so that batches have little padding and
    memory runs out at once or never."""

    def __init__(self, data: Sequence[Any] | np.ndarray, prepare: Prepare | None, size: int) -> None:
        self.n: int | None = len(data)
        self.data = data
        self.prepare = prepare
        self.size = size
        self.payload: list[Any] | None = None
        self.order = np.arange(len(data))
        if isinstance(data, list):
            self.payload = data
        if self.payload and isinstance(data[0], str):
            self.order = np.argsort([-len(text) for text in data], kind="stable")

    def __iter__(self) -> Iterator[InputBatch]:
        for start in range(0, len(self.order), self.size):
            rows = self.order[start : start + self.size]
            items = [self.data[row] for row in rows]
            yield InputBatch(rows, self.prepare(items) if self.prepare else items)


class ArrayBatches:
    """A tensor or an array (n, …), or several by name, in batches of `size`."""

    payload: list[Any] | None = None

    def __init__(self, data: Any, size: int) -> None:
        self.data = data
        self.size = size
        self.n: int | None = len(next(iter(data.values()))) if isinstance(data, Mapping) else len(data)

    def __iter__(self) -> Iterator[InputBatch]:
        assert self.n is not None
        for start in range(0, self.n, self.size):
            stop = min(start + self.size, self.n)
            yield InputBatch(np.arange(start, stop), _sliced(self.data, start, stop, self.n))


class LoaderBatches:
    """The batches of a PyTorch DataLoader, each inputs or a pair of inputs and labels."""

    payload: list[Any] | None = None

    def __init__(self, loader: Any) -> None:
        self.loader = loader
        self.n: int | None = None
        dataset = getattr(loader, "dataset", None)
        if hasattr(dataset, "__len__") and getattr(loader, "batch_size", None):
            self.n = len(dataset)  # type: ignore[arg-type]  # `hasattr` does not narrow Any | None
        sampler = type(getattr(loader, "sampler", None)).__name__
        if "Random" in sampler:
            raise SpaceError(
                f"data: expected a DataLoader that keeps the order of the items, got a {sampler}; make it"
                " with shuffle=False, or ids would name the wrong rows"
            )

    def __iter__(self) -> Iterator[InputBatch]:
        n = 0
        for each in self.loader:
            inputs = each
            labels = None
            if isinstance(each, tuple | list):
                if len(each) not in (1, 2):
                    raise SpaceError(
                        f"data: expected inputs, or pairs of inputs and labels, got {len(each)} parts; give"
                        " inputs by name, as a dict"
                    )
                inputs = each[0]
                labels = _texts(each[-1]) if len(each) == 2 else None
            elif isinstance(each, Mapping):
                inputs = {name: one for name, one in each.items() if name not in ("label", "labels")}
                labels = _texts(each.get("labels", each.get("label")))
            first = next(iter(inputs.values())) if isinstance(inputs, Mapping) else inputs
            yield InputBatch(np.arange(n, n + len(first)), inputs, labels)
            n += len(first)


def _texts(labels: Any) -> list[str] | None:
    """Labels as texts; None if they are no categories, such as fractions or masks."""
    if labels is None:
        return None
    if isinstance(labels, list | tuple) and all(isinstance(one, str) for one in labels):
        return [*labels]
    values = np.asarray(labels)
    if values.ndim == 1 and values.dtype.kind in "iub":
        return [str(one) for one in values.tolist()]
    return None


Batches: TypeAlias = ItemBatches | ArrayBatches | LoaderBatches


def batches_of(data: Any, prepare: Prepare | None, size: int) -> Batches:
    """The batches of data in any form that `relcore.encode` takes, for a network."""
    import torch
    from torch.utils.data import DataLoader, Dataset

    if isinstance(data, DataLoader):
        return LoaderBatches(data)
    if isinstance(data, Dataset):
        return LoaderBatches(DataLoader(data, batch_size=size))
    if isinstance(data, np.ndarray) and data.dtype.kind in "fiub":
        return ArrayBatches(torch.from_numpy(np.ascontiguousarray(data)), size)
    if isinstance(data, torch.Tensor | Mapping):
        return ArrayBatches(data, size)
    if prepare is not None:
        return ItemBatches(items_of(data), prepare, size)
    if isinstance(data, Sequence) and not isinstance(data, str):
        if len(data) and not isinstance(data[0], str) and not hasattr(data[0], "convert"):
            return LoaderBatches(DataLoader(data, batch_size=size))  # a list is a data set
    elif hasattr(data, "__iter__") and not isinstance(data, str):
        return LoaderBatches(data)
    raise SpaceError(
        "data: expected an array, a tensor or a DataLoader, got texts or pictures; give the model's tokenizer"
        " or image processor as processor=…"
    )


def items_of(data: Any) -> list[Any]:
    """The items as a list. Raises a SpaceError for a single text, and for what cannot be listed."""
    if isinstance(data, str) or not hasattr(data, "__iter__"):
        raise SpaceError(f"data: expected a list of items, got {type(data).__name__}; give [item]")
    return [*data]


# What turns texts and pictures into inputs.


def preparation(model: Any, processor: Any) -> Prepare | None:
    """The function that turns items into inputs: that of a `SentenceTransformer`, or a tokenizer, an image
    processor or any function given as `processor`. None if items are inputs already."""
    if processor is None:
        if is_sentence_transformer(model):
            return lambda texts: _sentence_features(model, texts)
        return None
    if not callable(processor):
        raise SpaceError(
            f"processor: expected a tokenizer, an image processor or a function, got {processor!r:.60}"
        )
    if hasattr(processor, "model_max_length"):
        return lambda texts: _tokens(model, processor, texts)
    if hasattr(processor, "preprocess"):
        return lambda pictures: _pixels(processor, pictures)
    return processor


def is_sentence_transformer(model: Any) -> bool:
    return any(kind.__name__ == "SentenceTransformer" for kind in type(model).__mro__)


def _sentence_features(model: Any, texts: list[str]) -> dict[str, Any]:
    """The features that `SentenceTransformer.encode` computes, with its default prompt."""
    prompt = getattr(model, "prompts", {}).get(getattr(model, "default_prompt_name", None)) or ""
    if hasattr(model, "preprocess"):
        return dict(model.preprocess(texts, prompt=prompt))
    return dict(model.tokenize([prompt + text for text in texts]))


def _tokens(model: Any, tokenizer: Any, texts: list[str]) -> dict[str, Any]:
    import torch

    positions = getattr(getattr(model, "config", None), "max_position_embeddings", None)
    longest = min(filter(None, (tokenizer.model_max_length, positions)))
    some = {"max_length": longest} if longest < 1e6 else {}
    told = {"return_attention_mask": False, "return_token_type_ids": False}
    tokens = tokenizer(texts, truncation=bool(some), **some, **told)["input_ids"]
    # Not padded by the tokenizer, because those of causal models have no padding, or put it first.
    ids, known = padded(tokens, tokenizer.pad_token_id or 0)
    return {"input_ids": torch.from_numpy(ids), "attention_mask": torch.from_numpy(known.astype(np.int64))}


def _pixels(processor: Any, pictures: list[Any]) -> dict[str, Any]:
    arrays = []
    for picture in pictures:
        if hasattr(picture, "convert"):
            picture = np.asarray(eight_bits(picture, "RGB", "data"))
        arrays.append(picture)
    return dict(processor(images=arrays, return_tensors="pt", input_data_format="channels_last"))


def first_batch(batches: Batches) -> InputBatch:
    """Raises a SpaceError if there is none."""
    first = next(iter(batches), None)
    if first is None or not len(first):
        raise SpaceError("data: expected at least one item, got none")
    return first
