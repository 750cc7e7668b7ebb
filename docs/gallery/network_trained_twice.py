"""A network trained twice

A network learns digits from two random states: its coordinates differ, its similarities to anchors agree.
"""

import torch
from sklearn.datasets import load_digits
from torch import nn

import relcore as rs

X, targets = load_digits(return_X_y=True)
pictures = torch.tensor(X).float().reshape(-1, 1, 8, 8) / 16
digits = list(map(str, targets[900:]))  # held out of the training
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
early, late = (rs.match(first[layer], second[layer]) for layer in ("1", "4"))
print("layer 1", rs.linear_cka(early.source, early.target).describe())
print("layer 4", rs.linear_cka(late.source, late.target).describe())
figure = rs.panes_of(late, rs.select_anchors(late.source, 100))
figure.save("network_trained_twice.html")
