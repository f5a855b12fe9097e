"""Networks of torch that learn one record at a time.

All that is random comes from the seed, and none of it from torch's global generator. Torch computes
on one thread then, in this whole process: with more, sums may come out differently, and small
networks are no faster.
"""

import io
import pickle
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from pipeline.evaluate import Label
from pipeline.evaluate.inputs import Floats
from pipeline.models.encoder import Encoder
from pipeline.models.fronts import Autoencoder, Classifier, Front, Regressor
from pipeline.models.making import make
from pipeline.models.targets import check_label, classes_of

SGD = {"factory": "torch.optim:SGD", "lr": 0.01}

RELU = "torch.nn:ReLU"


def from_torch(
    module: Any = None,
    *,
    features: Mapping[str, str],
    label: str = "boolean",
    classes: Sequence[Label] | None = None,
    hidden: Sequence[int] = (32,),
    activation: Any = RELU,
    optimizer: Any = SGD,
    scale: bool = True,
    categories: int = 20,
    seed: int = 0,
) -> Front:
    """Return a network that takes one gradient step for each observation.

    It learns classes by cross-entropy, numbers by the mean squared error. Without labels
    (``"none"``) it is an autoencoder, which learns to give back its input. Numbers are of double
    precision, so that many rows and one by one give the same output within 1e-12.

    Parameters
    ----------
    module
        What makes a ``torch.nn.Module``, as ``"module:name"`` or a table with a ``factory``; it is
        called with ``inputs`` and ``outputs``, the numbers of columns. For classes the outputs are
        logits. By default there are layers of ``hidden`` units.
    features
        Feature → ``"numeric"`` or ``"categorical"``.
    label
        ``"boolean"``, ``"integer"`` or ``"string"`` (classes), ``"number"``, or ``"none"``.
    classes
        All that there are, for ``"integer"`` and ``"string"``.
    hidden, activation
        Units of each layer between input and output, and what is behind each of these.
    optimizer
        As ``"module:name"`` or a table with a ``factory``; it is called with the parameters.
    scale, categories
        Of the :class:`~pipeline.models.Encoder`.
    seed
        Of weights, dropout, and all else that is random.

    Raises
    ------
    ValueError
        If torch is not installed, or something cannot be made.
    """
    _check_installed()
    check_label(label)
    rows = Encoder(features, scale=scale, categories=categories)
    known = [] if label in {"number", "none"} else classes_of(label, classes)
    outputs = {"number": 1, "none": rows.width}.get(label, len(known))
    if module is None:
        module = {
            "factory": "pipeline.models.torch_models:layers",
            "hidden": list(hidden),
            "activation": activation,
        }
    network = Network(
        module, optimizer, inputs=rows.width, outputs=outputs, classes=known, seed=seed
    )
    name = f"{type(network.module).__name__} of torch"
    if label == "none":
        return Autoencoder(name, rows, network)
    if label == "number":
        return Regressor(name, rows, network)
    return Classifier(name, rows, network, known)


class Network:
    """A module, its optimizer, and where its random numbers are.

    Parameters
    ----------
    module, optimizer
        What makes them; see :func:`from_torch`.
    inputs, outputs
        Columns.
    classes
        What the outputs stand for; empty if they are numbers.
    seed
        Of all that is random.
    """

    def __init__(
        self,
        module: Any,
        optimizer: Any,
        *,
        inputs: int,
        outputs: int,
        classes: Sequence[Label],
        seed: int,
    ) -> None:
        import torch  # noqa: PLC0415  few have it

        torch.set_num_threads(1)
        self._places = {label: place for place, label in enumerate(classes)}
        self._random = torch.Generator().manual_seed(seed).get_state()
        with self._own_random_numbers():
            made = make(module, inputs=inputs, outputs=outputs)
            if not isinstance(made, torch.nn.Module):
                raise ValueError(f"module gives a {type(made).__name__}, not a torch.nn.Module")
            self.module = made.double().eval()
            self.optimizer = make(optimizer, self.module.parameters())

    def __getstate__(self) -> bytes:
        """Return the state, the same bytes for the same numbers: torch's have addresses in them."""
        buffer = io.BytesIO()
        _Pickler(buffer).dump(vars(self))
        return buffer.getvalue()

    def __setstate__(self, state: bytes) -> None:
        import torch  # noqa: PLC0415  as above

        torch.set_num_threads(1)
        vars(self).update(pickle.loads(state))  # noqa: S301  a part of what is unpickled anyway

    def learn(self, row: Floats, target: Any) -> None:
        """Take one gradient step; see :class:`~pipeline.models.fronts.Learner`."""
        import torch  # noqa: PLC0415  as above

        places = self._places
        wanted = torch.tensor(
            [places[target]] if places else np.asarray(target, np.float64).reshape(1, -1)
        )
        loss_of = torch.nn.functional.cross_entropy if places else torch.nn.functional.mse_loss
        with self._own_random_numbers():
            self.module.train()
            try:
                self.optimizer.zero_grad()
                loss_of(self.module(torch.from_numpy(row)), wanted).backward()
                self.optimizer.step()
            finally:
                self.module.eval()

    def outputs(self, rows: Floats) -> Floats:
        """Return probabilities or numbers; see :class:`~pipeline.models.fronts.Learner`."""
        import torch  # noqa: PLC0415  as above

        with torch.no_grad():
            output = self.module(torch.from_numpy(rows))
            if self._places:
                output = torch.softmax(output, dim=1)
        given: Floats = output.numpy()
        return given

    @contextmanager
    def _own_random_numbers(self) -> Iterator[None]:
        """Draw from a generator that is part of the state, and leave torch's as it was."""
        import torch  # noqa: PLC0415  as above

        with torch.random.fork_rng(devices=[]):
            torch.set_rng_state(self._random)
            try:
                yield
            finally:
                self._random = torch.get_rng_state()


class _Pickler(pickle.Pickler):
    """Pickles tensors as arrays."""

    def reducer_override(self, obj: Any) -> Any:
        import torch  # noqa: PLC0415  as above

        if not isinstance(obj, torch.Tensor):
            return NotImplemented
        is_parameter = isinstance(obj, torch.nn.Parameter)
        return _tensor, (obj.detach().numpy(), is_parameter, obj.requires_grad)


def _tensor(numbers: Any, is_parameter: bool, requires_grad: bool) -> Any:
    import torch  # noqa: PLC0415  as above

    tensor = torch.from_numpy(numbers)
    if is_parameter:
        return torch.nn.Parameter(tensor, requires_grad)
    return tensor.requires_grad_(requires_grad)


def layers(*, inputs: int, outputs: int, hidden: Sequence[int], activation: Any) -> Any:
    """Return a network of layers, with the activation behind each but the last."""
    import torch  # noqa: PLC0415  as above

    sizes = [inputs, *hidden]
    between: list[Any] = []
    for size, following in zip(sizes, hidden, strict=False):
        between += [torch.nn.Linear(size, following), make(activation)]
    return torch.nn.Sequential(*between, torch.nn.Linear(sizes[-1], outputs))


def _check_installed() -> None:
    try:
        import torch  # noqa: F401, PLC0415
    except ImportError:
        raise ValueError(
            "torch is not installed: pip install 'fluxplain[torch]', or a smaller build for CPUs "
            "from PyTorch's own package index"
        ) from None
