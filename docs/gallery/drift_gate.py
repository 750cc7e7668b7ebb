"""A drift gate

A new version of a network's rows has noise on one class, the eights. The gate asks which neighbours changed
and alarms for what exceeds the noise level, for all rows and for each class.
"""

import numpy as np

from relcore import LatentSpace
from relcore.catalog.catalog import load
from relcore.catalog.examples import example_spaces
from relcore.drift.check import DriftCheck, Thresholds, headline
from relcore.drift.reports import DriftChart
from relcore.runs.entries import finished

spec = example_spaces("digits", finished())[0][1]
old = load(spec)
noise = np.random.default_rng(0).normal(size=old.vectors.shape) * old.vectors.std()
eights = (np.asarray(old.labels) == "8")[:, None]
new = LatentSpace(old.vectors + noise * eights, old.ids, name="release candidate", labels=old.labels)

drift = DriftCheck().run([old, new])
verdict = drift.judged(Thresholds())
print(headline(drift, verdict))
print(verdict.table().head(4).to_string(index=False))

figure = DriftChart(old=spec, new=spec).draw(drift)
figure.save("drift_gate.html")
