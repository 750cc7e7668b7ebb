"""Stitch four networks of digits

The classifier of each of four networks reads the rows that the others made. Four of the published methods
are compared with the networks' own rows, on the diagonal.
"""

from relcore import StitchMatrix, StitchSpec, bundled_results, example_spaces, stitch_matrix

specs, _ = example_spaces("digits", bundled_results())
spec = StitchSpec(("absolute", "relative", "irp-pruned", "procrustes"), n_anchors=128)
result = stitch_matrix([space.load() for space in specs], spec)
print(result.summary().to_string(index=False))

figure = StitchMatrix(spaces=tuple(specs), stitching=spec).draw(result)
figure.save("stitched_digits.html")
