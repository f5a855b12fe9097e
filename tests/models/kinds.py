"""The kinds of models that the table shows: what each learns, and its settings."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import orjson
import pandas as pd
from river.datasets import synth

from tests.kit.support import AGRAWAL_FEATURES, agrawal
from tests.measure.experiments.sensor_network import break_sensor, readings

Records = list[dict[str, Any]]

LOANS = AGRAWAL_FEATURES
FRIEDMAN = {f"x{i}": "numeric" for i in range(10)}
SENSORS = {f"sensor_{i}": "numeric" for i in range(8)}

BROKEN = "sensor_3"

MOST = 10_000
"""Readings there are; shorter streams are the first of them."""

FAULT = 0.9
"""After this share of the records the sensor breaks."""


def loans(records: int, seed: int = 7) -> Records:
    """Return loan applications; salary and age decide."""
    return [{"x": x, "y": bool(y)} for x, y in agrawal(records, seed)]


def friedman(records: int) -> Records:
    """Return a function of the first five of ten numbers, with noise."""
    data = synth.Friedman(seed=7).take(records)
    return [{"x": {f"x{i}": v for i, v in x.items()}, "y": float(y)} for x, y in data]


def sensors(records: int) -> Records:
    """Return the pressures at some sensors, of which one breaks, without labels."""
    return [{"x": record["x"]} for record in faults(records)]


def faults(records: int) -> Records:
    """Return the same, and whether the sensor is broken."""
    rng = np.random.default_rng(3)
    pressures = readings(rng, MOST)[:records, : len(SENSORS)]
    begin = int(FAULT * records)
    break_sensor(pressures, list(SENSORS).index(BROKEN), "noise", range(begin, records), rng)
    return [
        {"x": dict(zip(SENSORS, row, strict=True)), "y": hour >= begin}
        for hour, row in enumerate(pressures.tolist())
    ]


def messages(stream: Callable[[int], Records], records: int) -> list[bytes]:
    """Return the first records of a stream as they stand in ``features``."""
    return [orjson.dumps(record) for record in stream(records)]


SCALER = "river.preprocessing:StandardScaler"
MINMAX = "river.preprocessing:MinMaxScaler"
TREE = {"factory": "river.tree:HoeffdingTreeClassifier", "grace_period": 50}

NUMBERS = dict.fromkeys(LOANS, "numeric")


@dataclass(frozen=True)
class Kind:
    """One line of the table; `params` may be a function that puts files into a folder.

    `extra` must be installed alongside fluxplain.
    """

    title: str
    stream: Callable[[int], Records]
    features: Mapping[str, str]
    label: str
    loss: str
    factory: str
    params: Mapping[str, Any] | Callable[[Path], Mapping[str, Any]] = field(default_factory=dict)
    learn: bool = True
    extra: str = ""

    @property
    def adapter(self) -> str:
        return self.factory if self.factory.startswith("fluxplain.") else "none"

    def settings(self, folder: Path) -> dict[str, Any]:
        params = self.params(folder) if callable(self.params) else self.params
        return {
            "features": dict(self.features),
            "label": {"type": self.label},
            "model": {"factory": self.factory, "learn": self.learn, "params": dict(params)},
            "explain": {"loss": self.loss, "alpha": 0.01},
            "dashboard": {"enabled": False},
        }


def classifier(title: str, factory: str, *, numbers: bool = False, **more: Any) -> Kind:
    features = NUMBERS if numbers else LOANS
    return Kind(title, loans, features, "boolean", "brier", factory, **more)


def regressor(title: str, factory: str, **more: Any) -> Kind:
    return Kind(title, friedman, FRIEDMAN, "number", "absolute_error", factory, **more)


def detector(title: str, factory: str, **more: Any) -> Kind:
    return Kind(title, sensors, SENSORS, "none", "minus_score", factory, **more)


def river(*steps: Any) -> dict[str, Any]:
    return {"factory": "fluxplain.models:from_river", "params": {"steps": list(steps)}}


def sklearn(estimator: str, **arguments: Any) -> dict[str, Any]:
    table = {"factory": f"sklearn.{estimator}", **arguments}
    return {
        "factory": "fluxplain.models:from_sklearn",
        "params": {"estimator": table},
        "extra": "sklearn",
    }


def torch(**params: Any) -> dict[str, Any]:
    return {"factory": "fluxplain.models:from_torch", "params": params, "extra": "torch"}


def frozen(estimator: str, train: Callable[[], tuple[Records, bool]]) -> dict[str, Any]:
    """Return what makes a kind of an estimator that was fitted elsewhere, and saved."""

    def params(folder: Path) -> dict[str, Any]:
        import joblib  # noqa: PLC0415  of scikit-learn

        from fluxplain.models.factories import make  # noqa: PLC0415

        records, labelled = train()
        frame = pd.DataFrame([record["x"] for record in records])
        fitted = make({"factory": f"sklearn.ensemble:{estimator}", "n_estimators": 20}, seed=1)
        fitted.fit(frame, [record["y"] for record in records] if labelled else None)
        path = folder / f"{estimator}.joblib"
        joblib.dump(fitted, path)
        return {"estimator": {"factory": "joblib:load", "filename": str(path)}}

    return {**sklearn(""), "params": params, "learn": False}


KINDS: dict[str, Kind] = {
    "forest": classifier(
        "adaptive random forest", "river.forest:ARFClassifier", params={"n_models": 5}
    ),
    "adaptive-tree": classifier(
        "Hoeffding adaptive tree", "river.tree:HoeffdingAdaptiveTreeClassifier"
    ),
    "bagging": classifier(
        "leveraging bagging of Hoeffding trees",
        **river(
            {"factory": "river.ensemble:LeveragingBaggingClassifier", "n_models": 3, "model": TREE}
        ),
    ),
    "forest-regression": regressor(
        "adaptive random forest", "river.forest:ARFRegressor", params={"n_models": 3}
    ),
    "logistic": classifier(
        "logistic regression behind a scaler",
        numbers=True,
        **river(SCALER, "river.linear_model:LogisticRegression"),
    ),
    "linear": regressor(
        "linear regression behind a scaler", **river(SCALER, "river.linear_model:LinearRegression")
    ),
    "naive-bayes": classifier("Gaussian naive Bayes", "river.naive_bayes:GaussianNB", numbers=True),
    "neighbours": classifier(
        "nearest neighbours behind a scaler",
        numbers=True,
        **river(
            SCALER,
            {
                "factory": "river.neighbors:KNNClassifier",
                "engine": {"factory": "river.neighbors:LazySearch", "window_size": 100},
            },
        ),
    ),
    "mondrian-forest": classifier(
        "aggregated Mondrian forest",
        numbers=True,
        **river(MINMAX, {"factory": "river.forest:AMFClassifier", "n_estimators": 3}),
    ),
    "rules": regressor("adaptive model rules", "river.rules:AMRules"),
    "sgd": classifier(
        "logistic regression",
        **sklearn(
            "linear_model:SGDClassifier", loss="log_loss", learning_rate="constant", eta0=0.01
        ),
    ),
    "mlp": classifier(
        "network",
        **sklearn("neural_network:MLPClassifier", hidden_layer_sizes=[32], learning_rate_init=0.01),
    ),
    "mlp-regression": regressor(
        "network",
        **sklearn("neural_network:MLPRegressor", hidden_layer_sizes=[32], learning_rate_init=0.01),
    ),
    "frozen-forest": classifier(
        "frozen random forest",
        **frozen("RandomForestClassifier", lambda: (loans(3000, seed=8), True)),
    ),
    "torch": classifier(
        "network",
        **torch(hidden=[32], optimizer={"factory": "torch.optim:Adam", "lr": 0.01}),
    ),
    "half-space-trees": detector(
        "half-space trees behind a scaler",
        **river(MINMAX, {"factory": "river.anomaly:HalfSpaceTrees", "n_trees": 10}),
    ),
    "filter": Kind(
        "half-space trees behind a scaler, in a quantile filter",
        faults,
        SENSORS,
        "boolean",
        "brier",
        **river(
            MINMAX,
            {
                "factory": "river.anomaly:QuantileFilter",
                "anomaly_detector": {"factory": "river.anomaly:HalfSpaceTrees", "n_trees": 10},
                "q": 0.95,
            },
        ),
    ),
    "autoencoder": detector(
        "autoencoder",
        **sklearn(
            "neural_network:MLPRegressor",
            hidden_layer_sizes=[6, 3, 6],
            activation="tanh",
            solver="sgd",
            learning_rate_init=0.03,
            momentum=0.0,
        ),
    ),
    "torch-autoencoder": detector(
        "autoencoder",
        **torch(
            hidden=[6, 3, 6],
            activation="torch.nn:Tanh",
            optimizer={"factory": "torch.optim:SGD", "lr": 0.1},
        ),
    ),
    "frozen-isolation-forest": detector(
        "frozen isolation forest",
        **frozen("IsolationForest", lambda: (sensors(2000)[:1000], False)),
    ),
    "own": classifier(
        "an object of one's own",
        "deploy.examples.mymodel:Cells",
        params={"widths": {"age": 20, "salary": 25000}},
    ),
}
"""Name → kind."""
