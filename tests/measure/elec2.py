"""The elec2 stream through the whole pipeline on the embedded broker, checked and timed.

All 45,312 records, an Adaptive Random Forest of 10 trees, all methods (deploy/examples/elec2.toml).
Every record must be accounted for; ``vicprice``, constant up to record 17,424, must have no
importance and no change before, and changes after. With ``--reference`` everything is compared
with the local pipeline, bit for bit; this takes as long again.

Run: ``python -m tests.measure.elec2 ../shared/data/elec2.csv.gz [--reference]``
"""

import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from fluxplain.kafka.embedded import EmbeddedBroker
from fluxplain.sources import Source, open_source
from tests.kit.kafka_pipeline import KafkaPipeline, Published, assert_same, records_of, reference
from tests.measure.experiments.streams import VICPRICE_VARIES

CONFIG = Path("deploy/examples/elec2.toml")
FEATURE = "vicprice"


def main(path: str, *, with_reference: bool) -> None:
    begin = time.monotonic()
    with (
        tempfile.TemporaryDirectory() as folder,
        EmbeddedBroker() as broker,
        KafkaPipeline(CONFIG, broker.bootstrap_servers, Path(folder)) as pipeline,
    ):
        source = open_source(path, pipeline.config)
        sent = pipeline.feed(_with_progress(source))
        pipeline.wait_until_idle()
        seconds = time.monotonic() - begin
        counts = pipeline.counts()
        published = pipeline.published
        config = pipeline.config
    print(f"records: {sent:,} in {seconds:.0f} s ({sent / seconds:.0f} records/s)")
    print(", ".join(f"{topic}: {count:,}" for topic, count in counts.items()))
    assert counts["predictions"] + counts["dead-letters"] == sent
    print("predictions + dead letters = inputs: yes")
    _check_feature(published)
    if with_reference:
        begin = time.monotonic()
        assert_same(published, reference(config, source))
        print(f"equal to the local pipeline, bit for bit: yes ({time.monotonic() - begin:.0f} s)")


def _with_progress(source: Source) -> Iterator[bytes]:
    for i, value in enumerate(source):
        if i % 1000 == 0:
            print(f"\r{i:,} records sent", end="", file=sys.stderr, flush=True)
        yield value
    print(file=sys.stderr)


def _check_feature(published: Published) -> None:
    explanations = records_of(published, "explanations")
    print(f"explained features: {', '.join(sorted({e['feature'] for e in explanations}))}")
    early = [e for e in explanations if e["feature"] == FEATURE and e["seq"] < VICPRICE_VARIES]
    for method in ("ipfi", "isage", "ipdp"):
        values = [e for e in early if e["method"] == method]
        largest = max(abs(e["value"]) for e in values)
        outside = sum(abs(e["value"]) > e["std_error"] for e in values)
        print(
            f"{FEATURE} {method} before record {VICPRICE_VARIES:,}: {len(values):,} explanations, "
            f"largest |value| {largest:.3g}, outside their standard error: {outside}"
        )
        assert not outside
    changes = records_of(published, "changes")
    concerned = [change for change in changes if change["feature"] == FEATURE]
    before = [change for change in concerned if change["seq"] < VICPRICE_VARIES]
    print(f"changes in all: {len(changes)}; of {FEATURE}: {len(concerned)}, before: {len(before)}")
    assert not before
    assert concerned
    for change in sorted(concerned, key=lambda change: (change["seq"], change["method"] or "")):
        print(f"  record {change['seq']:,}: {change['detail']}")


if __name__ == "__main__":
    arguments = [a for a in sys.argv[1:] if a != "--reference"]
    main(arguments[0], with_reference="--reference" in sys.argv)
