"""What the model stage asks about an observation, for all methods in one go."""

import random
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain, islice
from typing import NamedTuple

from pipeline.config import Config
from pipeline.evaluate import Output, Value
from pipeline.explain.checks import check_warm_up
from pipeline.explain.questions import Row
from pipeline.explain.sampling.pdp import PDPGrid, pair_rows
from pipeline.explain.sampling.pfi import PFISampler
from pipeline.explain.sampling.sage import SAGEQuestion, SAGESampler
from pipeline.explain.smoothing import OutputMean
from pipeline.explain.storage import GeometricReservoir, make_reservoir
from pipeline.stages.metering import Work
from pipeline.stages.pairs import joined


class Points(NamedTuple):
    """The evaluation points of a feature or a pair.

    Attributes
    ----------
    published
        As an evaluation holds them.
    rows
        What is replaced at each.
    """

    published: list[Value]
    rows: list[Row]


@dataclass(frozen=True, slots=True)
class Question:
    """What is asked about one observation.

    Attributes
    ----------
    ipfi
        Feature or group → its replacements.
    isage
        The restricted inputs; None where iSAGE is not asked.
    ipdp
        Feature or pair → its evaluation points.
    """

    ipfi: dict[str, list[Row]]
    isage: SAGEQuestion | None
    ipdp: dict[str, Points]

    @property
    def replacements(self) -> list[Row]:
        """All perturbed inputs, in the order iPFI, iSAGE, iPDP."""
        return [
            *(replacement for own in self.ipfi.values() for replacement in own),
            *(self.isage.replacements if self.isage else ()),
            *(row for points in self.ipdp.values() for row in points.rows),
        ]

    @property
    def inputs(self) -> dict[Work, int]:
        """How many of the perturbed inputs each method asks about."""
        return {
            "ipfi": sum(map(len, self.ipfi.values())),
            "isage": len(self.isage.replacements) if self.isage else 0,
            "ipdp": sum(len(points.rows) for points in self.ipdp.values()),
        }

    def about(self, name: str) -> "Question":
        """Return what is asked for one of the features, groups and pairs."""
        return Question(
            ipfi={each: own for each, own in self.ipfi.items() if each == name},
            isage=self.isage.about([name]) if self.isage else None,
            ipdp={each: own for each, own in self.ipdp.items() if each == name},
        )


@dataclass(slots=True)
class Answers:
    """What concerns one feature, group or pair; empty or None where nothing was asked."""

    ipfi: list[Output]
    isage: tuple[Output, Output] | None
    ipdp_points: list[Value]
    ipdp: list[Output]


class Questions:
    """The samplers of the configured methods.

    Each method has random numbers of its own, so that switching one off changes no other. They
    do not depend on what is asked for.

    Parameters
    ----------
    config
        The settings.
    stream
        With ``config.seed`` it seeds the random numbers.
    explained
        Which of the features, groups and pairs to ask for.
    """

    def __init__(self, config: Config, stream: str, explained: Sequence[str]) -> None:
        methods, explain = config.explain.methods, config.explain
        categorical = [name for name, kind in config.features.items() if kind == "categorical"]
        players = config.players
        of = {
            method: [name for name in explained if method in config.methods_of(name)]
            for method in methods
        }
        self._explained = list(explained)
        self._names = of
        self._pairs = {name: pair for name, pair in config.pairs.items() if name in explained}
        self._features = [name for name in of.get("ipdp", ()) if name not in self._pairs]
        self._asks_for_all = set(of.get("isage", ())) == set(players.names)
        self._ipfi: PFISampler | None = None
        self._isage: SAGESampler | None = None
        self._ipdp: dict[str, PDPGrid] = {}

        def rng(name: str) -> random.Random:
            return random.Random(f"{config.seed}/{stream}/{name}")

        if of.get("ipfi"):
            pfi, source = explain.ipfi, rng("ipfi")
            self._ipfi = PFISampler(
                # one stored observation replaces any of the players; other draws are of each
                players.only(of["ipfi"]) if pfi.imputer == "interventional" else players,
                reservoir=make_reservoir(pfi.sampler, pfi.reservoir_size, source),
                imputer=pfi.imputer,
                categorical=categorical,
                warm_up=check_warm_up(pfi.warm_up, pfi.reservoir_size),
                inner_samples=pfi.inner_samples,
                rng=source,
            )
        if "isage" in methods:
            sage, source = explain.isage, rng("isage")
            self._isage = SAGESampler(
                players,
                reservoir=GeometricReservoir(sage.reservoir_size, source),
                imputer=sage.imputer,
                categorical=categorical,
                alpha=explain.alphas[0],
                warm_up=check_warm_up(sage.warm_up, sage.reservoir_size),
                inner_samples=sage.inner_samples,
                rng=source,
            )
        if "ipdp" in methods:
            pdp = explain.ipdp
            self._ipdp = {
                feature: PDPGrid(
                    pdp.grid_settings(),
                    categorical=feature in categorical,
                    rng=rng(f"ipdp/{feature}"),
                )
                for feature in dict.fromkeys([*self._features, *chain(*self._pairs.values())])
            }

    def go_on(self, before: Sequence["Questions"]) -> None:
        """Take over the samples of others, which together asked for the same or more."""
        if self._ipfi:
            players = self._ipfi.players  # what is asked for may have been shared differently
            self._ipfi = next((each._ipfi for each in before if each._ipfi), self._ipfi)
            self._ipfi.players = players
        if self._isage:
            # one that never asked has drawn nothing
            asked = (each._isage for each in before if each._isage and each._names["isage"])
            self._isage = next(asked, self._isage)
        known = {feature: grid for each in before for feature, grid in each._ipdp.items()}
        self._ipdp = {feature: known.get(feature, grid) for feature, grid in self._ipdp.items()}

    def ask(self, x: dict[str, Value], *, of_loss: bool, of_effect: bool) -> Question:
        """Return what to ask about an observation.

        Parameters
        ----------
        x
            The observation.
        of_loss
            Whether to ask for iPFI and iSAGE, which need a label.
        of_effect
            Whether to ask for iPDP.
        """
        is_asked = self._isage is not None and of_loss and self._names["isage"]
        isage = self._isage.question(x) if self._isage and is_asked else None
        return Question(
            ipfi=self._ask_ipfi(x) if of_loss else {},
            isage=isage
            if isage is None or self._asks_for_all
            else isage.about(self._names["isage"]),
            ipdp=self._ask_ipdp() if of_effect else {},
        )

    def update_mean(self, prediction: Output) -> None:
        """Take the model's output on the observation, before its answers are sorted."""
        if self._isage:
            self._isage.update_mean(prediction)

    def forget_mean(self) -> None:
        """Begin the mean of the model's outputs anew: it is another model's."""
        if self._isage:
            self._isage.mean_prediction = OutputMean(self._isage.mean_prediction.alpha)

    def answers(
        self, question: Question, prediction: Output, outputs: Sequence[Output]
    ) -> dict[str, Answers]:
        """Return the outputs by feature, group and pair, of those that are asked anything."""
        rest = iter(outputs)
        ipfi = {name: list(islice(rest, len(own))) for name, own in question.ipfi.items()}
        isage: dict[str, tuple[Output, Output]] = {}
        if self._isage and question.isage:
            asked = list(islice(rest, len(question.isage.replacements)))
            told = self._isage.answers(question.isage, prediction, asked)
            # what is asked of two may tell of a third between them
            isage = {name: told[name] for name in self._names["isage"] if name in told}
        ipdp = {name: list(islice(rest, len(own.rows))) for name, own in question.ipdp.items()}
        return {
            name: Answers(
                ipfi=ipfi.get(name, []),
                isage=isage.get(name),
                ipdp_points=question.ipdp[name].published if ipdp.get(name) else [],
                ipdp=ipdp.get(name, []),
            )
            for name in self._explained
            if name in ipfi or name in isage or ipdp.get(name)
        }

    def update(self, x: dict[str, Value]) -> None:
        """Offer the observation to the reservoirs and storages, after it was explained."""
        if self._ipfi:
            self._ipfi.update(x)
        if self._isage:
            self._isage.update(x)
        for feature, grid in self._ipdp.items():
            grid.update(x[feature])

    def _ask_ipdp(self) -> dict[str, Points]:
        """Return the points of the features, then those of the pairs."""
        if not self._ipdp:
            return {}
        grids = {feature: grid.points() for feature, grid in self._ipdp.items()}
        asked = {f: Points(grids[f], [{f: point} for point in grids[f]]) for f in self._features}
        for name, pair in self._pairs.items():
            axes = (grids[pair[0]], grids[pair[1]])
            asked[name] = Points(joined(axes), pair_rows(pair, axes))
        return asked

    def _ask_ipfi(self, x: dict[str, Value]) -> dict[str, list[Row]]:
        if not self._ipfi:
            return {}
        replacements, drawn = self._ipfi.replacements(x), self._ipfi.players.names
        m = len(replacements) // len(drawn)
        asked = {name: replacements[i * m : (i + 1) * m] for i, name in enumerate(drawn)}
        return {name: asked[name] for name in self._names["ipfi"]} if m else {}
