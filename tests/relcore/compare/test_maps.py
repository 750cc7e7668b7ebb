"""Names of clusters, and the table for Embedding Atlas."""

import re

import numpy as np
import pyarrow as pa
import pytest

from relcore import bundled_results, example_spaces
from relcore.catalog.catalog import load
from relcore.compare.clusters import dense_clusters, named_clusters
from relcore.compare.columns import rows_table
from relcore.compare.scene import MapLook, with_look
from relcore.encoders.dataset import DatasetSpec
from relcore.encoders.datasets import load_dataset
from relcore.export.atlas import atlas_table
from relcore.figures.colorings import Pane
from relcore.figures.scene import Scene
from relcore.spaces.matching import match
from relcore.spaces.space import LatentSpace


@pytest.fixture
def islands(rng):
    groups = np.repeat(np.arange(4), 100)
    return np.array([[0, 0], [50, 0], [0, 50], [50, 50]])[groups] + rng.normal(size=(400, 2)), groups


def test_term_is_that_of_texts_of_cluster_not_most_frequent_one(islands, rng):
    coordinates, groups = islands
    ids = [f"row/{i}" for i in range(400)]
    space = LatentSpace(np.c_[coordinates, 2 * rng.normal(size=(400, 20))], ids)
    themes = ("river", "engine", "violin", "senate")
    text = {ids[i]: f"the and of the {themes[group]} with number {i % 7}" for i, group in enumerate(groups)}
    found = named_clusters(space, np.arange(400), coordinates, lambda asked: [text[one] for one in asked])
    named = np.array([*found.names, ""])[found.numbers]
    for group, theme in enumerate(themes):
        names = named[groups == group]
        assert {name.split(" · ")[0] for name in names} - {""} == {theme}
        assert np.mean(names != "") > 0.8
    assert not any(word in name for name in found.names for word in ("the", "with", "number"))


def test_stop_words_name_no_cluster_even_where_only_its_texts_have_them(islands, rng):
    """As in clusters of pooled word vectors, which follow the lengths of texts; their names were "the · that"
    and "companies · are"."""
    coordinates, groups = islands
    ids = [f"row/{i}" for i in range(400)]
    space = LatentSpace(np.c_[coordinates, 2 * rng.normal(size=(400, 20))], ids)
    said = ("the that the that river", "the that the that", "companies are", "are which these senate")
    text = {ids[i]: said[group] for i, group in enumerate(groups)}
    found = named_clusters(space, np.arange(400), coordinates, lambda asked: [text[one] for one in asked])
    words = {word for name in found.names for word in name.split(" · ")} - {""}
    assert words == {"river", "companies", "senate"}


def test_an_enlarged_map_names_smaller_clusters(rng):
    """Three islands of 20 topics each, whose topics are too small for clusters of the whole map."""
    topics = np.repeat(np.arange(60), 15)
    islands = topics // 20
    places = 100 * np.eye(3)[islands] + 8 * rng.normal(size=(60, 3))[topics]
    ids = [f"row/{i}" for i in range(len(topics))]
    space = LatentSpace(places + 0.3 * rng.normal(size=places.shape), ids)
    letters = "abcdefghijklmnopqrstuvwxyz"
    words = np.array([f"topic{letters[topic // 26]}{letters[topic % 26]}" for topic in range(60)])
    themes = np.array(["river", "engine", "violin"])
    said = [f"{theme} {word}" for theme, word in zip(themes[islands], words[topics], strict=True)]
    texts = dict(zip(ids, said, strict=True))
    found = named_clusters(space, np.arange(len(ids)), places, lambda asked: [texts[one] for one in asked])
    assert 3 <= len(found.names) <= len(found.finer.names) / 2
    assert found.finer.finer is None
    named = np.array([*found.finer.names, ""])[found.finer.numbers]
    right = [word in name.split(" · ") for word, name in zip(words[topics], named, strict=True)]
    assert np.mean(right) > 0.8


def test_rows_beyond_those_that_are_fitted_are_in_the_nearest_cluster(rng):
    groups = np.repeat(np.arange(3), 1500)
    rows = (10 * np.eye(3)[groups] + rng.normal(size=(4500, 3))).astype(np.float32)
    found = dense_clusters(rows)
    assert np.mean(found >= 0) > 0.9
    for number in set(found) - {-1}:
        assert len(set(groups[found == number])) == 1


def test_regions_of_words_have_smaller_ones(islands):
    coordinates, _ = islands
    space = LatentSpace(
        np.c_[coordinates, np.ones(400)], [f"word{chr(97 + i // 26)}{chr(97 + i % 26)}" for i in range(400)]
    )
    found = named_clusters(space, np.arange(400), coordinates)
    assert (len(found.names), len(found.finer.names)) == (4, 16)


@pytest.mark.parametrize("d", [8, 100, 384])
def test_unrelated_rows_have_no_clusters(d):
    rng = np.random.default_rng(d)
    for rows in (rng.standard_t(3, size=(600, d)), rng.normal(size=(600, d)) / np.sqrt(1 + np.arange(d))):
        assert set(dense_clusters(rows.astype(np.float32))) == {-1}


def test_sentences_of_sixteen_articles_are_named_by_their_articles():
    """13 of 16 clusters have a word of their article's title or first sentence in their name."""
    specs, _ = example_spaces("sentences", bundled_results())
    # pooled words have no dense clusters, MiniLM has
    first = load(specs[0])
    last = load(specs[2])
    dataset = load_dataset(specs[0].dataset)
    whole = load_dataset(DatasetSpec("wikipedia"))
    text_of = dict(zip(dataset.ids, dataset.items(0, len(dataset)), strict=True))
    about = {}
    for title, sentence in zip(whole.labels, whole.items(0, len(whole)), strict=True):
        about.setdefault(title, f"{title} {sentence}".lower())
    bare = first.with_columns(labels=None)
    n = len(bare)
    flat = np.zeros((len(bare), 2))

    def texts(ids):
        return [text_of[one] for one in ids]

    found = named_clusters(bare, np.arange(n), flat, texts, last)
    named = set()
    for number, name in enumerate(found.names):
        articles, counts = np.unique(first.labels[found.numbers == number], return_counts=True)
        article = articles[np.argmax(counts)]
        if any(term in re.findall(r"\w+", about[article]) for term in name.split(" · ")):
            named.add(article)
    assert len(named) >= 12
    scene = Scene((Pane("map", flat),), bare.ids, np.full(n, -1))
    alone = named_clusters(bare, np.arange(n), flat, texts)
    assert "no clusters" in with_look(scene, MapLook(), None, alone).caption


def test_labels_are_used_where_most_rows_have_one(islands):
    coordinates, groups = islands
    labels = [f"class {group}" for group in groups[:390]] + [""] * 10
    space = LatentSpace(np.c_[coordinates, np.ones(400)], [str(i) for i in range(400)], labels=labels)
    found = named_clusters(space, np.arange(400), coordinates)
    assert found.names == ("class 0", "class 1", "class 2", "class 3")
    assert [*groups[:390], *[-1] * 10] == found.numbers.tolist()


NEIGHBOURS = pa.struct([("ids", pa.list_(pa.int64())), ("distances", pa.list_(pa.float32()))])


def spaces(n=12):
    rng = np.random.default_rng(0)
    ids = [f"r{row}" for row in range(n)]
    labels = np.array(["x", "b"], dtype=object)[np.arange(n) % 2]
    return [LatentSpace(rng.normal(size=(n, d)), ids, name=f"{d} wide", labels=labels) for d in (4, 6)]


def test_rows_have_places_neighbours_among_rows_shown_and_all_columns():
    pair = match(*spaces())
    rows = np.array([1, 3, 4, 7, 8, 11])
    maps = [np.arange(12.0).reshape(6, 2), np.arange(18.0).reshape(6, 3)]
    columns = rows_table(pair, rows).assign(x=list("abcdef"))
    table = atlas_table((pair.source, pair.target), rows, maps, columns, k=2)
    maps_of_both = ["x", "y", "neighbors", "x_6 wide", "y_6 wide", "neighbors_6 wide"]
    assert table.column_names == ["id", "label", "x (column)", *maps_of_both]
    assert table["y_6 wide"].to_pylist() == maps[1][:, 1].tolist()
    assert table.schema.field("neighbors").type == NEIGHBOURS
    vectors = pair.source.vectors - pair.source.vectors.mean(axis=0)
    unit = (vectors / np.linalg.norm(vectors, axis=1, keepdims=True))[rows]
    distances = 1 - unit @ unit.T
    for row, cell in enumerate(table["neighbors"].to_pylist()):
        others = np.delete(np.arange(6), row)
        nearest = others[np.argsort(distances[row, others])[:2]]
        assert cell["ids"] == nearest.tolist()
        np.testing.assert_allclose(cell["distances"], distances[row, nearest], atol=1e-6)
