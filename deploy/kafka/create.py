"""Creates the folder of a new cluster."""

import base64
import secrets
import shutil
import subprocess
import uuid

from deploy.kafka.broker import PROPERTIES, Kafka
from deploy.kafka.certificates import make_certificates
from deploy.kafka.errors import KafkaError
from deploy.kafka.files import Files, write_private
from deploy.kafka.settings import USERNAME, Plan, free_block, server_properties


def create(files: Files, kafka: Kafka, *, brokers: int, secure: bool) -> Plan:
    """Create the folder of a new cluster: (1) secrets, (2) settings, (3) storage, (4) the plan.

    The plan comes last: a folder without it is incomplete, and is created again.
    """
    plan = Plan(_random_id(), brokers, secure, free_block())
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


def _random_id() -> str:
    return base64.urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=")


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
            raise KafkaError(f"Kafka's storage tool failed: {_reason(output)}")


def _reason(output: str) -> str:
    """Return a Java program's output without stack traces."""
    lines = [
        line.strip() for line in output.splitlines() if not line.startswith(("\tat ", "\t..."))
    ]
    return "; ".join(lines)[-400:]
