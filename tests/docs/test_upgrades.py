"""What the documentation says of new settings is what the fingerprint in checkpoints says."""

import re
from collections.abc import Iterator, Mapping
from typing import Any

from deploy.docs.settings import sections
from tests.deploy.documented import README
from tests.kit.support import make_config

TABLES = dict(sections())


def below(path: str) -> set[str]:
    """Return the keys in a table, and in those in it."""
    keys = {f"{path}.{name}" for name in TABLES[path].model_fields}
    inner = (below(key) for key in keys & TABLES.keys())
    return (keys - TABLES.keys()).union(*inner)


def flat(table: Mapping[str, Any], path: str = "") -> Iterator[str]:
    """Yield the keys in a table of values, and in those in it."""
    for name, value in table.items():
        key = f"{path}{name}"
        if isinstance(value, Mapping) and (key in TABLES or (name == "params" and value)):
            yield from flat(value, f"{key}.")
        else:
            yield key


def test_what_is_no_part_of_the_result_is_listed() -> None:
    text = README.read_text(encoding="utf-8")
    [listed] = re.findall(
        r"^\*\*Settings that do not change results\*\*: (.+?)\nChange ", text, re.M | re.S
    )
    names = re.findall(r"`([\w.]+|\[\w+\])`", listed)
    how = set[str]().union(*(below(each.strip("[]")) if "[" in each else {each} for each in names))
    config = make_config()
    every = {*flat(config.model_dump(mode="json"))}
    assert how < every
    assert every - {*config._digests()} == how | {"streams"}  # whose settings are compared too
