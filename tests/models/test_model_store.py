"""What a folder of models reads: whole regular files of its own, and nothing else."""

import hashlib
import os
import pickle
import resource
import socket
from collections.abc import Callable
from pathlib import Path
from typing import IO, Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fluxplain.errors import NotYetError
from fluxplain.models import model_store
from fluxplain.models.model_store import MAX_MODEL_BYTES, ModelFolder
from fluxplain.schemas import DeadLetter, Record
from fluxplain.schemas.control import is_sha256
from fluxplain.stages import ModelStage
from tests.kit.announced import STREAM, config_of, messages
from tests.kit.support import PROPERTY, run


class Executed:
    """Unpickling it makes a folder."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> tuple[Callable[[str], None], tuple[str]]:
        return os.mkdir, (str(self.path),)


SHA256 = hashlib.sha256(b"").hexdigest()

PATHS = st.one_of(
    st.text(max_size=80),
    st.text("0123456789abcdefABCDEF", min_size=60, max_size=68),
    st.text("./\\\0~%", min_size=1, max_size=64),
    st.sampled_from(
        [
            "../../x",
            "/etc/passwd",
            "../" * 21 + "x",
            SHA256 + "\n",
            SHA256 + "\0",
            SHA256.upper(),
            SHA256 + "/../" + SHA256,
            "٣" * 64,
            "0" * 1_000_000,
            f"{SHA256}.pickle",
            "",
        ]
    ),
)


@PROPERTY
@given(PATHS)
def test_nothing_but_a_digest_becomes_a_path(text: str) -> None:
    folder = ModelFolder(Path("/nowhere/models"))
    if is_sha256(text):
        assert folder.path(text).parent == Path("/nowhere/models")
        return
    with pytest.raises(ValueError, match="is not a SHA-256 digest"):
        folder.path(text)
    with pytest.raises(ValueError, match="is not a SHA-256 digest"):
        folder.get(text)


@PROPERTY
@given(
    st.fixed_dictionaries(
        {},
        optional={
            "every": st.one_of(st.integers(), st.floats(), st.text(max_size=5), st.none()),
            "model": st.one_of(
                st.none(),
                st.text(max_size=70),
                st.fixed_dictionaries(
                    {"version": st.one_of(st.text(max_size=300), st.integers()), "sha256": PATHS}
                ),
            ),
            "withdraw": st.one_of(st.none(), st.text(max_size=300), st.integers()),
        },
    )
)
def test_a_control_record_is_a_dead_letter_or_asks_for_a_digest(value: dict[str, object]) -> None:
    config = config_of(Path("/nowhere/models"))
    stage = ModelStage(config, STREAM)
    try:
        orjson.dumps(value)
    except TypeError:
        return  # an integer beyond 64 bits, or half a surrogate
    [message] = messages(config, [{"model": None, **value}])
    records: list[Record] = run(stage, [message])
    awaited = stage.active.awaited
    if awaited is not None:
        assert is_sha256(awaited.model.sha256)
        assert 1 <= len(awaited.model.version) <= 200
        assert awaited.model.version.isprintable()
        assert records == []
    for letter in records:
        assert isinstance(letter, DeadLetter)
        assert len(letter.reason) < 1_000


def unix_socket(path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as listening:
        os.chdir(path.parent)  # its whole path may be too long for a socket
        listening.bind(path.name)


def link(path: Path) -> None:
    outside = path.parent.parent / "outside"
    outside.write_bytes(b"")
    path.symlink_to(outside)


def huge(path: Path) -> None:
    with path.open("wb") as file:
        file.truncate(MAX_MODEL_BYTES + 1)


@pytest.mark.timeout(30)
@pytest.mark.parametrize(
    ("make", "reason"),
    [
        (os.mkfifo, "is not a regular file"),
        (Path.mkdir, "is not a regular file"),
        (unix_socket, "is not there"),
        (link, "a symbolic link, which is not followed"),
        (lambda path: path.symlink_to("/dev/zero"), "a symbolic link, which is not followed"),
        (huge, "but a model has at most"),
    ],
)
def test_what_is_no_regular_file_of_its_own_is_not_read(
    tmp_path: Path, make: Callable[[Path], None], reason: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    models = ModelFolder(tmp_path / "models")
    (tmp_path / "models").mkdir()
    make(models.path(SHA256))
    with pytest.raises(NotYetError, match=reason):
        models.get(SHA256)


def test_a_large_file_that_is_another_one_takes_no_memory(tmp_path: Path) -> None:
    models = ModelFolder(tmp_path)
    with models.path(SHA256).open("wb") as file:
        file.truncate(150 * 1024**2)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with pytest.raises(NotYetError, match="is not the announced model"):
        models.get(SHA256)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 50 * 1024


def test_nothing_is_unpickled_but_what_was_announced(tmp_path: Path) -> None:
    models, made = ModelFolder(tmp_path), tmp_path / "made"
    announced = hashlib.sha256(b"something else").hexdigest()
    models.path(announced).write_bytes(pickle.dumps(Executed(made)))
    with pytest.raises(NotYetError, match="is not the announced model"):
        models.get(announced)
    assert not made.exists()


def test_a_file_that_was_of_no_use_is_read_again_when_it_has_changed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    models, data = ModelFolder(tmp_path), pickle.dumps("a model")
    sha256 = hashlib.sha256(data).hexdigest()
    path = models.path(sha256)
    path.write_bytes(data[:-1])
    reads: list[Path] = []
    sound = model_store._model_of

    def counted(path: Path, file: IO[bytes], sha256: str) -> Any:
        reads.append(path)
        return sound(path, file, sha256)

    monkeypatch.setattr(model_store, "_model_of", counted)
    for _ in range(5):
        with pytest.raises(NotYetError, match="is not the announced model"):
            models.get(sha256)
    assert len(reads) == 1
    path.write_bytes(data)
    assert models.get(sha256) == "a model"
    path.write_bytes(b"")
    monkeypatch.setattr(model_store, "AGAIN_S", 0.0)
    reads.clear()
    for _ in range(2):
        with pytest.raises(NotYetError):
            models.get(sha256)
    assert len(reads) == 2
