"""``fluxplain init`` on files of many kinds, then ``local`` with its settings, without an edit."""

import random
import shlex
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from fluxplain.config import load_config
from tests.kit.in_process import run

N = 60

Row = Callable[[int, float, str], Sequence[Any]]
"""Number, amount and shop of a record → its cells."""


class Kind(NamedTuple):
    """A file, the label's type, and the features; by default amount and shop."""

    header: Sequence[str]
    row: Row
    label: str = "boolean"
    features: dict[str, str] = {"amount": "numeric", "shop": "categorical"}  # noqa: RUF012
    separator: str = ","
    encoding: str = "utf-8"
    ends: str = "\n"

    def text(self) -> str:
        rng = random.Random(1)
        made = [(i, round(rng.uniform(0, 99), 2), rng.choice(["north", "south"])) for i in range(N)]
        lines = [self.header, *(self.row(*each) for each in made)]
        return "".join(self.separator.join(map(str, line)) + self.ends for line in lines)


def comma(number: float) -> str:
    return str(number).replace(".", ",")


USUAL = ["amount", "shop", "label"]
AMOUNT = {"amount": "numeric"}
LONG = {"Größe in Zentimetern " + "x" * 200: "numeric", "Läden (täglich) 商店": "categorical"}


def usual(_i: int, amount: float, shop: str) -> Sequence[Any]:
    return [amount, shop, int(amount > 50)]


KINDS = {
    "commas": Kind(USUAL, usual),
    "semicolons, decimal commas": Kind(
        USUAL, lambda i, a, s: [comma(a), s, int(a > 50)], separator=";"
    ),
    "tabs": Kind(USUAL, usual, separator="\t"),
    "a byte order mark, Windows line ends": Kind(USUAL, usual, encoding="utf-8-sig", ends="\r\n"),
    "quoted numbers": Kind(
        USUAL, lambda i, a, s: [f'"{a}"', f'"{s}, or ""none"""', f'"{int(a > 50)}"']
    ),
    "a date in each record": Kind(
        ["day", *USUAL],
        lambda i, a, s: [f"{1 + i % 28:02}.{1 + i // 28:02}.2026", *usual(i, a, s)],
    ),
    "yes and no": Kind(
        ["amount", "member", "label"],
        lambda i, a, s: [a, "yes" if s == "north" else "no", "Yes" if a > 50 else "No"],
        features={"amount": "numeric", "member": "categorical"},
    ),
    "missing values, empty": Kind(
        USUAL, lambda i, a, s: ["" if i % 7 == 1 else a, "" if i % 5 == 2 else s, int(a > 50)]
    ),
    "missing values, NA": Kind(
        USUAL,
        lambda i, a, s: ["NA" if i % 7 == 1 else a, s, "NA" if i % 9 == 3 else str(a > 50)],
    ),
    "missing values, question marks": Kind(
        USUAL,
        lambda i, a, s: ["?" if i % 7 == 1 else a, s, "?" if i % 9 == 3 else i % 3],
        "integer",
    ),
    "codes, words as classes": Kind(
        ["code", "amount", "class"],
        lambda i, a, s: [1 + i % 3, a, "high" if a > 50 else "low"],
        "string",
        {"code": "numeric", "amount": "numeric"},
    ),
    "regression": Kind(
        ["amount", "shop", "target"], lambda i, a, s: [a, s, round(2.5 * a + i, 3)], "number"
    ),
    "regression, decimal commas": Kind(
        ["amount", "shop", "target"],
        lambda i, a, s: [comma(a), s, comma(round(2.5 * a + i, 3))],
        "number",
        separator=";",
    ),
    "long names": Kind(
        [*LONG, "x" * 300, "label"], lambda i, a, s: [a, s, a, int(a > 50)], features=LONG
    ),
    "100 features": Kind(
        [*(f"f{k}" for k in range(100)), "label"],
        lambda i, a, s: [*(round(a * k + i, 2) for k in range(100)), int(a > 50)],
        features={f"f{k}": "numeric" for k in range(100)},
    ),
    "a constant column": Kind(
        ["amount", "shop", "currency", "label"], lambda i, a, s: [a, s, "EUR", int(a > 50)]
    ),
    "zeros in front": Kind(
        ["id", "zip", "amount", "label"],
        lambda i, a, s: [f"{i:05}", f"0{i % 4}", a, int(a > 50)],
        features={"zip": "categorical", "amount": "numeric"},
    ),
    "times in ISO 8601": Kind(
        ["ts", "amount", "label"],
        lambda i, a, s: [f"2026-01-01T00:{i:02}:00Z", a, int(a > 50)],
        features=AMOUNT,
    ),
    "times since 1970": Kind(
        ["ts", "amount", "label"],
        lambda i, a, s: [1_700_000_000 + i, a, int(a > 50)],
        features=AMOUNT,
    ),
    "a column without a name": Kind(["", *USUAL], lambda i, a, s: [i, *usual(i, a, s)]),
}


@pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)
def test_local_runs_with_the_settings_that_init_writes(kind: Kind, tmp_path: Path) -> None:
    (tmp_path / "data.csv").write_bytes(kind.text().encode(kind.encoding))
    label = kind.header[-1]
    proposed = run(tmp_path, "init", "data.csv", "--label", label)
    assert proposed.returncode == 0, proposed.stderr
    config = load_config(tmp_path / "fluxplain.toml")
    assert (config.features, config.label.type) == (kind.features, kind.label)
    *_, command = proposed.stdout.strip().splitlines()
    ended = run(tmp_path, *shlex.split(command)[1:])
    assert ended.returncode == 0, ended.stderr
    assert f"predictions.jsonl: {N}\n" in ended.stdout
    assert "dead-letters.jsonl: 0\n" in ended.stdout


@pytest.mark.parametrize(
    ("rest", "reason"),
    [
        ("1.5,always,1\n", "the label 'label' is always '1'"),
        ('1.5,"north,1\n2.5,south,0\n', "data.csv, line 4: a cell begins with a quote that"),
        (f"1.5,{'n' * 140_000},0\n", "data.csv, line 4: a cell has more than 131,072 characters"),
    ],
)
def test_a_file_that_cannot_be_learned_from_is_told_in_one_line(
    tmp_path: Path, rest: str, reason: str
) -> None:
    (tmp_path / "data.csv").write_text(f"amount,shop,label\n2.5,north,1\n3.5,south,1\n{rest}")
    refused = run(tmp_path, "init", "data.csv")
    assert refused.returncode == 2
    assert reason in refused.stderr
    assert len(refused.stderr.splitlines()) == 1
