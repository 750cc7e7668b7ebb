"""Servers that behave as those of OpenAI, Azure and TEI do, and servers with certificates of their own."""

import base64
import datetime
import inspect
import ipaddress
import json
import ssl
from urllib.parse import parse_qs, urlsplit

import numpy as np
import pytest

from relcore.base.errors import SpaceError
from relcore.encoders import api_client
from relcore.encoders.api import ApiText
from relcore.encoders.sending import sending_to
from tests.provider import hashed, provider
from tests.relcore.encoders.texts import texts_dataset

KEY = "sk-secret-0123456789"
TEXTS = [f"text {row}" for row in range(10)]
EXPECTED = np.float32([hashed(text) for text in TEXTS])


@pytest.fixture(autouse=True)
def environment(monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    monkeypatch.setattr(api_client, "PATIENCE", 0.1)
    for name in ("SSL_CERT_FILE", "SSL_CERT_DIR"):
        monkeypatch.delenv(name, raising=False)


def rows_of(encoder, texts=TEXTS):
    with sending_to(encoder.place.consent):
        return encoder.prepare(texts_dataset(texts), lambda *_: None)(texts)[""]


def error(status, message, code, **headers):
    return status, headers, json.dumps({"error": {"message": message, "code": code}}).encode()


def rows_as(body, dimensions, encoding):
    """The usual answer, its numbers as a list or as base64 of float32."""
    data = []
    for index, text in enumerate(body["input"]):
        vector = hashed(text, dimensions)
        if encoding == "base64":
            vector = base64.b64encode(np.array(vector, "<f4").tobytes()).decode()
        data.append({"object": "embedding", "index": index, "embedding": vector})
    return 200, {"content-type": "application/json"}, json.dumps({"object": "list", "data": data}).encode()


def by_request(reply):
    """An answer of `Provider` that `reply(path, headers, body)` gives."""

    def answer(_, body):
        def respond(handler):
            status, headers, content = reply(handler.path, handler.headers, body)
            handler.send_response(status)
            for name, value in {"content-length": str(len(content)), **headers}.items():
                handler.send_header(name, value)
            handler.end_headers()
            handler.wfile.write(content)

        return respond

    return answer


# OpenAI


def openai_reply(path, headers, body, most=2048, encoding=""):
    """The answer of OpenAI's /v1/embeddings: its limits, `dimensions`, and `encoding_format`."""
    if path != "/v1/embeddings":
        return error(404, f"Invalid URL (POST {path})", None)
    if headers["authorization"] != f"Bearer {KEY}":
        return error(401, "Incorrect API key provided: sk-wrong.", "invalid_api_key")
    if body["model"] not in ("text-embedding-3-small", "text-embedding-ada-002"):
        return error(404, f"The model `{body['model']}` does not exist", "model_not_found")
    if "dimensions" in body and body["model"] == "text-embedding-ada-002":
        return error(400, "This model does not support specifying dimensions.", None)
    if len(body["input"]) > most:
        return error(400, f"'$.input' is invalid: expected an array of at most {most}", None)
    if body.get("dimensions", 24) > 24:
        return error(400, "Invalid value for 'dimensions': must be at most 24.", None)
    return rows_as(body, body.get("dimensions", 24), encoding or body.get("encoding_format", "float"))


def of_openai(address, **settings):
    return ApiText(**{"address": f"{address}/v1", "batch_size": 4, **settings})


def test_openai_gives_rows_of_the_wanted_length():
    with provider(by_request(openai_reply)) as (server, address):
        np.testing.assert_array_equal(rows_of(of_openai(address)), EXPECTED)
        short = rows_of(of_openai(address, dimensions=8))
        np.testing.assert_array_equal(short, np.float32([hashed(text, 8) for text in TEXTS]))
        with pytest.raises(SpaceError, match=r"must be at most 24\..; check the model, the dimensions"):
            rows_of(of_openai(address, dimensions=25))
        with pytest.raises(SpaceError, match="does not support specifying dimensions"):
            rows_of(of_openai(address, model="text-embedding-ada-002", dimensions=8))
        assert {body["encoding_format"] for _, _, body in server.asked} == {"float"}


def test_rows_in_base64_are_the_same_numbers():
    def in_base64(*request):
        return openai_reply(*request, encoding="base64")

    with provider(by_request(in_base64)) as (_, address):
        np.testing.assert_array_equal(rows_of(of_openai(address)), EXPECTED)


@pytest.mark.parametrize("text", ["AACAP", "AACAPwAA", "0.5", "!!!!", "AACAf w=="])
def test_base64_that_is_no_float32_is_an_error(text):
    answer = json.dumps({"data": [{"index": 0, "embedding": text}]}).encode()
    message = "expected a list of numbers, or float32 in base64, for index 0"
    with provider(lambda *_: (200, {}, answer)) as (_, address), pytest.raises(SpaceError, match=message):
        rows_of(of_openai(address), ["a"])


def test_a_request_beyond_the_limits_of_a_server_names_the_batch_and_the_remedy():
    def small(*request):
        return openai_reply(*request, most=3)

    with provider(by_request(small)) as (server, address):
        with pytest.raises(SpaceError, match=r"texts 1 to 4: .*an array of at most 3.*the batch size"):
            rows_of(of_openai(address))
        assert len(server.asked) == 1  # such an error does not pass by waiting
        np.testing.assert_array_equal(rows_of(of_openai(address, batch_size=3)), EXPECTED)


def test_the_limit_of_a_request_of_openai_is_the_largest_batch():
    assert ApiText(batch_size=2048).batch_size == 2048
    with pytest.raises(SpaceError, match="batch_size"):
        ApiText(batch_size=2049)


def test_tei_refuses_batches_beyond_its_own_limit():
    def tei(path, headers, body):
        if len(body["input"]) > 2:
            message = "batch size 4 > maximum allowed batch size 2"
            return 422, {}, json.dumps({"error": message, "error_type": "Validation"}).encode()
        return rows_as(body, 24, "float")

    with provider(by_request(tei)) as (_, address):
        with pytest.raises(SpaceError, match=r"maximum allowed batch size 2'.*lower the batch size"):
            rows_of(of_openai(address))
        np.testing.assert_array_equal(rows_of(of_openai(address, batch_size=2)), EXPECTED)


# Azure


def azure_reply(path, headers, body):
    """The answer of Azure: the deployment and the version are in the address, the key in a header."""
    parts = urlsplit(path)
    if parse_qs(parts.query).get("api-version") != ["2024-10-21"]:
        return error(404, "Resource not found", "404")
    if headers["api-key"] != KEY or headers["authorization"]:
        return error(401, "Access denied due to invalid subscription key.", "401")
    if parts.path != "/openai/deployments/ours/embeddings":
        return error(404, "The API deployment for this resource does not exist.", "DeploymentNotFound")
    return rows_as(body, body.get("dimensions", 24), body.get("encoding_format", "base64"))


def of_azure(address, **settings):
    given = {"model": "ours", "api_version": "2024-10-21", "key_variable": "AZURE_OPENAI_API_KEY"}
    return ApiText(**{"address": address, "batch_size": 4, **given, **settings})


def test_azure_is_asked_by_deployment_version_and_its_own_header(monkeypatch):
    monkeypatch.setenv("AZURE_OPENAI_API_KEY", KEY)
    monkeypatch.delenv("OPENAI_API_KEY")
    with provider(by_request(azure_reply)) as (_, address):
        np.testing.assert_array_equal(rows_of(of_azure(address)), EXPECTED)
        assert rows_of(of_azure(f"{address}/", dimensions=8)).shape == (10, 8)
        with pytest.raises(
            SpaceError, match=r"deployment for this resource does not exist.*the name of the model"
        ):
            rows_of(of_azure(address, model="theirs"))
        with pytest.raises(SpaceError, match=r"Resource not found.*check the address"):
            rows_of(of_azure(address, api_version="2019-01-01"))
        with pytest.raises(SpaceError, match="Resource not found"):
            rows_of(of_azure(address, api_version=""))
        monkeypatch.setenv("AZURE_OPENAI_API_KEY", "sk-wrong")
        with pytest.raises(SpaceError, match=r"invalid subscription key.*check the key"):
            rows_of(of_azure(address))


def test_azures_newer_address_is_openais(monkeypatch):
    monkeypatch.setenv("AZURE_OPENAI_API_KEY", KEY)

    def newer(path, headers, body):
        return openai_reply(path.removeprefix("/openai"), headers, body | {"model": "text-embedding-3-small"})

    with provider(by_request(newer)) as (_, address):
        encoder = of_azure(f"{address}/openai/v1", api_version="")
        np.testing.assert_array_equal(rows_of(encoder), EXPECTED)


def test_an_address_copied_from_azures_page_says_where_its_version_goes():
    copied = "https://name.openai.azure.com/openai/deployments/ours/embeddings?api-version=2024-10-21"
    with pytest.raises(SpaceError, match="api-version=” into --api-version"):
        ApiText(address=copied)


# Certificates


def certificate(folder, host, name):
    """A context of a server whose certificate an authority of its own has signed, and the authority's file."""
    x509 = pytest.importorskip("cryptography.x509")
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec

    now = datetime.datetime.now(datetime.UTC)

    def signed(subject, key, issuer, issuer_key, *extensions):
        builder = x509.CertificateBuilder().subject_name(subject).issuer_name(issuer)
        builder = builder.public_key(key.public_key()).serial_number(x509.random_serial_number())
        builder = builder.not_valid_before(now - datetime.timedelta(days=1))
        builder = builder.not_valid_after(now + datetime.timedelta(days=1))
        for extension in extensions:
            builder = builder.add_extension(extension, critical=True)
        # Python 3.13 refuses certificates without both identifiers.
        own = x509.SubjectKeyIdentifier.from_public_key(key.public_key())
        issuing = x509.AuthorityKeyIdentifier.from_issuer_public_key(issuer_key.public_key())
        for identifier in (own, issuing):
            builder = builder.add_extension(identifier, critical=False)
        return builder.sign(issuer_key, hashes.SHA256())

    def named(text):
        return x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, text)])

    authority_key = ec.generate_private_key(ec.SECP256R1())
    server_key = ec.generate_private_key(ec.SECP256R1())
    authority = named(f"Authority of {name}")
    of_authority = x509.BasicConstraints(ca=True, path_length=None)
    usage = dict.fromkeys(inspect.signature(x509.KeyUsage).parameters, False) | {"key_cert_sign": True}
    root = signed(authority, authority_key, authority, authority_key, of_authority, x509.KeyUsage(**usage))
    hosts = x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address(host))])
    leaf = signed(named(name), server_key, authority, authority_key, hosts)
    (folder / f"{name}-authority.pem").write_bytes(root.public_bytes(serialization.Encoding.PEM))
    parts = [
        server_key.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        ),
        leaf.public_bytes(serialization.Encoding.PEM),
    ]
    (folder / f"{name}.pem").write_bytes(b"".join(parts))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(folder / f"{name}.pem")
    return context, folder / f"{name}-authority.pem"


@pytest.fixture(scope="module")
def encrypted(tmp_path_factory):
    """A server with a certificate of its own authority: the server, its address, the authority's file."""
    context, authority = certificate(tmp_path_factory.mktemp("certificates"), "127.0.0.1", "ours")
    with provider(by_request(openai_reply), encryption=context) as (server, address):
        yield server, address, authority


def test_an_authority_of_ones_own_is_trusted_if_the_environment_names_its_file(encrypted, monkeypatch):
    server, address, authority = encrypted
    assert address.startswith("https://127.0.0.1:")
    monkeypatch.setenv("SSL_CERT_FILE", str(authority))
    np.testing.assert_array_equal(rows_of(of_openai(address)), EXPECTED)
    assert len(server.asked) == 3


def test_a_certificate_that_is_not_trusted_is_refused_at_once_with_a_remedy(encrypted, tmp_path, monkeypatch):
    server, address, _ = encrypted
    before = len(server.asked)
    monkeypatch.setattr(api_client, "PATIENCE", 600.0)  # it is not asked again, or the test would wait
    message = r"texts 1 to 4: .* a certificate that is not trusted \(.*\); .* in SSL_CERT_FILE"
    with pytest.raises(SpaceError, match=message):
        rows_of(of_openai(address))
    _, other = certificate(tmp_path, "127.0.0.1", "theirs")
    monkeypatch.setenv("SSL_CERT_FILE", str(other))
    with pytest.raises(SpaceError, match=message):
        rows_of(of_openai(address))
    assert len(server.asked) == before


def test_a_certificate_for_another_host_is_refused(tmp_path, monkeypatch):
    context, authority = certificate(tmp_path, "127.0.0.2", "elsewhere")
    monkeypatch.setenv("SSL_CERT_FILE", str(authority))
    with provider(by_request(openai_reply), encryption=context) as (server, address):
        with pytest.raises(SpaceError, match=r"not trusted \(IP address mismatch"):
            rows_of(of_openai(address))
        assert not server.asked


@pytest.mark.parametrize(("name", "content"), [("SSL_CERT_FILE", None), ("SSL_CERT_FILE", "no certificate")])
def test_a_wrong_file_of_certificates_is_an_error_that_names_the_variable(
    name, content, tmp_path, monkeypatch
):
    path = tmp_path / "authority.pem"
    if content is not None:
        path.write_text(content)
    monkeypatch.setenv(name, str(path))
    with pytest.raises(SpaceError, match=f"{name}=.*authority.pem.*: expected certificates"):
        rows_of(ApiText(address="https://127.0.0.1:9/v1"))


def test_https_to_a_server_without_encryption_is_refused_at_once(monkeypatch):
    monkeypatch.setattr(api_client, "PATIENCE", 600.0)
    with provider() as (server, address):
        with pytest.raises(SpaceError, match="an answer without encryption; write http://"):
            rows_of(of_openai(address.replace("http://", "https://")))
        assert not server.asked
