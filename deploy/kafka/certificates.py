"""Certificates for a cluster on this machine: its own authority, a broker's, a client's."""

import shutil
import subprocess
from pathlib import Path

from deploy.kafka.errors import KafkaError
from deploy.kafka.files import write_private

EXTENSIONS = Path(__file__).with_name("openssl.cnf")

DAYS = "3650"
"""Validity in days: nobody renews certificates of a local test cluster."""

# generated much faster than an RSA key
NEW_KEY = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes")


def make_certificates(folder: Path) -> None:
    """Write the certificates and keys of a cluster, in PEM format.

    These are ca.pem; broker.pem with its key; client.pem, and its key in client-key.pem. The
    authority's key is deleted. Raises ``KafkaError`` if openssl is missing or fails.
    """
    program = shutil.which("openssl")
    if program is None:
        raise KafkaError("secure listeners need openssl, and there is none in PATH: install it")
    folder.mkdir(mode=0o700)
    openssl = _OpenSSL(program, folder)
    openssl.run(
        *("req", "-x509", *NEW_KEY, "-days", DAYS),
        *("-config", str(EXTENSIONS), "-extensions", "ca", "-subj", "/CN=fluxplain test authority"),
        *("-keyout", "ca-key.pem", "-out", "ca.pem"),
    )
    openssl.make_signed("broker", "/CN=localhost")
    openssl.make_signed("client", "/CN=fluxplain test client")
    # Kafka wants both in one file
    both = [(folder / name).read_text() for name in ("broker-key.pem", "broker.pem")]
    write_private(folder / "broker.pem", "".join(both))
    for name in ("ca-key.pem", "ca.srl", "broker-key.pem", "broker.csr", "client.csr"):
        (folder / name).unlink()


class _OpenSSL:
    def __init__(self, program: str, folder: Path) -> None:
        self._program = program
        self._folder = folder

    def make_signed(self, name: str, subject: str) -> None:
        self.run(
            *("req", "-new", *NEW_KEY, "-config", str(EXTENSIONS)),
            *("-subj", subject, "-keyout", f"{name}-key.pem", "-out", f"{name}.csr"),
        )
        self.run(
            *("x509", "-req", "-in", f"{name}.csr", "-days", DAYS, "-out", f"{name}.pem"),
            *("-CA", "ca.pem", "-CAkey", "ca-key.pem", "-CAserial", "ca.srl", "-CAcreateserial"),
            *("-extfile", str(EXTENSIONS), "-extensions", name),
        )

    def run(self, *arguments: str) -> None:
        ran = subprocess.run(  # noqa: S603  found in PATH
            [self._program, *arguments],
            cwd=self._folder,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            umask=0o077,
            check=False,
        )
        if ran.returncode:
            raise KafkaError(f"`openssl {arguments[0]}` failed: {ran.stderr.strip()[-300:]}")
