"""Schemes: the congestion controls that a scenario names, with their parameters."""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from pathlib import PurePath

from msgspec import structs

from narrows.documents.components import Values
from narrows.documents.programs import Plan
from narrows.documents.resolved import NamedFile, Params
from narrows.errors import DataError, Problem
from narrows.scenario.declarations.value import Context
from narrows.scenario.files import Files
from narrows.scenario.habits import HABITS
from narrows.scenario.model_lists import ModelChoice, choose
from narrows.scenario.params import read_params
from narrows.scenario.prefixes import BPF_PREFIX, KERNEL_PREFIX, UDP
from narrows.scenario.problems import Problems, Wrong
from narrows.scenario.registry import Entry, Param, Profile, Registry
from narrows.scenario.sections import SchemeKeys
from narrows.scenario.words import read_label
from narrows.scenario.yaml_tree import Mapping, Mark, Node, Scalar, Sequence
from narrows.text import any_of, did_you_mean, shorten

#: The key that names an object file in place of a scheme.
BPF_FILE = "bpf"
#: The key that names a program's manifest in place of a scheme.
PROGRAM = "program"
#: Keys that accompany the parameters of a native scheme: the name of a profile, and settings of the
#: transport.
PROFILE, TRANSPORT = "profile", "transport"
#: The key for the name of a configured scheme in results.
NAME = "name"
LONGEST_NAME = 40
#: Settings of the bulk transport that real-time schemes accept; otherwise they have a separate transport.
FOR_MEDIA = ("packet_size",)

_KERNEL_NAME = re.compile(r"[a-z0-9_-]{1,15}")


@dataclass(frozen=True)
class Scheme:
    """A scheme with its parameters (defaults filled in), and its label in results."""

    name: str
    params: dict[str, object]
    label: str
    #: Its object file, in the form of cells.
    object_file: NamedFile | None = None
    #: Settings of the transport for its flows alone, in base units.
    transport: dict[str, object] = field(default_factory=dict)
    #: Settings of its profile; those of the scenario override them.
    profile: dict[str, object] = field(default_factory=dict)
    #: Labels in case another model has the same name: with its folder, and with the hash of its content.
    longer: tuple[str, ...] = ()
    #: True if it generates the media that it sends, so that its flows carry no other traffic.
    media: bool = False
    #: The program that is both ends of its flows, in the form of cells.
    program: Plan | None = None
    #: The choice of its model from a list, and its explanation.
    choice: ModelChoice | None = None
    why: Problem | None = None


def read_scheme(
    value: Node,
    registry: Registry,
    problems: Problems,
    *,
    datagrams: bool = False,
    files: Files | None = None,
) -> Scheme | None:
    """A scheme: `cubic`, `linux:bbr`, `{scheme: cubic, beta: 0.7}`, `{indigo: NAME}` or `{bpf: my_cc.bpf.o}`.

    Object files and models are read into `files`.
    """
    with problems.note():
        return _scheme(value, registry, problems, datagrams, files or Files())
    return None


def _scheme(
    value: Node, registry: Registry, problems: Problems, datagrams: bool, files: Files
) -> Scheme | None:
    if isinstance(value, Mapping):
        value = _with_model(value, registry)
    given = Mapping(value.mark)
    name_value: Node = value
    if isinstance(value, Mapping):
        if BPF_FILE in value.entries and "scheme" not in value.entries:
            return _read_object(value, registry, problems, files)
        if PROGRAM in value.entries and "scheme" not in value.entries:
            return _read_program(value, registry, problems, files)
        if "scheme" not in value.entries:
            raise Wrong(value.mark, _without_scheme(value, registry))
        name_value, given = SchemeKeys.from_mapping(value).scheme or value, value
    mark = name_value.mark.at(value.mark.path)
    if not isinstance(name_value, Scalar) or name_value.is_null:
        raise Wrong(mark, "must be the name of a scheme; narrows schemes lists them")
    name = name_value.text
    if _is_program(name):
        return _read_program(value, registry, problems, files)
    params: tuple[Param, ...] = ()
    if name in registry.schemes or name in registry.bpf:
        params = (registry.schemes.get(name) or registry.bpf[name]).params
    elif not (name == UDP and datagrams):
        _check_kernel_name(mark, name, registry)
    entry = registry.schemes.get(name)
    profile = _read_profile(given, entry, problems)
    transport = _read_transport(given, entry, registry, problems)
    if profile:
        params = tuple(_with_default(param, profile) for param in params)
    beside = ("scheme", PROFILE, TRANSPORT, NAME)
    context = Context(problems, files=files, models=True)
    model = entry.model.name if entry and entry.model else None
    choice = None
    if model and isinstance(written := given.entries.get(model), Sequence):
        choice = choose(written, name, files)
        given = Mapping(given.mark, {**given.entries, model: choice.model}, given.key_marks)
    values = read_params(given, params, name, context, ignore=beside)
    digest = Values(values).digest(model) if model else None
    # A scheme may need no model; where one is required or can't be read, that is a problem already.
    is_optional = model not in given.entries and not any(
        each.required for each in params if each.name == model
    )
    if model and (digest if values[model] else is_optional):
        # The core checks whether the model has the right kind and is complete, or is needed.
        content = {digest: files.contents[digest]} if digest else {}
        if refusal := registry.scheme_refusal(name, values, content):
            at = given.entries.get(model, name_value)
            problems.add(at.mark.at(value.mark.below(model)), refusal, is_of_file=True)
    why = choice.describe(is_ours=Values(values).has_own_model) if choice else None
    if why is not None:
        files.choices.append(why)
    media = entry is not None and entry.media
    of_profile = dict(profile.transport) if profile else {}
    named = _read_name(given, name, registry, problems)
    label, *longer = [named] if named else _labels(name, given, model, values)
    return Scheme(
        name,
        values,
        label,
        transport=transport,
        profile=of_profile,
        longer=tuple(longer),
        media=media,
        choice=choice,
        why=why,
    )


def _without_scheme(value: Mapping, registry: Registry) -> str:
    """The problem of a scheme with parameters but without a name."""
    kernel = value.entries.get(KERNEL_PREFIX.rstrip(":"))
    if isinstance(kernel, Scalar):
        name = f"{KERNEL_PREFIX}{shorten(kernel.text)}"
        return f"the kernel's schemes are one word, without a space after the colon: {name}"
    named = next((key for key in value.entries if key in registry.schemes), None)
    example = f"{{scheme: {named}, ...}}" if named else "{scheme: cubic, beta: 0.7}"
    return f"needs the key scheme, such as {example}"


def _check_kernel_name(mark: Mark, name: str, registry: Registry) -> None:
    """Refuses a scheme name that is not ours unless the kernel may have it."""
    if name == UDP:
        text = (
            "udp is for traffic of datagrams, such as {traffic: {cbr: 20 Mbit/s}}, which no scheme governs;"
        )
        raise Wrong(mark, f"{text} write it in a flow with such traffic")
    if name.startswith(KERNEL_PREFIX):
        if _KERNEL_NAME.fullmatch(name.removeprefix(KERNEL_PREFIX)):
            return
        text = "is not a kernel scheme; write linux: and the kernel's name, such as linux:cubic"
        raise Wrong(mark, f'"{shorten(name)}" {text}')
    known = [*registry.schemes, *registry.bpf, *(KERNEL_PREFIX + known for known in registry.schemes)]
    if ":" in name:
        from narrows.scenario.programs import store

        known += store.schemes()
    file, _, variant = name.partition(":")
    if file.endswith((".yaml", ".yml")):
        more = f", variant: {variant}" if variant else ""
        text = f"the manifest of a program is named by its file: {{program: {file}{more}}}"
        raise Wrong(mark, f'"{shorten(name)}" is not a scheme; {text}')
    others = HABITS["schemes"].get(name.lower())
    hint = f"; did you mean {others}?" if others else did_you_mean(name, known)
    if not hint and name.startswith(BPF_PREFIX):
        hint = f"; known: {', '.join(registry.bpf)}, and {{bpf: FILE}} for a program of your own"
    hint = (
        hint
        or f"; known: {', '.join(registry.schemes)}, linux:NAME, bpf:NAME, PROGRAM:VARIANT and pantheon:PATH"
    )
    raise Wrong(mark, f'unknown scheme "{shorten(name)}"{hint}')


def with_settings(scheme: Scheme, written: dict[str, object], registry: Registry) -> Scheme:
    """The scheme with all settings of the transport for its flows: those of its profile, then those `written`
    in the scenario for all flows, then its own; later ones override earlier ones.
    """
    entry = registry.schemes.get(scheme.name)
    if entry is None:
        return scheme
    # The other settings apply to every flow anyway.
    known = {param.name for param in transport_of(entry, registry)} & {*entry.transport, *scheme.profile}
    general = {name: value for name, value in written.items() if name in known}
    return replace(scheme, transport={**scheme.profile, **general, **scheme.transport}, profile={})


def _with_model(value: Mapping, registry: Registry) -> Mapping:
    """`{indigo: indigo-1-32}` in full: `{scheme: indigo, model: indigo-1-32}`."""
    short = [key for key in value.entries if (entry := registry.schemes.get(key)) and entry.model]
    if "scheme" in value.entries or not short:
        return value
    name = short[0]
    if len(short) > 1:
        text = f"models of {any_of(short)} are named, and a scheme has one; keep one of these keys"
        raise Wrong(value.key_marks[short[1]], text.replace(" or ", " and "))
    model = registry.schemes[name].model
    assert model is not None
    if model.name in value.entries:
        text = f"the model is given twice, here and as {name}; keep one of the two"
        raise Wrong(value.key_marks[model.name], text)
    entries: dict[str, Node] = {"scheme": Scalar(value.key_marks[name], name)}
    marks = {"scheme": value.key_marks[name]}
    for key, mark, item in value:
        entries[model.name if key == name else key] = (
            item.copy(value.mark.below(model.name)) if key == name else item
        )
        marks[model.name if key == name else key] = mark
    return Mapping(value.mark, entries, marks)


def missing_model(params: dict[str, object]) -> str | None:
    """The name of a model among the parameters of a scheme that is not installed."""
    for value in params.values():
        if isinstance(value, dict) and value.get("sha256", "") is None:
            return str(value["name"])
    return None


def _with_default(param: Param, profile: Profile) -> Param:
    if param.name not in profile.params:
        return param
    return structs.replace(param, default=profile.params[param.name], required=False)


def _read_profile(given: Mapping, entry: Entry | None, problems: Problems) -> Profile | None:
    """The profile that is requested by name."""
    written = given.entries.get(PROFILE)
    if written is None:
        return None
    known = entry.profiles if entry else {}
    if not known:
        problems.add(given.key_marks[PROFILE], "this scheme has no profiles; remove it")
        return None
    if not isinstance(written, Scalar) or written.is_null:
        kind = {Sequence: "a list", Mapping: "keys with values"}.get(type(written), "nothing")
        problems.add(written.mark, f"must be one name, not {kind}; known: {', '.join(known)}")
        return None
    name = written.text
    if name not in known:
        text = f'"{shorten(name)}" is not one of {", ".join(known)}{did_you_mean(name, list(known))}'
        problems.add(written.mark, text)
        return None
    return known[name]


def _read_name(given: Mapping, scheme: str, registry: Registry, problems: Problems) -> str | None:
    """The display name of the scheme in results, in place of its name and parameters."""
    written = given.entries.get(NAME)
    if written is None:
        return None
    otherwise = f"must be a name of at most {LONGEST_NAME} letters, such as name: gentle"
    with problems.note():
        text = read_label(written, otherwise, LONGEST_NAME)
        if text != scheme and (text.startswith((KERNEL_PREFIX, BPF_PREFIX)) or text in registry.schemes):
            raise Wrong(written.mark, f'"{shorten(text)}" is another scheme; choose a name of your own')
        return text
    return None


def _read_transport(given: Mapping, entry: Entry | None, registry: Registry, problems: Problems) -> Params:
    """The written transport settings for this scheme only."""
    written = given.entries.get(TRANSPORT)
    if written is None:
        return {}
    if entry is None:
        problems.add(given.key_marks[TRANSPORT], "only native schemes run over Narrows' transport; remove it")
        return {}
    mapping = problems.expect_mapping(written, "{initial_window: 4 packets}")
    if mapping is None:
        return {}
    known = transport_of(entry, registry)
    whose = f"the transport of {entry.name}" if entry.media else "the transport"
    values = read_params(mapping, known, whose, Context(problems))
    check_settings(mapping, values, problems)
    return {name: value for name, value in values.items() if name in mapping.entries}


def check_settings(mapping: Mapping, values: Params, problems: Problems) -> None:
    """Refuses combinations of transport settings that exclude each other."""
    if Values(values).flag("sack") is not False:
        return
    for name, unset in (("acks_per_rtt", 0), ("sack_reach", 0), ("reliable", True)):
        if name in mapping.entries and values.get(name) != unset:
            text = "needs selective acknowledgements; remove it, or remove sack: false"
            problems.add(mapping.key_marks[name], text)


def transport_of(entry: Entry, registry: Registry) -> tuple[Param, ...]:
    """The settings of the transport that affect a native scheme."""
    every = registry.transport
    return tuple(param for param in every if param.name in FOR_MEDIA) if entry.media else every


def _labels(name: str, given: Mapping, model: str | None, values: Params) -> list[str]:
    """The scheme with its written settings; the longer labels are for when another model has the
    same name.
    """
    named = given.entries.get(model) if model else None
    words = _model_words(named.text, model, values) if model and isinstance(named, Scalar) else ("",)
    labels = []
    for word in words:
        parts = [name]
        for key, _, item in given:
            if key not in ("scheme", NAME):
                parts += [f"{key}={word}"] if word and key == model else _label_parts(key, item)
        labels.append(" ".join(parts))
    return labels


def _model_words(text: str, model: str, values: Params) -> tuple[str, str, str]:
    """Variants of a model's name in a label: its name, with its folder, with the hash of its content."""
    path = PurePath(text)
    name = path.stem if "/" in text else text
    digest = Values(values).digest(model) or ""
    return name, f"{path.parent.name}/{name}" if path.parent.name else name, f"{name}@{digest[:8]}"


def _label_parts(key: str, value: Node) -> list[str]:
    """A key and its value in the label of a scheme."""
    if key == TRANSPORT and isinstance(value, Mapping):
        return [f"{name}={_plain(item)}" for name, _, item in value]
    return [f"{key}={_plain(value)}"]


def _read_object(value: Mapping, registry: Registry, problems: Problems, files: Files) -> Scheme | None:
    """A congestion control in an object file; the scheme has the name inside it."""
    for key, mark, _ in value:
        if key not in (BPF_FILE, NAME):
            text = f"a program in an object file has no parameters, so {shorten(key)} can't be set; remove it"
            problems.add(mark, text)
    written = value.entries[BPF_FILE]
    if not isinstance(written, Scalar) or written.is_null or not written.text:
        problems.add(written.mark, "must be the path of an object file such as my_cc.bpf.o")
        return None
    try:
        file = files.read_object(written)
        name = BPF_PREFIX + registry.object_name(files.contents[file.sha256])
    except DataError as error:
        problems.add(written.mark, str(error), is_of_file=True)
        return None
    except ValueError as error:
        problems.add(written.mark, f"{file.name}: {error}", is_of_file=True)
        return None
    return Scheme(name, {}, _read_name(value, name, registry, problems) or name, file)


def _is_program(name: str) -> bool:
    """True if a scheme has the form `NAME:variant` and a program of that name exists, or is
    `pantheon:PATH`.
    """
    if ":" not in name:
        return False
    from narrows.scenario.programs import store, wrapper

    if wrapper.is_wrapper(name):
        return True
    return store.is_name(name) and name.partition(":")[0] in {
        program.name for program in store.list_programs()
    }


def _read_program(value: Node, registry: Registry, problems: Problems, files: Files) -> Scheme:
    """An external program, by `NAME:variant` or by its manifest."""
    from narrows.scenario.programs import scheme as programs

    program, variant = programs.program_of(value, files.base_of(value))
    name = f"{program.name}:{variant.name}"
    beside = ("scheme", PROGRAM, programs.VARIANT, NAME)
    values = programs.values_of(value, program, variant, beside)
    given = value if isinstance(value, Mapping) else Mapping(value.mark)
    files.note_program(value, program.path)
    label = [name, *(f"{key}={_plain(item)}" for key, _, item in given if key not in beside)]
    return Scheme(
        name,
        {},
        _read_name(given, name, registry, problems) or " ".join(label),
        program=programs.plan(program, variant, values),
    )


def _plain(value: Node) -> str:
    return value.text.replace(" ", "") if isinstance(value, Scalar) else "?"


def read_schemes(value: Node, registry: Registry, problems: Problems, files: Files) -> list[Scheme]:
    """The list of schemes under test."""
    if not isinstance(value, Sequence) or not value.items:
        problems.add(value.mark, "must be a list of schemes such as [cubic, reno]")
        return []
    pairs: list[tuple[Scheme, Node]] = []
    for item in value.items:
        scheme = read_scheme(item, registry, problems, files=files)
        if scheme is not None:
            pairs.append((scheme, item))
    pairs = _without_doubles(pairs, files)
    schemes: list[Scheme] = []
    by_label: dict[str, Scheme] = {}
    apart = distinguish_models([scheme for scheme, _ in pairs])
    for scheme, (_, item) in zip(apart, pairs, strict=True):
        same = by_label.get(scheme.label)
        by_label.setdefault(scheme.label, scheme)
        if same is not None and (scheme.object_file, scheme.program) != (same.object_file, same.program):
            text = f"another program is called {scheme.label} as well; set a different name: for one of them"
            problems.add(item.mark, text)
        elif same is not None and isinstance(item, Mapping) and NAME in item.entries:
            text = f"another scheme is called {scheme.label} as well; give one of them another name"
            problems.add(item.entries[NAME].mark, text)
        elif same is not None:
            problems.add(
                item.mark, f"{scheme.label} is in the list already; remove it (runs: repeats a scheme)"
            )
        schemes.append(scheme)
    return schemes


def _without_doubles(pairs: list[tuple[Scheme, Node]], files: Files) -> list[tuple[Scheme, Node]]:
    """The schemes without those that run the same as another one, and whose model came from a list. The
    installed models decide that, not the author, so it is not an error.
    """
    first: dict[str, Scheme] = {}
    for scheme, _ in sorted(pairs, key=lambda pair: pair[0].choice is not None):
        first.setdefault(_identity(scheme), scheme)
    kept, told, void = [], [], set()
    for scheme, item in pairs:
        same = first[_identity(scheme)]
        if scheme.choice is None or same is scheme:
            kept.append((scheme, item))
        else:
            void.add(scheme.why)
            told.append(scheme.choice.describe_double(same.label))
    files.choices = [note for note in files.choices if note not in void] + told
    return kept


def _identity(scheme: Scheme) -> str:
    """The kind, name and settings that determine the runs of a scheme."""
    return repr(replace(scheme, label="", longer=(), choice=None, why=None))


def distinguish_models(schemes: list[Scheme]) -> list[Scheme]:
    """The schemes, with longer labels if several models have the same name."""
    for step in range(2):
        models: dict[str, list[Params]] = {}
        for scheme in schemes:
            models.setdefault(scheme.label, []).append(scheme.params)
        schemes = [
            replace(scheme, label=scheme.longer[step])
            if scheme.longer and any(params != scheme.params for params in models[scheme.label])
            else scheme
            for scheme in schemes
        ]
    return schemes
