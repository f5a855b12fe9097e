"""Creates the folder of a new cluster, with its certificates: an authority, a broker, a client."""

import base64
import secrets
import shutil
import subprocess
import uuid
from pathlib import Path

from deploy.kafka.broker import PROPERTIES, Kafka
from deploy.kafka.files import Files, KafkaError, write_private
from deploy.kafka.settings import USERNAME, Plan, free_block, server_properties

EXTENSIONS = str(Path(__file__).with_name("openssl.cnf"))

DAYS = "3650"
"""Validity in days: nobody renews certificates of a local test cluster."""

# generated much faster than an RSA key
NEW_KEY = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes")


def create(files: Files, kafka: Kafka, *, brokers: int, secure: bool) -> Plan:
    """Create the folder of a new cluster: (1) secrets, (2) settings, (3) storage, (4) the plan.

    The plan comes last: a folder without it is incomplete, and is created again.
    """
    cluster_id = base64.urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=")
    plan = Plan(cluster_id, brokers, secure, free_block())
    for old in (files.tls, *map(files.broker, plan.nodes)):
        shutil.rmtree(old, ignore_errors=True)
    password = secrets.token_urlsafe(24)
    if secure:
        write_private(files.password, password + "\n")
        make_certificates(files.tls)
    for node in plan.nodes:
        folder = files.broker(node)
        folder.mkdir()
        write_private(folder / PROPERTIES, server_properties(plan, node, password))
    _format(files, kafka, plan, password)
    plan.write(files.plan)
    return plan


def _format(files: Files, kafka: Kafka, plan: Plan, password: str) -> None:
    """Format the storage of all nodes at the same time: each takes a second to start Java."""
    # one argument, since an id may begin with a dash
    arguments = ["format", f"--cluster-id={plan.cluster_id}", "--config", PROPERTIES]
    if plan.secure:
        for mechanism in ("SCRAM-SHA-256", "SCRAM-SHA-512"):
            arguments += ["--add-scram", f"{mechanism}=[name={USERNAME},password={password}]"]
    # in a file: all users can see a command's arguments
    written = files.folder / "format.arguments"
    write_private(written, "\n".join(("kafka.tools.StorageTool", *arguments)))
    try:
        running = [
            kafka.popen(files.broker(node), f"@{written}", output=subprocess.PIPE)
            for node in plan.nodes
        ]
        said = [process.communicate()[0].decode(errors="replace") for process in running]
    finally:
        written.unlink()
    for process, output in zip(running, said, strict=True):
        if process.returncode:
            # without stack traces
            lines = [
                each for each in output.splitlines() if not each.startswith(("\tat ", "\t..."))
            ]
            reason = "; ".join(map(str.strip, lines))[-400:]
            raise KafkaError(f"Kafka's storage tool failed: {reason}")


def make_certificates(folder: Path) -> None:
    """Write the certificates and keys of a cluster, in PEM format.

    These are ca.pem; broker.pem with its key; client.pem, and its key in client-key.pem. The
    authority's key is deleted. Raises ``KafkaError`` if openssl is missing or fails.
    """
    folder.mkdir(mode=0o700)
    _openssl(
        folder,
        *("req", "-x509", *NEW_KEY, "-days", DAYS),
        *("-config", EXTENSIONS, "-extensions", "ca", "-subj", "/CN=fluxplain test authority"),
        *("-keyout", "ca-key.pem", "-out", "ca.pem"),
    )
    _make_signed(folder, "broker", "/CN=localhost")
    _make_signed(folder, "client", "/CN=fluxplain test client")
    # Kafka wants both in one file
    both = [(folder / name).read_text() for name in ("broker-key.pem", "broker.pem")]
    write_private(folder / "broker.pem", "".join(both))
    for name in ("ca-key.pem", "ca.srl", "broker-key.pem", "broker.csr", "client.csr"):
        (folder / name).unlink()


def _make_signed(folder: Path, name: str, subject: str) -> None:
    _openssl(
        folder,
        *("req", "-new", *NEW_KEY, "-config", EXTENSIONS),
        *("-subj", subject, "-keyout", f"{name}-key.pem", "-out", f"{name}.csr"),
    )
    _openssl(
        folder,
        *("x509", "-req", "-in", f"{name}.csr", "-days", DAYS, "-out", f"{name}.pem"),
        *("-CA", "ca.pem", "-CAkey", "ca-key.pem", "-CAserial", "ca.srl", "-CAcreateserial"),
        *("-extfile", EXTENSIONS, "-extensions", name),
    )


def _openssl(folder: Path, *arguments: str) -> None:
    try:
        ran = subprocess.run(  # noqa: S603  found in PATH
            ["openssl", *arguments],  # noqa: S607
            cwd=folder,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            umask=0o077,
            check=False,
        )
    except FileNotFoundError:
        raise KafkaError(
            "secure listeners need openssl, and there is none in PATH: install it"
        ) from None
    if ran.returncode:
        raise KafkaError(f"`openssl {arguments[0]}` failed: {ran.stderr.strip()[-300:]}")
