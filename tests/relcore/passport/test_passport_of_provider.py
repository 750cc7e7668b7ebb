"""Passports of a provider's model: made and checked by asking it, as a nightly job does."""

import json
from pathlib import Path

import numpy as np
import pytest

from relcore.cli import main
from relcore.passport.passport import Passport
from tests.provider import by_minilm, embeddings, hashed, provider

TEXTS = [f"a sentence, number {row}" for row in range(40)]
KEY = "sk-secret-0123456789"


@pytest.fixture
def run(tmp_path, monkeypatch, capsys):
    """Run ``relscope passport`` in the folder of the files: its exit status, its output and its error."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    Path("texts.txt").write_text("\n".join(TEXTS))

    def run(*arguments):
        return main(["passport", *map(str, arguments)]), *capsys.readouterr()

    return run


def test_a_passport_is_made_and_checked_by_asking_the_provider(run):
    prompt = "query: "
    with provider() as (server, address):
        asks = ("--encoder", "api:hashed", "--address", f"{address}/v1")
        make = ("make", "texts.txt", *asks, "--prompt", prompt, "-o", "old.safetensors")
        code, _, error = run(*make)
        assert code == 2
        assert "40 texts (about 318 tokens) are sent to the server 127.0.0.1" in error
        assert "--send-to 127.0.0.1" in error
        assert not server.asked
        asks = (*asks, "--send-to", address.removeprefix("http://"))
        code, out, error = run("make", "texts.txt", *asks, "--prompt", prompt, "-o", "old.safetensors")
        assert code == 0
        assert "with the key in $OPENAI_API_KEY." in error
        passport = Passport.load("old.safetensors")
        assert (passport.card.model, passport.card.prompt) == ("hashed", prompt)
        np.testing.assert_array_equal(passport.vectors, np.float32([hashed(prompt + text) for text in TEXTS]))
        assert KEY.encode() not in Path("old.safetensors").read_bytes()
        # The nightly check asks again.
        n_asked = len(server.asked)
        code, out, _ = run("check", "old.safetensors", *asks, "--json")
        assert (code, json.loads(out)["checks"][0]["change"]) == (0, "same")
        assert len(server.asked) == n_asked + 2
        # The provider's model has changed.
        server.answer = lambda _, body: (
            200,
            {},
            json.dumps(embeddings([f"other {text}" for text in body["input"]])).encode(),
        )
        code, out, _ = run("check", "old.safetensors", *asks, "--json")
        assert (code, json.loads(out)["checks"][0]["change"]) == (1, "other model")
        server.answer = lambda *_: (401, {}, b'{"error": "wrong key ' + KEY.encode() + b'"}')
        code, _, error = run("check", "old.safetensors", *asks)
        assert code == 2
        assert "texts 1 to 32" in error
        assert KEY not in error


def test_a_check_without_new_vectors_needs_an_encoder_and_texts(run):
    digests = [f"sha256:{row:064x}" for row in range(40)]
    Path("texts.txt").write_text("\n".join(digests))
    np.save("v.npy", np.float32([hashed(text) for text in digests]))
    assert run("make", "texts.txt", "--vectors", "v.npy", "-o", "old.safetensors")[0] == 0
    code, _, error = run("check", "old.safetensors")
    assert (code, "expected two files, or one and --encoder" in error) == (2, True)
    code, _, error = run("check", "old.safetensors", "--encoder", "api", "--send-to", "api.openai.com")
    assert (code, "expected anchors that are texts" in error) == (2, True)


@pytest.mark.slow
def test_a_served_model_has_the_passport_of_the_local_one_until_a_prompt_is_added(run):
    make = ("make", "texts.txt", "--encoder", "minilm", "-o", "old.safetensors")
    assert run(*make)[0] == 0
    with provider(by_minilm()) as (server, address):
        asks = (
            "--encoder",
            "api:minilm",
            "--address",
            f"{address}/v1",
            "--send-to",
            address.removeprefix("http://"),
        )
        code, out, _ = run("check", "old.safetensors", *asks, "--json")
        assert (code, json.loads(out)["checks"][0]["change"]) == (0, "same")
        server.answer = by_minilm("Represent this sentence: ")
        code, out, _ = run("check", "old.safetensors", *asks, "--json")
        assert (code, json.loads(out)["checks"][0]["change"]) == (1, "changed recipe")
        assert run("check", "old.safetensors", "--encoder", "minilm")[0] == 0
