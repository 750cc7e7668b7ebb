"""A universe of five models

Four networks of the digits, and the pixels themselves, each get one map into a common space. The table shows
how many held-out digits are their own nearest neighbours from each space to each other.
"""

from sklearn.datasets import load_digits

from relcore import LatentSpace, Universe, UniverseChart, bundled_results, example_spaces

specs, _ = example_spaces("digits", bundled_results())
spaces = [spec.load() for spec in specs]
pixels = LatentSpace(load_digits(return_X_y=True)[0], spaces[0].ids, name="pixels")
universe = Universe.fit([*spaces, pixels])
print(universe.headline())

figure = UniverseChart(spaces=tuple(specs)).draw(universe)
figure.save("universe_of_five.html")
