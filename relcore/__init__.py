"""The core of Relscope: latent spaces, absolute and relative to anchors. Importable without a screen."""

__version__ = "0.1.0"
