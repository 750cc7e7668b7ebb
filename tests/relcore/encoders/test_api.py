"""The encoder of a provider's models: what is sent, what is refused, and what comes of busy and hostile servers."""

import email.utils
import gzip
import json
import math
import socket
import traceback
from dataclasses import replace

import numpy as np
import pytest

from relcore.base.errors import RelscopeError, SpaceError
from relcore.catalog.encodings import encode, encoding_key, key_of
from relcore.encoders import api_client, api_transport
from relcore.encoders.api import ApiText
from relcore.encoders.api_answers import read_rows
from relcore.encoders.encoder import encoder_from_json
from relcore.encoders.sending import cost_note, leaving_note, need_consent, read_address, sending_to
from relcore.runs.store import Store
from tests.provider import embeddings, hashed, provider
from tests.relcore.encoders.texts import texts_dataset

KEY = "sk-secret-0123456789"
TEXTS = [f"text {row}" for row in range(10)]


@pytest.fixture(autouse=True)
def key(monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", KEY)


@pytest.fixture(scope="module")
def running():
    with provider() as pair:
        yield pair


@pytest.fixture
def serve(running):
    """A function that sets the answer of the server and returns the server and its address."""

    def answering(answer=lambda number, body: None):
        server, address = running
        vars(server).update(answer=answer, asked=[])
        return server, address

    return answering


@pytest.fixture
def waits(monkeypatch):
    """The seconds that the client would wait; it does not."""
    seconds = []
    monkeypatch.setattr(api_client, "sleep", seconds.append)
    return seconds


def api(address, **settings):
    return ApiText(**{"model": "hashed", "address": f"{address}/v1", "batch_size": 4, **settings})


def rows_of(encoder, texts=TEXTS, report=lambda *_: None):
    with sending_to(encoder.place.consent):
        return encoder.prepare(texts_dataset(texts), report)(texts)[""]


def test_rows_are_the_providers_in_batches_with_prefix_and_dimensions(serve):
    server, address = serve()
    np.testing.assert_array_equal(rows_of(api(address)), np.float32([hashed(text) for text in TEXTS]))
    assert [len(body["input"]) for _, _, body in server.asked] == [4, 4, 2]
    queries = api(address, encode_as="query", query_prefix="query: ", passage_prefix="p: ", dimensions=7)
    expected = np.float32([hashed(f"query: {text}", 7) for text in TEXTS])
    np.testing.assert_array_equal(rows_of(queries), expected)
    path, headers, body = server.asked[-1]
    assert (path, body["model"], body["encoding_format"]) == ("/v1/embeddings", "hashed", "float")
    assert headers["authorization"] == f"Bearer {KEY}"


def test_rows_are_sorted_by_index(serve):
    def shuffled(_, body):
        answer = embeddings(body["input"])
        answer["data"].reverse()
        return 200, {}, json.dumps(answer).encode()

    _, address = serve(shuffled)
    np.testing.assert_array_equal(rows_of(api(address)), np.float32([hashed(text) for text in TEXTS]))


def test_of_the_environment_only_the_key_is_used(monkeypatch, serve):
    for name in ("OPENAI_ORG_ID", "OPENAI_PROJECT_ID", "OPENAI_ADMIN_KEY", "AZURE_OPENAI_AD_TOKEN"):
        monkeypatch.setenv(name, "elsewhere")
    monkeypatch.setenv("OPENAI_CUSTOM_HEADERS", "X-Other: elsewhere\nAuthorization: Bearer elsewhere")
    for name in ("OPENAI_BASE_URL", "AZURE_OPENAI_ENDPOINT", "HTTP_PROXY", "http_proxy", "ALL_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")  # nobody listens there
    server, address = serve()
    rows_of(api(address))
    rows_of(api(address, api_version="2024-10-21"))
    assert "elsewhere" not in str(server.asked)
    path, headers, _ = server.asked[-1]
    assert path == "/v1/openai/deployments/hashed/embeddings?api-version=2024-10-21"
    assert headers["api-key"] == KEY
    assert "authorization" not in headers


def test_a_server_on_this_machine_needs_no_key(monkeypatch, serve):
    monkeypatch.delenv("OPENAI_API_KEY")
    server, address = serve()
    rows_of(api(address))
    assert not {"authorization", "api-key"} & set(server.asked[0][1])
    with pytest.raises(SpaceError, match="a key in the environment variable OPENAI_API_KEY, got none"):
        rows_of(ApiText())


@pytest.mark.parametrize("key", ["two words", "line\nbreak", "schlüssel"])
def test_an_unsuitable_key_is_refused_without_showing_it(key, monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", key)
    with pytest.raises(SpaceError, match="OPENAI_API_KEY: expected a key of printable") as caught:
        rows_of(api("http://127.0.0.1:9"))
    assert key not in "".join(traceback.format_exception(caught.value))


# Consent


def test_without_consent_nothing_is_sent(tmp_path, serve):
    server, address = serve()
    host = address.removeprefix("http://")
    for consent in ((), "api.openai.com", ("127.0.0.1", "localhost")):
        with pytest.raises(SpaceError, match=f"expected consent.*--send-to {host}"):
            encode(texts_dataset(TEXTS), api(address), Store(tmp_path), send_to=consent)
    with sending_to(host):
        pass
    with pytest.raises(SpaceError, match="expected consent"):  # it ends with its context
        api(address).prepare(texts_dataset(TEXTS), lambda *_: None)
    assert not server.asked
    encode(texts_dataset(TEXTS), api(address), Store(tmp_path), send_to=host.upper())
    assert len(server.asked) == 3


def test_consent_to_another_machine_without_encryption_names_it(monkeypatch):
    plain = read_address("http://gpu.example:8000/v1/")
    assert (plain.url, plain.host, plain.consent) == (
        "http://gpu.example:8000/v1",
        "gpu.example:8000",
        "http://gpu.example:8000",
    )
    with sending_to("gpu.example:8000"), pytest.raises(SpaceError, match="without encryption"):
        need_consent(plain, leaving_note(plain, "3 texts"))
    with sending_to("http://gpu.example:8000"):
        need_consent(plain, leaving_note(plain, "3 texts"))
    encrypted = read_address("HTTPS://API.OpenAI.com:443/v1")
    assert (encrypted.url, encrypted.consent) == ("https://api.openai.com/v1", "api.openai.com")
    for here in ("http://localhost:1/v1", "http://127.0.0.1:1", "http://[::1]:1/v1"):
        assert read_address(here).is_here
    for away in ("http://localhost.example", "http://127.0.0.1.example", "http://10.0.0.1", "http://127.1"):
        assert not read_address(away).is_here


def test_a_shared_app_sends_only_where_its_operator_allows(monkeypatch, serve):
    monkeypatch.setenv("RELSCOPE_SHARE", "1")
    server, address = serve()
    host = address.removeprefix("http://")
    with pytest.raises(SpaceError, match=f"this app is shared.*--send-to {host}"):
        rows_of(api(address))
    assert not server.asked
    assert "shared" in ApiText.unfit(None)
    monkeypatch.setenv("RELSCOPE_SEND_TO", f"api.openai.com,{host}")
    rows_of(api(address))
    assert server.asked
    assert ApiText.unfit(None) == ""


@pytest.mark.parametrize(
    "address",
    ["", "api.openai.com", "ftp://host/v1", "http://", "https://host:99999", "https://ho st/v1", "https://hôst/v1",
     "https://host\\@other/v1", "file:///etc/passwd", "https://[::1", "https://host/v1\n"],
)  # fmt: skip
def test_wrong_addresses_are_refused(address):
    with pytest.raises(SpaceError, match="address: expected"):
        ApiText(address=address)


@pytest.mark.parametrize(
    "part", ["user:sk-secret@host/v1", "sk-secret@host", "host/v1?key=sk-secret", "host#sk-secret"]
)
def test_an_address_with_a_secret_is_refused_without_showing_it(part):
    with pytest.raises(SpaceError, match="because it is stored") as caught:
        ApiText(address=f"https://{part}")
    assert "sk-secret" not in str(caught.value)


@pytest.mark.parametrize("name", ["AWS_SECRET_ACCESS_KEY", KEY, "", "openai_api_key", "PATH", "API_KEY\n"])
def test_only_variables_for_keys_of_providers_are_read(name):
    with pytest.raises(SpaceError, match="key_variable: expected the name") as caught:
        ApiText(key_variable=name)
    assert KEY not in str(caught.value)


# Keys in the store


def test_only_settings_that_change_vectors_are_in_keys():
    plain = ApiText(address="http://127.0.0.1:1/v1", passage_prefix="p: ")
    same = replace(plain, price=0.13, batch_size=7, key_variable="OTHER_API_KEY", query_prefix="q: ")
    other = [
        replace(plain, model="another"),
        replace(plain, address="http://127.0.0.1:2/v1"),
        replace(plain, dimensions=8),
        replace(plain, passage_prefix=""),
        replace(plain, encode_as="query"),
        replace(plain, api_version="1"),
    ]
    assert encoding_key("0", same) == encoding_key("0", plain)
    assert key_of("block", "0", same, 0, 7) == key_of("block", "0", plain, 0, 7)
    assert len({encoding_key("0", one) for one in [plain, *other]}) == 7
    assert encoder_from_json(same.to_record()) == same


def test_the_key_is_in_no_file(tmp_path, serve):
    _, address = serve()
    [space] = encode(
        texts_dataset(TEXTS), api(address), Store(tmp_path), send_to=address.removeprefix("http://")
    )
    assert KEY not in json.dumps(api(address).to_record())
    files = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert files
    assert not [path for path in files if KEY.encode() in path.read_bytes()]
    assert KEY not in space.name


def test_a_stopped_encoding_sends_only_the_missing_batches(tmp_path, serve):
    def fails_at_the_third(number, _):
        return (400, {}, b"{}") if number == 2 else None

    lines = []
    server, address = serve(fails_at_the_third)
    host = address.removeprefix("http://")
    with pytest.raises(SpaceError, match="texts 9 to 10: expected vectors, got status 400"):
        encode(texts_dataset(TEXTS), api(address), Store(tmp_path), send_to=host)
    encoder = api(address, price=1.0)
    [space] = encode(
        texts_dataset(TEXTS), encoder, Store(tmp_path), lambda *line: lines.append(line), send_to=host
    )
    assert [len(body["input"]) for _, _, body in server.asked] == [4, 4, 2, 2]
    np.testing.assert_array_equal(space.vectors, np.float32([hashed(text) for text in TEXTS]))


def test_a_model_that_changes_between_two_runs_is_an_error(tmp_path, serve):
    def changes(number, body):
        if number == 1:
            return 400, {}, b"{}"
        return 200, {}, json.dumps(embeddings(body["input"], 24 if number == 0 else 25)).encode()

    _, address = serve(changes)
    host = address.removeprefix("http://")
    with pytest.raises(SpaceError, match="status 400"):
        encode(texts_dataset(TEXTS), api(address), Store(tmp_path), send_to=host)
    with pytest.raises(
        SpaceError, match="expected 24 dimensions, as for the rows before, got 25 for rows 5 to 8"
    ):
        encode(texts_dataset(TEXTS), api(address), Store(tmp_path), send_to=host)


# Busy servers


def test_a_busy_server_is_asked_again_after_the_time_that_it_names(waits, serve):
    lines = []

    def busy(number, _):
        if number == 0:
            return 429, {"retry-after": "7"}, b'{"error": {"message": "slow down"}}'
        if number == 1:
            return 503, {"retry-after": email.utils.formatdate(usegmt=True)}, b""
        return None

    server, address = serve(busy)
    rows = rows_of(api(address), report=lambda *line: lines.append(line[2]))
    assert len(server.asked) == 5
    np.testing.assert_array_equal(rows, np.float32([hashed(text) for text in TEXTS]))
    assert waits[0] == 7.0
    assert len(waits) == 2
    assert "hashed: status 429 with the message 'slow down'; waiting 7 s, then texts 1 to 4 again" in lines


def test_a_storm_passes_with_growing_waits(waits, serve):
    """Every batch meets six errors."""
    statuses = (429, 500, 502)

    def storm(number, _):
        if number % 7 == 6:
            return None
        return statuses[number % 3], {}, b"busy"

    server, address = serve(storm)
    rows = rows_of(api(address))
    assert len(server.asked) == 21
    np.testing.assert_array_equal(rows, np.float32([hashed(text) for text in TEXTS]))
    assert len(waits) == 18
    for batch in (waits[:6], waits[6:12], waits[12:]):
        for number, wait in enumerate(batch):
            assert 0.25 * 2**number <= wait <= 0.5 * 2**number


def test_the_waits_for_a_batch_are_bounded(waits, monkeypatch, serve):
    now = [0.0]
    monkeypatch.setattr(api_client, "sleep", lambda seconds: now.__setitem__(0, now[0] + seconds))
    monkeypatch.setattr(api_client, "monotonic", lambda: now[0])
    server, address = serve(lambda *_: (500, {}, b""))
    with pytest.raises(SpaceError, match=r"texts 1 to 4: .* status 500 with nothing for 10 minutes"):
        rows_of(api(address))
    assert now[0] <= api_client.PATIENCE
    assert len(server.asked) < 40
    server, address = serve(lambda *_: (429, {"retry-after": "3600"}, b""))
    with pytest.raises(SpaceError, match="request to wait 3,600 seconds; finished batches are saved"):
        rows_of(api(address))
    assert len(server.asked) == 1


@pytest.mark.parametrize(
    "asked", ["-1", "nan", "inf", "1e400", "soon", "9" * 5000, "Fri, 99 Foo 2026 99:99:99 GMT"]
)
def test_odd_requests_to_wait_are_ignored(asked, waits, serve):
    _, address = serve(lambda number, _: (429, {"retry-after": asked}, b"") if number == 0 else None)
    rows_of(api(address))
    [wait] = waits
    assert 0.25 <= wait <= 0.5


def test_nobody_listens(waits):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        encoder = api(f"http://127.0.0.1:{taken.getsockname()[1]}")
        with pytest.MonkeyPatch.context() as patched:
            patched.setattr(api_client, "PATIENCE", 3.0)
            patched.setattr(api_client, "monotonic", iter(range(99)).__next__)
            with pytest.raises(SpaceError, match=r"no connection to 127\.0\.0\.1.*refused"):
                rows_of(encoder)


def test_a_server_that_was_never_reached_is_not_asked_for_minutes(waits, monkeypatch, serve):
    now = [0.0]
    monkeypatch.setattr(api_client, "sleep", lambda seconds: now.__setitem__(0, now[0] + seconds))
    monkeypatch.setattr(api_client, "monotonic", lambda: now[0])
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        encoder = api(f"http://127.0.0.1:{taken.getsockname()[1]}")
        with pytest.raises(SpaceError, match="check the address, and whether its server runs"):
            rows_of(encoder)
    assert now[0] <= api_client.PATIENCE_AT_FIRST
    # A server that has answered before may be restarting.
    _, address = serve(lambda number, _: None if number == 0 else says(b""))
    now[0] = 0.0
    with pytest.raises(SpaceError, match="for 10 minutes"):
        rows_of(api(address))
    assert now[0] > api_client.PATIENCE_AT_FIRST


def test_the_address_of_the_requests_themselves_is_read_too():
    assert read_address("http://127.0.0.1:8000/v1/embeddings/").url == "http://127.0.0.1:8000/v1"


def test_consent_for_another_host_is_named():
    address = read_address("https://api.openai.com/v1")
    with sending_to("openai.com"), pytest.raises(SpaceError, match=r"got consent for .openai.com"):
        need_consent(address, leaving_note(address, "3 texts"))


def test_a_cost_below_the_smallest_that_is_shown_is_not_zero():
    assert cost_note(698, 0.02) == "about 698 tokens, less than $0.0001"
    assert cost_note(1_000_000, 0.02) == "about 1,000,000 tokens, $0.0200"
    assert cost_note(698, 0.0) == "about 698 tokens"


# Hostile servers


def changed(**values):
    """An answer for the texts of a request whose first row has other values."""

    def answer(_, body):
        right = embeddings(body["input"])
        right["data"][0] |= values
        return 200, {}, json.dumps({**right}).encode()

    return answer


def without(name):
    def answer(_, body):
        right = embeddings(body["input"])
        del right["data"][0][name]
        return 200, {}, json.dumps(right).encode()

    return answer


def raw(content, status=200, **headers):
    return lambda *_: (status, {name.replace("_", "-"): value for name, value in headers.items()}, content)


def rows_cut(n):
    return lambda _, body: (200, {}, json.dumps(embeddings([*body["input"], "x"][:n])).encode())


def endless(handler):
    handler.send_response(200)
    handler.send_header("connection", "close")
    handler.end_headers()
    for _ in range(4096):
        handler.wfile.write(b" " * 65_536)


def drips(handler):
    """A byte of a header at a time, without end."""
    handler.wfile.write(b"HTTP/1.1 200 OK\r\nx: ")
    while not handler.server.stopped.wait(0.05):
        handler.wfile.write(b"a")


def drips_body(handler):
    handler.send_response(200)
    handler.send_header("connection", "close")
    handler.end_headers()
    while not handler.server.stopped.wait(0.05):
        handler.wfile.write(b" ")


def cut_short(handler):
    handler.send_response(200)
    handler.send_header("content-length", "1000")
    handler.end_headers()
    handler.wfile.write(b'{"data": [')
    handler.close_connection = True


def says(content):
    def answer(handler):
        handler.wfile.write(content)
        handler.close_connection = True

    return answer


def bomb():
    return raw(gzip.compress(b" " * 50_000_000), content_encoding="gzip")


NUMBERS = hashed("text 0")
HOSTILE = {
    "too few rows": (rows_cut(3), "expected 4 vectors, one for each text, got 3"),
    "too many rows": (rows_cut(5), "expected 4 vectors, one for each text, got 5"),
    "no rows": (raw(b'{"data": []}'), "expected 4 vectors"),
    "a shorter row": (changed(embedding=NUMBERS[:-1]), "expected 23 numbers for each text, got 24 for text 2"),
    "an empty row": (changed(embedding=[]), "expected a list of numbers for index 0"),
    "a very wide row": (changed(embedding=[0] * 20_000), "expected a list of numbers"),
    "a row of megabytes": (changed(embedding=[0.123456] * 100_000), "at most 16,384 numbers"),
    "NaN": (changed(embedding=[math.nan, *NUMBERS[1:]]), "expected finite numbers, got NaN or infinity"),
    "infinite": (changed(embedding=[-math.inf, *NUMBERS[1:]]), "expected finite numbers, got NaN or infinity"),
    "beyond float32": (changed(embedding=[1e300, *NUMBERS[1:]]), "expected finite numbers.*text 1 of the batch"),
    "null": (changed(embedding=[None, *NUMBERS[1:]]), "expected a list of numbers"),
    "strings for numbers": (changed(embedding=["0.5", *NUMBERS[1:]]), "expected a list of numbers"),
    "booleans": (changed(embedding=[True, *NUMBERS[1:]]), "expected a list of numbers"),
    "a shorter row in base64": (changed(embedding="AACAPwAAAEA="), "expected 2 numbers for each text, got 24 for text 2"),
    "lists in lists": (changed(embedding=[NUMBERS]), "expected a list of numbers"),
    "an index twice": (changed(index=1), "expected the indices 0 to 3, each once"),
    "an index beyond": (changed(index=4), "expected the indices 0 to 3"),
    "a negative index": (changed(index=-1), "expected the indices 0 to 3"),
    "an enormous index": (changed(index=10**40), "expected"),
    "no index": (without("index"), "expected vectors as JSON"),
    "no embedding": (without("embedding"), "expected vectors as JSON"),
    "data is an object": (raw(b'{"data": {}}'), "expected vectors as JSON"),
    "an error with status 200": (raw(b'{"error": {"message": "no such model"}}'), "the message 'no such model'"),
    "a page": (raw(b"<!doctype html><p>Sign in"), "begin with '<!doctype html>"),
    "nothing": (raw(b""), "got nothing"),
    "no content": (raw(b"", status=204), "expected vectors"),
    "bytes": (raw(bytes(range(256))), "expected vectors as JSON"),
    "a deep tree": (raw(b'{"data":' + b"[" * 200_000), "expected vectors as JSON"),
    "a deep tree elsewhere": (raw(b'{"x":' + b'{"x":' * 200_000), "expected vectors as JSON"),
    "UTF-16": (raw('{"data": []}'.encode("utf-16")), "expected vectors as JSON"),
    "escape sequences": (raw(b'{"error": "\\u001b[2J\\u202eevil"}', status=400), "status 400 with the message"),
    "a long message": (raw(b'{"error": "' + b"x" * 60_000 + b'"}', status=400), "status 400"),
    "a message of megabytes": (raw(b"x" * 5_000_000, status=401), "status 401.*check the key"),
    "a bomb": (bomb(), "expected an answer without compression"),
    "without end": (lambda *_: endless, "expected an answer of at most 2,162,688 bytes, got more"),
    "a redirect": (raw(b"", status=307, location="http://127.0.0.1:9/v1/embeddings"), "a redirect .status 307."),
    "a redirect to a file": (raw(b"", status=302, location="file:///etc/passwd"), "a redirect"),
    "not HTTP": (lambda *_: says(b"SSH-2.0-OpenSSH\r\n"), "no connection"),
    "hung up": (lambda *_: says(b""), "no connection"),
    "cut short": (lambda *_: cut_short, "no connection"),
    "drips of headers": (lambda *_: drips, "no answer in time"),
    "drips of a body": (lambda *_: drips_body, "no answer in time"),
    "an odd status": (lambda *_: says(b"HTTP/1.1 999 ?\r\ncontent-length: 0\r\n\r\n"), "expected vectors"),
    "headers of megabytes": (lambda *_: says(b"HTTP/1.1 200 OK\r\nx: " + b"a" * 3_000_000), "no connection"),
    "the key": (raw(b'{"error": "wrong key ' + KEY.encode() + b'"}', status=401), "wrong key …"),
    "spent": (raw(b'{"error": {"code": "insufficient_quota"}}', status=429), "status 429.*quota"),
}  # fmt: skip


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_answers_are_errors_that_name_the_batch(name, waits, monkeypatch, serve):
    answer, message = HOSTILE[name]
    if name.startswith("drips"):
        monkeypatch.setattr(api_transport, "SECONDS", 0.3)
    monkeypatch.setattr(api_client, "PATIENCE", 0.1)
    _, address = serve(answer)
    with pytest.raises(RelscopeError, match=message) as caught:
        rows_of(api(address))
    error = caught.value
    assert "texts 1 to 4" in str(error)
    assert str(error).isprintable()
    assert len(str(error)) < 600
    assert error.__cause__ is None
    assert error.__context__ is None
    assert KEY not in "".join(traceback.format_exception(error))


def test_numbers_are_read_exactly():
    rows = read_rows(b'{"data":[{"index":0,"embedding":[1,-0.5,1e-7,0]}]}', 1, 4)
    np.testing.assert_array_equal(rows, np.float32([[1, -0.5, 1e-7, 0]]))
