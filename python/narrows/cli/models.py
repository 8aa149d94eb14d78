"""`narrows models`: rule tables and networks for the schemes that need one."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from narrows.cli.app import group, subcommand
from narrows.cli.common import Json, print_done
from narrows.cli.completion import model_names, user_model_names
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
    from narrows.models.store import list_models, save, target
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
    if any(model.is_hidden and model.name == name for model in list_models()):
        text += "; it is used in place of the model of that name that comes with Narrows"
    print_done(text, as_json, "model-added", name=name, kind=kind, sha256=digest, file=str(place))


@subcommand(models, "list", example="narrows models list")
def list_(as_json: Json = False) -> None:
    """List the models that are installed.

    They are yours, or come with Narrows; of two with the same name yours is used.
    """
    from narrows.cli.common import print_json
    from narrows.console import Listing
    from narrows.models.store import list_models, user_folder

    result = list_models()
    if as_json:
        print_json({"format": FORMAT, "models": [item.to_json() for item in result]})
        return
    if all(item.is_shipped for item in result):
        print(f"no models are installed in {user_folder()}; narrows models add NAME PATH adds one")
    if not result:
        return
    titles = ("model", "for", "size", "what", "origin", "sha256")
    made = Listing(*titles, whole=("model", "for"), right=("size",))
    for item in result:
        kind = item.summary.kind if item.summary else "-"
        size = f"{item.size / 1000:.1f} kB"
        made.add_row(item.name, kind, size, in_words(item), origin_in_words(item), item.sha256[:12] or "-")
    made.print()


@subcommand(models, example="narrows models show indigo-1-32")
def show(
    name: Annotated[
        str, argument(metavar="NAME", help="An installed model, or a file.", complete=model_names)
    ],
    as_json: Json = False,
) -> None:
    """Print the kind, the origin and the contents of a model."""
    from narrows.cli.common import print_json
    from narrows.errors import DataError
    from narrows.models.store import describe, find, how_to_add, list_models
    from narrows.text import printable

    path = find(name, Path())
    if path is None:
        raise DataError(how_to_add(name))
    model = next((item for item in list_models() if item.path == path), None) or describe(path)
    if model.summary is None:
        raise DataError(f"{path}: {model.problem}")
    if as_json:
        print_json({"format": FORMAT, "models": [model.to_json()]})
        return
    print(f"{model.name}: {in_words(model)}, for {model.summary.kind}")
    facts = {
        "origin": origin_in_words(model),
        "file": f"{model.path} ({model.size} bytes)",
        "sha256": model.sha256,
    }
    facts |= {"card": str(model.card)} if model.card else {}
    facts |= {printable(key): printable(value) for key, value in model.summary.notes.items()}
    width = max(7, *(len(key) for key in facts))
    for key, value in facts.items():
        print(f"  {key:{width}} {value}")
    for array, code, shape in model.summary.arrays:
        print(f"  {'array':{width}} {array}: {' x '.join(map(str, shape))} {code}")


@subcommand(models, example="narrows models remove indigo-1-32")
def remove(
    name: Annotated[str, argument(metavar="NAME", help="A model that you added.", complete=user_model_names)],
    as_json: Json = False,
) -> None:
    """Delete a model that you added.

    Results that used it keep their copy. Models that come with Narrows can't be removed.
    """
    from narrows.models.store import remove as delete

    removed = str(delete(name))
    print_done(f"removed {removed}", as_json, "model-removed", name=name, file=removed)


def origin_in_words(installed: Installed) -> str:
    """Whose a model is, and which of two with the same name is used."""
    ours = bool(installed.summary and installed.summary.is_ours)
    if installed.is_shipped:
        whose = "trained by Narrows" if ours else "comes with Narrows"
        return f"{whose}; yours is used" if installed.is_hidden else whose
    whose = "yours, trained by Narrows" if ours else "yours"
    return f"{whose}; hides the model that comes with Narrows" if installed.is_double else whose


def in_words(installed: Installed) -> str:
    """A model in a few words."""
    from narrows.models.format import read_design
    from narrows.text import plural, printable, shorten

    if installed.summary is None:
        return installed.problem
    shapes = {name: shape for name, _, shape in installed.summary.arrays}
    if rules := shapes.get("lower"):
        return f"{rules[0]} rules"
    if (design := read_design(installed.summary.notes)) is not None:
        words = f"{design.observation} inputs, {design.action} action, {plural(len(design.layers), 'layer')}"
        return printable(shorten(words, 80))
    layers = sum(name.startswith("kernel") for name in shapes)
    if layers and (weights := shapes.get("output_weights")):
        return f"LSTM, {layers} x {weights[0]}"
    return f"{len(shapes)} arrays"
