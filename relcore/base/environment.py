"""Settings from environment variables, including the chosen device. Errors name the variable."""

from __future__ import annotations

import ctypes
import os
import re
import sys
from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path
from typing import Self

from relcore.base.errors import SpaceError, extra

CONFINED = "RELSCOPE_CONFINED"
STORE_GB = "RELSCOPE_STORE_GB"
DEVICE = "RELSCOPE_DEVICE"
GPU_GB = "RELSCOPE_GPU_GB"
QUIET = "RELSCOPE_QUIET"  # 1: calls of the library draw no progress line
DEVICE_HELP = "auto (a GPU where there is one), cpu, cuda, or one of several GPUs: cuda:1"


def flag(name: str) -> bool:
    """Whether a variable is 1. Raises a SpaceError if it is set to anything but 0 and 1."""
    text = os.environ.get(name, "")
    if text not in ("", "0", "1"):
        raise wrong(name, "0 or 1", text)
    return text == "1"


def number(name: str, usual: float, most: float) -> float:
    """The number in a variable; `usual` if the variable is not set. Raises a SpaceError unless the number is
    above 0 and below `most`."""
    text = os.environ.get(name) or str(usual)
    try:
        value = float(text)
    except ValueError:
        value = 0.0
    if not 0 < value < most:
        raise wrong(name, f"a number above 0 and below {most:,.0f}", text)
    return value


def gpu_bytes() -> int:
    """How many bytes of GPU memory rows of spaces may take, from RELSCOPE_GPU_GB; 0 if that is not set."""
    if os.environ.get(GPU_GB):
        return int(number(GPU_GB, 1, 1e6) * 1e9)
    return 0


def store_bytes() -> int:
    """The maximum size of the store in bytes, from RELSCOPE_STORE_GB; 10 GB by default."""
    return int(number(STORE_GB, 10, 1e6) * 1e9)


def wrong(name: str, expected: str, text: str) -> SpaceError:
    return SpaceError(f"{name}: expected {expected}, got {text!r:.80}; correct it or unset it")


GPU = "GPU"  # name of a Dask resource, which only one worker of a machine has
_NAME = re.compile(r"auto|cpu|torch|cuda(:\d+)?")


def chosen() -> str:
    """The device that the user chose with `use_device` or RELSCOPE_DEVICE; "auto" if none was chosen.

    Raises
    ------
    SpaceError
        RELSCOPE_DEVICE names no device.
    """
    return _need_device_name(os.environ.get(DEVICE) or "auto", DEVICE)


class use_device:
    """Compute on a device from now on, or only inside a `with` block. Names are "auto", "cpu", "cuda",
    "cuda:1" and "torch". "torch" runs the code for GPUs on the CPU, for tests.

    Raises
    ------
    SpaceError
        An unknown name.

    Examples
    --------
    >>> from relcore.base.environment import chosen, use_device
    >>> with use_device("cpu"):
    ...     chosen()
    'cpu'
    """

    def __init__(self, name: str) -> None:
        # The choice is stored in the environment, so that processes that start later also use this device.
        self._before = os.environ.get(DEVICE)
        os.environ[DEVICE] = _need_device_name(name, "device")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._before is None:
            os.environ.pop(DEVICE, None)
        else:
            os.environ[DEVICE] = self._before


def _need_device_name(name: str, what: str) -> str:
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        raise SpaceError(
            f"{what}: expected 'auto', 'cpu', 'torch', 'cuda' or 'cuda:1', got {name!r:.40}; choose one"
        )
    return name


def resolve(name: str | None = None) -> str:
    """The device that a name means on this machine: "cpu", "torch", "cuda" or "cuda:1". "auto" and None mean
    the device that the user chose.

    Raises
    ------
    SpaceError
        The name is unknown, or this machine lacks the GPU.
    """
    # "auto", the default of public functions, follows --device and RELSCOPE_DEVICE.
    if name is None or (isinstance(name, str) and name == "auto"):
        name = chosen()
    else:
        name = _need_device_name(name, "device")
    if name == "auto":
        return "cuda" if has_gpu() else "cpu"
    if name.startswith("cuda"):
        with extra():
            import torch

        n_gpus = 0
        if torch.cuda.is_available():
            n_gpus = torch.cuda.device_count()
        if int(name.partition(":")[2] or 0) >= n_gpus:
            if not n_gpus:
                got = "PyTorch finds none"
            else:
                got = f"PyTorch finds {n_gpus}, cuda:0 … {n_gpus - 1}"
            raise SpaceError(f"device: expected a GPU for {name!r}, but {got}; use 'auto' or 'cpu'")
    return name


def torch_name(name: str | None = None) -> str:
    """The name by which torch knows a device: "cpu", "cuda" or "cuda:1"."""
    name = resolve(name)
    return "cpu" if name == "torch" else name


def device_in_words() -> str:
    """The chosen device in words, such as ``"cpu"`` or ``"cuda (NVIDIA H100)"``. --version and the page of
    the session show it."""
    name = resolve()
    if not name.startswith("cuda"):
        return name
    import torch

    kept = "up to half of its free memory"
    if gpu_bytes():
        kept = f"up to {gpu_bytes() / 1e9:g} GB"
    return f"{name} ({torch.cuda.get_device_name(torch.device(name))}; rows stay on it, {kept})"


def package_folder(name: str) -> Path | None:
    """The folder of an installed package, which is not imported, because that may take seconds; None if it is
    not installed."""
    package = find_spec(name)
    if package is None or package.origin is None:
        return None
    return Path(package.origin).parent


@lru_cache(maxsize=1)
def has_gpu() -> bool:
    # Importing torch takes seconds, so torch is imported only if the driver's library exists. Containers and
    # WSL have that library, but no /proc/driver/nvidia. The answer does not depend on earlier imports.
    driver = "libcuda.so.1"
    if sys.platform == "win32":
        driver = "nvcuda.dll"
    try:
        ctypes.CDLL(driver)
    except OSError:
        return False
    if not find_spec("torch"):
        return False
    import torch

    return torch.cuda.is_available()
