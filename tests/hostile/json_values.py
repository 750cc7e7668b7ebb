"""Changes of a JSON value that a file may have: each setting in turn is replaced or left out, or another one
is added beside it.
"""

import copy
import json
from collections.abc import Mapping

EARLIER = "tests/data/earlier/v0.1.0"
ODD = (
    *(None, True, False, 0, -1, 7, 2**63, 10**400, -0.0, 0.5, 1e-320, 1e308, float("nan"), float("inf")),
    *("", "x", "3", "1e3", "nan", "../../../etc/passwd", "~nosuchuser/x", "a\0b", "\ud800", "x" * 100_000),
    *("<b>", "\x1b[31m", [], [[]], [None], [1, 2], ["x"] * 3, {}, {"": None}, {"__class__": "os"}),
    [[[[[[[[1]]]]]]]],
)


def places(value, at=()):
    yield at
    items = ()
    if isinstance(value, dict):
        items = value.items()
    for name, one in enumerate(value[:2]) if isinstance(value, list) else items:
        yield from places(one, (*at, name))


def put(value, at, new):
    if not at:
        return new
    changed = copy.deepcopy(value)
    holder = changed
    for step in at[:-1]:
        holder = holder[step]
    holder[at[-1]] = new
    return changed


def changed(value, each=2):
    """Changed values with their labels: at every place, some values of `ODD` (other ones at the next place);
    each name left out once; a name added to each object.
    """
    number = 0
    for at in places(value):
        label = ".".join(map(str, at)) or "all"
        for _ in range(each):
            odd = ODD[number % len(ODD)]
            number += 7
            yield f"{label} is {odd!r:.30}", put(value, at, odd)
        holder = value
        for step in at:
            holder = holder[step]
        if isinstance(holder, dict):
            yield f"{label} has one more", put(value, at, {**holder, "unheard_of": 1})
            for name in holder:
                without = {key: one for key, one in holder.items() if key != name}
                yield f"{label} lacks {name}", put(value, at, without)


def differences(given, written, at=""):
    """The places where Relscope writes something else than it was given. Whole numbers may become fractions,
    and a missing setting may become its default.
    """
    if isinstance(given, Mapping) and isinstance(written, Mapping):
        pairs = [(name, one, written.get(name, "nothing")) for name, one in given.items()]
        return [place for name, *pair in pairs for place in differences(*pair, f"{at}.{name}")]
    if isinstance(given, list) and isinstance(written, list) and len(given) == len(written):
        return differences(dict(enumerate(given)), dict(enumerate(written)), at)
    if given is None and written == {}:
        return []
    if isinstance(given, int | float) and isinstance(written, int | float):
        if given == written and isinstance(given, bool) == isinstance(written, bool):
            return []
        return [at]
    if type(given) is type(written) and given == written:
        return []
    return [at]


def text(value):
    return json.dumps(value).encode()
