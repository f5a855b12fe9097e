"""Compares the model stage of this checkout with that of another commit, in turns.

``python -m tests.measure.benchmarks.against COMMIT`` makes a worktree of the commit, and lets one
process of each version take the same records, block by block.
"""

import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import product
from pathlib import Path
from typing import Annotated

import typer

from fluxplain.explain.sage import DEFAULT_INNER_SAMPLES

ROOT = Path(__file__).parents[3]

BLOCK, BLOCKS, WARM_UP = 250, 24, 8

SIDE = """
import gc, sys, time
from importlib import import_module
from itertools import islice
import orjson
from river.datasets import synth

path, package, kind, inner_samples = sys.argv[1:]
sys.path.insert(0, path)
Config = import_module(f"{package}.config").Config
stages = import_module(f"{package}.stages")

categories = {"car", "zipcode", "elevel"} if kind == "categories" else set()
kinds = {f: "categorical" if f in categories else "numeric" for f in next(iter(synth.Agrawal()))[0]}
model = {"factory": "river.forest:ARFClassifier", "params": {"n_models": 10, "seed": 1}}
config = Config(features=kinds, label={"type": "integer"}, model=model,
                explain={"isage": {"inner_samples": int(inner_samples)}})
stage, offset = stages.ModelStage(config, "features-0"), 0
records = iter(synth.Agrawal(classification_function=1, seed=7))
gc.freeze()
gc.set_threshold(50_000, 20, 20)  # as workers do
for line in sys.stdin:
    messages = []
    for x, y in islice(records, int(line)):
        x = {f: f"c{v}" if f in categories else v for f, v in x.items()}
        messages.append(stages.Message("features", 0, offset, None, orjson.dumps({"x": x, "y": y})))
        offset += 1
    begin = time.perf_counter()
    for message in messages:
        stages.process(stage, message)
    print(time.perf_counter() - begin, flush=True)
"""
"""One version: reads how many records to take, and prints how many seconds that took."""


def compare(commit: Annotated[str, typer.Argument(help="What to compare with.")]) -> None:
    """Print the records per second of both, and the ratio of their blocks."""
    with (
        tempfile.TemporaryDirectory() as folder,
        _worktree(commit, Path(folder) / "other") as other,
    ):
        # iSAGE's draws of the paper's experiments, and the default
        for kind, inner_samples in product(("numbers", "categories"), (1, DEFAULT_INNER_SAMPLES)):
            ours, theirs = _sides((kind, str(inner_samples)), (ROOT, other))
            ratios = [b / a for a, b in zip(ours, theirs, strict=True)]
            rates = (BLOCK / statistics.median(each) for each in (ours, theirs))
            print(
                f"model stage, ARF-10, agrawal, {kind}, m = {inner_samples}: "
                f"{next(rates):.0f} records a second, {commit} {next(rates):.0f}, "
                f"ratio {statistics.median(ratios):.2f} ({min(ratios):.2f} to {max(ratios):.2f})"
            )


def _sides(arguments: tuple[str, str], roots: tuple[Path, Path]) -> tuple[list[float], list[float]]:
    processes = [_start(root, arguments) for root in roots]
    times: tuple[list[float], list[float]] = ([], [])
    for block in range(WARM_UP + BLOCKS):
        order = (0, 1) if block % 2 == 0 else (1, 0)
        for side in order:
            seconds = _seconds(processes[side])
            if block >= WARM_UP:
                times[side].append(seconds)
    for process in processes:
        process.kill()
    return times


def _start(root: Path, arguments: tuple[str, str]) -> "subprocess.Popen[str]":
    path, package = root, "pipeline"  # as it was before there was one name
    if (links := root / "deploy" / "package.py").exists():
        subprocess.run([sys.executable, str(links)], check=True)
        path, package = root / "build" / "package", "fluxplain"
    command = [sys.executable, "-c", SIDE, str(path), package, *arguments]
    return subprocess.Popen(
        command, cwd=root, text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )


def _seconds(process: "subprocess.Popen[str]") -> float:
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write(f"{BLOCK}\n")
    process.stdin.flush()
    return float(process.stdout.readline())


@contextmanager
def _worktree(commit: str, path: Path) -> Iterator[Path]:
    git = ["git", "-C", str(ROOT), "worktree"]
    subprocess.run([*git, "add", "--quiet", "--detach", str(path), commit], check=True)
    try:
        yield path
    finally:
        subprocess.run([*git, "remove", "--force", str(path)], check=True)


if __name__ == "__main__":
    typer.run(compare)
