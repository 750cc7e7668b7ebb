"""Which of three models finds better rows?

Three encoders of 960 sentences: Word2Vec and FastText, each pooled, and MiniLM. Each sentence is a query, and
the sentences of its article are relevant. The comparison looks at planned numbers of queries, and its
intervals count these looks.
"""

import relcore as rs

specs, _ = rs.example_spaces("sentences", rs.bundled_results())
task = rs.Choose()
found = rs.choose([spec.load() for spec in specs], spec=task)
print(found.report().sentence)
for look in found.looks:
    scores = (f"{name} {score:.3f}" for name, score in zip(found.names, look.scores, strict=True))
    print(f"{look.n} queries:", ", ".join(scores))

figure = rs.ChoiceChart(spaces=tuple(specs), choose=task).draw(found)
figure.save("which_model.html")
