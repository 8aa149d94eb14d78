"""`narrows lab`."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from click.exceptions import Exit
from msgspec.structs import replace

from narrows.cli.app import group, subcommand
from narrows.cli.common import Json
from narrows.cli.live import NOT_LIVE, LiveOptions
from narrows.cli.parameters import argument, option

if TYPE_CHECKING:
    from narrows.documents.laboratory import LabReport
    from narrows.documents.listing import ListedLaboratory
    from narrows.lab.reading import Experiment
    from narrows.lab.tasks import Task

lab = group("lab", "narrows lab run geni", "Published experiments, run again and compared, and lessons.")

Name = Annotated[str, argument(help="A family (narrows lab list), or the folder of one.")]


@subcommand(lab, "list", example="narrows lab list")
def list_families(
    reference: Annotated[
        bool, option("--reference", help="Print the reference of lab.yaml as Markdown.")
    ] = False,
    as_json: Json = False,
) -> None:
    """List the families: the shipped ones, and yours in ~/.config/narrows/labs."""
    from narrows.cli.common import print_json
    from narrows.console import Listing
    from narrows.documents.data import to_data
    from narrows.documents.listing import LESSON
    from narrows.documents.listing import ListedLaboratory as Listed
    from narrows.errors import DataError
    from narrows.lab.reading import read
    from narrows.lab.store import list_families as families

    if reference:
        from narrows.lab.reference import markdown

        print(markdown(), end="")
        return
    entries: list[ListedLaboratory] = []
    for family in families():
        entry = Listed(name=family.name, origin=family.origin, path=str(family.path))
        try:
            read_lab = read(family.path)
        except DataError as error:
            entry = replace(entry, problem=str(error))
        else:
            entry = replace(
                entry,
                kind=LESSON if read_lab.lesson else "laboratory",
                number=read_lab.lesson.number if read_lab.lesson else None,
                question=read_lab.question,
                quick=read_lab.quick is not None,
            )
        entries.append(entry)
    entries.sort(key=lambda entry: (entry.kind == LESSON, entry.number or 0, entry.name))
    if as_json:
        print_json({"format": "narrows/labs/1", "labs": to_data(entries)})
        return
    shown = Listing("name", "kind", "question", whole=("name", "kind"))
    for entry in entries:
        kind = " ".join(str(word) for word in (entry.kind, entry.number) if word is not None)
        shown.add_row(entry.name, kind, entry.problem or entry.question or "")
    shown.print()


@subcommand(lab, example="narrows lab show geni")
def show(name: Name, as_json: Json = False) -> None:
    """Print the page of a family: the original experiment, our experiments and columns, and the published
    values.
    """
    from narrows.cli.common import print_json
    from narrows.lab.about import document, lines
    from narrows.lab.store import load

    result = load(name)
    if as_json:
        print_json(document(result))
        return
    print("\n".join(lines(result)))


@subcommand(lab, example="narrows lab run geni --where simulate")
def run(
    name: Name,
    quick: Annotated[
        bool,
        option("--quick", help="Shorter and fewer runs, as the family says: minutes in place of hours."),
    ] = False,
    where: Annotated[
        str | None, option("--where", help="simulate or emulate, instead of what the family says.")
    ] = None,
    only: Annotated[
        str | None, option("--only", metavar="A,B", help="Only these experiments, separated by commas.")
    ] = None,
    task: Annotated[
        str | None,
        option(
            "--task",
            metavar="NAME",
            help="In a lesson, run only the conditions of this task, and draw its figures.",
        ),
    ] = None,
    output: Annotated[
        Path | None,
        option(
            "-o",
            "--output",
            metavar="DIR",
            help="Folder for its campaigns and the report; run again, it completes missing runs."
            " [default: results/lab-NAME]",
        ),
    ] = None,
    as_json: Json = False,
    live: LiveOptions = NOT_LIVE,
) -> None:
    """Run a family and compare it with the published values.

    Each experiment is a campaign in a separate folder, for narrows show, plot and the like. The same command
    completes an interrupted family.

    With --live and --interactive the runs of a task are watched and changed, as with narrows run; values and
    marks then come from the record of the changed run.

    Exit codes: 0 done, 2 usage, 3 bad family, 4 not possible on this machine, 5 a limit of the family is
    broken, 6 some runs failed or are invalid.
    """
    from narrows.console import say, stderr_console
    from narrows.documents.laboratory import FAILS
    from narrows.errors import EXIT_EXPECTATION, UsageError
    from narrows.lab import lesson, running
    from narrows.lab.store import load

    live.check(as_json=as_json, dry_run=False)
    family = load(name)
    plane = where or family.where
    if plane not in ("simulate", "emulate"):
        raise UsageError(f'--where: "{plane}" is not simulate or emulate')
    folder = output or running.default_folder(family, plane, quick)
    wanted = [part.strip() for part in (only or "").split(",") if part.strip()]
    chosen = lesson.find_task(family, task) if task is not None else None

    def tell(number: int, count: int, experiment: Experiment) -> None:
        if not as_json:
            what = f": {experiment.what}" if experiment.what else ""
            say(f"experiment {number} of {count}, {experiment.name}{what}")

    running.check(family, plane, quick, wanted)
    begun = running.begin(family, folder, plane, quick)
    made = lesson.write_answers(family, folder)
    if made and not as_json:
        say(f"write your answers into {made}; narrows lab mark {folder} marks them")
    if chosen is not None:
        lesson.check_prediction(family, folder, chosen)
    code = running.run_all(
        begun,
        wanted,
        argv=["narrows", *sys.argv[1:]],
        console=stderr_console(),
        quiet=as_json,
        tell=tell,
        conditions=None if chosen is None else chosen.conditions,
        show=live.showing,
    )
    outcome = _report(folder, cells=False, as_json=as_json, task=chosen)
    # Expectations of the scenarios do not count as limits of the family.
    if code in (0, EXIT_EXPECTATION):
        broken = any(limit.outcome == FAILS for limit in outcome.expect)
        code = EXIT_EXPECTATION if broken and chosen is None else 0
    if code:
        raise Exit(code)


@subcommand(lab, example="narrows lab report results/lab-geni")
def report(
    folder: Annotated[Path, argument(metavar="DIR", help="Folder in which a family was run.")],
    cells: Annotated[bool, option("--cells", help="Print every value, ours and theirs.")] = False,
    as_json: Json = False,
) -> None:
    """Compare a finished family with the published values, and write report.html and report.txt again."""
    _report(folder, cells=cells, as_json=as_json)


def _report(folder: Path, *, cells: bool, as_json: bool, task: Task | None = None) -> LabReport:
    from narrows.cli.common import print_json
    from narrows.console import stdout_console
    from narrows.lab.text import print_report, print_task
    from narrows.lab.writing import write

    outcome, files = write(folder)
    if as_json:
        from narrows.documents.data import to_data

        print_json(to_data(outcome))
    elif task is not None:
        print_task(stdout_console(), outcome, task)
    else:
        print_report(stdout_console(), outcome, cells)
        print(f"report: {files[0]}")
    return outcome


@subcommand(lab, example="narrows lab copy lesson-own my-lesson")
def copy(
    name: Name,
    folder: Annotated[Path, argument(help="The folder to make; it must not exist.")],
    as_json: Json = False,
) -> None:
    """Copy a family to change it or to hand it out, without the right answers of a lesson.

    Run the copy with narrows lab run ./FOLDER.
    """
    from narrows.cli.common import print_done
    from narrows.lab.new import copy_family
    from narrows.lab.store import load

    files = copy_family(load(name), folder)
    shown = folder if folder.is_absolute() else f"./{folder}"
    text = f"copied {', '.join(files)} into {folder}; run it with: narrows lab run {shown}"
    print_done(text, as_json, "lab-copy", folder=str(folder), files=files)


@subcommand(lab, example="narrows lab new my-lab")
def new(
    folder: Annotated[Path, argument(help="The folder to make; it must not be there.")],
    as_lesson: Annotated[bool, option("--lesson", help="A lesson, with a task and a question.")] = False,
    as_json: Json = False,
) -> None:
    """Write a small family to start from: a scenario, a published table, a page and lab.yaml.

    It can be run without changes: narrows lab run ./my-lab.
    """
    from narrows.cli.common import print_done
    from narrows.lab.new import make

    files = make(folder, as_lesson)
    text = f"wrote {', '.join(files)} into {folder}; run it with: narrows lab run ./{folder}"
    if folder.is_absolute():
        text = text.replace("./", "")
    print_done(text, as_json, "lab-new", folder=str(folder), files=files)


@subcommand(lab, example="narrows lab mark my-answers")
def mark(
    folder: Annotated[
        Path,
        argument(metavar="DIR", help="Folder in which a lesson was run, or a folder of such folders."),
    ],
    solution: Annotated[
        Path | None,
        option(metavar="FILE", help="The right answers, where the family comes without them."),
    ] = None,
    answers: Annotated[
        bool, option("--answers", help="Show the right answers and explanations too.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Mark the answers of one student, or of a class.

    Right answers and explanations are shown only with --answers. In a class every folder is listed, including
    those without answers or without a run.

    Numbers that follow from runs are compared with the student's own runs, so that seed and machine do not
    matter.
    """
    from narrows.cli.common import print_json
    from narrows.console import stdout_console
    from narrows.documents.data import to_data
    from narrows.lab.marking import mark_folder, print_marks

    marks = mark_folder(folder, solution, reveal=answers)
    if as_json:
        print_json(to_data(marks))
        return
    print_marks(stdout_console(), marks)


@subcommand(lab, name="class", example="narrows lab class our-class")
def mark_class(
    folder: Annotated[
        Path,
        argument(
            metavar="DIR",
            help="Folder with a folder for each student: one in which a lesson was run, or several such.",
        ),
    ],
    output: Annotated[
        Path | None,
        option("-o", "--output", metavar="OUT", help="Folder of the files.  [default: DIR-marks]"),
    ] = None,
    solution: Annotated[
        Path | None,
        option(metavar="FILE", help="The right answers, where the family comes without them."),
    ] = None,
    as_json: Json = False,
) -> None:
    """Mark a class over all its lessons, rank it, and write a page for the teacher.

    Each folder in DIR is a student. A lesson that was not handed in has no points. The page also
    has the questions that most got wrong, with the most frequent wrong answer, and all predictions.

    OUT receives class.html, class.csv (a line for each student and lesson) and class.json. They contain the
    right answers and all names: they are for the teacher alone.
    """
    from narrows.cli.common import print_json
    from narrows.console import stdout_console
    from narrows.documents.data import to_data
    from narrows.lab.class_marks import mark_all
    from narrows.lab.class_report import print_class, write

    marks = mark_all(folder, solution)
    target = output or folder.parent / f"{folder.resolve().name}-marks"
    files = write(target, folder.resolve().name, marks)
    if as_json:
        print_json(to_data(marks))
        return
    print_class(stdout_console(), marks)
    print(f"for the teacher: {files[0]}")


@subcommand(lab, example="narrows lab contest paths submissions -o contest")
def contest(
    paths: Annotated[
        Path,
        argument(metavar="PATHS", help="Folder of scenarios, which those who take part do not know."),
    ],
    submissions: Annotated[
        Path,
        argument(
            metavar="SUBMISSIONS",
            help="Folder with a file or folder for each: NAME.yaml (a scheme as scenarios write it),"
            " NAME.bpf.o, or NAME/ (a crate such as examples/own-scheme).",
        ),
    ],
    output: Annotated[
        Path,
        option(
            "-o",
            "--output",
            metavar="DIR",
            help="Folder of the contest; run again, it completes missing runs.",
        ),
    ],
    where: Annotated[str, option("--where", help="simulate or emulate.")] = "simulate",
    limit: Annotated[
        str, option("--limit", metavar="TIME", help="Processor time that a simulated run may take.")
    ] = "60 s",
    per_path: Annotated[
        bool, option("--per-path", help="Tell the power on each path too; names stay hidden.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Rank submitted schemes over paths that their authors do not know.

    On each path submissions are ranked by the power of their flows (throughput / 95th percentile of delay),
    the median of the runs; the mean rank decides. Submissions that crash, hang or exceed their time are last,
    with the reason in a sentence, and the contest continues. Submissions are foreign programs and run with
    your rights.

    DIR receives ranking.csv, ranking.html and ranking.json without names of paths, to hand out, and
    contest.json with everything; runs/ has ordinary campaigns.

    Exit codes: 0 done, 2 usage, 3 bad paths, 4 not possible on this machine, 6 some submission failed
    somewhere.
    """
    from narrows.campaign.signals import interruptible
    from narrows.cli.common import positive, print_json
    from narrows.console import say, stderr_console, stdout_console
    from narrows.documents.data import to_data
    from narrows.errors import EXIT_SOME_INVALID, UsageError
    from narrows.lab import contest as contests
    from narrows.lab.contest_report import print_ranking, write

    if where not in ("simulate", "emulate"):
        raise UsageError(f'--where: "{where}" is not simulate or emulate')
    rules = contests.Rules(where, max(1, positive(limit, "span", "--limit") // 10**9))

    def tell(text: str) -> None:
        if not as_json:
            say(text)

    with interruptible(f"interrupted; run the same command with -o {output} to resume"):
        outcome = contests.run(
            paths,
            submissions,
            output,
            rules,
            argv=["narrows", *sys.argv[1:]],
            console=stderr_console(),
            quiet=True,
            tell=tell,
        )
    shown = contests.for_students(outcome, per_path)
    files = write(output, outcome, shown)
    if as_json:
        print_json(to_data(shown))
    else:
        print_ranking(stdout_console(), shown)
        print(f"ranking: {files[0]}")
    if any(place.problems for place in outcome.ranking):
        raise Exit(EXIT_SOME_INVALID)
