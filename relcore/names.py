"""The one registry of what can be chosen and added: choosers, `--help`, recipes and the computations all read it here.

Importing it costs nothing: an entry only tells where its code is, and `load` imports that on first use. Whoever adds a thing
writes its file and one line here; a script may add an entry at run time, under a name of its own.
"""

from __future__ import annotations

from dataclasses import dataclass
from importlib import import_module
from typing import Any, Literal


@dataclass(frozen=True)
class Named:
    """A choice: what people call it, and where its code is, as ``"module:attribute"``."""

    title: str
    where: str = ""
    help: str = ""

    def load(self) -> Any:
        module, _, attribute = self.where.partition(":")
        return getattr(import_module(module), attribute)


@dataclass(frozen=True)
class Method(Named):
    """A stitching method.

    Attributes
    ----------
    heads : "absolute" or the method's own name
        What heads are trained on. "absolute": on the rows of their own space; `where` is then a function ``(source, target,
        settings, random_state)`` of two `stitching.methods.Side` → a function that carries rows (m, d) of the source to rows of
        the target, or None where it has none. Else on what `where`, a function ``(side, settings)`` of one space, makes of the
        rows, and any space's rows so made go to any head.
    knows : "one" or "both"
        Whether each space is prepared without the other, or the two are needed at once.
    """

    heads: str = "absolute"
    knows: Literal["one", "both"] = "one"


@dataclass(frozen=True)
class Metric(Named):
    """A `metrics.metric.Metric`.

    Attributes
    ----------
    of : some of "pair", "spaces"
        What it compares: the representations of one pair, as in the table of the Compare page, or many spaces with each other.
    needs : some of "anchors", "projection", "k", "n_queries"
        The settings that a comparison of many spaces depends on.
    """

    of: tuple[str, ...] = ("pair", "spaces")
    needs: tuple[str, ...] = ()


SIMILARITIES = {
    "cosine": Named("Cosine", "relcore.similarity:Cosine"),
    "angular": Named("Angular", "relcore.similarity:Angular"),
    "euclidean": Named("Euclidean", "relcore.similarity:Euclidean"),
    "l1": Named("L1", "relcore.similarity:L1"),
    "quantised": Named("Quantised", "relcore.similarity:Quantised"),
}

STRATEGIES = {
    "random": Named("Random", "relcore.anchors.selection:at_random", "each row with equal probability"),
    "farthest-point": Named(
        "Farthest-point", "relcore.anchors.selection:farthest_point", "each next row farthest from those chosen"
    ),
    "k-means": Named("k-means", "relcore.anchors.selection:k_means", "the row nearest to each centroid"),
    "most-frequent": Named("Most frequent", "relcore.anchors.selection:most_frequent", "the rows with the highest counts"),
    "class-balanced": Named("Class-balanced", "relcore.anchors.selection:class_balanced", "the same number from each label"),
}

HEADS = {
    "logistic": Named(
        "Logistic",
        "relcore.stitching.heads:fit_logistic",
        "Logistic regression of directions: no randomness, fitted in a moment.",
    ),
    "mlp": Named(
        "MLP", "relcore.stitching.heads:fit_mlp", "Two hidden layers of 256 behind a LayerNorm; reads each row by itself."
    ),
    "paper": Named(
        "Paper",
        "relcore.stitching.heads:fit_paper",
        "The network of Moschella et al. 2023. It normalises over all rows that it reads together.",
    ),
}

METHODS = {
    "absolute": Method("absolute", "relcore.stitching.methods:unchanged"),
    "relative": Method("relative", "relcore.stitching.methods:relative", heads="relative"),
    "whitened": Method("relative, whitened", "relcore.stitching.methods:whitened", heads="whitened"),
    "product": Method("product of similarities, side by side", "relcore.stitching.methods:product", heads="product"),
    "average": Method("product of similarities, averaged", "relcore.stitching.methods:averaged_product", heads="average"),
    "irp-pruned": Method("inverse, pruned", "relcore.stitching.methods:pruned_inverse"),
    "irp-ridge": Method("inverse, ridge", "relcore.stitching.methods:ridge_inverse"),
    "irp-whitened": Method("inverse, whitened", "relcore.stitching.methods:whitened_inverse"),
    "procrustes": Method("Procrustes", "relcore.stitching.methods:procrustes", knows="both"),
    "least-squares": Method("least squares", "relcore.stitching.methods:least_squares", knows="both"),
    "affine": Method("affine", "relcore.stitching.methods:affine", knows="both"),
}
STITCHED = ("absolute", "relative", "whitened", "irp-pruned", "irp-whitened", "procrustes")  # by default

METRICS = {
    "jaccard": Metric("Jaccard", "relcore.metrics.neighbour_metrics:Jaccard", of=("pair",)),
    "mrr": Metric("MRR", "relcore.metrics.neighbour_metrics:MeanReciprocalRank", of=("pair",)),
    "class agreement": Metric(
        "class agreement",
        "relcore.metrics.class_agreement:ClassAgreement",
        "share of rows whose nearest neighbours in the other space have mostly their class",
        of=("pair",),
    ),
    "cosine": Metric("cosine", "relcore.metrics.cka:MeanCosine", of=("pair",)),
    "cka": Metric("linear CKA", "relcore.metrics.cka:LinearCKA", "similarity of the absolute spaces' Gram matrices, 0 to 1"),
    "debiased cka": Metric(
        "debiased CKA",
        "relcore.metrics.cka:DebiasedCKA",
        "linear CKA without its bias for few rows: the chance level is 0",
        of=("spaces",),
    ),
    "relative cosine": Metric(
        "relative cosine",
        "relcore.comparing.relative_cosine:RelativeCosine",
        "mean cosine of paired rows relative to the anchors",
        of=("spaces",),
        needs=("anchors", "projection"),
    ),
    "mutual knn": Metric(
        "mutual kNN",
        "relcore.metrics.neighbour_metrics:MutualKNN",
        "share of a row's nearest neighbours that are the same in both absolute spaces",
        of=("spaces",),
        needs=("k", "n_queries"),
    ),
}

STITCH_METRICS = {"accuracy": Named("accuracy"), "f1": Named("weighted F1"), "mae": Named("mean absolute error")}

INVERSES = {"pruned": Named("pruned"), "ridge": Named("ridge, ours"), "whitened": Named("whitened, ours")}
ROUTES = {"forward": Named("source → target"), "backward": Named("target → source"), "within": Named("within the source")}
DELTA = 0.7  # pruning distance of the inverse; Maiorca et al. take .65 to .75 for stitching, .8 across domains

# Maps from a new model's queries to an old model's vectors, each a `migration.adapter.Adapter`.
ADAPTERS = {
    "procrustes": Named(
        "Procrustes",
        "relcore.migration.procrustes:ProcrustesAdapter",
        "a rotation, between any two widths; the old vectors are centred once",
    ),
    "in-place": Named(
        "Procrustes, in place",
        "relcore.migration.procrustes:InPlaceProcrustesAdapter",
        "the same rotation, for old vectors that are searched as they are",
    ),
    "diagonal": Named(
        "Procrustes with diagonal scaling",
        "relcore.migration.diagonal:DiagonalAdapter",
        "a rotation, then a factor for each coordinate",
    ),
    "ridge": Named("Ridge", "relcore.migration.ridge:RidgeAdapter", "a linear map, its penalty by leave-one-out"),
    "affine": Named("Affine", "relcore.migration.affine:AffineAdapter", "least squares with an offset, without a penalty"),
    "low-rank": Named("Low rank", "relcore.migration.low_rank:LowRankAdapter", "a linear map through 64 directions"),
    "residual": Named("Residual MLP", "relcore.migration.residual:ResidualAdapter", "Procrustes and a small network"),
    "inverse": Named(
        "Whitened inverse",
        "relcore.migration.inverse:WhitenedInverseAdapter",
        "through whitened relative coordinates into the old space",
    ),
    "whitened": Named(
        "Whitened relative",
        "relcore.migration.relative:WhitenedRelativeAdapter",
        "whitened similarities to the pairs; the old vectors are projected once",
    ),
    "relative": Named(
        "Relative",
        "relcore.migration.relative:RelativeAdapter",
        "similarities to the pairs, as published; the old vectors are projected once",
    ),
}

# Where vectors are stored, each an `indexes.index.VectorIndex`; the name is the kind in ``qdrant:PATH#COLLECTION``.
INDEXES = {
    "npy": Named("NumPy file", "relcore.indexes.npy_file:NpyIndex", "npy:FILE or FILE.npy"),
    "parquet": Named("Parquet file", "relcore.indexes.parquet_file:ParquetIndex", "FILE.parquet or FILE.parquet#COLUMN"),
    "faiss": Named("faiss index", "relcore.indexes.faiss_file:FaissIndex", "faiss:FILE or FILE.faiss"),
    "qdrant": Named(
        "Qdrant", "relcore.indexes.qdrant:QdrantIndex", "qdrant:FOLDER#COLLECTION or qdrant:http://HOST#COLLECTION"
    ),
    "lancedb": Named("LanceDB", "relcore.indexes.lance:LanceIndex", "lancedb:FOLDER#TABLE"),
}

# How the neighbours of every row are searched; the first is exact, the others tell their measured recall.
SEARCHES = {
    "exact": Named("exact", "relcore.searching.exact:ExactSearch", "each query is compared with every row"),
    "ivf": Named("IVF", "relcore.searching.ivf:IvfSearch", "a query is compared with the rows of the nearest clusters (faiss)"),
    "hnsw": Named("HNSW", "relcore.searching.hnsw:HnswSearch", "a query walks through a graph of neighbours (faiss)"),
}

REDUCTIONS = {"pca": Named("PCA"), "umap": Named("UMAP"), "tsne": Named("t-SNE")}

AUDITS = {
    "procrustes": Named("Trimmed Procrustes", "relcore.anchors.audit:by_procrustes", "needs both spaces at once"),
    "similarities": Named("Rows of similarities", "relcore.anchors.audit:by_similarities", "needs each space by itself"),
}

BOOTSTRAPS = {"self-learning": Named("self-learning"), "paper": Named("as published")}

ENCODERS = {
    "small-vision": Named(
        "Small networks, trained here",
        "relcore.sources.small_vision:SmallVision",
        "or mlp, cnn, residual, vit: of this architecture",
    ),
    "swept-vision": Named("Swept networks, trained here", "relcore.sources.swept_vision:SweptVision"),
    "pretrained-vision": Named("Pretrained model", "relcore.sources.vision:PretrainedVision", "or its folder or hub name"),
    "timm": Named("Model of timm", "relcore.sources.timm_vision:TimmVision", "timm:NAME"),
    "minilm": Named("MiniLM", "relcore.sources.text:MiniLM"),
    "tfidf-svd": Named("TF-IDF + SVD", "relcore.sources.lsa:TfidfSvd", "or tfidf"),
    "pooled-words": Named("Pooled word vectors", "relcore.sources.pooled_words:PooledWords", "or words"),
    "pretrained-text": Named("Pretrained model", "relcore.sources.text:PretrainedText", "or its folder or hub name"),
    "graph": Named(
        "Graph networks, trained here", "relcore.sources.graphs:GraphEncoder", "or gcn2, gin: with these convolutions"
    ),
}

# Figures by the names that recipes give them, and the `Recipe` of each.
FIGURES = {
    "comparison": Named("", "relcore.comparing.figures:Panes"),
    "scores": Named("", "relcore.comparing.figures:Scores"),
    "spectrum": Named("", "relcore.comparing.figures:Spectrum"),
    "norms": Named("", "relcore.comparing.figures:Norms"),
    "anchor-audit": Named("", "relcore.auditing.figures:AnchorAudit"),
    "anchor-influence": Named("", "relcore.auditing.figures:InfluenceChart"),
    "anchor-curve": Named("", "relcore.auditing.figures:SetCurveChart"),
    "drift": Named("", "relcore.drift.figures:DriftChart"),
    "drift-series": Named("", "relcore.drift.figures:DriftLines"),
    "drift-map": Named("", "relcore.drift.figures:DriftMap"),
    "training": Named("", "relcore.comparing.figures:Training"),
    "all-pairs": Named("", "relcore.comparing.figures:PairMap"),
    "layers": Named("", "relcore.comparing.layers_figure:LayerMaps"),
    "differences": Named("", "relcore.comparing.differences_figure:GroupDifferences"),
    "study": Named("", "relcore.studies.figures:StudyChart"),
    "stitch-matrix": Named("", "relcore.stitching.figures:StitchMatrix"),
    "stitch-confusion": Named("", "relcore.stitching.figures:StitchConfusion"),
    "try-it": Named("", "relcore.stitching.try_it_figure:TryIt"),
    "rescale-input": Named("", "relcore.rescaling.figures:RescaleInput"),
    "rescale-layers": Named("", "relcore.rescaling.figures:RescaleLayers"),
    "cross-lingual": Named("", "relcore.languages.figures:CrossLingual"),
    "across-languages": Named("", "relcore.languages.figures:AcrossLanguages"),
    "zero-shot": Named("", "relcore.languages.figures:PicturesAndWords"),
    "reconstruction": Named("", "relcore.reconstructing.figures:ReconstructionGrid"),
    "reconstruction-mse": Named("", "relcore.reconstructing.figures:ReconstructionErrors"),
    "plane-codes": Named("", "relcore.reconstructing.figures:Planes"),
    "inversion": Named("", "relcore.inverting.figures:RecoveredRows"),
    "inversion-errors": Named("", "relcore.inverting.figures:RecoveryErrors"),
    "inversion-grid": Named("", "relcore.inverting.figures:InversionGrid"),
    "inversion-lengths": Named("", "relcore.inverting.figures:Lengths"),
    "translation-table": Named("", "relcore.inverting.translation_figures:TranslationTable"),
    "cross-domain": Named("", "relcore.inverting.translation_figures:CrossDomain"),
    "migration": Named("", "relcore.migration.figures:MigrationChart"),
    "migration-threshold": Named("", "relcore.migration.figures:ThresholdScores"),
    "migration-partial": Named("", "relcore.migration.figures:PartialCurves"),
    "bootstrap": Named("", "relcore.bootstrapping.figures:BootstrapRounds"),
    "bootstrap-scores": Named("", "relcore.bootstrapping.figures:BootstrapScores"),
}

STUDIES = {
    "similarity-performance": Named("", "relcore.studies.similarity_performance:SimilarityPerformance"),
    "anchor-count": Named("", "relcore.studies.anchor_count:AnchorCount"),
    "trained-count": Named("", "relcore.studies.trained_count:TrainedCount"),
    "anchor-choice": Named("", "relcore.studies.anchor_choice:AnchorChoice"),
    "training": Named("", "relcore.studies.training:TrainingRelative"),
    "quasi-isometry": Named("", "relcore.studies.quasi_isometry:QuasiIsometry"),
    "inversion-sensitivity": Named("", "relcore.studies.inversion_sensitivity:InversionSensitivity"),
    "robustness": Named("", "relcore.studies.robustness:Robustness"),
    "quantisation": Named("", "relcore.studies.quantisation:Quantisation"),
    "isometry": Named("", "relcore.studies.isometry:Isometry"),
    "anchor-dimension": Named("", "relcore.studies.anchor_dimension:AnchorDimension"),
    "seed-count": Named("", "relcore.studies.seed_count:SeedCount"),
    "common-mean": Named("", "relcore.studies.common_mean:CommonMean"),
    "migration": Named("", "relcore.studies.migration:MigrationQuality"),
}
