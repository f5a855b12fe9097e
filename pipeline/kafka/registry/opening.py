"""Makes what reads and writes the wire format, if a registry is configured."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from pipeline.config import Config, ConfigError

if TYPE_CHECKING:
    from pipeline.kafka.registry.decoder import Decoder
    from pipeline.kafka.registry.encoder import Encoder


def open_decoder(config: Config) -> "Decoder | None":
    """Return what opens messages in the wire format; None without a registry.

    Raises
    ------
    ConfigError
        If the libraries for it are not installed.
    """
    if config.registry.url is None:
        return None
    with _extra():
        # what few need, and slow to import
        from pipeline.kafka.registry.client import Registry  # noqa: PLC0415
        from pipeline.kafka.registry.decoder import Decoder  # noqa: PLC0415
    return Decoder(Registry(config.registry))


def open_encoder(config: Config) -> "Encoder | None":
    """Return what writes in the wire format; None if all is published as plain JSON.

    Raises
    ------
    ConfigError
        If the libraries for it are not installed.
    AccessError, RegistryError
        As :class:`pipeline.kafka.registry.encoder.Encoder`.
    """
    if config.registry.output == "none":
        return None
    with _extra():
        from pipeline.kafka.registry.encoder import Encoder  # noqa: PLC0415  as above
    return Encoder(config)


def check_registry(config: Config) -> None:
    """Ask the registry whether it is one, if it is configured.

    Raises
    ------
    ConfigError
        If the libraries for it are not installed.
    AccessError, RegistryError
        As :meth:`pipeline.kafka.registry.client.Registry.check`.
    """
    decoder = open_decoder(config)
    if decoder is not None:
        decoder.registry.check()


@contextmanager
def _extra() -> Iterator[None]:
    try:
        yield
    except ImportError as error:
        raise ConfigError(
            f"registry.url is set, but {error.name} is not installed: "
            "pip install 'fluxplain[registry]'"
        ) from None
