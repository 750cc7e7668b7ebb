"""What FastText knows and Word2Vec does not

Both learned the same words from the same novels. FastText also reads the letters of a word, so words with the
same ending are neighbours more often. Half of the words suggest such reasons, and the other half tests them.
"""

import relcore as rs

names = ("word2vec-novels", "fasttext-novels")
found = rs.explain(*map(rs.load_space, names))
print(found.report().sentence)
print(found.n_features, "features were tried on", found.n_queries, "words")

for reason in found.reasons:
    for example in reason.examples[:1]:
        first, second = (", ".join(near[:5]) for near in example.neighbours)
        print(f"{reason.title}: {example.id} is near {first} in Word2Vec, near {second} in FastText")

spaces = tuple(rs.SpaceSpec("bundled", name) for name in names)
figure = rs.ReasonsChart(spaces=spaces).draw(found)
figure.save("why_two_models_differ.html")
