"""A drift gate

A new version of a network's rows has noise on one class, the eights. The gate asks which neighbours changed
and alarms for what exceeds the noise level, for all rows and for each class.
"""

import numpy as np

from relcore import DriftChart, LatentSpace, Thresholds, bundled_results, drift, example_spaces

spec = example_spaces("digits", bundled_results())[0][1]
old = spec.load()
noise = np.random.default_rng(0).normal(size=old.vectors.shape) * old.vectors.std()
eights = (np.asarray(old.labels) == "8")[:, None]
new = LatentSpace(old.vectors + noise * eights, old.ids, name="release candidate", labels=old.labels)

change = drift(old, new)
verdict = change.judged(Thresholds())
print(change.headline(verdict))
print(verdict.table().head(4).to_string(index=False))

figure = DriftChart(old=spec, new=spec).draw(change)
figure.save("drift_gate.html")
