"""Compares all models as arrays with River's: ``python -m tests.forest``.

Every kind, with every set of parameters, learns every stream; each prediction, each error, the
trees and the random numbers must be the same.
"""

from multiprocessing import Pool
from typing import Annotated

import typer

from tests.forest.models import CASES, KINDS, learn_both, pair, stream_of, summary
from tests.forest.streams import STREAMS


def main(
    records: Annotated[int, typer.Option(help="Records of each stream.")] = 1500,
    processes: Annotated[int, typer.Option(help="Processes that share the work.")] = 2,
) -> None:
    """Compare all models as arrays with River's."""
    cases = [(*case, stream, records) for case in CASES for stream in STREAMS]
    with Pool(processes) as pool:
        found = pool.imap_unordered(_differs, cases, chunksize=4)
        differing = [each for each in found if each is not None]
    for each in differing:
        print(each)
    print(
        f"{len(KINDS)} kinds, {len(CASES)} sets of parameters, {len(STREAMS)} streams: "
        f"{len(cases)} models, {len(cases) * records:,} records, {len(differing)} differ"
    )
    raise typer.Exit(bool(differing))


def _differs(case: tuple[str, str, str, int]) -> str | None:
    """Return which combination differs, and how; None if it does not."""
    kind, name, stream, records = case
    parameters = KINDS[kind][3][name]
    try:
        river, ours = learn_both(
            *pair(kind, parameters), stream_of(kind, stream, records, parameters)
        )
        assert summary(ours) == summary(river), "the trees"
    except AssertionError as error:
        return f"{kind}, {name}, {stream}: {str(error).splitlines()[0]}"
    return None


if __name__ == "__main__":
    typer.run(main)
