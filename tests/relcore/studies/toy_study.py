"""A small study for tests. It writes a line to a log whenever it computes a run."""

import os
import time

import numpy as np

from relcore.base.errors import SpaceError
from relcore.figures.charts import Line, Lines
from relcore.scores.estimate import correlation
from relcore.studies.estimates import finding, findings_table
from relcore.studies.study import Option, RunResult, Study


class Toy(Study):
    title = "Toy"
    version = 3
    options = (
        Option("n_runs", "Runs", (3, 6, 8, 12), 6),
        Option("pause", "Pause", (0, 0.15, 0.3, 60), 0),
        Option("held_from", "Number of the first run that waits for the file log.go", (3, 12), 12),
        Option("log", "Log", (), (), many=True),
        Option("kinds", "Kinds", ("a", "b"), ("a",), many=True),
    )

    def runs(self, options):
        shared = {"pause": options["pause"], "log": list(options["log"])}
        return [{"x": x, "held": x >= options["held_from"], **shared} for x in range(options["n_runs"])]

    def measure(self, settings, store, report):
        for log in settings["log"]:
            with open(log, "a") as file:
                file.write(f"{settings['x']} {os.getpid()}\n")
            if os.path.exists(f"{log}.fail") and settings["x"] == 1:
                raise SpaceError("one is not wanted")
            while settings["held"] and not os.path.exists(f"{log}.go"):
                time.sleep(0.01)
        deadline = time.process_time() + settings["pause"]
        counted = 0
        while time.process_time() < deadline:
            counted += int(np.linalg.norm(np.ones(50)) > 0)
        return RunResult({"y": 2 * settings["x"]}, {"curve": np.arange(3)})

    def seconds(self, settings):
        return 0.01 + settings["pause"]

    def charts(self, options, table):
        if len(table):
            return {"line": Lines((Line("y", table.x, table.y),), "x", "y")}
        return {}

    def findings(self, options, table):
        return findings_table([finding("Pearson", correlation(table.x, table.y), "Fisher's z")])

    def conclusion(self, options, table):
        if len(table) > 3:
            return f"Twice a number is on a line: r = {correlation(table.x, table.y):2}."
        return ""


def study_with_toy(kind):
    return Toy("toy")
