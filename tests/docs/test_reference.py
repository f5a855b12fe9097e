"""The references and the list of settings without effect on results are those of the code."""

import re
import tomllib
from dataclasses import fields
from typing import Any

import pytest

from deploy.docs.pages import BEGIN, FOLDER, filled, parts
from deploy.docs.records import PARTS, attributes
from deploy.docs.settings import descriptions
from fluxplain.cli.init import TEMPLATE
from fluxplain.schemas import RECORDS
from fluxplain.schemas.record import Typed
from tests.deploy.documented import README
from tests.docs.documents import KEYS, TABLES, leaves
from tests.kit.support import make_config

PAGES = sorted(FOLDER.glob("*.md"))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_what_comes_from_the_code_is_as_the_code_is(page: Any) -> None:
    text = page.read_text(encoding="utf-8")
    assert filled(text) == text, "run `make reference`"


def test_every_reference_is_in_a_page() -> None:
    begun = re.findall(f"{BEGIN}(.+?) -->", "".join(page.read_text("utf-8") for page in PAGES))
    assert sorted(begun) == sorted(parts())


@pytest.mark.parametrize("path", TABLES)
def test_every_setting_says_what_it_means(path: str) -> None:
    model = TABLES[path]
    tables = {name for name in model.model_fields if f"{path}.{name}".strip(".") in TABLES}
    assert descriptions(model).keys() == model.model_fields.keys() - tables
    assert all(each.endswith(".") for each in descriptions(model).values())


@pytest.mark.parametrize("kind", [*RECORDS, *PARTS], ids=lambda kind: kind.__name__)
def test_every_field_of_a_record_has_a_meaning(kind: type[Typed]) -> None:
    described = [name for names in attributes(kind) for name in names]
    assert sorted(described) == sorted(field.name for field in fields(kind))


def test_what_the_template_sets_is_the_default() -> None:
    examples = {"features", "model.factory", "model.params"}
    for key, value in leaves(tomllib.loads(TEMPLATE.read_text(encoding="utf-8"))):
        default = KEYS[key].get_default(call_default_factory=True)
        assert key in examples or value == default or str(default) == value, key


def test_what_the_template_only_shows_exists() -> None:
    # a line of one setting, which is no sentence
    text = re.sub(r"^# (?=\w+ = |\[[\w.]+\]$)", "", TEMPLATE.read_text("utf-8"), flags=re.MULTILINE)
    shown = dict(leaves(tomllib.loads(text)))
    assert shown.keys() <= KEYS.keys()
    assert {"kafka.ca_file", "explain.groups", "drift.ipdp.delta", "alerts.url"} <= shown.keys()


def test_the_template_names_the_choices_that_there_are() -> None:
    schemas = {
        f"{path}.{name}".removeprefix("."): schema
        for path, model in TABLES.items()
        for name, schema in model.model_json_schema()["properties"].items()
    }
    said, table, comment = 0, "", ""
    for line in TEMPLATE.read_text(encoding="utf-8").splitlines():
        if heading := re.fullmatch(r"(?:# )?\[([\w.]+)\]", line):
            table = f"{heading[1]}."
        elif setting := re.fullmatch(r"(?:# )?(\w+) = .*", line):
            choices = schemas.get(table + setting[1], {}).get("enum", [])
            quoted = re.findall(r'"([\w-]+)"', comment)
            if choices and quoted:
                said += 1
                assert set(quoted) == set(choices), setting[1]
            comment = ""
        else:
            comment += line
    assert said >= 8


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
    # those of streams are compared too
    message = "the list 'Settings that do not change results' in deploy/README.md"
    assert unlike == how | {"streams"}, message
