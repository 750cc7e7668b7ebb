"""What `benchmarks.explain_rates` measures: rows of four kinds, controls, planted features, and pairs of real models."""
