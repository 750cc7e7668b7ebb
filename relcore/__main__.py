"""``python -m relcore``; see `relcore.cli`."""

import sys

from relcore.cli import main

if __name__ == "__main__":
    sys.exit(main())
