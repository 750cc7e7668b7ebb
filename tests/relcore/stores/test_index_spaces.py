"""A vector index as a space: its spec, and what a stranger's session may not make it do."""

import json

import pytest

from relcore.base.errors import SpaceError
from relcore.catalog.catalog import SpaceSpec, load, need_access
from relcore.catalog.naming import space_spec
from tests.relcore.stores.stores import made, written


def spec_of(place, limit=None):
    return SpaceSpec("index", place.where, limit, (("kind", place.kind), ("table", place.table)))


@pytest.mark.parametrize("kind", ["lancedb", "faiss"])
def test_a_spec_goes_to_json_and_back_and_loads(kind, tmp_path):
    place = written(kind, tmp_path, made())
    spec = space_spec(place.text)
    assert spec == spec_of(place)
    assert SpaceSpec.from_json(json.loads(json.dumps(spec.to_json()))) == spec
    space = load(spec)
    assert sorted(space.ids) == sorted(made().ids)
    assert space.name == ("news" if place.table else "rows")
    assert len(load(spec_of(place, limit=9))) == 9


def test_session_of_stranger_reaches_no_address_and_shared_app_no_database(tmp_path, monkeypatch):
    options = {"kind": "lancedb", "table": "c"}
    described = {"source": "index", "name": "http://127.0.0.1:9", "options": options}
    with pytest.raises(SpaceError, match="expected a path, got an address"):
        SpaceSpec.from_json(described)
    monkeypatch.setenv("RELSCOPE_DATA", str(tmp_path))
    inside = [spec_of(written(kind, tmp_path, made())) for kind in ("lancedb", "faiss")]
    monkeypatch.setenv("RELSCOPE_SHARE", "1")
    for attempt in (need_access, load):
        with pytest.raises(SpaceError, match="this app is shared, so it opens no databases"):
            attempt(inside[0])
    need_access(inside[1])
    with pytest.raises(SpaceError, match="is not open to this session"):
        need_access(SpaceSpec("index", "/elsewhere/old.faiss", options=(("kind", "faiss"), ("table", ""))))
