"""Opens the decoder and encoder of a configuration; imports the extra only with a registry."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from fluxplain.config import Config, ConfigError

if TYPE_CHECKING:
    from fluxplain.kafka.registry.avro_decoder import Decoder
    from fluxplain.kafka.registry.avro_encoder import Encoder


def open_decoder(config: Config) -> "Decoder | None":
    """Return a decoder, None without a registry; raise ConfigError if the extra is missing."""
    if config.registry.url is None:
        return None
    with _extra():
        # imported here: few need it, and it is slow
        from fluxplain.kafka.registry.avro_decoder import Decoder  # noqa: PLC0415
        from fluxplain.kafka.registry.registry_client import Registry  # noqa: PLC0415
    return Decoder(Registry(config.registry))


def open_encoder(config: Config) -> "Encoder | None":
    """Return an encoder, None for plain JSON; raise as :class:`Encoder` or `open_decoder`."""
    if config.registry.output == "none":
        return None
    with _extra():
        from fluxplain.kafka.registry.avro_encoder import Encoder  # noqa: PLC0415  as above
    return Encoder(config)


def check_registry(config: Config) -> None:
    """Check that a configured registry answers; raise as its client or `open_decoder`."""
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
