"""Keep, bridge, query both or re-embed?

A corpus of sentences has vectors of an old model, TF-IDF with SVD; MiniLM is the new one. Rows of the same
article count as relevant. The answer is one sentence, with its interval.
"""

from relcore import Migration, MigrationChart, bundled_results, migrate, starting_models

specs = starting_models(bundled_results())
assert specs is not None
(old, new) = (spec.load() for spec in specs)
task = Migration(n_pairs=300)
result = migrate(old, new, spec=task)
print(result.verdict.sentence)

figure = MigrationChart(spaces=specs, migration=task).draw(result)
figure.save("migration_verdict.html")
