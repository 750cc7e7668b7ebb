"""The version of Relscope, for files that name it."""

__version__ = "0.2.0"
