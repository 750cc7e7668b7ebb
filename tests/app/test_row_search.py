import json
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest

from app import compute
from app.compare import search
from app.compare.search import SearchableRows
from app.components.rows import LONGEST_QUERY, read_pick, read_query
from relcore.base.errors import SpaceError
from tests.app.conftest import save_space

IDS = ["rivers", "River", "upriver", "sea", "lake", "pond"]
LABELS = ["", "", "", "river mouth", "a river", ""]
TEXTS = ["", "", "", "", "", "The pond beside the River."]


@pytest.mark.parametrize(
    ("query", "best"),
    [
        ("river", ["River", "rivers", "upriver", "sea", "lake", "pond"]),
        ("  RIVER ", ["River", "rivers", "upriver", "sea", "lake", "pond"]),
        ("the  pond", ["pond"]),
        ("qzx", []),
        (" ", []),
    ],
)
def test_ids_come_before_labels_and_these_before_texts(query, best):
    rows = SearchableRows(IDS, LABELS, TEXTS)
    found, n = rows.find(query)
    assert [rows.ids[row] for row in found] == best
    assert n == len(best)


@pytest.mark.parametrize("sent", [None, "r1", *((row, "p") for row in (-1, 5, True, 1.0, "1")), (1, "other")])
def test_only_a_click_on_a_row_of_this_pair_counts(sent):
    assert (
        read_pick(dict(zip(("row", "pair"), sent, strict=True)) if isinstance(sent, tuple) else sent, "p", 5)
        is None
    )
    assert read_pick({"row": 4, "pair": "p"}, "p", 5) == 4


@pytest.mark.parametrize(
    ("state", "query"), [(None, ""), ({"query": 3}, ""), ({"query": "a" * 90_000}, "a" * LONGEST_QUERY)]
)
def test_a_query_is_a_text_of_limited_length(state, query):
    assert read_query(state) == query


def test_a_query_is_encoded_or_compared_with_texts(tmp_path):
    rng = np.random.default_rng(0)
    texts = np.array([f"the {kind} number {row}" for row in range(30) for kind in ("dog", "cat")])
    tilted = [rng.normal(size=(60, d)) + np.tile([[3], [-3]], (30, d)) for d in (5, 7)]
    first, second = (save_space(tmp_path / f"{len(X.T)}.npz", X) for X in tilted)
    pair = compute.matched_models(first, second)
    rows = SearchableRows(pair.ids, [""] * 60, texts)
    by_texts = search._ranking(pair, first, second, "a cat", rows)
    assert by_texts.how[0] == "the mean of the 5 rows whose texts fit best"
    assert "cat" in texts[by_texts.rows[0]]
    asked = search._ranking(pair, first, second, str(pair.target.vectors[9].tolist()), rows)
    assert asked.similarities[asked.rows == 9, 1] == pytest.approx(1)
    with pytest.raises(SpaceError, match=r"expected a vector of 5 or 7 numbers, got 3; .* in quotes"):
        search._ranking(pair, first, second, "[1 2 3]", rows)
    same = compute.matched_models(first, first)
    with pytest.raises(SpaceError, match="expected a vector of 5 numbers, got 3"):
        search._ranking(same, first, first, "[1 2 3]", rows)
    for query in ("number 17", "17 17", '"17 17 17 17 17"'):  # also numbers can be meant as words
        by_texts = search._ranking(pair, first, second, query, rows)
        assert by_texts.how[0].endswith("whose texts fit best")
    with pytest.raises(SpaceError, match="expected finite numbers, got inf"):
        search._ranking(pair, first, second, "1 2 1e400 4 5", rows)


# The box itself, with as much of a page as it needs

PAGE = """
class Node {
  constructor() { Object.assign(this, { heard: {}, children: [], value: "", hidden: false }); }
  setAttribute() {} append() {} scrollIntoView() {} replaceChildren(...nodes) { this.children = nodes; }
  addEventListener(kind, act) { this.heard[kind] = act; }
  getRootNode() { return { activeElement: null }; }
}
const made = [];
globalThis.document = { createElement: () => (made.push(new Node()), made.at(-1)) };
const told = [];
const parts = { parentElement: new Node(), setStateValue: (_, query) => told.push(query), setTriggerValue: (_, { id }) => told.push({ id }) };
const draw = (query, ...ids) => box({ data: { label: "", placeholder: "", query, matches: ids.map((id) => ({ id })), told: "" }, ...parts });
draw("");
const input = made[0];
const type = (text) => { input.value = text; input.heard.input(); };
const enter = () => input.heard.keydown({ key: "Enter", stopPropagation() {}, preventDefault() {} });
"""


@pytest.mark.skipif(shutil.which("node") is None, reason="no Node found: install nodejs")
@pytest.mark.parametrize(
    ("steps", "told"),
    [
        ("type('wine'); enter(); draw('wine', 'r1', 'r2');", ["wine", {"id": "r1"}, ""]),
        ("type('wine'); draw('wine', 'r1', 'r2'); enter();", [{"id": "r1"}, ""]),
        ("type('win'); enter(); type('wine'); draw('win', 'r0'); draw('wine', 'r1');", ["win"]),
    ],
)
def test_enter_takes_the_first_answer_also_if_late(steps, told):
    script = (Path(search.__file__).parents[1] / "components" / "row_search.js").read_text(encoding="utf-8")
    program = script.replace("export default function", "function box") + PAGE + steps
    program += "process.stdout.write(JSON.stringify(told)); process.exit();"
    ran = subprocess.run(["node", "--input-type=module", "-"], input=program, capture_output=True, text=True)
    assert json.loads(ran.stdout) == told, ran.stderr
