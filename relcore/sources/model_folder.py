"""model_folder: where a transformers model lies on this machine, by folder or by hub name, refused if it needs unpickling."""

from __future__ import annotations

import hashlib
from functools import lru_cache
from pathlib import Path

from relcore.access import may_read, shared
from relcore.sources.network import hub_answers
from relcore.sources.places import hub_folder
from relcore.spaces import SpaceError, quote

_PICKLES = (".bin", ".pt", ".pth", ".pkl", ".ckpt")
# What from_pretrained reads; no code, no pickles, no copies of the weights in another framework's format.
_WANTED = ("*.safetensors", "*.json", "*.txt", "*.model")
_UNWANTED = ("onnx/*", "openvino/*", "coreml/*")


def model_folder(name: str) -> Path:
    """The folder of the model, downloaded from the hub where it is not on this machine yet.

    Raises
    ------
    SpaceError
        No such folder, a folder without config.json or without safetensors weights; a name that is neither on disk nor to be
        had, told within three seconds.
    """
    if folder := hub_folder(name):
        return _checked(folder, name)
    if not name or Path(name).is_absolute() or name.startswith((".", "~")) or name.count("/") > 1:
        raise SpaceError(
            f"model: expected a folder or a hub's name such as 'owner/model', got {name!r}, and there is no such folder"
        )
    return _from_hub(name)


def where_of_model(name: str) -> str:
    """What a form says of a model that is no folder here; "" for one that is, and for no name."""
    try:
        if not name or hub_folder(name):
            return ""
    except SpaceError as error:
        return f"{error}."
    if shared():
        return "This app is shared, so it opens only models that were downloaded on this machine before."
    return (
        "There is no such folder here, so the model is looked for among those downloaded before, then on the network. Without "
        "a network an error appears within seconds."
    )


def content_of_model(name: str) -> str:
    """Digest of what a model's folder holds; "" for a hub's name, whose content the hub answers for."""
    path = hub_folder(name)
    if path is None:
        return ""
    files = sorted(file for file in path.iterdir() if _wanted(file) and may_read(file) and file.is_file())
    parts = [(file.name, file_digest(file)) for file in files]
    return hashlib.blake2b(repr(parts).encode(), digest_size=16).hexdigest()


def _wanted(file: Path) -> bool:
    return any(file.match(pattern) for pattern in _WANTED)


def file_digest(file: Path) -> str:
    """SHA-256 of a file; unchanged, it is read once in a process: each block that is encoded asks for it."""
    return _file_digest(str(file), file.stat().st_size, file.stat().st_mtime_ns)


@lru_cache(maxsize=256)
def _file_digest(path: str, size: int, changed: int) -> str:
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _from_hub(name: str) -> Path:
    from huggingface_hub import snapshot_download
    from huggingface_hub.errors import HfHubHTTPError, HFValidationError, LocalEntryNotFoundError

    wanted = {"allow_patterns": list(_WANTED), "ignore_patterns": list(_UNWANTED)}
    try:
        here = Path(snapshot_download(name, local_files_only=True, **wanted))
        if any(here.glob("*.safetensors")):
            return _checked(here, name)
    except HFValidationError as error:
        raise SpaceError(f"model: expected a folder or a hub's name such as 'owner/model', got {name!r}") from error
    except LocalEntryNotFoundError:
        pass
    if shared():
        raise SpaceError(
            f"model {name!r:.80}: expected one that was downloaded on this machine before, got another; this app is shared, so "
            "ask whoever runs it to download this one"
        )
    if not hub_answers():
        raise SpaceError(
            f"model {name!r}: expected it on this machine, or the network to download it, got neither; "
            "copy the model's folder here and give its path, or choose an encoder that is trained on the spot"
        )
    try:
        return _checked(Path(snapshot_download(name, **wanted)), name)
    except (HfHubHTTPError, LocalEntryNotFoundError, OSError) as error:
        first = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
        raise SpaceError(f"model {name!r}: expected to download it, got {first}; check the name, or give a folder") from error


def _checked(folder: Path, name: str) -> Path:
    files = [file.name for file in folder.iterdir()]
    if "config.json" not in files:
        raise SpaceError(
            f"model {name!r}: expected a folder with config.json and weights, got {quote(sorted(files)[:5]) or 'nothing'}; "
            "give the folder that save_pretrained wrote"
        )
    if any(file.endswith(".safetensors") for file in files):
        return folder
    if pickles := sorted(file for file in files if file.endswith(_PICKLES)):
        raise SpaceError(
            f"model {name!r}: expected weights as .safetensors, got {quote(pickles[:3])}, which would run code when opened; "
            "convert it where you trust it, AutoModel.from_pretrained(folder).save_pretrained(other), and give the other folder"
        )
    raise SpaceError(
        f"model {name!r}: expected weights as .safetensors, got only {quote(sorted(files)[:5])}; "
        "save them there with model.save_pretrained(folder)"
    )
