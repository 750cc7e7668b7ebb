"""Studies: a grid of runs that answers one question of the papers, each run kept in the store as soon as it is done."""

from __future__ import annotations

from relcore.names import STUDIES
from relcore.spaces import need_one_of
from relcore.studies.study import Study


def study_of(kind: str) -> Study:
    """The study of this name.

    Raises
    ------
    SpaceError
        There is none.
    """
    need_one_of("study", kind, STUDIES)
    return STUDIES[kind].load()()
