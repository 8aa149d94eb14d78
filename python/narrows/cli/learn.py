"""`narrows learn`: trainings of learned schemes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated

from narrows.cli.app import group, subcommand
from narrows.cli.common import Json
from narrows.cli.parameters import argument, option
from narrows.learn.path_sets import PathSet

learn = group(
    "learn", "narrows learn indigo --out my-indigo", "Train models of learned schemes, and score them."
)

Folder = Annotated[
    Path,
    option("-o", "--out", metavar="FOLDER", help="Folder of the training: log, state, model and card."),
]
RecipeName = Annotated[
    str | None,
    option(
        "--recipe",
        metavar="NAME|FILE",
        help="A recipe that comes with Narrows, or a file. [default: the scheme's]",
    ),
]
Seed = Annotated[int, option("--seed", min=0, max=1_000_000, help="Seed of weights, paths and rollouts.")]
Rounds = Annotated[
    int | None,
    option(
        "--rounds",
        min=1,
        max=1_000_000,
        help="Number of rounds instead of the recipe's; its schedule is adapted.",
    ),
]
Resume = Annotated[bool, option("--resume", help="Continue the training in FOLDER after its latest round.")]
Threads = Annotated[
    int | None,
    option("--threads", min=1, max=1024, help="Threads; results are the same. [default: all processors]"),
]
TrainedBy = Annotated[
    str | None,
    option("--trained-by", metavar="NAME", help="The trainer, as the model's metadata and reports name it."),
]


@subcommand(learn, example="narrows learn indigo --out my-indigo --rounds 40")
def indigo(
    out: Folder,
    recipe: RecipeName = None,
    seed: Seed = 1,
    rounds: Rounds = None,
    resume: Resume = False,
    threads: Threads = None,
    trained_by: TrainedBy = None,
    as_json: Json = False,
) -> None:
    """Train a recurrent network for indigo by imitation.

    An expert that knows each path's best window corrects the network's decisions (DAgger). The recipe indigo
    takes about 15 minutes of one processor; 40 rounds of it make a usable model in 4. A killed training
    resumes after its latest round with --resume.
    """
    _train("indigo", out, recipe or "indigo", seed, rounds, resume, threads, trained_by, as_json)


@subcommand(learn, example="narrows learn muses --out my-muses")
def muses(
    out: Folder,
    recipe: RecipeName = None,
    seed: Seed = 1,
    rounds: Rounds = None,
    resume: Resume = False,
    threads: Threads = None,
    trained_by: TrainedBy = None,
    as_json: Json = False,
) -> None:
    """Train a recurrent network for muses by imitation.

    The expert knows the queue and the cross traffic at each decision.
    """
    _train("muses", out, recipe or "muses", seed, rounds, resume, threads, trained_by, as_json)


@subcommand(learn, example="narrows learn remy --out my-table")
def remy(
    out: Folder,
    recipe: RecipeName = None,
    seed: Seed = 1,
    rounds: Rounds = None,
    resume: Resume = False,
    threads: Threads = None,
    trained_by: TrainedBy = None,
    as_json: Json = False,
) -> None:
    """Construct a rule table for remy.

    The first round improves rules of thumb on links whose rate the table does not know; further rounds
    improve the most used rules, and split them where their signals differ. The recipe tao has one round, a
    minute of one processor.
    """
    _train("remy", out, recipe or "tao", seed, rounds, resume, threads, trained_by, as_json)


@subcommand(learn, example="narrows learn aurora --out my-aurora --rounds 60")
def aurora(
    out: Folder,
    recipe: RecipeName = None,
    seed: Seed = 1,
    rounds: Rounds = None,
    resume: Resume = False,
    threads: Threads = None,
    trained_by: TrainedBy = None,
    as_json: Json = False,
) -> None:
    """Train a policy for aurora by rewards.

    No expert is needed: the network changes the rate by chance, and actions that earned more than expected
    become more probable (proximal policy optimisation). The recipe aurora has the paths and the reward of the
    paper, and takes about 3 minutes of one processor.
    """
    _train("aurora", out, recipe or "aurora", seed, rounds, resume, threads, trained_by, as_json)


@subcommand(learn, example="narrows learn score my-indigo/model.safetensors --against indigo-1-32")
def score(
    models: Annotated[
        list[str], argument(metavar="MODEL...", help="Installed models, or files, of one scheme.")
    ],
    against: Annotated[
        str | None,
        option("--against", metavar="MODEL", help="Print the power as a ratio to that of this model."),
    ] = None,
    paths: Annotated[
        list[PathSet] | None,
        option(
            "--paths",
            help="The paths; may be repeated. [default: grid, calibrated and buffers]",
        ),
    ] = None,
    threads: Threads = None,
    as_json: Json = False,
) -> None:
    """Simulate models on paths outside their training, and compare their power.

    Power is the throughput by the 95th percentile of the one-way delay of one flow over 30 s. The usual 33
    paths are the grid on which the published networks were trained (5 to 200 Mbit/s, 10 to 80 ms each way),
    Pantheon's six calibrated paths, and 12 Mbit/s with buffers of 30, 45 and 90 kB. The set pantheon is the
    other nine of its 18 paths: a queue of one packet, acknowledgements in bunches, a buffer of 9 kB.

    The set links is for rule tables: their objective on 20 links of 3.3 to 300 Mbit/s with two senders that
    come and go, rates and times of which no training knows.
    """
    from narrows.errors import DataError, UsageError
    from narrows.models.format import summary
    from narrows.models.store import find, how_to_add, load
    from narrows.sweep.engines import usable_processors

    names = [*([against] if against else []), *models]
    contents: dict[str, bytes] = {}
    for name in names:
        path = find(name, Path())
        if path is None:
            raise DataError(how_to_add(name))
        contents[name] = load(path)[1]
    kinds = {name: summary(content).kind for name, content in contents.items()}
    if len(set(kinds.values())) > 1:
        listed = ", ".join(f"{name} for {kind}" for name, kind in kinds.items())
        raise DataError(f"models of one scheme can be compared; these are {listed}")
    scheme, used = kinds[names[0]], threads or usable_processors()
    if not paths or PathSet.LINKS not in paths:
        _print_power(scheme, contents, models, paths, used, as_json)
        return
    if len(set(paths)) > 1:
        raise UsageError("--paths links: rule tables have another score there; choose it alone")
    if scheme != "remy":
        raise DataError(f"--paths links is for rule tables; {names[0]} is a network for {scheme}")
    _print_objective(contents, used, as_json)


def _print_power(
    scheme: str,
    contents: Mapping[str, bytes],
    models: Sequence[str],
    paths: Sequence[PathSet] | None,
    threads: int,
    as_json: bool,
) -> None:
    """Prints the power of each model; `models` are compared with the first of all."""
    from narrows.cli.common import print_json
    from narrows.console import Listing
    from narrows.learn import score as scores
    from narrows.progress import progress

    trials = scores.list_trials(paths or scores.USUAL)
    measured: dict[str, list[scores.Measured]] = {}
    with progress("score", len(contents), quiet=as_json) as bar:
        for done, (name, content) in enumerate(contents.items()):
            bar.count(done, len(contents), "models")
            measured[name] = scores.measure(scheme, content, trials, threads)
    first, base = next(iter(measured.items()))
    comparisons = [
        scores.Comparison(
            name, tuple(ours.power / theirs.power for ours, theirs in zip(measured[name], base, strict=True))
        )
        for name in models
    ]
    if as_json:
        print_json(
            {
                "format": "narrows/learn-score/1",
                "scheme": scheme,
                "against": first,
                "paths": [trial.path.words for trial in trials],
                "power": {name: [row.power for row in rows] for name, rows in measured.items()},
                "loss": {name: [row.loss for row in rows] for name, rows in measured.items()},
                "ratios": {it.name: {"median": it.median, "p10": it.tenth} for it in comparisons},
            }
        )
        return
    made = Listing("path", *measured, whole=("path",), right=tuple(measured))
    for index, trial in enumerate(trials):
        made.add_row(trial.path.words, *(f"{rows[index].power:.4f}" for rows in measured.values()))
    made.print()
    print("power: Mbit/s by ms of the 95th percentile of the one-way delay, one flow, 30 s")
    if len(measured) > 1:
        for it in comparisons:
            print(f"{it.name} / {first}: median {it.median:.3f}, tenth percentile {it.tenth:.3f}")


def _print_objective(contents: Mapping[str, bytes], threads: int, as_json: bool) -> None:
    """Prints the objective of each rule table."""
    from statistics import fmean

    from narrows.cli.common import print_json
    from narrows.console import Listing
    from narrows.learn import score as scores
    from narrows.progress import progress

    measured: dict[str, list[scores.LinkScore]] = {}
    with progress("score", len(contents), quiet=as_json) as bar:
        for done, (name, content) in enumerate(contents.items()):
            bar.count(done, len(contents), "models")
            measured[name] = scores.measure_links(content, threads)
    means = {name: fmean(link.score_log2 for link in links) for name, links in measured.items()}
    rates = [link.packets_per_ms for link in next(iter(measured.values()))]
    if as_json:
        print_json(
            {
                "format": "narrows/learn-score/1",
                "scheme": "remy",
                "links": rates,
                "score_log2": {name: [link.score_log2 for link in links] for name, links in measured.items()},
                "means": means,
            }
        )
        return
    made = Listing("link", *measured, whole=("link",), right=tuple(measured))
    for index, rate in enumerate(rates):
        cells = (f"{links[index].score_log2:+.3f}" for links in measured.values())
        made.add_row(f"{rate * 10:.3g} Mbit/s", *cells)
    made.print()
    print("log2 of the share of the link, less log2 of the mean round trip by the minimum one")
    for name, mean in means.items():
        print(f"{name}: mean {mean:+.3f}")


def _train(
    scheme: str,
    out: Path,
    recipe_name: str,
    seed: int,
    rounds: int | None,
    resume: bool,
    threads: int | None,
    trained_by: str | None,
    as_json: bool,
) -> None:
    from contextlib import closing

    from narrows.cli.common import print_done
    from narrows.errors import DataError
    from narrows.files import read_whole
    from narrows.learn import training
    from narrows.learn.card import write_card
    from narrows.learn.recipe import find_recipe, read_recipe
    from narrows.progress import progress
    from narrows.sweep.engines import usable_processors

    used = threads or usable_processors()
    with progress(f"learn {scheme}", quiet=as_json) as bar:
        bar.update(note="preparing paths")
        if resume:
            run = training.resume(out, rounds, used)
        else:
            recipe = read_recipe(find_recipe(recipe_name))
            if recipe.scheme != scheme:
                raise DataError(recipe.locate(f"scheme is {recipe.scheme}, where {scheme} is to be trained"))
            run = training.begin(out, recipe, seed, rounds, used, trained_by)
        total = run.recipe.rounds or 0
        model = out / training.MODEL
        with closing(run):
            run.train(lambda number: bar.update(number, total, f"round {number} of {total}, {run.score}"))
            bar.update(note="model card")
            write_card(out / training.CARD, out.name, run, read_whole(model, "model"))
    print_done(
        f"trained {model}; {{{scheme}: {model}}} runs it",
        as_json,
        "model-trained",
        file=str(model),
        scheme=scheme,
    )
