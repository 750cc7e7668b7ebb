"""A page with one job, an encoding; run by Streamlit with the log of its blocks as argument."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))

from app.jobs import engine, follow
from tests.faults.victims import submit

follow([submit(engine(), sys.argv[1], 2)])
