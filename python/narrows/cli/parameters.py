"""Commands of click from annotated functions, so that `mypy` checks how their values are used.

    def trace(file: Annotated[Path, argument()], rate: RateOptions, seed: Annotated[int, option()] = 1)

An option is named after its parameter unless `option` says otherwise. A parameter whose type is a dataclass
receives an instance: each field of the class is an option, so that commands can share options.
"""

from __future__ import annotations

import dataclasses
import inspect
import types
import typing
from collections.abc import Callable, Iterator, Mapping, Sequence
from enum import Enum
from pathlib import Path
from typing import Any, TypedDict, TypeVar, Unpack

import click

Shape = TypeVar("Shape", bound=click.Command)


#: The name of values whose declaration has none; click would write INTEGER RANGE.
_METAVARS = {int: "N", float: "NUMBER"}


class _How(TypedDict, total=False):
    """The words of a declaration. `min` and `max` limit numbers; `complete` returns the words that begin with
    what was typed."""

    help: str
    metavar: str
    min: float
    max: float
    hidden: bool
    show_default: bool
    complete: Callable[[str], list[str]]


@dataclasses.dataclass(frozen=True)
class _Declaration:
    """How an option or an argument appears on the command line."""

    is_option: bool
    names: tuple[str, ...]
    help: str = ""
    metavar: str | None = None
    min: float | None = None
    max: float | None = None
    hidden: bool = False
    show_default: bool = True
    complete: Callable[[str], list[str]] | None = None


@dataclasses.dataclass(frozen=True)
class _Parameter:
    """A parameter of a command, with the type of its value."""

    name: str
    type: Any
    default: Any
    declaration: _Declaration

    @property
    def is_list(self) -> bool:
        """Whether it may be repeated."""
        return typing.get_origin(self.type) is list

    @property
    def item_type(self) -> Any:
        """The type of the value, or of each value of a list."""
        return typing.get_args(self.type)[0] if self.is_list else self.type

    def read(self, values: Mapping[str, Any]) -> Any:
        """The value in the form that the function expects, from click's values by name."""
        value = values[self.name]
        if self.is_list and issubclass(self.item_type, Enum):
            return [self.item_type(word) for word in value] or self.default
        if self.is_list:
            return list(value) or self.default
        if value is not None and issubclass(self.item_type, Enum):
            return self.item_type(value)
        return value


@dataclasses.dataclass(frozen=True)
class _Options:
    """A parameter that receives a dataclass of options."""

    name: str
    type: Any
    fields: list[_Parameter]

    def read(self, values: Mapping[str, Any]) -> Any:
        """The instance, from click's values by name."""
        return self.type(**{field.name: field.read(values) for field in self.fields})


@dataclasses.dataclass(frozen=True)
class _ContextParameter:
    """A parameter that receives click's context."""

    name: str

    def read(self, _values: Mapping[str, Any]) -> click.Context:
        """The context of the command that runs."""
        return click.get_current_context()


def option(*names: str, **how: Unpack[_How]) -> Any:
    """Declares an option, for the annotation of a parameter."""
    return _Declaration(True, names, **how)


def argument(**how: Unpack[_How]) -> Any:
    """Declares a positional argument, for the annotation of a parameter."""
    return _Declaration(False, (), **how)


def build(
    function: Callable[..., None],
    shape: type[Shape],
    name: str | None = None,
    **settings: Any,
) -> Shape:
    """The click command that calls `function`, described by its docstring unless `help` is given."""
    settings.setdefault("help", inspect.cleandoc(function.__doc__ or ""))
    parameters = _read_signature(function)

    def call(**values: Any) -> None:
        function(**{parameter.name: parameter.read(values) for parameter in parameters})

    return shape(
        name=name or function.__name__.replace("_", "-"),
        callback=call,
        params=[_convert(parameter) for parameter in _flatten(parameters)],
        **settings,
    )


def _read_signature(function: Callable[..., None]) -> list[_Parameter | _Options | _ContextParameter]:
    hints = typing.get_type_hints(function, include_extras=True)
    parameters: list[_Parameter | _Options | _ContextParameter] = []
    for name, parameter in inspect.signature(function).parameters.items():
        hint = hints[name]
        if hint is click.Context:
            parameters.append(_ContextParameter(name))
        elif dataclasses.is_dataclass(hint):
            parameters.append(_Options(name, hint, _read_fields(hint)))
        else:
            parameters.append(_read_parameter(name, hint, parameter.default))
    return parameters


def _read_fields(options: Any) -> list[_Parameter]:
    hints = typing.get_type_hints(options, include_extras=True)
    return [
        _read_parameter(
            field.name,
            hints[field.name],
            inspect.Parameter.empty if field.default is dataclasses.MISSING else field.default,
        )
        for field in dataclasses.fields(options)
    ]


def _read_parameter(name: str, hint: Any, default: Any) -> _Parameter:
    kind, declaration = typing.get_args(hint)
    if isinstance(kind, types.UnionType) or typing.get_origin(kind) is typing.Union:
        kind = next(alternative for alternative in typing.get_args(kind) if alternative is not type(None))
    return _Parameter(name, kind, default, declaration)


def _flatten(parameters: Sequence[_Parameter | _Options | _ContextParameter]) -> Iterator[_Parameter]:
    for parameter in parameters:
        if isinstance(parameter, _Options):
            yield from parameter.fields
        elif isinstance(parameter, _Parameter):
            yield parameter


def _convert(parameter: _Parameter) -> click.Parameter:
    declaration = parameter.declaration
    required = parameter.default is inspect.Parameter.empty
    settings: dict[str, Any] = {
        "metavar": declaration.metavar or _METAVARS.get(parameter.item_type),
        "required": required,
        "help": declaration.help,
    }
    if not required and not parameter.is_list:
        default = parameter.default
        settings["default"] = default.value if isinstance(default, Enum) else default
    if declaration.complete is not None:
        complete = declaration.complete
        settings["shell_complete"] = lambda _context, _parameter, incomplete: complete(incomplete)
    if not declaration.is_option:
        nargs = -1 if parameter.is_list else 1
        return _Argument(
            [parameter.name],
            show_default=declaration.show_default,
            nargs=nargs,
            type=_click_type(parameter),
            **settings,
        )
    names = declaration.names or (f"--{parameter.name.replace('_', '-')}",)
    settings |= {"hidden": declaration.hidden, "show_default": declaration.show_default}
    if parameter.item_type is bool:
        return click.Option([parameter.name, *names], is_flag=True, **settings)
    return click.Option(
        [parameter.name, *names], multiple=parameter.is_list, type=_click_type(parameter), **settings
    )


def _click_type(parameter: _Parameter) -> click.ParamType[Any]:
    declaration, kind = parameter.declaration, parameter.item_type
    if issubclass(kind, Enum):
        return click.Choice([member.value for member in kind])
    if kind is Path:
        return click.Path(path_type=Path)
    limits = (declaration.min, declaration.max)
    if kind is int:
        low, high = (None if limit is None else int(limit) for limit in limits)
        return click.INT if limits == (None, None) else click.IntRange(low, high)
    if kind is float:
        return click.FLOAT if limits == (None, None) else click.FloatRange(*limits)
    return click.STRING


class _Argument(click.Argument):
    """An argument whose help shows its default, like that of an option."""

    def __init__(self, names: Sequence[str], *, show_default: bool, **settings: Any) -> None:
        super().__init__(names, **settings)
        self.show_default = show_default

    def get_help_record(self, ctx: click.Context) -> tuple[str, str]:
        """Called by the command line library to compose the help."""
        name, text = super().get_help_record(ctx)
        extra = "required" if self.required else ""
        # The library's mark of an absent default is true.
        if self.show_default and not self.required and self.nargs == 1 and self.default:
            extra = f"default: {self.default}"
        return name, f"{text}  [{extra}]" if extra else text
