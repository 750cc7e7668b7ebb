"""The third paper: anchors found from 15 pairs, compared with all true anchors and with the seeds alone."""

from __future__ import annotations

from collections.abc import Mapping

from relcore.anchors.bootstrap import BootstrapResult
from relcore.bootstrapping.result import FORMS, Outcome, held_out_split, relative_scores
from relcore.bootstrapping.spec import BootstrapSpec, most_frequent
from relcore.evaluation import Split
from relcore.languages.across import head_across
from relcore.metrics.calibration import Score
from relcore.papers.local import labelled
from relcore.papers.ours import SHARE
from relcore.papers.runs import Measured, Settings
from relcore.papers.summaries import grouped
from relcore.progress import Report, silent
from relcore.spaces import LatentSpace
from relcore.stitching.spec import StitchSpec
from relcore.store import Store
from relcore.studies.material import labelled_spaces, word_pair

_METHODS = {"paper": "AO (as published)", "self-learning": "self-learning (ours)"}
_FORMS = {"ground truth": "GT", "seeds": "Seed"}
_METRICS = {"jaccard": "Jaccard", "mrr": "MRR", "cosine": "cosine"}
_ROWS = {False: "held-out rows", True: "all rows, as published"}


def words(settings: Settings, store: Store, report: Report) -> Measured:
    """Tables 1, 4 and 5: anchors of either space sought, the relative spaces compared in both directions."""
    pair = word_pair((), store)
    first, second = (most_frequent(space, settings["rows"]) for space in (pair.source, pair.target))
    shared = [one for one in first.ids if one in second.index]
    first, second = (space.take(space.rows(shared)) for space in (first, second))
    names = {first.name: "Word2Vec", second.name: "FastText"}
    ways = {"to Word2Vec": (second, first), "to FastText": (first, second)}
    return Measured(grouped(_retrieval(ways, names, settings, report)))


def digits(settings: Settings, store: Store, report: Report) -> Measured:
    """Table 7 on the digits: two autoencoders, each trained by itself, without labels.

    Classifiers turn the digits into ten clusters, where 15 seeds do as well as all anchors, which would make the comparison
    uninformative.
    """
    first, second = autoencoded(store)
    names = {first.name: "autoencoder A", second.name: "autoencoder B"}
    return Measured(grouped(_retrieval({"to autoencoder B": (first, second)}, names, settings, report)))


def autoencoded(store: Store) -> tuple[LatentSpace, LatentSpace]:
    """The digits' codes by two convolutional autoencoders of other widths and first weights, with their labels."""
    from relcore.studies.isometry import trained_space

    return tuple(trained_space("autoencoder", width, state, store, silent) for state, width in enumerate((64, 128)))


def heads(settings: Settings, store: Store, report: Report) -> Measured:
    """Tables 2 and 6: relative heads of one encoder applied to another with true, seed and found anchors."""
    tfidf, *_, minilm = labelled("sentences", store, silent)[0]
    _, early, _, late = labelled_spaces("sentences", store, silent)
    chosen = {
        "digits, decoder autoencoder A, encoder autoencoder B": autoencoded(store),
        "sentences, decoder MiniLM layer 2, encoder MiniLM layer 6": (early, late),
        "sentences, decoder TF-IDF + SVD, encoder MiniLM": (tfidf, minilm),
    }
    steps = [(label, state, method) for label in chosen for state in settings["random_states"] for method in _METHODS]
    rows = []
    for done, (label, state, method) in enumerate(steps):
        report(done, len(steps), f"{label}, {_METHODS[method]}, random state {state}")
        decoder, encoder = chosen[label]
        sizes = {name: settings[name] for name in ("n_anchors", "n_seeds", "steps", "learning_rate")}
        outcome = BootstrapSpec(method, **sizes, random_state=state).run((encoder, decoder))
        rows.append({"label": f"{label}, {_METHODS[method]}", "metric": "share of the hidden found", "value": outcome.share})
        sets = _anchor_sets(outcome, _METHODS[method])
        apart = held_out_split(encoder, decoder, outcome.result)
        tested = Split.draw(apart.ids, anchors=apart.anchors, random_state=state).test  # the same rows for every set of anchors
        spec = StitchSpec(("relative", "whitened"), random_states=(state,), test_ids=tuple(apart.ids[tested]))
        for form, pairs in sets.items():
            if form in ("GT", "Seed") and method != "paper":
                continue
            ours = encoder.vectors[encoder.rows([one for one, _ in pairs])]
            theirs = decoder.vectors[decoder.rows([other for _, other in pairs])]
            found = head_across(decoder, encoder, theirs, ours, spec)
            for kind, told in (("relative", "relative"), ("whitened", "whitened (ours)")):
                row = {"label": f"{label}, {form}", "metric": f"{told}: accuracy", "value": found.accuracy[kind]}
                rows.append({**row, "n": found.n, "baseline": found.chance})
        if method == "paper":
            own = {"label": f"{label}, not stitched", "metric": "head on the encoder's own rows: accuracy"}
            rows.append({**own, "value": found.ceiling, "n": found.n, "baseline": found.chance})
    return Measured(grouped(rows))


def _anchor_sets(outcome: Outcome, found: str) -> dict[str, tuple[tuple[str, str], ...]]:
    anchors, n_seeds = outcome.result.anchors, outcome.result.n_seeds
    return {"GT": tuple((one, one) for one, _ in anchors), "Seed": anchors[:n_seeds], found: anchors}


def _retrieval(
    ways: dict[str, tuple[LatentSpace, LatentSpace]], names: dict[str, str], settings: Settings, report: Report
) -> list[dict]:
    """A row per target space, method, state, direction, set of anchors and metric, on held-out rows and as published."""
    steps = [(way, method, state) for way in ways for state in settings["random_states"] for method in _METHODS]
    rows = []
    for done, (way, method, state) in enumerate(steps):
        report(done, len(steps), f"{_METHODS[method]}, {way}, random state {state}")
        source, target = ways[way]
        sizes = {name: settings[name] for name in ("n_anchors", "n_seeds", "k", "steps", "learning_rate")}
        outcome = BootstrapSpec(method, **sizes, random_state=state).run((source, target))
        hidden = settings["n_anchors"] - settings["n_seeds"]
        told = {"metric": "share of the hidden found", "value": outcome.share, "n": hidden, "unit": SHARE}
        rows.append({"label": _METHODS[method], **told, "group": way})
        for (one, other, published), scores in _scores(source, target, outcome.result, settings).items():
            for form in FORMS:
                if form not in scores or (form in _FORMS and method != "paper"):
                    continue  # the true anchors and the seeds are the same for both methods
                anchors = _FORMS.get(form, _METHODS[method] + form.removeprefix("found"))
                label = f"{anchors}, {names[one]} → {names[other]}, {_ROWS[published]}"
                for metric, name in _METRICS.items():
                    score = scores[form][metric]
                    row = {"label": label, "metric": name, "value": float(score), "n": score.n_queries, "k": score.k}
                    row |= {"unit": "−1 … 1"} if metric == "cosine" else {"unit": SHARE}
                    rows.append({**row, "baseline": score.null.mean, "group": way})
    return rows


def _scores(
    source: LatentSpace, target: LatentSpace, result: BootstrapResult, settings: Settings
) -> dict[tuple[str, str, bool], Mapping[str, Mapping[str, Score]]]:
    """(asking space, asked space, as published) → form → metric → score; without centring, as the paper has it."""
    shared = {"k": settings["k"], "center": False, "n_queries": settings["n_queries"]}
    ways = {(source.name, target.name): False, (target.name, source.name): True}
    return {
        (*names, published): relative_scores(source, target, result, back=back, as_published=published, **shared)
        for names, back in ways.items()
        for published in _ROWS
    }
