"""A small server for tests with the requests of Elasticsearch and OpenSearch that we send: a contract taken from
their documentation. No real server runs here, so what it shows is what we send and read.
"""

import json
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler
from urllib.parse import parse_qs, unquote

from tests import loopback


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def _reply(self, result, status=200):
        body = json.dumps(result).encode()
        self.send_response(status)
        for name, value in {
            "Content-Length": len(body),
            "Content-Type": "application/json",
            "X-Elastic-Product": "Elasticsearch",
            **self.server.headers,
        }.items():
            self.send_header(name, str(value))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def _answer(self):
        server, path = self.server, self.path.partition("?")[0]
        server.logins.append(self.headers.get("Authorization"))
        content = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        if server.status != 200:
            return self._reply({"error": "no"}, server.status)
        if self.command == "HEAD":
            return self._reply({}, 200 if path[1:] in server.indices else 404)
        if path == "/":
            kind = {"distribution": "opensearch"} if server.is_opensearch else {}
            return self._reply({"version": {"number": "3.1.0", **kind}})
        if path == "/_search/scroll":
            if self.command == "DELETE":
                server.pages = None
                return self._reply({"succeeded": True})
            return self._page()
        if path == "/_bulk":
            path = f"/{json.loads(content.splitlines()[0])['index']['_index']}/_bulk"
        name, *action = map(unquote, path[1:].split("/"))
        if self.command == "PUT" and not action:
            server.indices[name] = {"mappings": json.loads(content)["mappings"], "rows": {}}
            return self._reply({"acknowledged": True})
        if name not in server.indices:
            return self._reply({"error": {"type": "index_not_found_exception"}}, 404)
        index = server.indices[name]
        if action == ["_mapping"]:
            return self._reply({name: {"mappings": index["mappings"]}})
        if action == ["_count"]:
            return self._reply({"count": len(index["rows"])})
        if action == ["_bulk"]:
            lines = [json.loads(line) for line in content.splitlines()]
            for head, row in zip(lines[::2], lines[1::2], strict=True):
                index["rows"][head["index"]["_id"]] = row
            items = [{"index": {"_id": head["index"]["_id"], "status": 200}} for head in lines[::2]]
            return self._reply({"errors": False, "items": items})
        if action == ["_search"]:
            asked = json.loads(content)
            hits = [self._hit(key, row, asked.get("fields", ())) for key, row in index["rows"].items()]
            size = int(asked.get("size") or parse_qs(self.path.partition("?")[2])["size"][0])
            server.pages = iter([hits[at : at + size] for at in range(0, len(hits), size)])
            return self._page()
        return self._reply({})

    def _page(self):
        return self._reply(
            {
                "_scroll_id": "s",
                "_shards": {"successful": 1, "skipped": 0, "total": 1},
                "hits": {"hits": next(self.server.pages, [])},
            }
        )

    def _hit(self, key, row, fields):
        """Vectors in `_source` for OpenSearch, and among the fields that were asked for by Elasticsearch."""
        if self.server.is_opensearch:
            return {"_id": key, "_source": row}
        source = {name: value for name, value in row.items() if name != "vector"}
        return {"_id": key, "_source": source, "fields": {name: row[name] for name in fields}}

    do_HEAD = do_GET = do_PUT = do_POST = do_DELETE = _answer


@contextmanager
def serving(is_opensearch=False, status=200, headers=()):
    state = {"is_opensearch": is_opensearch, "status": status, "headers": dict(headers)}
    with loopback.serving(_Handler, indices={}, logins=[], pages=None, **state) as (server, address):
        yield server, address
