"""The registry of all names that users can choose and that plugins can add. Choosers, `--help`, recipes and
computations read it.

Importing this module is cheap: an entry holds the path of its code, and `load` imports that code at first
use. To add a choice, write a file and add one line here. A script may add an entry under a new name at run
time. Other packages add entries to a `Family` by entry points (see docs/plugin).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from relcore.base.families import Family, FormatName, Method, MetricName, Named, StudyName

SIMILARITIES = Family(
    "similarities",
    Named,
    {
        "cosine": Named("Cosine", ".represent.similarity:Cosine"),
        "angular": Named("Angular", ".represent.similarity:Angular"),
        "euclidean": Named("Euclidean", ".represent.similarity:Euclidean"),
        "l1": Named("L1", ".represent.similarity:L1"),
        "quantised": Named("Quantised", ".represent.similarity:Quantised"),
    },
)
STRATEGIES = {
    "random": Named("Random", ".represent.strategies:at_random", "each row with equal probability"),
    "farthest-point": Named(
        "Farthest-point",
        ".represent.strategies:farthest_point",
        "each next anchor is the row farthest from the anchors before it",
    ),
    "k-means": Named("k-means", ".represent.strategies:k_means", "the row nearest to each centroid"),
    "most-frequent": Named(
        "Most frequent", ".represent.strategies:most_frequent", "the rows with the highest counts"
    ),
    "class-balanced": Named(
        "Class-balanced", ".represent.strategies:class_balanced", "the same number from each label"
    ),
}
HEADS = {
    "logistic": Named(
        "Logistic",
        ".represent.heads:fit_logistic",
        "Logistic regression of directions: no randomness, fitted in a moment.",
    ),
    "mlp": Named(
        "MLP",
        ".represent.heads:fit_mlp",
        "Two hidden layers of 256 behind a LayerNorm; reads each row by itself.",
    ),
    "paper": Named(
        "Paper",
        ".represent.heads:fit_paper",
        "The network of Moschella et al. 2023. It normalises over all rows of a batch.",
    ),
}
METHODS = Family(
    "methods",
    Method,
    {
        "absolute": Method("absolute", ".represent.representations:identity_map"),
        "relative": Method("relative", ".represent.representations:relative", representation="relative"),
        "whitened": Method(
            "relative, whitened", ".represent.representations:whitened", representation="whitened"
        ),
        "irp-pruned": Method("inverse, pruned", ".represent.representations:pruned_inverse"),
        "irp-ridge": Method("inverse, ridge", ".represent.representations:ridge_inverse"),
        "irp-whitened": Method("inverse, whitened", ".represent.representations:whitened_inverse"),
        "procrustes": Method("Procrustes", ".represent.representations:procrustes", knows="both"),
        "least-squares": Method("least squares", ".represent.representations:least_squares", knows="both"),
        "affine": Method("affine", ".represent.representations:affine", knows="both"),
    },
    knows="both",
)
STITCHED = ("absolute", "relative", "whitened", "irp-pruned", "irp-whitened", "procrustes")  # the defaults
METRICS = Family(
    "metrics",
    MetricName,
    {
        "jaccard": MetricName("Jaccard", ".scores.metrics:Jaccard", of=("pair",)),
        "mrr": MetricName("MRR", ".scores.metrics:MeanReciprocalRank", of=("pair",)),
        "class agreement": MetricName(
            "class agreement",
            ".scores.metrics:ClassAgreement",
            "share of rows for which most nearest neighbours in the other space are of the row's class",
            of=("pair",),
            needs=("labels",),
        ),
        "cosine": MetricName("cosine", ".scores.metrics:MeanCosine", of=("pair",)),
        "cka": MetricName(
            "linear CKA",
            ".scores.metrics:LinearCKA",
            "similarity of the absolute spaces' Gram matrices, 0 to 1",
        ),
        "debiased cka": MetricName(
            "debiased CKA",
            ".scores.metrics:DebiasedCKA",
            "linear CKA without the bias of few rows: the chance level is 0",
            of=("spaces",),
        ),
        "relative cosine": MetricName(
            "relative cosine",
            ".compare.all_pairs:RelativeCosine",
            "mean cosine of paired rows relative to the anchors",
            of=("spaces",),
            needs=("anchors", "projection"),
        ),
        "mutual knn": MetricName(
            "mutual kNN",
            ".scores.metrics:MutualKNN",
            "share of a row's nearest neighbours that are the same in both absolute spaces",
            of=("spaces",),
            needs=("k", "n_queries"),
        ),
        # Measures from the literature. Each is a `scores.measures.Measure`; docs/measures.md lists them.
        "svcca": MetricName(
            "SVCCA",
            ".scores.subspace_measures:SVCCA",
            "mean canonical correlation of the principal axes with 99 % of the variance",
            of=("more",),
        ),
        "pwcca": MetricName(
            "PWCCA",
            ".scores.subspace_measures:PWCCA",
            "mean canonical correlation, each weighted by the share of the space that its axis explains",
            of=("more",),
        ),
        "gulp": MetricName(
            "GULP",
            ".scores.subspace_measures:GULP",
            "agreement of ridge regressions on the two spaces",
            of=("more",),
        ),
        "rsa": MetricName(
            "RSA",
            ".scores.matrix_measures:RSA",
            "rank correlation of the distances between rows",
            of=("more",),
        ),
        "kernel cka": MetricName(
            "RBF CKA",
            ".scores.matrix_measures:KernelCKA",
            "CKA with Gaussian kernels, so near rows count most",
            of=("more",),
        ),
        "angular cka": MetricName(
            "angular CKA",
            ".scores.matrix_measures:AngularCKA",
            "linear CKA as an angle, 1 − 2θ/π",
            of=("more",),
        ),
        "procrustes": MetricName(
            "Procrustes",
            ".scores.shape_measures:ProcrustesSimilarity",
            "how close the rows are after the best rotation; the distance is √(2 − 2s)",
            of=("more",),
        ),
        "angular shape": MetricName(
            "angular shape",
            ".scores.shape_measures:AngularShape",
            "Procrustes as an angle, 1 − 2θ/π",
            of=("more",),
        ),
        "knn recall": MetricName(
            "k-NN recall",
            ".scores.neighbour_measures:NeighbourRecall",
            "share of a row's nearest neighbours that are the same in both spaces (mutual kNN of Huh et al.)",
            of=("more",),
            needs=("k",),
        ),
        "cycle knn": MetricName(
            "cycle-kNN",
            ".scores.neighbour_measures:CycleKNN",
            "share of rows that are neighbours of one of their neighbours in the other space",
            of=("more",),
            needs=("k",),
        ),
        "cknna": MetricName(
            "CKNNA",
            ".scores.neighbour_measures:CKNNA",
            "CKA, restricted to pairs of rows that are neighbours in both spaces",
            of=("more",),
            needs=("k",),
        ),
        "second-order cosine": MetricName(
            "second-order cosine",
            ".scores.neighbour_measures:SecondOrderCosine",
            "how similar a row's cosines to its neighbours are in the two spaces",
            of=("more",),
            needs=("k",),
        ),
    },
    of=("more",),
)
STITCH_METRICS = {
    "accuracy": Named("accuracy"),
    "f1": Named("weighted F1"),
    "mae": Named("mean absolute error"),
}
INVERSES = {"pruned": Named("pruned"), "ridge": Named("ridge"), "whitened": Named("whitened")}
ROUTES = {
    "forward": Named("source → target"),
    "backward": Named("target → source"),
    "within": Named("within the source"),
}
DELTA = (
    0.7  # pruning distance of the inverse; Maiorca et al. take .65 to .75 for stitching, .8 across domains
)
# Maps from a new model's queries to an old model's vectors. Each is a `migrate.adapters.Adapter`.
ADAPTERS = {
    "whitened": Named(
        "Relative, whitened",
        ".migrate.adapters:WhitenedRelativeAdapter",
        "whitened similarities to the pairs; the old vectors are projected once",
    ),
    "inverse": Named(
        "Inverse, whitened",
        ".migrate.adapters:WhitenedInverseAdapter",
        "inverts the whitened similarities to the pairs in the old space",
    ),
    "in-place": Named(
        "Procrustes, in place",
        ".migrate.adapters:ProcrustesAdapter",
        "a rotation, also between different widths; the old vectors stay as they are",
    ),
    "ridge": Named(
        "Ridge", ".migrate.adapters:RidgeAdapter", "a linear map; leave-one-out chooses its penalty"
    ),
}
_FORMATS = {
    ".npy": FormatName("NumPy", ".files.numpy_files:Npy", store="npy", shard="array"),
    ".npz": FormatName("NumPy", ".files.numpy_files:Npz"),
    ".safetensors": FormatName("safetensors", ".files.tensors:Safetensors"),
    ".parquet": FormatName("Parquet", ".files.table_formats:Tables", store="parquet", shard="table"),
    ".arrow": FormatName("Arrow", ".files.table_formats:Tables", shard="table"),
    ".feather": FormatName("Feather", ".files.table_formats:Tables", shard="table"),
    ".csv": FormatName("CSV", ".files.table_formats:Tables"),
    ".tsv": FormatName("TSV", ".files.table_formats:Tables"),
    ".jsonl": FormatName("JSON lines", ".files.table_formats:Tables"),
    ".ndjson": FormatName("JSON lines", ".files.table_formats:Tables"),
    ".bin": FormatName("word2vec", ".files.word_vectors:Word2VecBinary"),
    ".bin.gz": FormatName("word2vec", ".files.word_vectors:Word2VecBinary"),
    ".vec": FormatName("fastText", ".files.word_vectors:Word2VecText"),
    ".vec.gz": FormatName("fastText", ".files.word_vectors:Word2VecText"),
    ".txt": FormatName("GloVe", ".files.word_vectors:Word2VecText"),
    ".txt.gz": FormatName("GloVe", ".files.word_vectors:Word2VecText"),
    ".gz": FormatName("word2vec", ".files.word_vectors:Word2Vec"),
    ".faiss": FormatName("faiss", ".files.faiss_files:Faiss", store="faiss"),
    ".index": FormatName("faiss", ".files.faiss_files:Faiss", store="faiss"),
    ".pt": FormatName("PyTorch", ".files.tensors:Torch"),
    ".pth": FormatName("PyTorch", ".files.tensors:Torch"),
}
FORMATS = Family("formats", FormatName, _FORMATS)


@dataclass(frozen=True)
class IndexName(Named):
    """The registry's entry of a `stores.index.VectorIndex`, which reads and writes vectors in a file or a
    database. For a kind of file, `name` is the `store` of its `FormatName`; for a database, it is ""."""

    name: str = ""

    @property
    def suffixes(self) -> tuple[str, ...]:
        return tuple(suffix for suffix, entry in _FORMATS.items() if self.name and entry.store == self.name)


# Places where vectors are stored. The name is the first part of an address such as ``lancedb:FOLDER#TABLE``.
INDEXES = Family(
    "stores",
    IndexName,
    {
        "npy": IndexName("NumPy file", ".stores.file_index:NpyIndex", "npy:FILE or FILE.npy", "npy"),
        "parquet": IndexName(
            "Parquet file",
            ".stores.file_index:ParquetIndex",
            "FILE.parquet or FILE.parquet#COLUMN",
            "parquet",
        ),
        "faiss": IndexName(
            "faiss index", ".stores.file_index:FaissFile", "faiss:FILE or FILE.faiss", "faiss"
        ),
        "lancedb": IndexName("LanceDB", ".stores.lance:LanceIndex", "lancedb:FOLDER#TABLE"),
    },
    private=True,
)
# Stores that need the package in plugins/stores. Without this package, an error says how to install it.
PLUGIN_STORES = ("chroma", "milvus", "pgvector", "qdrant")
REDUCTIONS = {
    "pca": Named("PCA"),
    "umap": Named("UMAP"),
    "umap-gpu": Named("UMAP by TorchDR"),
    "tsne": Named("t-SNE"),
    "tsne-gpu": Named("t-SNE by TorchDR"),
}
BOOTSTRAPS = {"self-learning": Named("self-learning"), "paper": Named("as published")}
ENCODERS = Family(
    "encoders",
    Named,
    {
        "small-vision": Named(
            "Small networks, trained here",
            ".encoders.vision:SmallVision",
            "or only one of them: mlp, cnn, residual, vit",
        ),
        "pixels": Named("Pixels and edges", ".encoders.pixels:PixelComponents"),
        "distorted-vision": Named("Small networks, distorted pictures", ".encoders.vision:DistortedVision"),
        "swept-vision": Named("Swept networks, trained here", ".encoders.swept_vision:SweptVision"),
        "pretrained-vision": Named(
            "Pretrained model", ".encoders.transformers:PretrainedVision", "or its folder or hub name"
        ),
        "minilm": Named("MiniLM", ".encoders.transformers:MiniLM"),
        "tfidf-svd": Named("TF-IDF + SVD", ".encoders.sentences:TfidfSvd", "or tfidf"),
        "pooled-words": Named("Pooled word vectors", ".encoders.sentences:PooledWords", "or words"),
        "pretrained-text": Named(
            "Pretrained model", ".encoders.transformers:PretrainedText", "or its folder or hub name"
        ),
        "onnx-text": Named("ONNX model", ".encoders.onnx_texts:OnnxText", "or onnx, of a folder"),
        "onnx-vision": Named(
            "ONNX model", ".encoders.onnx_pictures:OnnxPictures", "or onnx, of a folder: onnx:FOLDER"
        ),
        "api-text": Named(
            "Provider's model", ".encoders.api:ApiText", "or api, of OpenAI or a compatible address"
        ),
    },
    private=True,
)


@dataclass(frozen=True)
class FeaturesName(Named):
    """The registry's entry of features of rows. Its code is a function that gets the words, texts or pictures
    of the rows, as `of` says, and yields an `explain.families.FeatureFamily` for each family of features.
    With "any", as for plugins, it gets the texts or, without texts, the words."""

    of: Literal["words", "texts", "pictures", "any"] = "any"


# Features of rows by which differences of spaces are explained.
FEATURES = Family(
    "features",
    FeaturesName,
    {
        "words": FeaturesName("Words", ".explain.words:word_families", of="words"),
        "texts": FeaturesName("Texts", ".explain.texts:text_families", of="texts"),
        "pictures": FeaturesName("Pictures", ".explain.pictures:picture_families", of="pictures"),
    },
    of="any",
)
# Command of the command line → the `commands.command.Command` that runs it.
COMMANDS = Family(
    "commands",
    Named,
    {
        "available": Named(
            "available",
            ".available.command:run_available",
            "list the spaces on this machine, or what a file holds",
        ),
        "app": Named(
            "app", ".launch.command:run_app", "open the app in the browser, with your spaces loaded"
        ),
        "encode": Named("encode", ".encode.command:run_encode", "encode pictures or texts as spaces"),
        "project": Named(
            "project",
            ".project.command:run_project",
            "describe the rows of a space by their similarities to anchors",
        ),
        "compare": Named(
            "compare",
            ".compare.command:run_compare",
            "score how similar two spaces are, absolute and relative to anchors, with chance levels",
        ),
        "explain": Named(
            "explain",
            ".explain.command:run_explain",
            "say why two spaces differ: which kinds of rows are neighbours in one more than in the other",
        ),
        "axis": Named(
            "axis",
            ".axis.command:run_axis",
            "place rows between two poles in two spaces, such as from bad to good, and compare the places",
        ),
        "audit": Named(
            "audit",
            ".audit.command:run_audit",
            "find anchor pairs that are wrong, and score the spaces without them",
        ),
        "drift": Named(
            "drift",
            ".drift.command:run_drift",
            "compare two versions of a space, and fail if the drift matters",
        ),
        "adapt": Named(
            "adapt",
            ".migrate.adapt_command:run_adapt",
            "map rows with an adapter from one store of vectors to another, or show its card",
        ),
        "stitch": Named(
            "stitch", ".stitch.command:run_stitch", "test every encoder with the head of every other encoder"
        ),
        "invert": Named(
            "invert",
            ".invert.command:run_invert",
            "translate one space into another through anchors, and measure the error",
        ),
        "link": Named(
            "link",
            ".linking.command:run_link",
            "find rows of two spaces that are the same thing, from a few known pairs or from none",
        ),
        "universe": Named(
            "universe",
            ".universe.command:run_universe",
            "bring several spaces into one by one map each, add a space to it, or map rows",
        ),
        "training": Named(
            "training",
            ".training.command:run_training",
            "compare networks while they are trained: scores at each step, and a film",
        ),
        "passport": Named(
            "passport",
            ".passport.command:run_passport",
            "publish anchors with their vectors, or check what became of them",
        ),
        "check": Named(
            "check",
            ".check.command:run_check",
            "tell whether a collection of vectors was made by one model or by two",
        ),
        "study": Named(
            "study", ".studies.command:run_study", "run or resume a study; without a name, list all studies"
        ),
        "migrate": Named(
            "migrate",
            ".migrate.command:run_migrate",
            "decide about a new embedding model: keep, bridge, query both models or re-embed",
        ),
        "choose": Named(
            "choose",
            ".choose.command:run_choose",
            "say which of several embedding models finds best, before all rows are embedded",
        ),
        "export": Named(
            "export",
            ".export.command:run_export",
            "write a map, its rows and their neighbours as a table for Embedding Atlas",
        ),
        "figure": Named("figure", ".redraw.command:run_figure", "draw a figure again from its recipe"),
        "mcp": Named(
            "mcp",
            ".agents.command:run_mcp",
            "serve commands as tools to an agent, by the Model Context Protocol",
        ),
    },
)
# Command that an agent may call → the `commands.command.Tool` that fixes some of its options, so that it
# answers a question and writes no file.
TOOLS = Family(
    "tools",
    Named,
    {
        "available": Named("available", ".commands.command:FREE_TOOL"),
        "compare": Named("compare", ".commands.command:FREE_TOOL"),
        "explain": Named("explain", ".commands.command:FREE_TOOL"),
        "migrate": Named("migrate", ".commands.command:FREE_TOOL"),
        "choose": Named("choose", ".choose.command:TOOL"),
        "drift": Named("drift", ".commands.command:FREE_TOOL"),
        "passport": Named("passport", ".passport.command:TOOL"),
        "check": Named("check", ".commands.command:FREE_TOOL"),
        "link": Named("link", ".commands.command:FREE_TOOL"),
        "axis": Named("axis", ".commands.command:FREE_TOOL"),
    },
)
# Tab of the app, named by its place and its title in small letters → the function that draws it. The app adds
# its own tabs in app/places.py. A shared app has no tabs of plugins unless RELSCOPE_PLUGIN_TABS is 1, because
# such a tab may open any file for its visitors.
PLUGIN_TABS = "RELSCOPE_PLUGIN_TABS"
TABS = Family("tabs", Named, {}, private=True, unless=PLUGIN_TABS)
# Figure, as recipes name it → the `Recipe` that draws it.
FIGURES = Family(
    "figures",
    Named,
    {
        "comparison": Named("", ".compare.pictures:Panes"),
        "scores": Named("", ".compare.pictures:Scores"),
        "axis": Named("", ".axis.chart:AxisChart"),
        "anchor-audit": Named("", ".audit.anchor_audit:AnchorAudit"),
        "drift": Named("", ".drift.chart:DriftChart"),
        "drift-rows": Named("", ".drift.moved_rows:DriftMap"),
        "all-pairs": Named("", ".compare.pictures:PairMap"),
        "reasons": Named("", ".explain.chart:ReasonsChart"),
        "universe": Named("", ".universe.charts:UniverseChart"),
        "study": Named("", ".studies.report:StudyChart"),
        "stitch-matrix": Named("", ".stitch.charts:StitchMatrix"),
        "stitch-confusion": Named("", ".stitch.charts:StitchConfusion"),
        "try-it": Named("", ".stitch.try_it:TryIt"),
        "cross-lingual": Named("", ".stitch.try_it:CrossLingual"),
        "inversion": Named("", ".invert.recovery:RecoveredRows"),
        "inversion-errors": Named("", ".invert.recovery:RecoveryErrors"),
        "inversion-anchors": Named("", ".invert.anchor_curve:ErrorByAnchors"),
        "migration-options": Named("", ".migrate.charts:MigrationChart"),
        "cascade-price": Named("", ".migrate.charts:CascadePrice"),
        "cascade-estimate": Named("", ".migrate.unlogged:CascadeEstimate"),
        "cheaper-index": Named("", ".migrate.charts:CheaperIndexChart"),
        "threshold-change": Named("", ".migrate.charts:ThresholdScores"),
        "model-choice": Named("", ".choose.chart:ChoiceChart"),
        "passport": Named("", ".passport.pictures:PassportChart"),
        "check": Named("", ".check.chart:CheckChart"),
        "bootstrap": Named("", ".linking.pictures:BootstrapRounds"),
        "bootstrap-scores": Named("", ".linking.pictures:BootstrapScores"),
        "training-runs": Named("", ".training.chart:TrainingChart"),
    },
    private=True,
)
# Studies that need the package relscope-studies, in plugins/studies. Without it, the error for a file of such
# a study names the package.
PLUGIN_STUDIES = (
    *("anchor-choice", "anchor-dimension", "anchor-influence", "anchor-optimisation", "common-mean"),
    *("exposure", "isometry", "layers", "measures", "method-map", "migration", "seed-count", "zero-shot"),
)
STUDIES = Family(
    "studies",
    StudyName,
    {
        "similarity-performance": StudyName(
            "Similarity to a reference",
            ".studies.similarity_performance:SimilarityPerformance",
            "Do networks that resemble a good one perform well?",
            "Moschella et al. 2023, Figs. 3 and 8",
            "What does similarity tell?",
        ),
        "anchor-count": StudyName(
            "Number of anchors",
            ".studies.anchor_count:AnchorCount",
            "How many anchors does it take?",
            "Moschella et al. 2023, Fig. 6",
            "How many anchors?",
        ),
        "trained-count": StudyName(
            "Number of anchors, trained",
            ".studies.relative_training:TrainedCount",
            "How many anchors does a network trained on relative rows need?",
            "Moschella et al. 2023, Fig. 6, left",
            "How many anchors?",
        ),
        "training": StudyName(
            "Training on relative rows",
            ".studies.relative_training:TrainingRelative",
            "Does training on relative representations cost accuracy?",
            "Moschella et al. 2023, Table 2",
            "Does stitching work?",
        ),
        "training-agreement": StudyName(
            "Agreement in training",
            ".studies.training_agreement:TrainingAgreement",
            "Do networks agree before they answer rightly?",
            "ours; agreement as in Moschella et al. 2023, Fig. 1",
            "What does similarity tell?",
        ),
        "pruning": StudyName(
            "δ × ω of the pruned inverse",
            ".studies.pruning:Pruning",
            "How many anchors to leave out (δ), and how often (ω), to recover another encoder's rows?",
            "Maiorca et al. 2024, Figs. 3 and 6",
            "Which settings?",
        ),
    },
    private=True,
)
FAMILIES: tuple[Family[Any], ...] = (
    *(SIMILARITIES, METHODS, METRICS, FORMATS, INDEXES, ENCODERS, STUDIES),
    *(COMMANDS, TOOLS, TABS, FIGURES, FEATURES),
)
