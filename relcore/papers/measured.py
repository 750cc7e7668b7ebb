"""Table 7 of the first paper: the classes of its datasets, counted in the files that are here."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from itertools import pairwise, permutations, product

import numpy as np

from relcore.base.errors import SpaceError
from relcore.base.names import METHODS, STITCH_METRICS
from relcore.bootstrap.spec import (
    FORMS,
    BootstrapSpec,
    Outcome,
    held_out_split,
    most_frequent,
    relative_scores,
)
from relcore.catalog.encoding import encode
from relcore.encoders.dataset import DatasetSpec
from relcore.encoders.datasets import load_dataset
from relcore.encoders.parallel import LANGUAGES, load_parallel
from relcore.encoders.sentences import TfidfSvd
from relcore.encoders.small_vision import SmallVision
from relcore.invert.cross_domain import CrossDomainSpec, DomainsSpec, cross_domain_matrix, trained_parts
from relcore.invert.rescale import (
    NETWORKS,
    InputRescaleResult,
    InputRescaleSpec,
    LayerRescaleResult,
    LayerRescaleSpec,
    rescale_input,
    rescale_network,
)
from relcore.invert.sweep import SweepSpec, inversion_sweep
from relcore.invert.translation import TranslationSpec, translate_all
from relcore.papers.local import captions, labelled, labels_of, picture_spec
from relcore.papers.ours import SHARE, Number, averaged, grouped, rounded
from relcore.papers.runs import Measured, Settings
from relcore.represent.anchors import select_anchors
from relcore.represent.bootstrap import BootstrapResult
from relcore.represent.inversion import InverseRelativeProjection
from relcore.represent.similarity import mean_row, unit_rows
from relcore.runs.progress import Report, silent
from relcore.runs.store import Store
from relcore.scores.comparison import ProjectionSpec, held_out, represent, score_pair
from relcore.scores.score import Z95, Score
from relcore.spaces.space import LatentSpace, Match, match
from relcore.spaces.split import Split, row_keys
from relcore.stitch.autoencoders import REPRESENTATIONS, AutoencoderSpec
from relcore.stitch.languages import METRICS, RetrievalSpec, head_across, pair_up, retrieve
from relcore.stitch.methods import MethodSettings
from relcore.stitch.reconstruction import (
    ReconstructionSpec,
    collect,
    disparities,
    fit_turn,
    trained_autoencoders,
)
from relcore.stitch.stitching import StitchResult, StitchSpec, stitch_matrix
from relcore.studies.material import dataset_of, labelled_spaces, word_pair
from relcore.studies.statistics import correlation


def classes(settings: Settings, store: Store, report: Report) -> Measured:
    """Classes and labelled items of each dataset, and the share of the items that its largest class has."""
    numbers = []
    for done, name in enumerate(settings["datasets"]):
        report(done, len(settings["datasets"]), name)
        counts = labels_of(name, store)
        n = sum(counts.values())
        numbers.append(
            Number(name, "classes", len(counts), unit="count", n=n, low=len(counts), high=len(counts))
        )
        numbers.append(Number(name, "share of the largest class", rounded(max(counts.values()) / n), n=n))
    return Measured(tuple(numbers))


# The third paper: anchors found from 15 pairs, compared with all true anchors and with the seeds alone.

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

    Classifiers turn the digits into ten clusters, where 15 seeds do as well as all anchors, which would make
    the comparison uninformative.
    """
    first, second = autoencoded(store)
    names = {first.name: "autoencoder A", second.name: "autoencoder B"}
    return Measured(grouped(_retrieval({"to autoencoder B": (first, second)}, names, settings, report)))


def autoencoded(store: Store) -> tuple[LatentSpace, LatentSpace]:
    """The digits' codes by two convolutional autoencoders of other widths and first weights, with their
    labels.
    """
    from relcore.studies.isometry import trained_space

    return tuple(
        trained_space("autoencoder", width, state, store, silent) for state, width in enumerate((64, 128))
    )


def heads(settings: Settings, store: Store, report: Report) -> Measured:
    """Tables 2 and 6: relative heads of one encoder applied to another with true, seed and found anchors."""
    tfidf, *_, minilm = labelled("sentences", store, silent)[0]
    _, early, _, late = labelled_spaces("sentences", store, silent)
    chosen = {
        "digits, decoder autoencoder A, encoder autoencoder B": autoencoded(store),
        "sentences, decoder MiniLM layer 2, encoder MiniLM layer 6": (early, late),
        "sentences, decoder TF-IDF + SVD, encoder MiniLM": (tfidf, minilm),
    }
    steps = [
        (label, state, method)
        for label in chosen
        for state in settings["random_states"]
        for method in _METHODS
    ]
    rows = []
    for done, (label, state, method) in enumerate(steps):
        report(done, len(steps), f"{label}, {_METHODS[method]}, random state {state}")
        decoder, encoder = chosen[label]
        sizes = {name: settings[name] for name in ("n_anchors", "n_seeds", "steps", "learning_rate")}
        outcome = BootstrapSpec(method, **sizes, random_state=state).run((encoder, decoder))
        rows.append(
            {
                "label": f"{label}, {_METHODS[method]}",
                "metric": "share of the hidden found",
                "value": outcome.share,
            }
        )
        sets = _anchor_sets(outcome, _METHODS[method])
        apart = held_out_split(encoder, decoder, outcome.result)
        tested = Split.draw(
            apart.ids, anchors=apart.anchors, random_state=state
        ).test  # the same rows for every set of anchors
        spec = StitchSpec(("relative", "whitened"), random_states=(state,), test_ids=tuple(apart.ids[tested]))
        for form, pairs in sets.items():
            if form in ("GT", "Seed") and method != "paper":
                continue
            ours = encoder.vectors[encoder.rows([one for one, _ in pairs])]
            theirs = decoder.vectors[decoder.rows([other for _, other in pairs])]
            found = head_across(decoder, encoder, theirs, ours, spec)
            for kind, told in (("relative", "relative"), ("whitened", "whitened (ours)")):
                row = {
                    "label": f"{label}, {form}",
                    "metric": f"{told}: accuracy",
                    "value": found.accuracy[kind],
                }
                rows.append({**row, "n": found.n, "baseline": found.chance})
        if method == "paper":
            own = {"label": f"{label}, not stitched", "metric": "head on the encoder's own rows: accuracy"}
            rows.append({**own, "value": found.ceiling, "n": found.n, "baseline": found.chance})
    return Measured(grouped(rows))


def _anchor_sets(outcome: Outcome, found: str) -> dict[str, tuple[tuple[str, str], ...]]:
    anchors, n_seeds = outcome.result.anchors, outcome.result.n_seeds
    return {"GT": tuple((one, one) for one, _ in anchors), "Seed": anchors[:n_seeds], found: anchors}


def _retrieval(
    ways: dict[str, tuple[LatentSpace, LatentSpace]],
    names: dict[str, str],
    settings: Settings,
    report: Report,
) -> list[dict]:
    """A row per target space, method, state, direction, set of anchors and metric, on held-out rows and as
    published.
    """
    steps = [
        (way, method, state) for way in ways for state in settings["random_states"] for method in _METHODS
    ]
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
                    row = {
                        "label": label,
                        "metric": name,
                        "value": float(score),
                        "n": score.n_queries,
                        "k": score.k,
                    }
                    row |= {"unit": "−1 … 1"} if metric == "cosine" else {"unit": SHARE}
                    rows.append({**row, "baseline": score.null.mean, "group": way})
    return rows


def _scores(
    source: LatentSpace, target: LatentSpace, result: BootstrapResult, settings: Settings
) -> dict[tuple[str, str, bool], Mapping[str, Mapping[str, Score]]]:
    """(asking space, asked space, as published) → form → metric → score; without centring, as the paper
    has it.
    """
    shared = {"k": settings["k"], "center": False, "n_queries": settings["n_queries"]}
    ways = {(source.name, target.name): False, (target.name, source.name): True}
    return {
        (*names, published): relative_scores(
            source, target, result, back=back, as_published=published, **shared
        )
        for names, back in ways.items()
        for published in _ROWS
    }


# Table 14 of the first paper on Multi30k: heads of one language applied to captions of another, with two
# kinds of anchors.

_CAPTIONS_METHODS = {"absolute": "absolute", "relative": "relative", "whitened": "relative, whitened (ours)"}


def across_languages(settings: Settings, store: Store, report: Report) -> Measured:
    """Weighted F1 by the language of the head (decoder) and of the rows (encoder), and the mean over the
    pairs.

    Classes are clusters of the English captions; a caption and its translations have the same class. Each
    language has its own encoder. Anchors are translated captions, or the bundled everyday sentences, which
    are no captions, where the language has them. Anchors, training rows and test rows are different captions.
    """
    languages = settings["languages"]
    steps, done = len(languages) + 2 * len(settings["random_states"]), 0
    specs = {
        one: DatasetSpec("file", str(captions()), column=one, limit=settings["n_captions"])
        for one in languages
    }
    labels = english_classes(specs["en"], settings["n_classes"], store, report)
    spaces, outside = {}, {}
    for language, spec in specs.items():
        report(done, steps, f"encoding {language}")
        encoder = TfidfSvd(settings["n_components"])
        (space,) = encode(spec, encoder, store, report)
        spaces[language] = LatentSpace(space.vectors, space.ids, name=language, labels=labels)
        if language in LANGUAGES:
            outside[language] = everyday_rows(spec, encoder, language, store)
        done += 1
    rows: list[dict] = []
    for state in settings["random_states"]:
        split = parted(spaces["en"].ids, settings["n_anchors"], state)
        report(done, steps, f"translated anchors, random state {state}")
        anchors = [space.vectors[split.anchors] for space in spaces.values()]
        rows += _scores_of_captions(_stitched(spaces, split, anchors), "translated anchors")
        if len(outside) > 1:
            report(done + 1, steps, f"everyday anchors, random state {state}")
            known = {language: spaces[language] for language in outside}
            alive = np.all([np.linalg.norm(one, axis=1) > 0 for one in outside.values()], axis=0)
            rows += _scores_of_captions(
                _stitched(known, split, [one[alive] for one in outside.values()]), "everyday anchors"
            )
        done += 2
    return Measured(_in_order(grouped(rows)))


def english_classes(english: DatasetSpec, n_classes: int, store: Store, report: Report) -> list[str]:
    """The class of each caption: clusters of MiniLM's rows of the English side, by k-means; MiniLM is no
    encoder here.
    """
    from sklearn.cluster import KMeans
    from threadpoolctl import threadpool_limits

    from relcore.encoders.transformers import MiniLM

    (space,) = encode(english, MiniLM(), store, report)
    with threadpool_limits(1):
        found = KMeans(n_classes, n_init=4, random_state=0).fit_predict(
            unit_rows(space.vectors, mean_row(space.vectors))
        )
    return [f"cluster {number}" for number in found]


def everyday_rows(captions_of: DatasetSpec, encoder: TfidfSvd, language: str, store: Store) -> np.ndarray:
    """The bundled everyday sentences as the captions' encoder sees them, (438, d); zero where it knows no
    word.
    """
    dataset = load_dataset(captions_of, store)
    trained = encoder.train(dataset, silent)
    (found,) = encoder.restore(trained, dataset)(list(load_parallel((language,))[language])).values()
    return found


def parted(ids: np.ndarray, n_anchors: int, random_state: int) -> Split:
    """Anchors by their own stream, test rows by another; the rest is trained on."""
    if n_anchors > len(ids) // 2:
        raise SpaceError(
            f"n_anchors: expected at most half of {len(ids)} captions, got {n_anchors}; choose fewer"
        )
    keys = row_keys(ids, "caption anchors", random_state)
    return Split.draw(
        ids, anchors=np.argpartition(keys, n_anchors - 1)[:n_anchors], random_state=random_state
    )


def _stitched(spaces: dict[str, LatentSpace], split: Split, anchors: list[np.ndarray]) -> StitchResult:
    rows = np.sort(np.concatenate([split.train, split.test]))
    spec = StitchSpec(
        tuple(_CAPTIONS_METHODS), random_states=(split.random_state,), test_ids=tuple(split.ids[split.test])
    )
    return stitch_matrix([space.take(rows) for space in spaces.values()], spec, anchor_vectors=anchors)


def _scores_of_captions(result: StitchResult, told: str) -> list[dict]:
    facts = {"n": len(result.runs[0].truth), "baseline": result.chance("f1")}
    found, off = [], ~np.eye(len(result.encoders), dtype=bool)
    languages = "mean over " + ", ".join(result.encoders)
    for method, title in _CAPTIONS_METHODS.items():
        if method == "absolute" and told != "translated anchors":
            continue  # absolute rows know no anchors
        scores = result.by_state(method, "f1")[0]
        metric = f"{title}: weighted F1" if method == "absolute" else f"{title}, {told}: weighted F1"
        for label, chosen in ((f"{languages}, not stitched", ~off), (f"{languages}, stitched pairs", off)):
            found.append(
                {"label": label, "metric": metric, "value": scores[chosen].mean(), "group": "mean", **facts}
            )
        for i, j in np.ndindex(scores.shape):
            label = f"decoder {result.encoders[j]}, encoder {result.encoders[i]}"
            found.append({"label": label, "metric": metric, "value": scores[i, j], "group": "pairs", **facts})
    return found


def _in_order(numbers: tuple[Number, ...]) -> tuple[Number, ...]:
    """Those of one label together, means first."""
    labels = list(dict.fromkeys(number.label for number in numbers))
    ordered = sorted(numbers, key=lambda number: (number.group != "mean", labels.index(number.label)))
    return tuple(ordered)


# Figs. 1 and 5 of the first paper: how far the codes of several trainings differ after the best rotation,
# over all pairs.

_ALIKE = 0.1
_DRAWS = 1000
_UNIT = "0 = equal, 1 = unrelated"


def turned(settings: Settings, store: Store, report: Report) -> Measured:
    """Disparity after the best turn, its distribution over the pairs of runs, by width of the code.

    Codes of two numbers as they are; of wider ones all numbers at once, and their first two principal
    components: of each run by itself, or of the first run for all, as the paper draws them.
    """
    numbers: list[Number] = []
    pictures = picture_spec(settings["data"], settings["n_train"], settings["image_size"])
    first = ReconstructionSpec(
        pictures, AutoencoderSpec(epochs=settings["epochs"]), tuple(range(settings["n_states"]))
    )
    for done, width in enumerate(settings["widths"]):
        spec = replace(first, model=replace(first.model, width=width))
        found, models = trained_autoencoders(
            spec, store, within(report, done, len(settings["widths"]), f"{width} numbers")
        )
        codes = [model.encode(found.test) for model in models]
        if width == 2:
            numbers += _distribution("2 numbers", codes, "plane")
            pairs = [(one, other) for place, one in enumerate(codes) for other in codes[place + 1 :]]
            mirrored = [fit_turn(one, other).mirrored for one, other in pairs]
            chance = {"baseline": 0.5, "baseline_is": "turned or mirrored at random"}
            share = rounded(np.mean(mirrored))
            numbers.append(
                Number(
                    "2 numbers",
                    "share mirrored",
                    share,
                    n=len(codes[0]),
                    repeats=len(codes),
                    **chance,
                    group="plane",
                )
            )
        else:
            axes = [_axes(code) for code in codes]
            own = [_reduced(code, axis) for code, axis in zip(codes, axes, strict=True)]
            numbers += _distribution(f"all {width} numbers", codes, "wide")
            numbers += _distribution(f"{width} numbers, each run's own PCA", own, "wide")
            numbers += _distribution(
                f"{width} numbers, the first run's PCA for all",
                [_reduced(one, axes[0]) for one in codes],
                "wide",
            )
        errors = [
            1000 * np.mean((model.decode(code) - found.test) ** 2)
            for model, code in zip(models, codes, strict=True)
        ]
        blank = 1000 * np.mean((found.train.mean(axis=0) - found.test) ** 2)
        floor = {
            "baseline": rounded(blank),
            "baseline_is": "mean picture",
            "n": len(found.test),
            "unit": "MSE × 10³",
        }
        numbers.append(
            averaged(
                f"{width} numbers",
                "reconstruction error",
                errors,
                **floor,
                group="plane" if width == 2 else "wide",
            )
        )
    return Measured(tuple(numbers))


def _distribution(label: str, codes: list[np.ndarray], group: str) -> list[Number]:
    """Mean, median with its interval, quantiles, and the share of pairs that are alike; beside rows that
    are not paired.
    """
    found = disparities(codes)
    pairs = found[np.triu_indices(len(codes), 1)]
    rng = np.random.default_rng(0)
    shuffled = [disparities([one, rng.permutation(other)])[0, 1] for one, other in pairwise(codes)]
    facts = {"n": len(codes[0]), "group": group, "unit": _UNIT, "repeats": len(codes)}
    chance = {"baseline": rounded(np.mean(shuffled)), "baseline_is": "rows permuted"}
    low, high = _median_interval(found, rng)
    told = "disparity after the best turn"
    numbers = [
        Number(label, f"{told}: median", rounded(np.median(pairs)), low=low, high=high, **facts, **chance)
    ]
    for name, share in (("smallest", 0), ("10 % quantile", 0.1), ("90 % quantile", 0.9), ("largest", 1)):
        numbers.append(
            Number(label, f"{told}: {name}", rounded(np.quantile(pairs, share)), **facts, **chance)
        )
    numbers.append(
        Number(label, f"{told}: mean", rounded(pairs.mean()), rounded(pairs.std(ddof=1)), **facts, **chance)
    )
    alike = {**facts, "unit": "0 … 1"}
    return [
        *numbers,
        Number(
            label,
            f"share of pairs with a disparity under {_ALIKE:g}",
            rounded(np.mean(pairs < _ALIKE)),
            **alike,
        ),
    ]


def _median_interval(found: np.ndarray, rng: np.random.Generator) -> tuple[float, float]:
    """95 % interval of the median from resampled runs, not pairs: pairs that share a run are not
    independent.
    """
    medians = []
    for _ in range(_DRAWS):
        drawn = rng.integers(len(found), size=len(found))
        part = found[np.ix_(drawn, drawn)][drawn[:, None] != drawn]
        medians.append(np.median(part) if len(part) else np.nan)
    low, high = np.nanquantile(medians, [0.025, 0.975])
    return rounded(low), rounded(high)


def _axes(codes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    mean = codes.mean(axis=0)
    return mean, np.linalg.svd(codes - mean, full_matrices=False)[2][:2].T


def _reduced(codes: np.ndarray, axes: tuple[np.ndarray, np.ndarray]) -> np.ndarray:
    mean, directions = axes
    return (codes - mean) @ directions


def within(report: Report, done: int, total: int, title: str) -> Report:
    """A report on one part of several."""
    return lambda at, of, message="", *measured: report(
        done * 1000 + round(1000 * at / max(of, 1)), total * 1000, f"{title}: {message}"
    )


# Anchor completion of the second paper (its section 3): the canonical axes as anchors, and their effect on a
# translation.


def completed(matrix: np.ndarray) -> np.ndarray:
    """The translation W (d_source, d_target) after anchor completion, of the same shape.

    The axes of the source are its new anchors, and their translations, the rows of W at unit length, those of
    the target. A row relative to the axes is itself, so it is decoded by the pseudo-inverse of the new target
    anchors, pinv(Ŵᵀ). Where W is a rotation that is W again. Else a direction that W shrinks by s is
    stretched by 1 / s: what pruning damps comes back.
    """
    return np.linalg.pinv(unit_rows(np.asarray(matrix, dtype=np.float32)).astype(np.float64).T).astype(
        np.float32
    )


def completion(settings: Settings, store: Store, report: Report) -> Measured:
    """Mean cosine of translated and true words that are no anchors, by the pruned method without and with
    completion.
    """
    pair, rows = word_pair((), store), []
    means = [mean_row(space.vectors) for space in (pair.source, pair.target)]
    for done, state in enumerate(settings["random_states"]):
        report(done, len(settings["random_states"]), f"random state {state}")
        anchors = pair.source.rows(select_anchors(pair.source, settings["n_anchors"], random_state=state))
        test = Split.held_out(pair.ids, anchors, state).queries(settings["n_queries"])
        true = unit_rows(pair.target.vectors[test], means[1])
        chance = float(mean_row(true) @ mean_row(true))
        for omega in settings["omegas"]:
            inverse = InverseRelativeProjection(omega=omega, delta=settings["delta"], random_state=state)
            sides = [space.vectors[anchors] for space in (pair.source, pair.target)]
            inverse.fit(*sides, source_mean=means[0], target_mean=means[1])
            units = [unit_rows(vectors, mean) for vectors, mean in zip(sides, means, strict=True)]
            each = [completed(units[0][kept].T @ np.linalg.pinv(units[1][kept].T)) for kept in inverse.kept_]
            forms = {
                "without completion": inverse.matrix_,
                "completion of each pruning": np.mean(each, axis=0),
                "completion of their mean": completed(inverse.matrix_),
            }
            for told, matrix in forms.items():
                found = unit_rows((pair.source.vectors[test] - means[0]) @ matrix)
                cosine = float(np.einsum("ij,ij->i", found, true).mean(dtype=np.float64))
                facts = {"metric": "cosine", "unit": "−1 … 1", "n": len(test), "baseline": chance}
                rows.append({"label": f"words, ω = {omega}, {told}", "value": cosine, **facts})
    return Measured(grouped(rows))


# The bundled everyday sentences, an encoder per language: how often translations are retrieved, and how close
# they are.

_WAYS = ("absolute", "relative", "whitened", "procrustes")
_CARRIED = ("absolute", "irp-pruned", "irp-whitened", "procrustes")
_OURS = ("whitened", "irp-whitened")
_TOLD = {"raw cosine": "cosine", "cosine": "cosine from the mean", "mrr": "MRR"}


def translations_found(settings: Settings, store: Store, report: Report) -> Measured:
    """Share of sentences whose translation is ranked first, and MRR: the mean over the pairs of languages,
    and each pair.
    """
    spaces = _spaces(settings, store, report)
    steps = [
        (state, one, other) for state in settings["random_states"] for one, other in permutations(spaces, 2)
    ]
    means, pairs = [], []
    for done, (state, one, other) in enumerate(steps):
        report(done, len(steps), f"{other} searched in {one}, random state {state}")
        spec = RetrievalSpec(_WAYS, settings["n_anchors"], settings["k"], random_state=state)
        result = retrieve(pair_up(spaces[one], spaces[other]), spec)
        for method, scores in result.scores.items():
            for metric in ("first", "mrr"):
                score = scores[metric]
                row = {
                    "metric": f"{_title(method)}: {METRICS[metric]}",
                    "value": float(score),
                    "n": score.n,
                    "k": score.k,
                }
                row["baseline"] = score.null.mean
                means.append({"label": "mean of the 12 pairs", "state": state, "group": "mean", **row})
                if method != "absolute":
                    pairs.append({"label": f"{one} → {other}", "group": f"into {other}", **row})
    return Measured(grouped([*_by_state(means), *pairs]))


def carried_over(settings: Settings, store: Store, report: Report) -> Measured:
    """Cosine of translated and true rows, raw (as in the paper) and from the mean, of each language into
    English.
    """
    spaces = _spaces(settings, store, report)
    carry = MethodSettings(omega=settings["omega"], delta=settings["delta"])
    rows = []
    unrelated = _different_pairs(spaces["en"].vectors)
    for state in settings["random_states"]:
        ids = spaces["en"].ids
        anchors = np.random.default_rng(state).permutation(ids)[: settings["n_anchors"]].tolist()
        spec = TranslationSpec(_CARRIED, settings["k"], None, settings=carry, random_state=state)
        result = translate_all(list(spaces.values()), anchors, spec, report)
        names = list(spaces)
        for i, method, (metric, told) in product(range(len(names)), _CARRIED, _TOLD.items()):
            score, chance = map(float, result.scores[method][metric][i, names.index("en")])
            row = {
                "label": f"{names[i]} → en, {_title(method)}",
                "metric": told,
                "value": score,
                "baseline": chance,
            }
            rows.append({**row, "n": result.n, "unit": "0 … 1" if metric == "mrr" else "−1 … 1"})
    return Measured((*grouped(rows), unrelated))


def _different_pairs(vectors: np.ndarray) -> Number:
    """Cosine of rows of two different sentences, mean and deviation over all pairs (section 4.1): the common
    mean's part.

    Pairs that share a sentence are not independent, so the interval of the mean rests on the n sentences.
    """
    units = unit_rows(vectors).astype(np.float64)
    cosines = (units @ units.T)[np.triu_indices(len(units), 1)]
    value, deviation = rounded(cosines.mean()), rounded(cosines.std(ddof=1))
    return Number("en, different sentences", "cosine", value, deviation, "−1 … 1", n=len(units))


def _spaces(settings: Settings, store: Store, report: Report) -> dict[str, LatentSpace]:
    encoder = TfidfSvd(settings["n_components"], min_texts=1)
    return {
        language: encode(DatasetSpec("parallel", language), encoder, store, report)[0]
        for language in LANGUAGES
    }


def _by_state(rows: list[dict]) -> list[dict]:
    """The mean over the pairs of each random state, so that the deviation is one over random states."""
    kept: dict[tuple, list[dict]] = {}
    for row in rows:
        kept.setdefault((row["state"], row["metric"]), []).append(row)
    found = []
    for part in kept.values():
        means = {name: float(np.mean([row[name] for row in part])) for name in ("value", "baseline")}
        found.append({**{name: value for name, value in part[0].items() if name != "state"}, **means})
    return found


def _title(method: str) -> str:
    return METHODS[method].title + (" (ours)" if method in _OURS else "")


# Autoencoders: decoders applied to other runs' codes.

_ERROR = "MSE × 10³"


def autoencoders(settings: Settings, store: Store, report: Report) -> Measured:
    """Table 3: error of each run's own pairs and of all pairs across runs, by representation."""
    pictures = picture_spec(settings.get("data", "digits"), image_size=settings.get("image_size"))
    found = {}
    for done, representation in enumerate(REPRESENTATIONS):
        model = AutoencoderSpec(
            representation, settings["variational"], settings["width"], epochs=settings["epochs"]
        )
        spec = ReconstructionSpec(pictures, model, tuple(settings["random_states"]), settings["n_anchors"])
        found[spec] = spec.stored(store, within(report, done, len(REPRESENTATIONS), model.title))
    numbers = []
    for line in collect(found).table().to_dict("records"):
        facts = {
            "unit": _ERROR,
            "n": line["pictures"],
            "baseline": rounded(line["mean_picture"]),
            "baseline_is": "mean picture",
        }
        for pair, metric, repeats in (("own", "not stitched", "runs"), ("stitched", "stitched", "pairs")):
            deviation = rounded(line[f"{pair}_deviation"])
            label = line["model"] + (" (ours)" if "whitened" in line["model"] else "")
            numbers.append(
                Number(label, metric, rounded(line[pair]), deviation, repeats=line[repeats], **facts)
            )
    return Measured(tuple(numbers))


# The second paper's figures: rows at other lengths, lengths of rows, and pruning over δ × ω.

_CNN = 1  # among the four encoders of the digits


def layers(settings: Settings, store: Store, report: Report) -> Measured:
    """Fig. 2: accuracy as it is, and with each layer's rows at other lengths, one layer at a time."""
    from relcore.encoders.transformers import MiniLM

    result = rescale_network(
        dataset_of("sentences"), MiniLM((6,)), store, LayerRescaleSpec(**settings), report
    )
    facts = {"n": result.n_test, "baseline": rounded(result.chance)}
    numbers = [Number("without any rescaling", "accuracy", rounded(result.own), **facts)]
    span = f"from 1/{settings['span']:g} to {settings['span']:g} times the mean length"
    for line in result.table().to_dict("records"):
        for metric in ("at about its mean", "least of all"):
            told = metric if metric != "least of all" else f"least, {span}"
            numbers.append(Number(line["layer"], f"{told}: accuracy", rounded(line[metric]), **facts))
        numbers.append(_lost(result, line["layer"]))
    return Measured(tuple(numbers))


def _lost(result: LayerRescaleResult, layer: str) -> Number:
    """Accuracy lost at about the layer's mean length, with the interval of a difference of paired answers.

    Of n items b are lost and c gained; the difference (b − c) / n has the standard error √(b + c − (b − c)² /
    n) / n. One more item counts as changed, so that the interval has a width where none did.
    """
    accuracy, changed = result.nearest(layer)
    lost, n = result.own - accuracy, result.n_test
    reach = Z95 * np.sqrt((changed * n + 1) / n - lost**2) / np.sqrt(n)
    ends = {"low": rounded(lost - reach), "high": rounded(lost + reach)}
    return Number(layer, "at about its mean: accuracy lost", rounded(lost), unit="−1 … 1", n=n, **ends)


def inputs(settings: Settings, store: Store, report: Report) -> Measured:
    """Fig. 4: accuracy of small networks by activation, rows as they are and at other lengths."""
    spaces, test_ids = labelled("digits", store, report)
    spec = InputRescaleSpec(
        span=settings["span"],
        n_alphas=settings["n_alphas"],
        random_states=tuple(settings["random_states"]),
        test_ids=test_ids,
    )
    result = rescale_input(spaces[_CNN], spec, report)
    facts = {"n": result.n_test, "baseline": rounded(result.chance)}
    numbers = []
    for network in spec.networks:
        for metric, values in _of_states(result, network).items():
            numbers.append(averaged(NETWORKS[network], f"{metric}: accuracy", values, **facts))
    return Measured(tuple(numbers))


def _of_states(result: InputRescaleResult, network: str) -> dict[str, list[float]]:
    """Accuracy of each random state: as it is, at the mean length, and the least of lengths around it."""
    away = np.abs(np.log(np.array(result.alphas) / result.mean_length))
    curves, span = np.array(result.accuracy[network]), result.spec.span
    return {
        "as it is": list(result.own[network]),
        "all at the mean length": curves[:, away.argmin()].tolist(),
        "least from 1/8 to 8 times": curves[:, away <= np.log(8) + 1e-6].min(axis=1).tolist(),
        f"least from 1/{span:g} to {span:g} times": curves.min(axis=1).tolist(),
    }


def lengths(settings: Settings, store: Store, report: Report) -> Measured:
    """Fig. 5: mean and deviation of the rows' lengths, and how far off a row is at most, by encoder."""
    numbers = []
    for data in ("digits", "sentences"):
        for space in labelled(data, store, report)[0]:
            norms = np.asarray(space.norms, dtype=np.float64)
            name = f"{space.name.partition(' · ')[0].partition(', state')[0]}, {data}"
            facts = {"n": len(norms)}
            numbers.append(
                Number(name, "length", rounded(norms.mean()), rounded(norms.std(ddof=1)), "length", **facts)
            )
            spread = norms.std(ddof=1) / norms.mean()
            reach = (
                Z95 * spread * np.sqrt((0.5 + spread**2) / len(norms))
            )  # of a coefficient of variation (Gaussian)
            ends = {"low": rounded(spread - reach), "high": rounded(spread + reach)}
            numbers.append(
                Number(name, "deviation ÷ mean", rounded(spread), unit="0 = all alike", **facts, **ends)
            )
            far = np.mean(np.abs(norms - norms.mean()) > 3 * norms.std(ddof=1))
            numbers.append(
                Number(
                    name,
                    "share beyond 3 deviations",
                    rounded(far),
                    **facts,
                    baseline=0.0027,
                    baseline_is="Gaussian",
                )
            )
    return Measured(tuple(numbers))


def grid(settings: Settings, store: Store, report: Report) -> Measured:
    """Figs. 3 and 6: the best and the worst cell, and correlations over the cells of the δ × ω grid."""
    spaces, test_ids = labelled(settings["data"], store, report)
    source, target = spaces[settings["source"]], spaces[settings["target"]]
    state = settings["random_state"]
    pair = match(source, target)
    anchors = select_anchors(pair.source, settings["n_anchors"], random_state=state).tolist()
    sweep = inversion_sweep(pair, anchors, SweepSpec(random_state=state, test_ids=tuple(test_ids)), report)
    cells = sweep.table().dropna(subset=["cosine", "accuracy"])
    numbers = [*_correlations(cells), *_cells(cells, sweep)]
    rotation = Number(
        "Procrustes, which sees both spaces",
        "cosine",
        rounded(sweep.procrustes),
        unit="−1 … 1",
        n=sweep.n_rows,
    )
    own = Number(
        "not stitched",
        "accuracy",
        rounded(sweep.not_stitched),
        n=sweep.n_test,
        baseline=rounded(sweep.chance),
    )
    return Measured((*numbers, rotation, own))


def _cells(cells, sweep) -> list[Number]:
    """Three cells: no pruning, the best of all, and the hardest pruning."""
    best = cells.loc[cells.cosine.idxmax()]
    plain = cells[(cells.delta == 0) & (cells.omega == 1)].iloc[0]
    hard = cells[cells.delta == cells.delta.max()]
    told = {
        "no pruning": plain,
        "best": best,
        "hardest, ω least": hard.iloc[0],
        "hardest, ω most": hard.iloc[-1],
    }
    numbers = []
    for name, cell in told.items():
        label = f"{name}: δ = {cell.delta:g}, ω = {cell.omega:g}"
        cosine = {"unit": "−1 … 1", "n": sweep.n_rows}
        by_chance = {"baseline": rounded(cell.chance)}
        if name == "best":  # a maximum over the cells, so compared with the same maximum by chance
            by_chance = {
                "baseline": rounded(sweep.best_chance.high),
                "baseline_is": "best cell by chance, 97.5 %",
            }
        numbers.append(Number(label, "cosine between spaces", rounded(cell.cosine), **cosine, **by_chance))
        numbers.append(Number(label, "cosine within the space", rounded(cell.within), **cosine))
        chance = rounded(sweep.chance)
        numbers.append(Number(label, "accuracy", rounded(cell.accuracy), n=sweep.n_test, baseline=chance))
        numbers.append(
            Number(
                label,
                "anchors kept",
                rounded(cell.kept),
                unit="count",
                baseline=sweep.n_anchors,
                baseline_is="given",
            )
        )
        if not np.isnan(cell.condition):
            numbers.append(Number(label, "condition number", rounded(cell.condition), unit="1 = best"))
    return numbers


def _correlations(cells) -> list[Number]:
    told = {
        "cosine and accuracy, over the cells": ("cosine", "accuracy"),
        "condition number and anchors kept": ("condition", "kept"),
    }
    numbers = []
    for label, columns in told.items():
        known = cells[list(columns)].dropna()
        found = correlation(known[columns[0]], known[columns[1]], "pearson")
        numbers.append(
            Number(
                label,
                found.name,
                rounded(found.value),
                unit="−1 … 1",
                n=found.n,
                low=rounded(found.low),  # Fisher's interval, as if the cells were independent
                high=rounded(found.high),
                baseline=0.0,
                baseline_is="unrelated",
            )
        )
    return numbers


# Heads applied to encoders on which they were not trained: relative ones, absolute ones by inversion, across
# domains.

_STITCHED_OURS = ("whitened", "irp-ridge", "irp-whitened")


def relative_heads(settings: Settings, store: Store, report: Report) -> Measured:
    """Tables 5, 6 and 16: weighted F1 of absolute, relative and whitened heads, not stitched and stitched;
    every pair.
    """
    result = _stitched_of_stitched(
        ("absolute", "relative", "whitened"), settings, MethodSettings(), store, report
    )
    names = [name.partition(" · ")[0].partition(", state")[0] for name in result.encoders]
    numbers = _means(result, "f1")
    facts = {"n": result.n_test, "group": "pairs", "baseline": rounded(result.chance("f1"))}
    for i, j in np.ndindex(len(names), len(names)):
        for method in result.spec.methods:
            scores = result.by_state(method, "f1")[:, i, j]
            if not np.isnan(scores).any():
                label = f"decoder {names[j]}, encoder {names[i]}"
                numbers.append(averaged(label, f"{_title_of_stitched(method)}: weighted F1", scores, **facts))
    return Measured(tuple(numbers))


def absolute_heads(settings: Settings, store: Store, report: Report) -> Measured:
    """Table 2 of the second paper: accuracy of absolute heads on translated rows, by each method."""
    carry = MethodSettings(omega=settings["omega"], delta=settings["delta"])
    methods = ("absolute", "irp-pruned", "irp-ridge", "irp-whitened", "procrustes")
    result = _stitched_of_stitched(methods, settings, carry, store, report)
    return Measured(tuple(_means(result, "accuracy")))


def across_looks(settings: Settings, store: Store, report: Report) -> Measured:
    """Fig. 7 of the second paper: heads trained on one look of the digits, applied to another."""
    datasets = tuple(
        DatasetSpec("digits", options=(("look", one),) if one != "plain" else ()) for one in settings["looks"]
    )
    domains = DomainsSpec(datasets, tuple(SmallVision(name) for name in settings["networks"]))
    parts = trained_parts(domains, store, report)
    carry = MethodSettings(omega=settings["omega"], delta=settings["delta"])
    result = cross_domain_matrix(
        parts, CrossDomainSpec(n_anchors=settings["n_anchors"], settings=carry), report
    )
    numbers = []
    for line in result.summary().to_dict("records"):
        facts = {"n": result.n_test[0], "baseline": rounded(line["chance"])}
        for metric in ("not stitched", "same domain", "other domain"):
            if not np.isnan(line[metric]):
                numbers.append(Number(line["method"], f"{metric}: accuracy", rounded(line[metric]), **facts))
    return Measured(tuple(numbers))


def _stitched_of_stitched(
    methods: tuple[str, ...], settings: Settings, carry: MethodSettings, store: Store, report: Report
) -> StitchResult:
    spaces, test_ids = labelled(settings["data"], store, report)
    states = tuple(settings["random_states"])
    head = settings.get("head", "logistic")
    spec = StitchSpec(methods, head, states, settings["n_anchors"], test_ids=test_ids, settings=carry)
    return stitch_matrix(spaces, spec, report=report)


def _means(result: StitchResult, metric: str) -> list[Number]:
    """A method's mean over encoders (not stitched) and over ordered pairs (stitched), deviations over the
    random states.
    """
    off = ~np.eye(len(result.encoders), dtype=bool)
    facts = {"n": result.n_test, "group": "mean", "baseline": rounded(result.chance(metric))}
    numbers = []
    for method in result.spec.methods:
        scores = result.by_state(method, metric)
        for where, chosen in (("not stitched", scores[:, ~off]), ("stitched", scores[:, off])):
            able = chosen[:, ~np.isnan(chosen[0])]
            if able.shape[1]:
                numbers.append(
                    averaged(
                        _title_of_stitched(method),
                        f"{where}: {STITCH_METRICS[metric].title}",
                        able.mean(axis=1),
                        **facts,
                    )
                )
    return numbers


def _title_of_stitched(method: str) -> str:
    return METHODS[method].title + (" (ours)" if method in _STITCHED_OURS else "")


# Table 1 of the first paper: neighbours of words, absolute and relative.

WORD_FORMS = {
    "absolute": ("absolute", False),
    "relative": ("relative", False),
    "relative, centred": ("relative", True),
    "relative, whitened (ours)": ("whitened", True),
}
PUBLISHED = ("absolute", "relative")  # the paper's own forms, which are also scored as it scores them
_NAMES = {"word2vec-novels": "Word2Vec", "fasttext-novels": "FastText"}


def neighbours(settings: Settings, store: Store, report: Report) -> Measured:
    """Both directions, each form; Jaccard, MRR and cosine in the paper's convention, Jaccard of mutual
    neighbours beside.

    "held-out rows": no anchor is a query or a candidate. "as published": the anchors are scored, too, and a
    relative space reproduces its own anchors.
    """
    pair = word_pair((), store)
    ways = (Match(pair.target, pair.source, 0, 0, 0), pair)
    steps = [(state, form, way) for state in settings["random_states"] for form in WORD_FORMS for way in ways]
    rows = []
    for done, (state, form, way) in enumerate(steps):
        report(done, len(steps), f"{form}, random state {state}")
        anchors = select_anchors(pair.source, settings["n_anchors"], random_state=state)
        representation, center = WORD_FORMS[form]
        made = represent(way, representation, anchors, ProjectionSpec(center=center))
        scored = {"held-out rows": anchors} | ({"as published": ()} if form in PUBLISHED else {})
        for told, left_out in scored.items():
            split = replace(held_out(way, left_out), random_state=state)
            for which, metric, score in _scores_of_word_spaces(made, split, settings, way is pair):
                name = which or f"{_NAMES[way.source.name]} → {_NAMES[way.target.name]}"
                row = {
                    "label": f"{form}, {told}, {name}",
                    "metric": metric,
                    "value": float(score),
                    "baseline": score.null.mean,
                }
                unit = "−1 … 1" if metric == "cosine" else SHARE
                rows.append({**row, "unit": unit, "n": score.n_queries, "k": score.k})
    return Measured(grouped(rows))


def _scores_of_word_spaces(
    made: tuple[np.ndarray, np.ndarray], split: Split, settings: Settings, both_ways: bool
) -> Iterator[tuple[str, str, Score]]:
    """Which direction or pair the score is of, its name, and the score."""
    asked = {"k": settings["k"], "n_queries": settings["n_queries"]}
    scores = score_pair(*made, split, **asked)
    for metric, name in (("jaccard", "Jaccard"), ("mrr", "MRR"), ("cosine", "cosine")):
        yield "", name, scores[metric]
    if both_ways:
        yield (
            "Word2Vec and FastText",
            "Jaccard, mutual",
            score_pair(*made, split, convention="mutual", **asked)["jaccard"],
        )
