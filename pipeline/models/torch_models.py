"""torch networks that learn one record at a time.

All random numbers come from the seed, none from torch's global generator. torch is limited to one
thread in the whole process: with more, sums may differ, and small networks are not faster.
"""

import io
import pickle
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from fluxplain.evaluate import Label
from fluxplain.evaluate.encoding import Floats
from fluxplain.models.adapters import Adapter, adapter, check_label, classes_of, output_count
from fluxplain.models.encoder import Encoder
from fluxplain.models.factories import make

try:
    import torch
except ImportError:  # optional
    torch = None

MISSING = (
    "torch is not installed: pip install 'fluxplain[torch]', or a smaller build for CPUs from "
    "PyTorch's own package index"
)

SGD = {"factory": "torch.optim:SGD", "lr": 0.01}

RELU = "torch.nn:ReLU"

LAYERS = "fluxplain.models.torch_models:layers"


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
) -> Adapter:
    """Return a network that takes one gradient step for each observation.

    It learns classes by cross-entropy, numbers by the mean squared error. Without labels
    (``"none"``) it is an autoencoder, which learns to reproduce its input. It uses double
    precision, so that a batch and single rows give the same outputs within 1e-12.

    Parameters
    ----------
    module
        Factory of a ``torch.nn.Module``, as ``"module:name"`` or a table with a ``factory``; it is
        called with ``inputs`` and ``outputs``, the numbers of columns. For classes the outputs are
        logits. By default there are layers of ``hidden`` units.
    features, label, classes, scale, categories
        See :func:`~fluxplain.models.from_sklearn`.
    hidden, activation
        Units of each layer between input and output, and the function that follows each.
    optimizer
        As ``"module:name"`` or a table with a ``factory``; it is called with the parameters.
    seed
        Seed of weights, dropout, and all other random numbers.

    Raises
    ------
    ValueError
        If torch is not installed, or something cannot be made.
    """
    if torch is None:
        raise ValueError(MISSING)
    check_label(label)
    rows = Encoder(features, scale=scale, categories=categories)
    known = classes_of(label, classes)
    if module is None:
        module = {"factory": LAYERS, "hidden": list(hidden), "activation": activation}
    network = Network(
        module,
        optimizer,
        inputs=rows.width,
        outputs=output_count(label, rows, known),
        classes=known,
        seed=seed,
    )
    return adapter(label, f"{type(network.module).__name__} of torch", rows, network, known)


class Network:
    """A learner: a module, its optimizer, and the state of its random numbers.

    Without `classes` the outputs are numbers.
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
        """Return equal bytes for equal numbers: torch's own pickles contain addresses."""
        buffer = io.BytesIO()
        _Pickler(buffer).dump(vars(self))
        return buffer.getvalue()

    def __setstate__(self, state: bytes) -> None:
        if torch is None:
            raise ImportError(MISSING)
        torch.set_num_threads(1)
        vars(self).update(pickle.loads(state))  # noqa: S301  part of an outer pickle

    def learn(self, row: Floats, target: Any) -> None:
        """Take one gradient step."""
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
        """Return probabilities or numbers."""
        with torch.no_grad():
            output = self.module(torch.from_numpy(rows))
            if self._places:
                output = torch.softmax(output, dim=1)
        given: Floats = output.numpy()
        return given

    @contextmanager
    def _own_random_numbers(self) -> Iterator[None]:
        """Draw from the generator in the state; leave torch's global one as it was."""
        with torch.random.fork_rng(devices=[]):
            torch.set_rng_state(self._random)
            try:
                yield
            finally:
                self._random = torch.get_rng_state()


class _Pickler(pickle.Pickler):
    """Pickles tensors as arrays."""

    def reducer_override(self, obj: Any) -> Any:
        if not isinstance(obj, torch.Tensor):
            return NotImplemented
        is_parameter = isinstance(obj, torch.nn.Parameter)
        return _tensor, (obj.detach().numpy(), is_parameter, obj.requires_grad)


def _tensor(numbers: Any, is_parameter: bool, requires_grad: bool) -> Any:
    tensor = torch.from_numpy(numbers)
    if is_parameter:
        return torch.nn.Parameter(tensor, requires_grad)
    return tensor.requires_grad_(requires_grad)


def layers(*, inputs: int, outputs: int, hidden: Sequence[int], activation: Any) -> Any:
    """Return a network of layers, with the activation after each but the last."""
    sizes = [inputs, *hidden]
    between: list[Any] = []
    for size, following in zip(sizes, hidden, strict=False):
        between += [torch.nn.Linear(size, following), make(activation)]
    return torch.nn.Sequential(*between, torch.nn.Linear(sizes[-1], outputs))
