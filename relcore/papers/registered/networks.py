"""Runs of networks: trained on absolute and on relative rows, similarity as a proxy, number of anchors."""

from __future__ import annotations

from relcore.papers.paper_run import DIGITS, FIVE, MNIST, PICTURES, PaperRun

RUNS = {
    "training-digits": PaperRun(
        "Heads on absolute and on relative rows",
        DIGITS,
        "from_studies:training",
        {"data": "digits", "n_anchors": 500, "n_states": 3},
        minutes=3,
        version=2,
    ),
    "similarity-digits": PaperRun(
        "Similarity to a reference, digits",
        "60 networks of many settings on scikit-learn's digits, 8 × 8",
        "from_studies:similarity",
        {"data": "digits", "n_runs": 60},
        minutes=3,
    ),
    "similarity-cora": PaperRun(
        "Similarity to a reference, Cora",
        "60 runs of the paper's grid on Cora, 2,708 nodes",
        "from_studies:similarity",
        {"data": "Cora", "n_runs": 60},
        minutes=40,
        local="planetoid/Cora",
    ),
    "anchor-count": PaperRun(
        "Number of anchors, frozen encoders",
        DIGITS,
        "from_studies:anchor_count",
        {"data": "digits", "n_states": 3},
        minutes=2,
        version=2,
    ),
    "trained-count": PaperRun(
        "Number of anchors, trained along",
        f"{PICTURES}; an MLP",
        "from_studies:trained_count",
        {"architecture": "mlp", "epochs": 12, "n_states": 3},
        minutes=2,
        version=2,
    ),
    "classes": PaperRun(
        "Classes of the datasets, counted",
        "MNIST, TREC, Cora and CiteSeer, all parts",
        "counted:classes",
        {"datasets": ["MNIST", "Cora", "CiteSeer", "TREC, coarse", "TREC, fine"]},
        minutes=0.5,
        local="mnist",
    ),
    "end-to-end-mnist": PaperRun(
        "A CNN trained on absolute and on relative rows from the start",
        f"{MNIST}, 5,000 to train on; a CNN with a linear head, 200 d or 200 anchors",
        "end_to_end:pictures",
        {
            "data": "mnist",
            "n_train": 5000,
            "image_size": 14,
            "width": 200,
            "epochs": 6,
            "n_anchors": 200,
            "random_states": FIVE,
        },
        minutes=3,
        local="mnist",
    ),
    "end-to-end-graphs": PaperRun(
        "A graph network trained on absolute and on relative rows from the start",
        "Cora, 2,708 nodes, and CiteSeer, 3,327 nodes; two graph convolutions with a linear head, 300 d or 300 anchors",
        "end_to_end_graphs:graphs",
        {"graphs": ["Cora", "CiteSeer"], "width": 300, "epochs": 60, "n_anchors": 300, "random_states": FIVE},
        minutes=2,
        local="planetoid",
    ),
    "anchor-count-cora": PaperRun(
        "Number of anchors, a graph network trained along",
        "Cora, 2,708 nodes; two graph convolutions with a linear head",
        "anchors_on_graphs:by_count",
        {"graph": "Cora", "n_anchors": [5, 20, 100, 400], "width": 128, "epochs": 60, "random_states": FIVE},
        minutes=3,
        local="planetoid/Cora",
    ),
    "similarity-cora-models": PaperRun(
        "Similarity over the epochs, model by model, Cora",
        "the first 4 GCN2Conv networks of 32 layers and 30 epochs among 60 runs of the paper's grid on Cora, 2,708 nodes",
        "from_studies:models",
        {"data": "Cora", "n_runs": 60, "only": {"architecture": "gcn2", "layers": 32, "epochs": 30}, "most": 4},
        minutes=7,
        local="planetoid/Cora",
    ),
}
