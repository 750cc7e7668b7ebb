"""Folders of pretrained models: where they are, and the digest of their content."""

from __future__ import annotations

import hashlib
from functools import lru_cache
from pathlib import Path

from relcore.base.access import is_shared, may_read
from relcore.base.errors import SpaceError, quote
from relcore.encoders.dataset import Dataset, hub_answers, hub_folder


def require_texts(dataset: Dataset) -> None:
    """Raise a SpaceError before encoding starts if the dataset has no texts or if a text is empty."""
    if dataset.kind != "texts":
        raise SpaceError(
            f"{dataset.name}: expected texts, got {dataset.kind}; choose an encoder for {dataset.kind}"
        )
    blank = [not text.strip() for _, texts in dataset.blocks() for text in texts]
    if any(blank):
        raise SpaceError(
            f"{dataset.name}: expected text in every row, got {sum(blank)} empty of {len(dataset)}, rows"
            f" {quote(dataset.ids[blank][:3])}; fill these rows, or leave them out"
        )


# The folder of a model. Weights that only pickle can read are refused.

_PICKLES = (".bin", ".pt", ".pth", ".pkl", ".ckpt")
# Patterns of the files to download: no code, no pickles, no weights for other frameworks.
_WANTED = ("*.safetensors", "*.json", "*.txt", "*.model")
_UNWANTED = ("onnx/*", "openvino/*", "coreml/*")


def model_folder(name: str) -> Path:
    """The folder of the model. The model is downloaded from the hub if needed.

    Raises
    ------
    SpaceError
        The folder lacks config.json or weights in safetensors, or the name cannot be downloaded.
    """
    if folder := hub_folder(name):
        return _need_model_folder(folder, name)
    from huggingface_hub import snapshot_download
    from huggingface_hub.errors import HfHubHTTPError, HFValidationError, LocalEntryNotFoundError

    wanted = {"allow_patterns": list(_WANTED), "ignore_patterns": list(_UNWANTED)}
    try:
        if not name or name.startswith((".", "~", "/")) or name.count("/") > 1:
            raise HFValidationError
        here = Path(snapshot_download(name, local_files_only=True, **wanted))
        if any(here.glob("*.safetensors")):
            return _need_model_folder(here, name)
    except HFValidationError as error:
        raise SpaceError(
            f"model: expected a folder or a hub's name such as 'owner/model', got {name!r}, and there is no"
            " such folder"
        ) from error
    except LocalEntryNotFoundError:
        pass
    if is_shared():
        raise SpaceError(
            f"model {name!r:.80} is not downloaded yet; this app is shared, so ask whoever runs it to"
            " download it"
        )
    if not hub_answers():
        raise SpaceError(
            f"model {name!r}: expected it on this machine, or the network to download it, got neither; "
            "copy the model's folder here and give its path, or choose an encoder that is trained on the spot"
        )
    try:
        return _need_model_folder(Path(snapshot_download(name, **wanted)), name)
    except (HfHubHTTPError, LocalEntryNotFoundError, OSError) as error:
        raise SpaceError(
            f"model {name!r}: expected to download it, got {first_line(error)}; check the name, or give a"
            " folder"
        ) from error


def first_line(error: Exception) -> str:
    return (str(error).strip() or type(error).__name__).splitlines()[0]


def where_of_model(name: str) -> str:
    """The note below the field for a model in a form, which tells where the model is searched for; "" for a
    local folder and for an empty name."""
    try:
        if not name or hub_folder(name):
            return ""
    except SpaceError as error:
        return f"{error}."
    if is_shared():
        return "This app is shared, so it opens only models that are downloaded already."
    return (
        "There is no such folder here, so the model is looked for among those downloaded before, then on the"
        " network. Without a network an error appears within seconds."
    )


def content_of_model(name: str) -> str:
    """The digest of a model's folder; "" for a name on the hub."""
    path = hub_folder(name)
    if path is None:
        return ""
    wanted = [file for file in path.iterdir() if any(map(file.match, _WANTED))]
    parts = [(file.name, file_digest(file)) for file in sorted(wanted) if may_read(file) and file.is_file()]
    return hashlib.blake2b(repr(parts).encode(), digest_size=16).hexdigest()


def file_digest(file: Path) -> str:
    """The SHA-256 of a file, cached until the file changes, because the key of every block needs it."""
    return _file_digest(str(file), file.stat().st_size, file.stat().st_mtime_ns)


@lru_cache(maxsize=256)
def _file_digest(path: str, size: int, changed: int) -> str:
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _need_model_folder(folder: Path, name: str) -> Path:
    files = sorted(file.name for file in folder.iterdir())
    if "config.json" in files and any(file.endswith(".safetensors") for file in files):
        return folder
    if "config.json" in files and (pickles := [file for file in files if file.endswith(_PICKLES)]):
        raise SpaceError(
            f"model {name!r}: expected weights as .safetensors, got {quote(pickles[:3])}, which would run"
            " code when opened; convert it where you trust it,"
            " AutoModel.from_pretrained(folder).save_pretrained(other), and give the other folder"
        )
    raise SpaceError(
        f"model {name!r}: expected a folder with config.json and weights as .safetensors, got"
        f" {quote(files[:5]) or 'nothing'}; give the folder that model.save_pretrained(folder) wrote"
    )


def need_digest(file: Path, model: str, digest: str, package: str) -> None:
    """Raise a SpaceError unless a file of this package has the SHA-256 `digest`."""
    if (found := file_digest(file)) != digest:
        raise SpaceError(
            f"{model}: expected a file with the SHA-256 {digest[:12]}…, got {found[:12]}…; it is damaged or"
            f" another one: pip install --force-reinstall {package}"
        )
