"""The third paper: anchors found from 15 pairs, and what they are worth, beside all true ones and the seeds alone."""

from __future__ import annotations

from dataclasses import replace

from relcore.experiments.bootstrapping import FORMS, BootstrapSpec, Outcome, most_frequent, relative_scores, run_bootstrap
from relcore.metrics.calibration import Score
from relcore.papers.local import labelled
from relcore.papers.ours import SHARE
from relcore.papers.runs import Measured, Report, Settings
from relcore.papers.summaries import grouped
from relcore.spaces import LatentSpace
from relcore.stitching.across import head_across
from relcore.stitching.spec import StitchSpec
from relcore.store import Store
from relcore.studies.material import labelled_spaces, word_pair

_METHODS = {"self-learning": "found (self-learning, ours)", "paper": "found (as published)"}
_FORMS = {"ground truth": "GT", "seeds": "Seed"}
_METRICS = {"jaccard": "Jaccard", "mrr": "MRR", "cosine": "cosine"}


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
    """Table 7 on the digits: a CNN and a ViT."""
    spaces, _ = labelled("digits", store, report)
    cnn, vit = spaces[1], spaces[3]
    names = {cnn.name: "CNN", vit.name: "ViT"}
    return Measured(grouped(_retrieval({"to ViT": (cnn, vit)}, names, settings, report)))


def heads(settings: Settings, store: Store, report: Report) -> Measured:
    """Tables 2 and 6: relative heads of one encoder asked about another through true, seed and found anchors."""
    chosen = {"digits": (1, 3), "sentences": (2, 3)}
    steps = [(data, state) for data in chosen for state in settings["random_states"]]
    rows = []
    for done, (data, state) in enumerate(steps):
        report(done, len(steps), f"{data}, random state {state}")
        spaces = labelled_spaces(data, store, lambda *told: None)
        decoder, encoder = (spaces[number] for number in chosen[data])
        names = tuple(f"{space.name.partition(' · ')[0].partition(', state')[0]}" for space in (decoder, encoder))
        spec = BootstrapSpec(n_anchors=settings["n_anchors"], n_seeds=settings["n_seeds"], random_state=state)
        outcome = run_bootstrap(encoder, decoder, spec)
        label = f"{data}, decoder {names[0]}, encoder {names[1]}"
        rows.append({"label": f"{label}, anchors", "metric": "share of the hidden found", "value": outcome.share})
        for form, pairs in _anchor_sets(outcome).items():
            ours = encoder.vectors[encoder.rows([one for one, _ in pairs])]
            theirs = decoder.vectors[decoder.rows([other for _, other in pairs])]
            found = head_across(decoder, encoder, theirs, ours, StitchSpec(("relative", "whitened"), random_states=(state,)))
            for method, told in (("relative", "relative"), ("whitened", "whitened (ours)")):
                row = {"label": f"{label}, {form}", "metric": f"{told}: accuracy", "value": found.accuracy[method]}
                rows.append({**row, "n": found.n, "baseline": found.chance})
        own = {"label": f"{label}, not stitched", "metric": "head on the encoder's own rows: accuracy", "value": found.ceiling}
        rows.append({**own, "n": found.n, "baseline": found.chance})
    return Measured(grouped(rows))


def _anchor_sets(outcome: Outcome) -> dict[str, tuple[tuple[str, str], ...]]:
    anchors, n_seeds = outcome.result.anchors, outcome.result.n_seeds
    true = tuple((one, one) for one, _ in anchors)
    return {"GT": true, "Seed": anchors[:n_seeds], _METHODS["self-learning"]: anchors}


def _retrieval(
    ways: dict[str, tuple[LatentSpace, LatentSpace]], names: dict[str, str], settings: Settings, report: Report
) -> list[dict]:
    steps = [(way, method, state) for way in ways for method in _METHODS for state in settings["random_states"]]
    rows = []
    for done, (way, method, state) in enumerate(steps):
        report(done, len(steps), f"{_METHODS[method]}, {way}, random state {state}")
        source, target = ways[way]
        sizes = {name: settings[name] for name in ("n_anchors", "n_seeds", "k", "steps")}
        outcome = run_bootstrap(source, target, BootstrapSpec(method, **sizes, random_state=state))
        told = {
            "metric": "share of the hidden found",
            "value": outcome.share,
            "n": settings["n_anchors"] - settings["n_seeds"],
            "unit": SHARE,
        }
        rows.append({"label": _METHODS[method], **told, "group": way})
        there, back = (source.name, target.name), (target.name, source.name)
        for (one, other), scores in {there: outcome.scores, back: _scores_back(source, target, outcome, settings["k"])}.items():
            for form in FORMS:
                if form != "found" and method != "self-learning":
                    continue  # the true anchors and the seeds are the same for both methods
                label = f"{_FORMS.get(form, _METHODS[method])}, {names[one]} → {names[other]}"
                for metric, name in _METRICS.items():
                    score = scores[form][metric]
                    row = {"label": label, "metric": name, "value": float(score), "n": score.n_queries, "k": score.k}
                    row |= {"unit": "−1 … 1"} if metric == "cosine" else {"unit": SHARE}
                    rows.append({**row, "baseline": score.null.mean, "group": way})
    return rows


def _scores_back(source: LatentSpace, target: LatentSpace, outcome: Outcome, k: int) -> dict[str, dict[str, Score]]:
    """The scores of rows of the target asked in the source, relative to the same anchors."""
    anchors = outcome.result.anchors
    back = replace(outcome.result, anchors=tuple((other, one) for one, other in anchors))
    true = replace(outcome.result, anchors=tuple((one, one) for one, _ in anchors))
    scores = relative_scores(target, source, back, k)
    return {**scores, "ground truth": relative_scores(target, source, true, k)["ground truth"]}
