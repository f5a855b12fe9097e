"""How far few inner samples shift iSAGE: the table behind the default.

A forest is trained and frozen; iSAGE with m draws is compared with m = 100 on the same records.
The error is Σ_j |value_m - value_100| / Σ_j |value_100|, beside the cost in model calls.

Run: ``python -m tests.measure.experiments.sage_inner_samples``
"""

from river import forest

from fluxplain.explain import IncrementalSAGE
from tests.kit.support import agrawal

SAMPLES = (1, 2, 5, 10, 20, 100)
TRAINING, RECORDS = 5_000, 4_000


def main() -> None:
    records = agrawal(TRAINING + RECORDS, seed=42)
    model = forest.ARFClassifier(n_models=5, seed=42)
    for x, y in records[:TRAINING]:
        model.learn_one(x, y)
    features = list(records[0][0])
    for loss in ("cross_entropy", "brier"):
        explainers = {
            m: IncrementalSAGE(model, features, loss=loss, inner_samples=m, seed=1) for m in SAMPLES
        }
        for x, y in records[TRAINING:]:
            for explainer in explainers.values():
                explainer.explain_one(x, y)
        truth = explainers[SAMPLES[-1]].values
        scale = sum(abs(v) for v in truth.values())
        for m, explainer in explainers.items():
            error = sum(abs(explainer.values[f] - truth[f]) for f in features) / scale
            calls = (len(features) - 1) * m + 1
            top = sorted(explainer.values.items(), key=lambda kv: -kv[1])[:3]
            print(
                f"{loss:14} m={m:<4} error {error:6.3f}  calls {calls:4}  lowest "
                f"{min(explainer.values.values()):+.4f}  top "
                + " ".join(f"{f}={v:.4f}±{explainer.std_errors[f]:.4f}" for f, v in top),
                flush=True,
            )


if __name__ == "__main__":
    main()
