"""Keep, bridge, query both or re-embed?

A corpus of sentences has vectors of an old model, TF-IDF with SVD; MiniLM is the new one. Rows of the same
article count as relevant. The answer is one sentence, with its interval.
"""

from relcore.catalog.catalog import load
from relcore.migrate.migration import TASK, MigrationChart, starting_models
from relcore.runs.entries import finished

specs = starting_models(finished())
assert specs is not None
result = TASK.run([load(spec) for spec in specs])
print(result.verdict.sentence)

figure = MigrationChart(spaces=specs, migration=TASK).draw(result)
figure.save("migration_verdict.html")
