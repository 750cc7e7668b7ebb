"""Store: content-addressed files for encodings and results, safe to share between threads, processes and machines."""

from relcore.store.digest import digest_of
from relcore.store.entry_file import Entry, Summary
from relcore.store.environment import ENVIRONMENT, LIMIT_ENVIRONMENT, StoreError
from relcore.store.finished import Finished, Made
from relcore.store.folder import Store
from relcore.store.pins import Pins, in_use

__all__ = [
    "ENVIRONMENT",
    "LIMIT_ENVIRONMENT",
    "Entry",
    "Finished",
    "Made",
    "Pins",
    "Store",
    "StoreError",
    "Summary",
    "digest_of",
    "in_use",
]
