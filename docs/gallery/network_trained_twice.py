"""A network trained twice

A network learns digits from two random states: its coordinates differ, its similarities to anchors agree.
"""

import torch
from sklearn.datasets import load_digits
from torch import nn

import relcore as rs

pictures, targets = torch.tensor(load_digits().images).float()[:, None] / 16, load_digits().target
digits = targets[900:].astype(str)  # held out of the training
networks = []
for seed in (1, 2):
    torch.manual_seed(seed)
    layers = nn.Conv2d(1, 16, 3), nn.ReLU(), nn.Flatten(), nn.Linear(576, 64), nn.ReLU(), nn.Linear(64, 10)
    networks.append(nn.Sequential(*layers))
    optimizer = torch.optim.Adam(networks[-1].parameters(), lr=0.003)
    for rows in (rows for _ in range(20) for rows in torch.randperm(900).split(64)):
        optimizer.zero_grad()
        nn.functional.cross_entropy(networks[-1](pictures[rows]), torch.tensor(targets)[rows]).backward()
        optimizer.step()

first, second = (rs.encode(one, pictures[900:], layers=["1", "4"], labels=digits) for one in networks)
for layer in first:
    pair = rs.match(first[layer], second[layer])
    print("layer", layer, rs.linear_cka(pair.source, pair.target).describe())
figure = rs.panes_of(pair, rs.select_anchors(pair.source, 100))
figure.save("network_trained_twice.html")
