"""Stitch four networks of digits

The classifier of each of four networks reads the rows that the others made. Four of the published methods
are compared with the networks' own rows, on the diagonal.
"""

from relcore import stitch_matrix
from relcore.catalog.catalog import load
from relcore.catalog.examples import example_spaces
from relcore.runs.entries import finished
from relcore.stitch.stitching import StitchMatrix, StitchSpec

specs, _ = example_spaces("digits", finished())
spec = StitchSpec(("absolute", "relative", "irp-pruned", "procrustes"), n_anchors=128)
result = stitch_matrix([load(space) for space in specs], spec)
print(result.summary().to_string(index=False))

figure = StitchMatrix(spaces=tuple(specs), stitching=spec).draw(result)
figure.save("stitched_digits.html")
