"""The options of the command line that settings declare."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import wraps
from typing import Annotated, Any, cast

import typer

from mugraph.commands.common import WrongUsage
from mugraph.protocol.settings import Declared, EngineSettings, TunerName, declared


def with_settings(command: Callable[..., int]) -> Callable[..., int]:
    """The command as typer is to see it: in place of its parameter `settings` it has the options of all settings."""
    options = {one.name: one for one in declared(EngineSettings) if one.setting.option[0]}

    @wraps(command)
    def with_options(**given: Any) -> int:
        values = {name: given.pop(name) for name in options}
        settings: dict[str, Any] = {
            name: not value if _negates(options[name]) else value for name, value in values.items()
        }
        for name, value in settings.items():
            allowed(name, value)
        return command(settings=EngineSettings(**settings), **given)

    parameters: list[inspect.Parameter] = []
    for parameter in inspect.signature(command, eval_str=True).parameters.values():
        if parameter.name == "settings":
            parameters += [_parameter(one) for one in options.values()]
        else:
            parameters.append(parameter)
    keyword = [parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY) for parameter in parameters]
    with_options.__signature__ = inspect.Signature(keyword, return_annotation=int)  # pyright: ignore[reportAttributeAccessIssue]
    with_options.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    return with_options


def allowed(name: str, value: object) -> object:
    """The value of the setting of this name in Python. Raises WrongUsage for one that it does not have."""
    setting = next(one.setting for one in declared(EngineSettings) if one.name == name)
    needed = setting.values.needed(value)
    if needed is not None:
        raise WrongUsage(f"{setting.option[0]} is {value!r}; it must be {needed}")
    return value


def tuner_named(name: str) -> TunerName:
    """Raises WrongUsage where there is none of this name, or a package is missing that it needs."""
    from mugraph.tune.tuners.choose import cannot

    tuner = cast("TunerName", allowed("tuner", name))
    why = cannot(tuner)
    if why is not None:
        raise WrongUsage(why)
    return tuner


def _parameter(one: Declared) -> inspect.Parameter:
    option, text = one.setting.option
    least = one.setting.values.schema.get("minimum")
    kind = cast("type[object]", type(one.default))
    default = False if _negates(one) else one.default
    annotation = Annotated[kind, typer.Option(option, min=least if isinstance(least, int | float) else None, help=text)]
    return inspect.Parameter(one.name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=annotation)


def _negates(one: Declared) -> bool:
    """--no-measure says that `measure` is False."""
    return one.setting.option[0].startswith("--no-")
