"""Recorded observations from a CSV or Parquet file, or a River data set.

Each observation is the JSON that a producer would send to the topic ``features``: ``x`` and, with a
label, ``y``. Values that do not fit the configuration are passed on unchanged, so that the
pipeline's own validation names the problem.
"""

from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import replace

import orjson

from fluxplain.config import Config
from fluxplain.schemas.late_label import LabelValue
from fluxplain.sources.csv_file import open_csv
from fluxplain.sources.river_data import RIVER, open_river
from fluxplain.sources.source import Columns, Source, SourceError, is_csv, is_parquet

__all__ = ["Columns", "Source", "SourceError", "open_source", "with_label_delay"]


FEATURES_ONLY = Columns()


def open_source(
    source: str, config: Config, columns: Columns = FEATURES_ONLY, *, limit: int | None = None
) -> Source:
    """Return the observations of a file or a River data set.

    `source` is the path of a ``.csv``, ``.tsv`` or ``.txt`` file, also with ``.gz`` (header row,
    UTF-8; see :mod:`fluxplain.sources.dialect`), or of a ``.parquet`` file; or
    ``river:NAME?parameter=value&…``. A synthetic data set without a seed gets ``config.seed``.
    `columns` name those of a file for label, id and time; the label's is by default
    ``config.label.column``. `limit` is the maximum number of observations.

    Raises SourceError if there is no such source, or it lacks a feature or the label; iterating
    raises it too, if the source is damaged.

    Examples
    --------
    >>> from fluxplain.config import Config
    >>> config = Config(
    ...     features={"age": "numeric", "car": "categorical"},
    ...     label={"type": "boolean"},
    ...     model={"factory": "river.dummy:NoChangeClassifier"},
    ... )
    >>> source = open_source("river:Agrawal?classification_function=1", config, limit=2)
    >>> source.total, *source
    (2, b'{"x":{"age":21,"car":8},"y":false}', b'{"x":{"age":25,"car":14},"y":false}')
    """
    if limit is not None and limit < 0:
        raise SourceError(f"limit is {limit}, but must be at least 0")
    if columns.label is not None and config.label.type == "none":
        raise SourceError(
            f"the label is {columns.label!r}, but label.type is 'none': there is no label"
        )
    if source.startswith(RIVER):
        for use, name in columns.names.items():
            raise SourceError(
                f"{source}: the column {name!r} is for the {use}, but a River data set has "
                "features and its own label only: name no column"
            )
        return open_river(source, config, limit)
    columns = replace(columns, label=columns.label or config.label.column)
    if is_csv(source):
        return open_csv(source, config, columns, limit)
    if is_parquet(source):
        from fluxplain.sources.parquet_file import open_parquet  # noqa: PLC0415  loads Arrow

        return open_parquet(source, config, columns, limit)
    raise SourceError(
        f"{source} is not a source: give a .csv, .tsv, .txt, .csv.gz or .parquet file, or "
        f"{RIVER}NAME"
    )


def with_label_delay(values: Iterable[bytes], delay: int) -> Iterator[bytes | LabelValue]:
    """Yield observations without their labels, and each label `delay` observations later.

    An observation without an ``id`` gets its number as id. Other values are passed on unchanged.

    Examples
    --------
    >>> for value in with_label_delay([b'{"x":{"a":1},"y":2}', b'{"x":{"a":3},"y":4}'], 1):
    ...     print(value)
    b'{"x":{"a":1},"id":0}'
    b'{"x":{"a":3},"id":1}'
    LabelValue(value=b'{"id":0,"y":2}')
    LabelValue(value=b'{"id":1,"y":4}')
    """
    waiting: deque[tuple[int, LabelValue]] = deque()
    for i, value in enumerate(values):
        fields = orjson.loads(value)
        if isinstance(fields, dict) and "x" in fields and "y" in fields:
            label = {"id": fields.setdefault("id", i), "y": fields.pop("y")}
            waiting.append((i + delay, LabelValue(orjson.dumps(label))))
            yield orjson.dumps(fields)
        else:
            yield value
        while waiting and waiting[0][0] <= i:
            yield waiting.popleft()[1]
    for _, label_value in waiting:
        yield label_value
