"""Coverage-guided fuzzing: ``python -m tests.fuzz.guided features -max_total_time=60``.

Atheris mutates good messages and keeps what reaches new lines of the decoders and the stages. A
failure ends the run and leaves the message beside the corpus; with its path as argument it is
tried again. All arguments behind the target are libFuzzer's.
"""

import importlib
import json
import random
import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from tests.fuzz.strategies import strained

FOLDER = Path(".fluxplain/fuzz")

Target = Callable[[bytes], None]


def stage_target(topic: str, kind: str) -> tuple[Target, Iterable[bytes]]:
    """Return what reads one message behind good ones, and the good ones."""
    from fluxplain.stages import Message  # noqa: PLC0415  these are measured
    from tests.fuzz.pools import assert_readable, pool, refused  # noqa: PLC0415
    from tests.kit.support import published  # noqa: PLC0415

    good = pool(topic, kind)

    def target(data: bytes) -> None:
        stage = good.stage()
        message = Message(topic, 0, good.rest[0].offset - 1, b"k", data)
        bad = refused(stage, message)
        records = published(stage, message)
        assert_readable(records)
        assert not bad or len(records) == 1
        # what comes next is read as ever
        assert_readable(published(stage, good.rest[0]))

    return target, [m.value or b"" for m in good.rest]


def checkpoint_target() -> tuple[Target, Iterable[bytes]]:
    """Return what reads the header of a checkpoint, with and without a key."""
    from fluxplain.kafka.checkpoints.envelope import (  # noqa: PLC0415
        DamagedError,
        Envelope,
        RefusedError,
    )
    from tests.kit.sealed import IDENTITY, KEY, SLOT, sealed  # noqa: PLC0415

    def target(data: bytes) -> None:
        for key in (None, KEY):
            try:
                header = Envelope(IDENTITY, key).read_header(SLOT, data)
            except (DamagedError, RefusedError):
                continue
            assert type(header["next_offset"]) is int
            assert len(bytes.fromhex(header["sha256"])) == 32

    return target, [sealed(key, 7)[0] for key in (None, KEY)]


TARGETS: dict[str, Callable[[], tuple[Target, Iterable[bytes]]]] = {
    "features": lambda: stage_target("features", "regression"),
    "evaluations": lambda: stage_target("evaluations", "classes"),
    "explanations": lambda: stage_target("explanations", "regression"),
    "checkpoint": checkpoint_target,
}


def read_object(data: bytes) -> dict[str, Any] | None:
    """Return the JSON object in a message; None if there is none, or nothing in it."""
    try:
        fields = json.loads(data)
    except (ValueError, RecursionError):
        return None
    return fields if isinstance(fields, dict) else None


WORDS = [
    *(b"null", b"true", b'"nan"', b'"inf"', b'""', b"[]", b"{}", b"[null]", b"[[]]", b",", b":"),
    *(b"1e150", b"-1e150", b"1.7e308", b"-1.7e308", b"5e-324", b"-0.0", b"1e999", b"NaN"),
    *(b"-1", b"9223372036854775807", b"18446744073709551615", b"18446744073709551616"),
    *(b'"\\ud800"', b'"\\u0000"', b"\xff", b"\xed\xa0\x80", b'"fluxplain.features-7"'),
]
"""What libFuzzer is given to put into messages, beside what it finds."""


def main(name: str, *options: str) -> None:
    """Fuzz one target until a failure, or until libFuzzer's options end it."""
    atheris: Any = importlib.import_module("atheris")  # ``make fuzz`` installs it
    with atheris.instrument_imports(include=["fluxplain"]):
        target, seeds = TARGETS[name]()
    corpus = FOLDER / name
    corpus.mkdir(parents=True, exist_ok=True)
    for i, seed in enumerate(seeds):
        (corpus / f"good-{i}").write_bytes(seed)
    words = FOLDER / "words"
    quoted = ("".join(f"\\x{byte:02x}" for byte in word) for word in WORDS)
    words.write_text("".join(f'"{word}"\n' for word in quoted))
    arguments = [
        *("guided", "-max_len=20000", "-timeout=20", "-rss_limit_mb=3000"),
        *(f"-artifact_prefix={corpus}-", f"-dict={words}", *options),
    ]
    if not any(Path(option).is_file() for option in options):
        arguments.append(str(corpus))

    def mutate(data: bytes, max_size: int, seed: int) -> bytes:
        rng = random.Random(seed)
        # bytes alone seldom make another message that can be read
        fields = read_object(data) if rng.random() < 0.7 else None
        if not fields:
            return bytes(atheris.Mutate(data, max_size))
        value = strained(rng, [fields])
        return value if len(value) <= max_size else data

    atheris.Setup(arguments, target, custom_mutator=mutate)
    atheris.Fuzz()


if __name__ == "__main__":
    main(*sys.argv[1:])
