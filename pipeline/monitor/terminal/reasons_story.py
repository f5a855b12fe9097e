"""Shows the reasons for one output in the terminal."""

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from fluxplain.monitor.terminal.sparklines import bar, plain_table
from fluxplain.schemas import Reasons
from fluxplain.schemas.record import Value
from fluxplain.schemas.times import readable
from fluxplain.schemas.wording import measured, number, printable

BAR_CELLS = 20

MOST = 4
"""Most reasons in words."""

HOW = {
    "structure": "exact, from the structure of the model",
    "subsets": "exact, from all sets of features",
    "permutations": "estimated from permutations of the features",
}


def render_reasons(reasons: Reasons, note: str) -> RenderableType:
    """Render what each feature added to an output; 80 columns are enough.

    ``note`` tells where the reasons are from.
    """
    scale = max(abs(reasons.output), abs(reasons.base))
    what = "Output" if reasons.label is None else f"Probability of {reasons.label}"
    output, base = (number(each, scale) for each in (reasons.output, reasons.base))
    title = f"{what}: {output}; on average of recent observations {base}"
    way = f"Contributions are {HOW[reasons.way]}. The average and they sum to the output."
    inside = [name for name in reasons.missing or () if name not in reasons.names]
    imputed = f" Missing in groups, and replaced: {', '.join(inside)}." if inside else ""
    return Group(
        Text(_place(reasons), style="dim"),
        Text(printable(title), style="bold"),
        Text(),
        _table(reasons),
        Text(),
        Text(printable(f"{way}{imputed} {note}"), style="dim"),
    )


def sentence(reasons: Reasons) -> str:
    """Return the largest reasons in words.

    Examples
    --------
    >>> from fluxplain.schemas import Reasons
    >>> sentence(Reasons(
    ...     stream="features-0", seq=7, previous_seq=None, skipped=0, id=None, ts=None,
    ...     prediction=True, label=True, output=0.9, base=0.2, names=["amount", "hour"],
    ...     contributions=[0.8, -0.1], std_errors=[0.0, 0.0], values=[950, 3], rest=0.0,
    ...     way="structure",
    ... ))
    'amount = 950 raised it by 0.800, hour = 3 lowered it by 0.100'
    """
    scale = max(map(abs, reasons.contributions), default=0.0)
    rows = zip(_named(reasons), reasons.contributions, strict=True)
    said = ", ".join(
        f"{named} {'raised' if contribution > 0.0 else 'lowered'} it by "
        f"{number(abs(contribution), scale)}"
        for named, contribution in [*rows][:MOST]
        if contribution
    )
    return said or "no feature changed it"


def _place(reasons: Reasons) -> str:
    id_ = "" if reasons.id is None else f", id {reasons.id}"
    time = "" if reasons.ts is None else f", ts {readable(reasons.ts)}"
    return printable(f"{reasons.stream} seq {reasons.seq:,}{id_}{time}")


def _table(reasons: Reasons) -> Table:
    table = plain_table(right=2)
    table.add_column("feature", overflow="fold")
    table.add_column("adds", justify="right", no_wrap=True)
    table.add_column("", no_wrap=True)
    largest = max(map(abs, reasons.contributions), default=0.0)
    rows = zip(_named(reasons), reasons.contributions, reasons.std_errors, strict=True)
    for named, contribution, error in rows:
        style = "red" if contribution < 0.0 else "green"
        length = bar(abs(contribution), 0.0, largest, BAR_CELLS)
        known = None if reasons.way != "permutations" else error
        amount = measured(contribution, known, largest)
        signed = amount if contribution < 0.0 else f"+{amount}"
        table.add_row(printable(named), signed, Text(length, style=style))
    if reasons.rest:
        table.add_row("all others", f"{reasons.rest:+.3g}", "")
    return table


def _named(reasons: Reasons) -> list[str]:
    """Return the names with their values, or with what replaced missing ones."""
    missing = reasons.missing or ()
    rows = zip(reasons.names, reasons.values, strict=True)
    return [_with_value(name, value, is_missing=name in missing) for name, value in rows]


def _with_value(name: str, value: Value | None, *, is_missing: bool) -> str:
    if value is None:
        return name
    text = f"{value:.6g}" if isinstance(value, float) else str(value)
    return f"{name} (missing, replaced by {text})" if is_missing else f"{name} = {text}"
