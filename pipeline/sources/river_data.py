"""Reads observations from a River data set that needs no download."""

import inspect
from collections import deque
from collections.abc import Generator, Iterable, Iterator
from contextlib import closing
from itertools import islice
from typing import Any
from urllib.parse import parse_qsl

import orjson

from fluxplain.config import Config
from fluxplain.sources.source import Source, SourceError, feature, finite, label

RIVER = "river:"


def open_river(source: str, config: Config, limit: int | None) -> Source:
    """Return the observations of a data set; see :func:`fluxplain.sources.open_source`."""
    from river.datasets import base  # noqa: PLC0415  slow, and CSV files do not need it

    name, _, query = source.removeprefix(RIVER).partition("?")
    params = _parameters(source, query)
    factory = _river_class(source, name)
    known = inspect.signature(factory).parameters
    for param in params:
        if param not in known:
            allowed = ", ".join(known) or "none"
            raise SourceError(f"{source}: {name} has no parameter {param!r}; it has: {allowed}")
    seeds = [param for param in known if param.split("_")[0] == "seed"]
    params = dict.fromkeys(seeds, config.seed) | params

    def samples() -> Generator[tuple[dict[Any, Any], Any], None, None]:
        # errors come from the parameters, which the user gave
        try:
            data = iter(factory(**params))
            try:
                yield from islice(data, limit)
            finally:
                if issubclass(factory, base.FileDataset):
                    # read to the end, where River closes the file; none has over 50,000 records
                    deque(data, maxlen=0)
        except Exception as error:
            raise _failed(source, error) from error

    try:
        size = factory(**params).n_samples
    except Exception as error:
        raise _failed(source, error) from error
    with closing(samples()) as first:
        _check_sample(source, next(first, None), config)
    total = limit if size is None else size if limit is None else min(size, limit)
    return Source(source, total, lambda: _encode(samples(), config))


def _failed(source: str, error: Exception) -> SourceError:
    reason = " ".join(str(error).split())
    return SourceError(f"{source} failed: {type(error).__name__}: {reason}")


def _parameters(source: str, query: str) -> dict[str, bool | int | float | str]:
    try:
        pairs = parse_qsl(query, keep_blank_values=True, strict_parsing=True) if query else []
    except ValueError:
        raise SourceError(f"{source}: write parameters as ?name=value&name=value") from None
    params = {name: _literal(text) for name, text in pairs}
    if len(params) != len(pairs):
        raise SourceError(f"{source} gives a parameter twice")
    return params


def _literal(text: str) -> bool | int | float | str:
    if text.lower() in {"true", "false"}:
        return text.lower() == "true"
    try:
        return int(text)
    except ValueError:
        return finite(text)


def _river_class(source: str, name: str) -> Any:
    from river import datasets  # noqa: PLC0415  as above
    from river.datasets import base, synth  # noqa: PLC0415

    found = {
        each: value
        for module in (datasets, synth)
        for each, value in vars(module).items()
        if inspect.isclass(value) and issubclass(value, base.Dataset)
    }
    if name not in found:
        local = sorted(n for n, each in found.items() if not issubclass(each, base.RemoteDataset))
        raise SourceError(f"{source}: River has no data set {name!r}; it has: {', '.join(local)}")
    if issubclass(found[name], base.RemoteDataset):
        raise SourceError(f"{source} would be downloaded: download it, and give it as a CSV file")
    return found[name]


def _check_sample(source: str, sample: tuple[dict[Any, Any], Any] | None, config: Config) -> None:
    if sample is None:
        return
    names = [str(name) for name in sample[0]]
    for name in config.features:
        if name not in names:
            listed = ", ".join(names)
            raise SourceError(f"{source} has no feature {name!r}; it has: {listed}")
    if isinstance(sample[1], dict):
        raise SourceError(f"{source} has several labels ({', '.join(sample[1])}): one is needed")


def _encode(samples: Iterable[tuple[dict[Any, Any], Any]], config: Config) -> Iterator[bytes]:
    features, kind = config.features, config.label.type
    for x, y in samples:
        values = {str(name): value for name, value in x.items()}
        record: dict[str, Any] = {
            "x": {f: feature(values[f], k) for f, k in features.items() if f in values}
        }
        if y is not None and kind != "none":
            record["y"] = label(y, kind)
        yield orjson.dumps(record)
