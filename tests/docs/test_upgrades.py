"""What the documentation says of new settings is what the fingerprint in checkpoints says."""

import re

from tests.deploy.documented import README
from tests.docs.documents import KEYS, TABLES, leaves
from tests.kit.support import make_config


def test_what_is_no_part_of_the_result_is_listed() -> None:
    text = README.read_text(encoding="utf-8")
    [listed] = re.findall(
        r"^\*\*Settings that do not change results\*\*: (.+?)\nChange ", text, re.M | re.S
    )
    names = re.findall(r"`([\w.]+|\[\w+\])`", listed)
    tables = tuple(f"{name[1:-1]}." for name in names if name.startswith("["))
    how = {key for key in KEYS.keys() - TABLES if key in names or key.startswith(tables)}
    config = make_config()
    every = {key for key, _ in leaves(config.model_dump(mode="json"))}
    assert how < every
    compared = [f"{key}." for key in config._digests()]
    unlike = {key for key in every if not any(each.startswith(f"{key}.") for each in compared)}
    assert unlike == how | {"streams"}  # whose settings are compared too
