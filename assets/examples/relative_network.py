"""Train networks whose classifier reads similarities to anchors, end to end, and give one network's
classifier the encoder of another network, without training.

    python assets/examples/relative_network.py [number of random states, default 5]

The data are the digits of scikit-learn. For each random state there are a network with a `RelativeLayer` and
one without, and two more networks, whose encoders then replace theirs. The table shows the mean accuracy on
held-out digits, with a 95 % interval over the random states. The last line comes from a process without
Relscope.
"""

# %% The digits, and 100 of those to train on as anchors
import subprocess
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
import numpy as np
import torch
from scipy.stats import t
from sklearn.datasets import load_digits
from torch import nn

from relcore.nn import RelativeLayer, Stitched

N_TRAIN = 900
digits = load_digits()
pictures = torch.tensor(digits.images).float()[:, None] / 16
targets = torch.tensor(digits.target)
anchors = pictures[:N_TRAIN:9]


# %% A network is an encoder, a layer and a classifier. The anchors are encoded again at each step, so that
# the encoder also learns through them.
def trained(seed: int, relative: bool) -> Stitched:
    torch.manual_seed(seed)
    encoder = nn.Sequential(
        nn.Conv2d(1, 8, 3), nn.ReLU(), nn.Flatten(), nn.Linear(288, 64), nn.ReLU(), nn.Linear(64, 32)
    )
    if relative:
        layer = RelativeLayer(encoder=encoder, inputs=anchors)
        classifier = nn.Linear(len(anchors), 10)
    else:
        layer = nn.Identity()
        classifier = nn.Linear(32, 10)
    network = Stitched(encoder, layer, nn.Sequential(nn.LayerNorm(classifier.in_features), classifier))
    optimizer = torch.optim.Adam(network.parameters(), lr=0.003)
    for _ in range(20):
        for rows in torch.randperm(N_TRAIN).split(64):
            optimizer.zero_grad()
            nn.functional.cross_entropy(network(pictures[rows]), targets[rows]).backward()
            optimizer.step()
    return network.eval()


# %% Another encoder brings its own vectors of the same anchors
def with_encoder(network: Stitched, encoder: nn.Module, order: torch.Tensor | None = None) -> Stitched:
    if not isinstance(network.translation, RelativeLayer):
        return Stitched(encoder, nn.Identity(), network.head)
    with torch.no_grad():
        rows = encoder(anchors)
        if order is not None:  # a control, which breaks the correspondence of the anchors
            rows = rows[order]
    return Stitched(encoder, RelativeLayer(rows), network.head)


@torch.no_grad()
def accuracy(network: Stitched) -> float:
    return float((network(pictures[N_TRAIN:]).argmax(1) == targets[N_TRAIN:]).float().mean())


# %% All random states
n_states = 5
if len(sys.argv) > 1:
    n_states = int(sys.argv[1])
scores: dict[str, list[float]] = {}
for state in range(n_states):
    for kind, relative in (("absolute", False), ("relative", True)):
        network = trained(state, relative)
        other = trained(1000 + state, relative)
        stitched = with_encoder(network, other.encoder)
        scores.setdefault(f"{kind}, as trained", []).append(accuracy(network))
        scores.setdefault(f"{kind}, another encoder", []).append(accuracy(stitched))
    shuffled = with_encoder(network, other.encoder, torch.randperm(len(anchors)))
    scores.setdefault("relative, another encoder, anchors in random order", []).append(accuracy(shuffled))

quantile = t.ppf(0.975, n_states - 1)
for name, values in scores.items():
    half = quantile * np.std(values, ddof=1) / np.sqrt(n_states)
    print(f"{name:52} {np.mean(values):.3f} ± {half:.3f}")

# %% The last stitched network, saved, and run where importing Relscope fails
stitched.save("stitched-digits", pictures[:2])
torch.save(pictures[N_TRAIN:], "pictures.pt")
WITHOUT = """
import sys
sys.modules["relcore"] = None  # importing it fails
import torch
network = torch.export.load("stitched-digits/model.pt2").module()
torch.save(network(torch.load("pictures.pt")).argmax(1), "classes.pt")
"""
subprocess.run([sys.executable, "-c", WITHOUT], check=True)
same = torch.equal(torch.load("classes.pt"), stitched(pictures[N_TRAIN:]).argmax(1))
print(f"saved and run without Relscope: the same classes: {same}")
