"""What holds for every test: the linear algebra of one process takes one core, because tests run beside each other."""

import os

for library in ("OMP", "OPENBLAS", "MKL"):  # read when NumPy and Torch are loaded, which is later
    os.environ.setdefault(f"{library}_NUM_THREADS", "1")
