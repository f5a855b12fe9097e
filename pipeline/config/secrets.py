"""Secrets, certificates and URLs; secrets are never in the configuration file or in errors."""

import ssl
from pathlib import Path
from typing import Annotated
from urllib.parse import SplitResult, urlsplit

from pydantic import AfterValidator, Field, SecretStr

from fluxplain.config.base import Section

Secret = Annotated[SecretStr | None, Field(min_length=1)]


def _readable(path: Path) -> Path:
    try:
        path.read_bytes()
    except OSError as error:
        raise ValueError(f"this file cannot be read: {error.strerror}") from None
    return path


ReadableFile = Annotated[Path, AfterValidator(_readable)]


class Secrets(Section):
    """A table with secrets, set by environment variables or in the file ``<key>_file``."""

    def read_secret(self, key: str, shortest: int = 1) -> str | None:
        """Return a secret; None if it is not set. A file is read each time: secrets rotate."""
        value: SecretStr | None = getattr(self, key)
        path: Path | None = getattr(self, f"{key}_file")
        if value is not None and path is not None:
            both = f"{key}_file is {str(path)!r}, but the environment has {key} too"
            raise ValueError(f"{both}: give only one of them")
        if value is not None:
            source, text = key, value.get_secret_value()
        elif path is not None:
            source, text = f"{key}_file {path}", _line_of(f"{key}_file", path)
        else:
            return None
        if len(text) < shortest:
            raise ValueError(
                f"{source} has {len(text)} characters, but must have at least {shortest}: "
                "`openssl rand -hex 32` makes one"
            )
        return text


def _line_of(key: str, path: Path) -> str:
    """Return the only line of a file, without its newline."""
    where = f"{key} is {str(path)!r}, and this file"
    try:
        text = path.read_text(encoding="utf-8").removesuffix("\n").removesuffix("\r")
    except OSError as error:
        raise ValueError(f"{where} cannot be read: {error.strerror}") from None
    except UnicodeDecodeError:
        raise ValueError(f"{where} is not UTF-8 text") from None
    if not text or "\n" in text:
        raise ValueError(f"{where} {'has more than one line' if text else 'is empty'}")
    return text


def trusting(ca_file: Path | None, key: str = "ca_file") -> ssl.SSLContext:
    """Return a TLS context that verifies the server's name, by default with the system's CAs."""
    try:
        return ssl.create_default_context(cafile=ca_file)
    except OSError as error:  # includes ssl.SSLError
        raise ValueError(
            f"{key} is {str(ca_file)!r}, which holds no certificates in PEM format: {reason(error)}"
        ) from None


def reason(error: OSError) -> str:
    """Return the reason given by OpenSSL or the system."""
    if isinstance(error, ssl.SSLError) and error.reason:
        return error.reason.replace("_", " ").lower()
    return error.strerror or str(error)


def split_url(url: str, schemes: tuple[str, ...] = ("http", "https")) -> SplitResult | None:
    """Return the parts of a URL; None if a client cannot use it."""
    try:
        parts = urlsplit(url)
        fits = parts.scheme in schemes and bool(parts.hostname) and parts.port != 0
    except ValueError:  # a wrong port or IPv6 address
        return None
    return parts if fits and url.isprintable() and " " not in url else None


def shown(url: str) -> str:
    """Return scheme, host and port of a URL; the rest may be secret.

    >>> shown("https://user:password@hooks.example:8443/services/T0/token?key=1")
    'https://hooks.example:8443'
    """
    parts = urlsplit(url)
    host = f"[{parts.hostname}]" if ":" in (parts.hostname or "") else parts.hostname
    return f"{parts.scheme}://{host}{f':{parts.port}' if parts.port else ''}"
