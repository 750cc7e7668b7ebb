"""What `benchmarks.check_rates` measures: collections of one model and of two, and the model of each row."""
