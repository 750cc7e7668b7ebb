"""A small Qdrant server for tests: the few requests that we send, answered by Qdrant's embedded mode in
memory, truly or not.

It shows that addresses work through the client's HTTP. It does not show how a real server searches.
"""

import json
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler

from tests import loopback
from tests.lazily import Lazily

qdrant_client = Lazily("qdrant_client")


class _Handler(BaseHTTPRequestHandler):
    def log_message(self, *_):
        pass

    def _reply(self, result):
        if (result := self.server.lie(self, result)) is None:
            return
        body = json.dumps({"result": result, "status": "ok", "time": 0.0}).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def _body(self):
        return json.loads(self.rfile.read(int(self.headers.get("Content-Length") or 0)) or b"{}")

    def do_GET(self):
        _, *parts = self.path.partition("?")[0].split("/")
        self.server.keys.append(self.headers.get("api-key"))
        base = self.server.base
        if parts == ["collections"]:
            return self._reply(base.get_collections().model_dump(mode="json"))
        if parts[2:] == ["exists"]:
            return self._reply({"exists": base.collection_exists(parts[1])})
        return self._reply(base.get_collection(parts[1]).model_dump(mode="json", exclude_none=True))

    def do_PUT(self):
        _, *parts = self.path.partition("?")[0].split("/")
        body = self._body()
        base = self.server.base
        if parts[2:] == ["points"]:
            base.upsert(parts[1], [qdrant_client.models.PointStruct(**one) for one in body["points"]])
            return self._reply({"operation_id": 0, "status": "completed"})
        return self._reply(
            base.create_collection(parts[1], qdrant_client.models.VectorParams(**body["vectors"]))
        )

    def do_PATCH(self):
        _, *parts = self.path.partition("?")[0].split("/")
        return self._reply(self.server.base.update_collection(parts[1], metadata=self._body()["metadata"]))

    def do_POST(self):
        _, *parts = self.path.partition("?")[0].split("/")
        body = self._body()
        base = self.server.base
        if parts[2:] == ["points"]:
            found = base.retrieve(parts[1], body["ids"], body["with_payload"], body["with_vector"])
            return self._reply([one.model_dump(mode="json") for one in found])
        if parts[3:] == ["count"]:
            return self._reply({"count": base.count(parts[1]).count})
        assert parts[3:] == ["scroll"]
        keys = {"limit", "offset", "with_payload"}
        options = {key: value for key, value in body.items() if key in keys}
        points, following = base.scroll(parts[1], with_vectors=body.get("with_vector", False), **options)
        return self._reply(
            {"points": [one.model_dump(mode="json") for one in points], "next_page_offset": following}
        )


@contextmanager
def serving(lie=lambda handler, result: result):
    """The address, and the list of keys that clients sent. `lie` may replace each result. It returns None if it has
    already sent an answer."""
    base = qdrant_client.QdrantClient(":memory:", force_disable_check_same_thread=True)
    with loopback.serving(_Handler, lie=lie, sent=0, base=base, keys=[]) as (server, address):
        yield address, server.keys
