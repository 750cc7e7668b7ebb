"""Relative representations and maps between spaces as PyTorch modules, for networks of your own.

``relcore.nn`` is imported only on use; it needs the extra ``torch``.
"""

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from relcore.nn.modules import (
        AffineMap as AffineMap,
        RelativeLayer as RelativeLayer,
        Stitched as Stitched,
        UnitRows as UnitRows,
    )

__all__ = ["AffineMap", "RelativeLayer", "Stitched", "UnitRows"]


def __getattr__(name: str) -> "Any":
    if name not in __all__:
        raise AttributeError(f"module 'relcore.nn' has no attribute {name!r}")
    from relcore.base.errors import extra

    with extra("torch"):
        from relcore.nn import modules
    return getattr(modules, name)


def __dir__() -> list[str]:
    return __all__
