import pytest


@pytest.fixture
def paraphrases():
    """Three pairs of sentences: each even one means the same as the next."""
    return [
        "A man is playing a guitar on the street.",
        "Someone plays the guitar outdoors.",
        "The stock market fell sharply today.",
        "Share prices dropped a lot this afternoon.",
        "She bakes bread every Sunday morning.",
        "Each Sunday she makes loaves in the oven.",
    ]
