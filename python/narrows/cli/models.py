"""`narrows models`: rule tables and networks for the schemes that need one."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from narrows.cli.app import group, subcommand
from narrows.cli.common import Json, print_done
from narrows.cli.parameters import argument, option

if TYPE_CHECKING:
    from narrows.models.store import Installed

models = group(
    "models",
    "narrows models add indigo-1-32 indigo/dagger/model",
    "Models that schemes such as remy and indigo need.",
)

FORMAT = "narrows/models/1"


@subcommand(models, example="narrows models add tao-100x RemyCC-2014-100x.dna")
def add(
    name: Annotated[str, argument(metavar="NAME", help="The name for scenarios.")],
    path: Annotated[
        Path,
        argument(
            metavar="PATH",
            help="A rule table of Remy (.dna), a TensorFlow checkpoint of Indigo or Muses, or a model file"
            " (.safetensors).",
        ),
    ],
    force: Annotated[bool, option("--force", help="Replace a model with that name.")] = False,
    as_json: Json = False,
) -> None:
    """Keep a published model in your data folder.

    Scenarios then find it by its name.
    """
    import hashlib

    from narrows.errors import DataError, UsageError
    from narrows.models.convert import convert
    from narrows.models.format import summary
    from narrows.models.store import save, target
    from narrows.scenario import registry

    place = target(name)
    if place.exists() and not force:
        raise UsageError(
            f"a model {name} is installed already; choose another name, or replace it with --force"
        )
    content = convert(path)
    kind = summary(content).kind
    known = registry.load()
    entry = known.schemes.get(kind)
    if entry is None or entry.model is None:
        raise DataError(
            f"{path}: is a model of the kind {kind}, and no scheme of this version takes such models"
        )
    digest = hashlib.sha256(content).hexdigest()
    params = {entry.model.name: {"name": place.name, "sha256": digest}}
    if refusal := known.scheme_refusal(kind, params, {digest: content}):
        raise DataError(f"{path}: {refusal}")
    save(place, content)
    text = f"added {name} for {kind} ({digest[:12]}); in a scenario: {{{kind}: {name}}}"
    print_done(text, as_json, "model-added", name=name, kind=kind, sha256=digest, file=str(place))


@subcommand(models, "list", example="narrows models list")
def list_(as_json: Json = False) -> None:
    """List the models that are installed."""
    from narrows.cli.common import print_json
    from narrows.console import stdout_console, table
    from narrows.models.store import list_models, user_folder

    result = list_models()
    if as_json:
        print_json({"format": FORMAT, "models": [item.to_json() for item in result]})
        return
    if not result:
        print(f"no models are installed in {user_folder()}; narrows models add NAME PATH adds one")
        return
    made = table("model", "for", "size", "what", "sha256", whole=("model", "for"), right=("size",))
    for item in result:
        kind = item.summary.kind if item.summary else "-"
        made.add_row(item.name, kind, f"{item.size / 1000:.1f} kB", in_words(item), item.sha256[:12] or "-")
    stdout_console().print(made)


@subcommand(models, example="narrows models show indigo-1-32")
def show(
    name: Annotated[str, argument(metavar="NAME", help="An installed model, or a file.")],
    as_json: Json = False,
) -> None:
    """Print the kind, the origin and the contents of a model."""
    from narrows.cli.common import print_json
    from narrows.errors import DataError
    from narrows.models.store import describe, find, how_to_add
    from narrows.text import printable

    path = find(name, Path())
    if path is None:
        raise DataError(how_to_add(name))
    one = describe(path)
    if one.summary is None:
        raise DataError(f"{path}: {one.problem}")
    if as_json:
        print_json({"format": FORMAT, "models": [one.to_json()]})
        return
    print(f"{one.name}: {in_words(one)}, for {one.summary.kind}")
    print(f"  file    {one.path} ({one.size} bytes)")
    print(f"  sha256  {one.sha256}")
    for key, value in one.summary.notes.items():
        print(f"  {printable(key):7} {printable(value)}")
    for array, code, shape in one.summary.arrays:
        print(f"  array   {array}: {' x '.join(map(str, shape))} {code}")


@subcommand(models, example="narrows models remove indigo-1-32")
def remove(
    name: Annotated[str, argument(metavar="NAME", help="An installed model.")],
    as_json: Json = False,
) -> None:
    """Delete an installed model.

    Results that used it keep their copy.
    """
    from narrows.models.store import remove as delete

    removed = str(delete(name))
    print_done(f"removed {removed}", as_json, "model-removed", name=name, file=removed)


def in_words(installed: Installed) -> str:
    """A model in a few words."""
    if installed.summary is None:
        return installed.problem
    shapes: dict[str, Any] = {name: shape for name, _, shape in installed.summary.arrays}
    if shapes.get("lower"):
        return f"{shapes['lower'][0]} rules"
    layers = sum(name.startswith("kernel") for name in shapes)
    if layers and shapes.get("output_weights"):
        return f"LSTM, {layers} x {shapes['output_weights'][0]}"
    return f"{len(shapes)} arrays"
