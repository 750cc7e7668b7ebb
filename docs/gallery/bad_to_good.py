"""From bad to good in two models

Each word has a place between two poles, in Word2Vec and in FastText. The models agree on it as on most axes
between random words. From king to man they agree less: FastText also reads the letters of king, an ending.
"""

import relcore as rs

names = ("word2vec-novels", "fasttext-novels")
first, second = map(rs.load_space, names)
for start, end in (("bad", "good"), ("he", "she"), ("king", "man")):
    found = rs.axis(first, second, start, end)
    print(found.headline)
    print("  differ most:", ", ".join(found.table()["id"].head(6)))

source, target = (rs.SpaceSpec("bundled", name) for name in names)
figure = rs.AxisChart(source=source, target=target, axis=rs.PoleAxis(("bad",), ("good",))).draw()
figure.save("bad_to_good.html")
