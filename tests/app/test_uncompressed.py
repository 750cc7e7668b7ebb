"""Files of the panes are compressed for browsers on other machines only."""

import pytest
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.middleware.gzip import GZipMiddleware
from starlette.responses import Response
from starlette.routing import Route
from starlette.testclient import TestClient

from app.sharing import Guarded


def answer(_):
    return Response(b"a" * 5000, media_type="application/octet-stream")


@pytest.mark.parametrize(
    ("host", "path", "compressed"),
    [
        ("127.0.0.1", "/media/file.bin", False),
        ("::1", "/media/file.bin", False),
        ("192.0.2.7", "/media/file.bin", True),
        ("127.0.0.1", "/page", True),
    ],
)
def test_only_files_for_this_machine_are_sent_as_they_are(host, path, compressed):
    inner = [Middleware(Guarded), Middleware(GZipMiddleware, minimum_size=1000)]
    app = Starlette(routes=[Route(path, answer)], middleware=inner)
    found = TestClient(app, client=(host, 50_000)).get(path, headers={"accept-encoding": "gzip"})
    assert found.content == b"a" * 5000
    assert ("content-encoding" in found.headers) == compressed
