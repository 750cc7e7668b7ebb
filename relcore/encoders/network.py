"""Whether the network answers: tested before a download, so that the error comes at once and not after
retries.
"""

from __future__ import annotations

import threading
from contextlib import suppress

PATIENCE = 2.0


def answers(url: str, patience: float = PATIENCE) -> bool:
    """Whether the address answers within `patience` seconds; proxies of the environment are used."""
    from urllib.request import Request, urlopen

    reached = []

    def ask() -> None:
        with suppress(OSError), urlopen(Request(url, method="HEAD"), timeout=patience):
            reached.append(url)

    # In a thread, because looking up a name has no timeout of its own.
    thread = threading.Thread(target=ask, name="ask-network", daemon=True)
    thread.start()
    thread.join(patience + 0.5)
    return bool(reached)


def hub_answers(patience: float = PATIENCE) -> bool:
    """Whether the Hugging Face hub is reachable: not switched off by HF_HUB_OFFLINE, and it answers in
    time.
    """
    from huggingface_hub import constants

    return not constants.HF_HUB_OFFLINE and answers(constants.ENDPOINT, patience)
