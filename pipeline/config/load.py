"""Loads the settings and checks the code and files that they name, before anything starts."""

import inspect
import os
import re
import tomllib
from pathlib import Path
from typing import Any, Literal, get_args

from pydantic import ValidationError
from pydantic_settings import SettingsError

from fluxplain import evaluate, explain
from fluxplain.config.base import ENV_PREFIX, ConfigError, meant, variable
from fluxplain.config.client_keys import check_with_librdkafka
from fluxplain.config.explain_settings import MINUS_SCORE
from fluxplain.config.messages import explain_errors, secrets_of
from fluxplain.config.replica import Role
from fluxplain.config.root import Config
from fluxplain.schemas.methods import Watched
from fluxplain.schemas.wording import printable

LONGEST_LINE = 200
"""Characters shown of a line that is not TOML."""

Caller = Role | Literal["reader"]
"""A process that uses only part of the settings."""


def load_config(path: Path, role: Caller | None = None) -> Config:
    """Return the validated settings of a TOML file and the environment.

    Code and files that the role does not use are not loaded, see :func:`check_references`; by
    default all are. A ConfigError has one line per wrong setting: key, value, and what is allowed.
    """
    for name in os.environ:
        table = name.removeprefix(ENV_PREFIX).partition("__")[0].lower()
        if name.startswith(ENV_PREFIX) and table not in Config.model_fields:
            raise ConfigError(
                f"the environment variable {name} is not a setting: {ENV_PREFIX} must be followed "
                f"by one of {', '.join(each.upper() for each in Config.model_fields)}"
            )
    fields = _parsed(path)
    for table, values in fields.items():
        for key in secrets_of(table):
            if isinstance(values, dict) and key in values:
                raise ConfigError(
                    f"{table}.{key} is a secret and must not be in {path}: set the environment "
                    f"variable {variable(table, key)}, or {table}.{key}_file"
                )
    try:
        config = Config(**fields)
    except ValidationError as error:
        raise ConfigError(explain_errors(error)) from None
    except SettingsError as error:
        raise ConfigError(f"the environment: {error}") from None
    except RecursionError:
        raise ConfigError("the environment: a variable is nested too deeply") from None
    try:
        check_with_librdkafka(config.kafka.client)
    except ValueError as error:
        raise ConfigError(str(error)) from None
    check_references(config, role)
    return config


def _parsed(path: Path) -> dict[str, Any]:
    text = ""
    try:
        text = path.read_text(encoding="utf-8")
        return tomllib.loads(text)
    except OSError as error:
        hint = "; `fluxplain init` writes one" if isinstance(error, FileNotFoundError) else ""
        raise ConfigError(f"cannot read {path}: {error.strerror}{hint}") from None
    except UnicodeDecodeError:
        raise ConfigError(f"{path} is not UTF-8 text") from None
    except ValueError as error:  # also for a number that is too long
        raise ConfigError(f"{path} is not TOML: {error}{_line_of(error, text)}") from None
    except RecursionError:
        raise ConfigError(f"{path} is not TOML that can be read: it is nested too deeply") from None


def _line_of(error: ValueError, text: str) -> str:
    """Return the line of a mistake in TOML, and the remedy of the usual one."""
    found = re.search(r"at line (\d+)", str(error))
    lines = text.splitlines()
    if found is None or int(found[1]) > len(lines):
        return ""
    line = lines[int(found[1]) - 1].strip()
    secret = {key for table in Config.model_fields for key in secrets_of(table)}
    is_setting = re.match(r"\[|[\w.\- ]+=\s*[^\s=]", line) is not None
    if not is_setting or not secret.isdisjoint(re.findall(r"\w+", line)):
        return ""  # never show what may be a secret
    needs_quotes = re.fullmatch(r"[^=]+=\s*([A-Za-z_][^\s\"'#]*)\s*(#.*)?", line)
    remedy = f': texts need quotes, as in "{needs_quotes[1]}"' if needs_quotes else ""
    return f": {printable(line[:LONGEST_LINE])}{remedy}"


def check_references(config: Config, role: Caller | None = None) -> None:
    """Load the code and files that a role uses; raise ``ConfigError`` for a mistake.

    The explainer uses the loss, drift the detectors, the model everything; join and readers of
    topics use nothing. So roles start sooner, and run where the user's model is not installed.
    """
    streams = {f"streams.{each}.": config.of_stream(each) for each in config.streams}
    for prefix, settings in {"": config, **streams}.items():
        try:
            if role in {None, "model", "explainer"}:
                _check_loss(settings)
                settings.learned()
            if role in {None, "model", "drift"}:
                _check_detectors(settings)
            if role in {None, "model"}:
                _check_model(settings)
        except ConfigError as error:
            raise ConfigError(f"{prefix}{error}") from error.__cause__


def _check_loss(config: Config) -> None:
    name, label = config.explain.loss, config.label.type
    allowed = [each for each in explain.LOSSES if each.endswith("_error") == (label == "number")]
    if label == "none":
        allowed = [MINUS_SCORE]
    if ":" not in name and name not in allowed:
        raise ConfigError(
            f"explain.loss is {name!r}, but for label.type = {label!r} must be one of "
            f"{', '.join(allowed)}, or module:function{meant(name, allowed)}"
        )
    loss = config.loss()
    try:
        inspect.signature(loss).bind("label", "output")
    except (TypeError, ValueError):  # ValueError: built-in functions may have no signature
        raise ConfigError(
            f"explain.loss = {name!r} must be a function of (label, output)"
        ) from None


def _check_detectors(config: Config) -> None:
    try:
        config.drift.check_parameters()
    except ValueError as error:
        raise ConfigError(f"drift.{error}") from None
    for method in get_args(Watched):
        settings = config.detector(method)
        has_errors = method == "loss" and config.explain.loss == "zero_one"
        try:
            if settings is not None:
                settings.check(has_errors=has_errors)
        except ValueError as error:
            raise ConfigError(f"drift.{method}: {error}") from error


def _check_model(config: Config) -> None:
    from fluxplain.models.model_checks import checked  # noqa: PLC0415  loads River

    settings = config.model
    model = config.make_own_model()
    try:
        asked = checked(
            model, config.make_own_model, label=config.label.type, learns=settings.learn
        )
        try:
            evaluate.choose(asked, settings.evaluator)
        except TypeError as error:
            raise ConfigError(
                f"model.evaluator is {settings.evaluator!r}, but {error}: use 'auto' or 'generic'"
            ) from None
    except ConfigError:
        raise
    except ValueError as error:
        raise ConfigError(f"{settings.origin} gives a {error}") from error
    except Exception as error:  # a model that lacks what River's models have
        raise ConfigError(
            f"{settings.origin} gives a {type(model).__name__} whose kind cannot be determined: "
            f"{error}"
        ) from error
