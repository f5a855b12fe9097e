"""Formats each record as one line, for ``fluxplain tail``."""

import orjson

from fluxplain.schemas import Change, DeadLetter, Explanation, Prediction, Record


def _error(std_error: float | None) -> str:
    return "" if std_error is None else f" ± {std_error:.2g}"


def line(record: Record) -> str:
    """Format a record as one line."""
    match record:
        case Prediction():
            label = "" if record.y is None else f"  y={record.y}"
            known = label if record.loss is None else f"{label}  loss={record.loss:.4g}"
            return f"{record.stream} seq {record.seq}  prediction={record.prediction}{known}"
        case Explanation():
            return (
                f"{record.stream} seq {record.seq}  {record.method} {record.feature} = "
                f"{record.value:.4g}{_error(record.std_error)} (alpha {record.alpha:g})"
            )
        case Change():
            return f"{record.stream} seq {record.seq}  {record.kind}: {record.detail}"
        case DeadLetter():
            return f"{record.topic}-{record.partition} offset {record.offset}  {record.reason}"
    return orjson.dumps(record).decode()
