"""What more inner samples buy: how far iPFI and iSAGE are off, beside what they cost."""

import math
import statistics
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice

from river import forest

from fluxplain.baselines import expected_pfi
from fluxplain.evaluate import evaluator_for
from fluxplain.explain import IncrementalPFI, IncrementalSAGE
from fluxplain.explain.imputers import InnerSamples
from fluxplain.explain.parameter_checks import ALL
from tests.kit.command import Clock
from tests.measure.benchmarks.library_streams import agrawal
from tests.measure.benchmarks.timing import Figure, Run, Stopwatch

TRAINED = 5000

RESERVOIR = 100
"""Records that fill the reservoirs before the measured ones."""

MEASURED = 1000

SAMPLES: tuple[InnerSamples, ...] = (1, 5, 20, ALL)

SEEDS = 10

REFERENCES = 20
"""Runs of iSAGE whose mean is the reference: its own error is small beside that of one run."""

ALPHA = 1e-6
"""So small that an estimate is the plain mean over the records, as the reference is."""

Kind = type[IncrementalPFI] | type[IncrementalSAGE]

Values = Mapping[str, float]


def error_for_time(run: Run) -> Iterator[Figure]:
    """Measure the squared error of iPFI and iSAGE times the microseconds of a record.

    The forest is trained before and learns no more, and all runs explain the same 1,000 records
    with equal weights, so what is left is the error of sampling: root mean square over features
    and ten seeds. iPFI is compared with expected PFI: each record with every other one's values.
    iSAGE is compared with the mean of 20 other runs that take the whole reservoir; its error has
    the bias of few samples in it. The ratio is error² × µs by that of one inner sample: below 1,
    the samples are worth their price.
    """
    static = Static(run.clock)
    xs, ys = zip(*static.records, strict=True)
    expected = expected_pfi(None, xs, ys, [*xs[0]], evaluator=static.evaluator)
    for name, kind, reference in (
        ("iPFI, M", IncrementalPFI, expected),
        ("iSAGE, m", IncrementalSAGE, static.mean_sage()),
    ):
        watch = Stopwatch()
        errors = dict.fromkeys(SAMPLES, 0.0)
        for seed in range(SEEDS):
            for samples, values in static.values(kind, SAMPLES, seed, watch).items():
                errors[samples] += square_error(values, reference) / SEEDS
        yield from _figures(name, errors, {each: watch.microseconds(str(each)) for each in SAMPLES})


def _figures(
    name: str, errors: Mapping[InnerSamples, float], us: Mapping[InnerSamples, float]
) -> Iterator[Figure]:
    one = errors[1] * us[1]
    for samples, error in errors.items():
        yield Figure(
            f"{name} = {samples}, ARF-10 (static), agrawal (d = 9): error² × µs a record",
            f"{error * us[samples]:.3g} ({math.sqrt(error):.4f} in {us[samples]:,.0f} µs)",
            f"{one:.3g}",
            error * us[samples] / one,
        )


class Static:
    """A forest that learns no more, and the records that are explained."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._model = forest.ARFClassifier(n_models=10, seed=1)
        stream = agrawal()
        for x, y in islice(stream, TRAINED):
            self._model.learn_one(x, y)
        self._filling = list(islice(stream, RESERVOIR))
        self.records = list(islice(stream, MEASURED))
        self.evaluator = evaluator_for(self._model)

    def values(
        self, kind: Kind, samples: Sequence[InnerSamples], seed: int, watch: Stopwatch
    ) -> dict[InnerSamples, Values]:
        """Return the estimates for each number of inner samples, taking turns record by record."""
        features = list(self.records[0][0])
        explainers = {
            each: kind(
                self._model,
                features,
                alpha=ALPHA,
                reservoir_size=RESERVOIR,
                inner_samples=each,
                seed=seed,
                evaluator=self.evaluator,
            )
            for each in samples
        }
        for x, y in self._filling:
            for explainer in explainers.values():
                explainer.explain_one(x, y)
        for x, y in self.records:
            self._clock.progress(lambda: f"{kind.__name__}, seed {seed}")
            for each, explainer in explainers.items():
                watch.time(str(each), explainer.explain_one, x, y)
        return {each: explainer.values for each, explainer in explainers.items()}

    def mean_sage(self) -> Values:
        """Return the mean of runs that take the whole reservoir, with seeds of their own."""
        seeds = range(SEEDS, SEEDS + REFERENCES)
        runs = [self.values(IncrementalSAGE, (ALL,), i, Stopwatch())[ALL] for i in seeds]
        return {feature: statistics.fmean(each[feature] for each in runs) for feature in runs[0]}


def square_error(values: Values, reference: Values) -> float:
    return statistics.fmean((value - reference[f]) ** 2 for f, value in values.items())
