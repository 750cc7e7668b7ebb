"""Texts as a dataset, and an encoder's rows of them, for tests."""

from relcore.encoders.dataset import Dataset


def texts_dataset(texts):
    ids = [f"t{row}" for row in range(len(texts))]
    return Dataset(lambda start, stop: texts[start:stop], ids, name="told", kind="texts")


def encode(encoder, texts):
    return encoder.prepare(texts_dataset(texts), lambda *_: None)(texts)


def rows_of(encoder, texts):
    return encode(encoder, texts)[""]
