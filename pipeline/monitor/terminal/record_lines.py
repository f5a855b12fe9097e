"""Formats each record as one line, for ``fluxplain tail``."""

import orjson

from fluxplain.schemas import Change, DeadLetter, Explanation, Prediction, Reasons, Record


def _error(std_error: float | None) -> str:
    return "" if std_error is None else f" ± {std_error:.2g}"


def line(record: Record) -> str:
    """Format a record as one line."""
    match record:
        case Prediction():
            label = "" if record.y is None else f"  y={record.y}"
            known = label if record.loss is None else f"{label}  loss={record.loss:.4g}"
            return f"{record.stream} seq {record.seq}  prediction={record.prediction}{known}"
        case Reasons():
            pairs = zip(record.names, record.contributions, strict=True)
            of = "" if record.label is None else f" of {record.label}"
            reasons = ", ".join(f"{name} {contribution:+.3g}" for name, contribution in pairs)
            return f"{record.stream} seq {record.seq}  output{of}={record.output:.4g}: {reasons}"
        case Explanation():
            signed = "" if record.signed is None else f", signed {record.signed:+.2g}"
            return (
                f"{record.stream} seq {record.seq}  {record.method} {record.feature} = "
                f"{record.value:.4g}{_error(record.std_error)}{signed} (alpha {record.alpha:g})"
            )
        case Change():
            return f"{record.stream} seq {record.seq}  {record.kind}: {record.detail}"
        case DeadLetter():
            return f"{record.topic}-{record.partition} offset {record.offset}  {record.reason}"
    return orjson.dumps(record).decode()
