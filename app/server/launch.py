"""Streamlit's command, started so that Ctrl-C works at once even during Streamlit's imports, which take
seconds."""

import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
if str(ROOT) not in sys.path:
    sys.path.insert(0, str(ROOT))

from relcore.base import stopping  # noqa: E402

stopping.listen(stopping._stop_on_signal)

if __name__ == "__main__":
    from streamlit.web.cli import main

    main(prog_name="streamlit")
