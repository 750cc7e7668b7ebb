"""The commands that list spaces, encode items, make a passport, check vectors against one, find the models of
a collection, and run a study. The exit codes of checks tell CI whether to continue.
"""

from __future__ import annotations

import argparse
import json
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from relcore.base.access import expand_home, regular_file
from relcore.base.errors import SpaceError, did_you_mean, quote
from relcore.base.names import ENCODERS, FORMER_STUDIES, PLUGIN_STUDIES, STUDIES
from relcore.base.records import read_json
from relcore.base.report import Report, Table, delimited_text, json_lines
from relcore.base.settings import Setting, setting, settings_of
from relcore.base.text import read_lines
from relcore.base.writing import write
from relcore.catalog.catalog import (
    SpaceSpec,
    available,
    encode,
    encode_job,
    encoding_job_key,
    encoding_specs,
    listed,
    load,
    stored_encodings,
)
from relcore.catalog.naming import (
    DATASET_HELP,
    SPACE_HELP,
    dataset_named,
    encoder_named,
    space_spec,
    space_specs,
)
from relcore.commands.running import (
    Bar,
    Printed,
    Results,
    Scheduler,
    command,
    flag,
    follow,
    help_text,
    queue,
    values_of,
    written,
)
from relcore.encoders.datasets import columns_of, load_dataset, with_options
from relcore.encoders.encoder import Dataset, DatasetSpec, Encoder
from relcore.files.columns import Choices, overview, size_in_words
from relcore.files.reading import SPACE_KINDS, column_roles, parts_of, shape_of, write_space
from relcore.files.tables import TABLES
from relcore.passport.check import MARKS, CheckChart, Checked, CheckRows, check, repair
from relcore.passport.passport import (
    ANCHORS,
    CHANGES,
    SUFFIX,
    UNCHANGED,
    Passport,
    PassportCard,
    encode_texts,
    model_at_hand,
    name_recipe,
    paired_anchors,
    picture_anchors,
)
from relcore.runs.store import Store
from relcore.spaces.space import LatentSpace, RowNumbers, ids_of
from relcore.stores.index import find_rows, parse_place
from relcore.studies.study import Study, StudyRuns, StudySpec, study_of, study_report

BUNDLED = "bundled"  # the bundled anchor texts
VERBS = {"make": 1, "check": 2}
ACCEPTED = (*UNCHANGED, "rotated")


@dataclass
class PassportOptions:
    verb: str = setting(choices=tuple(VERBS), help="what to do")
    files: tuple[str, ...] = setting(metavar="FILE", nargs="+", help=f"a passport; or {SPACE_HELP}")
    vectors: str = setting(
        None,
        metavar="FILE",
        help="For make: the vectors of the texts in FILE, in the order of its lines.",
    )
    ids: Path = setting(
        None,
        metavar="FILE",
        help="File with ids of the anchors in a store, one per line. For make: the rows to take. For check:"
        " needed, in the passport's order, if the store has other ids than the passport.",
    )
    pictures: bool = setting(
        False,
        help="For make: FILE is a dataset of pictures, such as a folder or digits. The anchors are digests of"
        " their pixels. The vectors come from --vectors, by the dataset's ids or in its order, or from"
        " --encoder.",
    )
    fingerprint: tuple[str, ...] = setting(
        (),
        metavar="SPACE,SPACE,SPACE",
        help="For make: vectors of three or more domains, by which check --known recognises the model.",
    )
    encoder: str = setting(
        None,
        metavar="MODEL",
        help="For make: FILE has one text per line, and this model makes the vectors (minilm, or a folder of"
        " transformers). For check: try likely prompts, poolings and layers of this model, and name the"
        " combination that makes the new vectors.",
    )
    gate: str = setting(
        "rounded",
        choices=ACCEPTED,
        help="For check: the largest change with exit code 0: same, rounded, rescaled or rotated.",
    )


@command(
    (PassportOptions, PassportCard, Results),
    "“make SPACE” publishes all rows of a space as anchors, with a card of their model; “make bundled"
    " --encoder …” takes the 300 texts that come with Relscope, “make FOLDER --pictures” the digests of"
    f" pictures. “check FILE NEW” says how the anchors changed: {', '.join(CHANGES)}; NEW is another"
    " passport, or a space or store with the anchors' ids. The exit code of a check is 1 after a larger"
    " change than --gate, 2 after an error.",
    (
        "make anchors.txt --encoder minilm -o minilm.safetensors",
        "check minilm.safetensors lancedb:store#notes --gate rounded",
    ),
    output=f"For make: the passport to write, {SUFFIX}.",
    suffixes={"output": [SUFFIX]},
)
def run_passport(options: argparse.Namespace) -> Report:
    if len(options.files) != VERBS[options.verb]:
        expected = "two files"
        if VERBS[options.verb] == 1:
            expected = "one file"
        raise SpaceError(f"{options.verb}: expected {expected}, got {quote(options.files)}")
    if options.verb == "check":
        return _checked_passport(options)
    if options.output is None:
        raise SpaceError(f"{options.verb}: expected a file or folder to write, got none; name it with -o")
    passport = _make_passport(options)
    if options.fingerprint:
        domains = [load(space_spec(name), again=True).vectors for name in options.fingerprint]
        passport = passport.with_fingerprint(domains)
    passport.save(options.output)
    n, d = passport.vectors.shape
    model = passport.card.model
    line = f"{n:,} anchors with {d:,} dimensions, encoded by {model or 'a model without name'}"
    return written(line, facts={"passport": asdict(passport.card)}, n=n, dimension=d, model=model)


def _make_passport(options: argparse.Namespace) -> Passport:
    card = PassportCard(**values_of(options, PassportCard))
    [source] = options.files
    ids = _ids(options)
    if options.pictures:
        space = _of_pictures(options, source)
        return Passport.of(space, replace(card, model=card.model or space.name))
    if options.encoder is None and options.vectors is None:
        if source == BUNDLED or (not ids and Path(source).suffix == ".txt"):
            raise SpaceError(
                f"make {source}: expected vectors of these texts, got none; give --encoder or --vectors"
            )
        space = _rows(source, ids)
        return Passport.of(space, replace(card, model=card.model or space.name))
    texts = read_lines(ANCHORS if source == BUNDLED else expand_home(source), "one text per line")
    if twice := [text for text, n in Counter(texts).items() if n > 1]:
        raise SpaceError(f"{source}: expected distinct texts, got {quote(twice[:3])} again; remove one")
    if options.vectors is not None:
        rows = _rows(options.vectors, ids)
        if len(rows) != len(texts):
            raise SpaceError(
                f"{options.vectors}: expected {len(texts):,} rows, one per text, got {len(rows):,}; embed the"
                " texts again"
            )
        return Passport.of(rows.with_columns(ids=texts), replace(card, model=card.model or rows.name))
    encoder = model_at_hand(options.encoder, last=True)
    if card.pooling:
        encoder = replace(encoder, pooling=card.pooling)
    [rows] = encode_texts(encoder, texts, card.prompt).values()
    name = card.model or Path(options.encoder).name
    space = LatentSpace(rows, texts, name=name)
    return Passport.of(space, replace(card, model=name, pooling=encoder.pooling))


def _of_pictures(options: argparse.Namespace, source: str) -> LatentSpace:
    """The vectors of a dataset's pictures. The id of a picture is a digest of its pixels. Among equal
    pictures, only the first is kept."""
    dataset = load_dataset(dataset_spec(argparse.Namespace(dataset=source, config="", id_column=None)))
    if dataset.kind != "images":
        raise SpaceError(f"{source}: expected pictures, got {dataset.kind}; leave out --pictures")
    if options.vectors is not None:
        space = load(space_spec(options.vectors), again=True)
        if len(space) != len(dataset) or not isinstance(ids_of(space), RowNumbers):
            space = space.take(space.rows(dataset.ids))
    elif options.encoder is not None:
        space = encode(dataset, encoder_named(options.encoder, {}, dataset, set()), Store())[-1]
    else:
        raise SpaceError(
            "make --pictures: expected vectors, got none; give --vectors, or --encoder, such as pixels"
        )
    anchors = [one for _, images in dataset.blocks() for one in picture_anchors(images)]
    first = np.flatnonzero(~pd.Index(anchors).duplicated())
    return space.take(first).with_columns(ids=[anchors[row] for row in first])


def _ids(options: argparse.Namespace) -> list[str]:
    if options.ids:
        return read_lines(options.ids, "one id per line")
    return []


def _space_of(source: str, ids: Sequence[str]) -> LatentSpace:
    """The space that a user names. If it is in a vector database, only the rows with these ids are read."""
    place = parse_place(source)
    if ids and place is not None and place.kind != "npy":
        try:
            return find_rows(place, ids)
        except SpaceError:
            if place.where != source:
                raise  # rows without ids may still load as a table
    return load(space_spec(source), again=True)


def _rows(source: str, ids: Sequence[str]) -> LatentSpace:
    space = _space_of(source, ids)
    if ids:
        return space.take(space.rows(ids))
    return space


def _checked_passport(options: argparse.Namespace) -> Report:
    passport = Passport.load(options.files[0])
    ids = _ids(options)
    if ids and len(ids) != len(passport.ids):
        raise SpaceError(
            f"{options.ids}: expected {len(passport.ids):,} ids, one per anchor, got {len(ids):,}; write them"
            " in the passport's order"
        )
    new = _space_of(options.files[1], ids or passport.ids)
    if ids:
        new = new.take(new.rows(ids)).with_columns(ids=passport.ids)
    texts, _, rows = paired_anchors(passport, new)
    # The space holds only the anchors, even if the file is large.
    found = check(LatentSpace(rows, texts, name=new.name), passport)
    change = found.change
    if options.encoder is not None:
        change = replace(change, named=name_recipe(model_at_hand(options.encoder), texts, rows))
    fine = change.kind in ACCEPTED[: ACCEPTED.index(options.gate) + 1]
    report = change.report(passport=asdict(passport.card), alarm=not fine)
    marks = [
        f"{len(rows):,} of {found.n:,} rows have {MARKS[name]}." for name, rows in found.partial_marks.items()
    ]
    if fine:
        alarm = []
    else:
        alarm = [f"An alarm: the change is larger than --gate {options.gate} accepts."]
    return replace(report, notes=[*report.notes, *marks, *alarm])


@dataclass
class CheckOptions:
    space: str = setting(metavar="SPACE", help=SPACE_HELP)
    trusted: str = setting(
        None,
        metavar="ROWS",
        help="At least 100 rows, of any texts, by the model that should have made all vectors; or this"
        " model's passport.",
    )
    known: tuple[Path, ...] = setting(
        (),
        metavar="PASSPORT,PASSPORT",
        help="Passports with fingerprints, to tell which of their models made the larger part.",
    )
    repair: Path = setting(
        None,
        metavar="FILE",
        written=True,
        help="Also write the collection with the smaller part mapped into the space of the larger one"
        f" ({', '.join(SPACE_KINDS)}).",
    )
    again: str = setting(
        None,
        metavar="ROWS",
        help="For --repair: 10 or more rows of the smaller part, embedded again with the model of the larger"
        " part, under their ids. Default: the two parts are linked without pairs.",
    )
    plan: Path = setting(
        None,
        metavar="FILE",
        written=True,
        help="Also write a plan for a store (.json): ids to embed again, and commands.",
    )


@command(
    (CheckOptions, CheckRows, Results),
    "Exact marks tell how numbers were stored. With --trusted, rows are ranked by the axes that the right"
    " model hardly uses. Without --trusted, parts of the collection are compared by such axes. Each check"
    " says what it cannot detect. The exit code is 1 if two models were found, if rows were stored"
    " differently, or if the anchors of a trusted passport have other vectors. It is 2 after an error.",
    (
        "lancedb:store#notes --trusted minilm.safetensors -o rows.csv",
        "vectors.npz --again embedded.npz --repair repaired.npz",
    ),
    suffixes={"output": [".csv"], "repair": SPACE_KINDS, "plan": [".json"]},
    output="Write all rows (.csv), ranked, with the evidence for each.",
)
def run_check(options: argparse.Namespace) -> Report:
    spec = space_spec(options.space)
    task = CheckRows(**values_of(options, CheckRows))
    space = load(spec, again=True)
    trusted, trusted_spec = _trusted_rows(options.trusted)
    known = [Passport.load(file) for file in options.known]
    found = check(space, trusted, known, random_state=task.random_state)
    if options.output:
        write(options.output, delimited_text(found.rows(space.ids)).encode())
    spaces = (space, *([load(trusted_spec)] if trusted_spec else []))
    recipe = {"space": spec, "trusted": trusted_spec, "digests": tuple(one.digest for one in spaces)}
    report = found.report(space.ids, check=lambda: CheckChart(**recipe, check=task).draw((space, found)))
    notes = [*report.notes]
    if options.repair:
        if options.again:
            again = load(space_spec(options.again), again=True)
        else:
            again = None
        whole, told = repair(space, found, again, task.random_state)
        write_space(whole, options.repair)
        notes.append(told)
    if options.plan:
        write(options.plan, (json.dumps(_plan(options.space, space, found), indent=2) + "\n").encode())
    return replace(report, notes=notes)


def _trusted_rows(name: str | None) -> tuple[LatentSpace | Passport | None, SpaceSpec | None]:
    """Load rows that are known to be of the right model, or a passport of it. Return them with their spec, or
    (None, None) without a name."""
    if name is None:
        return None, None
    spec = space_spec(name)
    with suppress(SpaceError):  # a space of vectors or a damaged passport, which the last line refuses
        if Path(name).suffix.lower() == SUFFIX:
            return Passport.load(name), spec
    return load(spec, again=True), spec


def _plan(place: str, space: LatentSpace, found: Checked) -> dict[str, Any]:
    """A plan, written as JSON, to repair a vector database: the ids of the rows that another model probably
    made, likeliest first, and the steps to embed or map these rows again."""
    steps = [
        "Embed some of the ids again with the model of the other rows; 300 are enough to map the rest:"
        f" relscope check {place} --again ROWS --repair FILE.npz",
        "Or embed all of the ids again.",
        f"Write these rows to the store under their ids, and check again: relscope check {place}",
    ]
    rows = np.argsort(-found.ranks, kind="stable")[: found.suspected_rows.sum() * bool(len(found.ranks))]
    told = {"store": place, "verdict": found.verdict, "rows": found.n, "estimated": found.count}
    told |= {"not seen": found.limits, "steps": steps * bool(len(rows)), "ids": [*map(str, space.ids[rows])]}
    return told


# The command study computes a grid of runs. Each run is saved as soon as it is done.


@dataclass
class StudyOptions:
    name: str = setting(
        metavar="NAME", nargs="?", help="the study; without a name, all studies are listed with their options"
    )
    grid: str = setting(
        (),
        metavar="OPTION=VALUE",
        nargs="append",
        help="set an option of the study; separate several values by commas; can be given several times",
    )
    spec: Path = setting(None, metavar="FILE", help="Read the study and its options from a .json file.")
    table: bool = setting(False, help="Show finished runs only; do not start any.")
    chart: str = setting("", help="The chart for --recipe; default: the study's first.")


@command(
    (StudyOptions, Results, Scheduler),
    examples=("similarity-performance --grid data=digits --grid n_runs=60 -o runs.csv",),
    suffixes={"output": [".csv", ".jsonl"]},
    output="Write the table of runs (.csv or .jsonl).",
)
def run_study(options: argparse.Namespace) -> Report:
    spec = spec_of(options)
    if spec is None:
        # All studies with their options.
        studies = {kind: study_of(kind) for kind in STUDIES.working()}
        rows = [
            {"study": kind, "question": one.question, "paper": one.paper} for kind, one in studies.items()
        ]
        texts = [
            "\n".join([f"{kind}: {one.question}", f"  {one.paper}", *map(_option_in_words, one.options)])
            for kind, one in studies.items()
        ]
        return Report("\n\n".join(texts), [Table("rows", pd.DataFrame(rows))])
    study = study_of(spec.kind)
    store = Store()
    runs = StudyRuns(study, spec)
    if options.table or not runs.missing(store):
        table = runs.table(store)
    else:
        table = _results(options, runs)
    if options.output:
        lined = options.output.suffix.lower() == ".jsonl"
        rows = table.rename_axis("run").reset_index()
        write(options.output, (json_lines if lined else delimited_text)(rows).encode())
    return study_report(runs, table, store, options.chart)


def spec_of(options: argparse.Namespace) -> StudySpec | None:
    """The study that the options name, with its settings; None if they name no study."""
    given = {}
    kind = options.name
    if options.spec:
        spec = StudySpec.from_json(read_json(options.spec, "a study"))
        if kind not in (None, spec.kind):
            raise SpaceError(
                f"{options.spec}: expected the study {kind!r}, got {spec.kind!r}; leave the name out"
            )
        given = spec.settings
        kind = spec.kind
    if kind is None:
        return None
    if kind not in (*STUDIES, *PLUGIN_STUDIES, *FORMER_STUDIES):
        near = did_you_mean(kind, STUDIES)
        raise SpaceError(f"study: expected one of {', '.join(STUDIES)}, got {kind!r}{near}")
    study = study_of(kind)
    return StudySpec.of(study, given | chosen(study, options.grid))


def chosen(study: Study, grid: list[str]) -> dict[str, Any]:
    """Read texts such as "OPTION=VALUE" from --grid into a dict of values by option. A value that is not
    among the choices of its option stays a string."""
    known = {option.name: option for option in study.options}
    values = {}
    for text in grid:
        name, sign, value = text.partition("=")
        if not sign or name not in known:
            expected = f"OPTION=VALUE with an option of {study.kind}, {quote(known)}"
            raise SpaceError(f"--grid: expected {expected}, got {text!r}")
        choices = {str(choice): choice for choice in known[name].choices}
        parts = [part.strip() for part in value.split(",") if part.strip()]
        several = tuple(choices.get(part, part) for part in parts)
        if known[name].is_tuple:
            values[name] = several
        else:
            values[name] = choices.get(value, value)
    return values


def _results(options: argparse.Namespace, runs: StudyRuns) -> pd.DataFrame:
    with queue(options, len(runs.missing(Store()))) as cluster, Bar(options) as bar:
        try:
            return runs.finish(
                cluster,
                report=lambda done, total, text: bar.show(done, total, f"{done:,} of {total:,} · {text}"),
            )
        except KeyboardInterrupt:
            if cluster.address:  # processes of this machine end with the queue
                runs.stop(cluster)
            raise


def _option_in_words(option: Setting) -> str:
    if option.name == "spaces":
        return (
            "  spaces  with --spec, a study file saved in Research, Studies; default: the bundled word spaces"
        )
    choices = ", ".join(map(str, option.choices)) or "ids"
    if option.is_tuple:
        usual = ", ".join(map(str, option.default))
    else:
        usual = option.default
    several = " (several)" if option.is_tuple else ""
    return f"  --grid {option.name}=…  {choices}{several}; default {usual or 'none'}"


# The command available lists spaces and tells what a file holds. The command encode encodes a dataset.

_WHERE = {"here": "On this machine", "needs the network": "Needs the network"}


@dataclass
class AvailableOptions:
    file: str = setting(
        metavar="FILE",
        nargs="?",
        help="a vector file or a folder of them: show its rows and dimensions, and the role of each column"
        " of a table",
    )
    data: Path = setting(
        None,
        metavar="FOLDER",
        help="Also list the vector files in this folder (default: $RELSCOPE_DATA).",
    )


@command(
    (AvailableOptions, Printed),
    "Nothing is downloaded. For a table, the role of each column is shown. To choose roles, add options to"
    " the table's name, here and wherever a space is named: FILE#OPTION=VALUE#OPTION=VALUE. The options"
    " are id_column, label_column, count_column, and ignore (names, separated by commas). If a file has"
    " several matrices, the option matrix chooses one.",
    ("--data ~/vectors", "words.csv", "words.csv#id_column=word#ignore=year,note"),
)
def run_available(options: argparse.Namespace) -> Report:
    if options.data and not options.data.is_dir():
        raise SpaceError(f"--data: expected a folder, got {str(options.data)!r}")
    if options.file is not None:
        return file_report(options)
    entries = available(options.data)
    tables = []
    for where, title in _WHERE.items():
        rows = [
            (
                entry.name,
                *("" if size is None else f"{size:,}" for size in (entry.n, entry.dimension)),
                f"{entry.size_bytes / 1e6:,.1f}",
                entry.description,
            )
            for entry in entries
            if entry.where == where
        ]
        head = ("space", "rows", "dimensions", "MB", "")
        if rows:
            tables += [Table(shown=[head, *rows], title=title)]
    table = {
        name: [getattr(entry, name) for entry in entries]
        for name in ("name", "n", "dimension", "size_bytes", "where", "description")
    }
    return Report("", [Table("spaces", pd.DataFrame(table, dtype=object)), *tables])


def file_report(options: argparse.Namespace) -> Report:
    """A report on what a file or a folder contains."""
    text = options.file
    specs = space_specs(text)
    if any(spec.source != "file" for spec in specs):
        raise SpaceError(
            f"{text!r:.80}: expected a vector file or a folder of them, got another space; name a file"
        )
    path = Path(specs[0].name)
    table = path
    if path.is_dir():
        table = parts_of(path)[0]
    if len(specs) == 1 and table.suffix.lower() in TABLES:
        chosen = {name: value for name, value in specs[0].options if name.endswith("_column")}
        roles = column_roles(regular_file(table), Choices(**chosen, ignore=listed(specs[0], "ignore")))
        rows = list(overview(roles))
        columns = pd.DataFrame(rows, columns=["column", "read_as", "why"])
        shown = Table("columns", columns, [("column", "read as", "why"), *rows])
        try:
            roles.check(table.name)
        except SpaceError:  # the table of columns shows which column is unclear
            if options.format == "table":
                print(shown.text())
            raise
        facts = {"n": roles.n, "dimension": roles.dimension}
        return Report(size_in_words(roles.n, roles.dimension), [shown], facts)
    shapes = [(spec.name, *(shape_of(Path(spec.name)) or (None, None))) for spec in specs]
    columns = pd.DataFrame(shapes, columns=["name", "n", "dimension"], dtype=object)
    cells = [[name, *("unknown" if n is None else f"{n:,}" for n in shape)] for name, *shape in shapes]
    return Report("", [Table("spaces", columns, [("space", "rows", "dimensions"), *cells])])


def _add_settings(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("settings of encoders")
    for dest, owners in _settings().items():
        text = "; ".join(f"{name}: {help_text(one)}" for name, one in owners.items())
        with suppress(argparse.ArgumentError):  # a plugin may have an option --json of its own
            group.add_argument(flag(dest), dest=dest, metavar="VALUE", help=text)


_NAMED = (f"{name} ({entry.help})" if entry.help else name for name, entry in ENCODERS.items())


@dataclass
class EncodeOptions:
    dataset: str = setting(metavar="DATASET", help=DATASET_HELP)
    encoder: str = setting(
        metavar="NAMES",
        nargs="append",
        help=f"encoders, separated by commas or given several times: {', '.join(_NAMED)}; or a .json file"
        " with an encoder",
    )
    config: str = setting("", help="The configuration of a Hugging Face dataset, if it has several.")
    id_column: str = setting(
        None,
        help='The column of ids. Default: a column whose name means ids, such as id. "" makes ids from'
        " table and row, such as docs/0.",
    )


@command(
    (EncodeOptions, DatasetSpec, Printed, Scheduler),
    "Encodings are saved in the store. Other commands take them by name or key; the app lists them under"
    " Spaces, Store.",
    ("digits --encoder mlp,cnn -o digits.npz", "wikipedia:16 --encoder minilm --layers 2,4,6"),
    suffixes={"output": SPACE_KINDS},
    output="Also write the space (.npz, .safetensors or .parquet). Several spaces become file-1.npz, …",
    more=_add_settings,
)
def run_encode(options: argparse.Namespace) -> Report:
    store = Store()
    spec = dataset_spec(options)
    dataset = load_dataset(spec, store)
    specs = encoded(options, store, spec, dataset, encoders_of(options, dataset))
    rows = []
    for number, encoding in enumerate(specs, start=1):
        space = load(encoding, store)
        row = {"key": encoding.option("key"), "name": space.name, "n": len(space), "d": space.dimension}
        if goal := options.output:
            if len(specs) != 1:
                goal = goal.with_stem(f"{goal.stem}-{number}")
            write_space(space, goal)
            row["file"] = str(goal)
        rows.append(row)
    options.output = None  # the spaces are in files already, whose names the report lists
    return Report("", [Table.of("rows", rows)], {"dataset": spec.to_json()})


def encoded(
    options: argparse.Namespace, store: Store, spec: DatasetSpec, dataset: Dataset, encoders: list[Encoder]
) -> list[SpaceSpec]:
    missing = [encoder for encoder in encoders if stored_encodings(store, dataset.digest, encoder) is None]
    if missing:
        local = spec.source in ("file", "folder", "huggingface") and expand_home(spec.name).exists()
        # Make paths absolute: the workers of a cluster may have another working directory.
        placed = spec
        if local:
            placed = replace(spec, name=str(expand_home(spec.name).absolute()))
        with queue(options, len(missing)) as cluster:
            jobs = [
                cluster.submit(
                    encoding_job_key(dataset.digest, encoder),
                    encode_job,
                    title=f"{encoder.title} · {dataset.name}",
                    dataset=placed,
                    encoder=encoder,
                )
                for encoder in missing
            ]
            follow(cluster, jobs, options)
    keys = {encoder: stored_encodings(store, dataset.digest, encoder) or {} for encoder in encoders}
    return [one for encoder in encoders for one in encoding_specs(store, spec, encoder, keys[encoder])]


def encoders_of(options: argparse.Namespace, dataset: Dataset) -> list[Encoder]:
    """The encoders that --encoder names, without repetition."""
    if not (names := [*filter(None, map(str.strip, ",".join(options.encoder).split(",")))]):
        raise SpaceError("--encoder: expected the name of an encoder, got none")
    given = {name: value for name in _settings() if (value := getattr(options, name, None)) is not None}
    taken: set[str] = set()
    encoders = [encoder_named(name, given, dataset, taken) for name in names]
    if unused := [flag(name) for name in given if name not in taken]:
        raise SpaceError(
            f"expected options of {quote(names)}, got {quote(unused)}; remove them, or add the encoder that"
            " they belong to"
        )
    return list(dict.fromkeys(encoders))


def _settings() -> dict[str, dict[str, Setting]]:
    """For each option of the command, the names of the encoders that have it, each with its `Setting`. An
    option of a plugin's encoder is left out if its name is taken; it can still be set in a .json file.
    """
    options: dict[str, dict[str, Setting]] = {}
    kinds = (EncodeOptions, DatasetSpec, Printed, Scheduler)
    taken = {one.option for kind in kinds for one in settings_of(kind).values() if one.help}
    taken |= {"command", "dataset", "device", "encoder", "output", "quiet", "run", "store"}
    for name, encoder in ENCODERS.loaded():
        mine = settings_of(encoder).values()
        for one in (one for one in mine if not (ENCODERS[name].plugin and one.option in taken)):
            options.setdefault(one.option, {})[name] = one
    return options


def dataset_spec(options: argparse.Namespace) -> DatasetSpec:
    given = values_of(options, DatasetSpec)
    spec = dataset_named(options.dataset, (("config", options.config),) if options.config else ())
    spec = replace(spec, **{name: value for name, value in given.items() if value not in ("", None)})
    column = options.id_column
    stored = options.dataset.lower().endswith(".json")
    if column is None and not stored and spec.source in ("file", "folder"):
        column = columns_of(spec).ids
    return with_options(spec, id_column=column or "")
