"""The command line, ``python -m deploy.kafka``."""

import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from typing import Annotated, NoReturn

import typer

from deploy.kafka.cluster import Cluster, say
from deploy.kafka.files import Files, KafkaError
from deploy.kafka.java import kafka_version
from deploy.kafka.settings import Plan
from fluxplain.cli.interruption import Interruption, until_interrupted

COMMAND_STOP_TIMEOUT_S = 20.0
"""Seconds that a command under `run` may take to end after Ctrl-C before it is killed."""

app = typer.Typer(
    name="python -m deploy.kafka",
    help=f"Apache Kafka {kafka_version()} on this machine, without Docker: 1 or 3 brokers that "
    "listen on 127.0.0.1 only."
    "\n\nNeeds Java 17 or newer, and Maven for the first start, which gets Kafka from Maven "
    "Central. Start with `start`; `run -- COMMAND` is for tests.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode="markdown",
    context_settings={"help_option_names": ["-h", "--help"]},
)

Folder = Annotated[
    Path,
    typer.Option(
        "--folder", metavar="DIR", help="Folder of the cluster: settings, data, logs, process ids."
    ),
]
DEFAULT_FOLDER = Path(".fluxplain/kafka")
Brokers = Annotated[
    int | None,
    typer.Option(
        metavar="1|3",
        help="How many brokers. With three, topics have three replicas, and one broker may die. "
        "By default 1, or as many as the folder has.",
        show_default=False,
    ),
]
Secure = Annotated[
    bool,
    typer.Option("--secure", help="Listen for SASL_SSL and SSL too, with passwords and TLS."),
]
Node = Annotated[int, typer.Argument(metavar="BROKER", help="Number of a broker: 1, 2 or 3.")]
MaybeNode = Annotated[
    int | None,
    typer.Argument(
        metavar="BROKER", help="Number of a broker; by default all.", show_default=False
    ),
]


def main() -> NoReturn:
    """Run a command; a user's error gives one sentence, not a stack trace."""
    try:
        app()
    except KafkaError as error:
        say(f"Error: {error}")
    except OSError as error:
        say(f"Error: {error.filename or 'system'}: {error.strerror}")
    sys.exit(2)


@app.command()
def start(
    broker: MaybeNode = None,
    folder: Folder = DEFAULT_FOLDER,
    brokers: Brokers = None,
    secure: Secure = False,
) -> None:
    """Start all brokers, or one that was stopped or killed, and wait until they answer.

    They run until `stop`, after this command has ended. An existing folder is used again, with the
    same ports. Topics are not created on demand: use `fluxplain topics create`.
    """
    if broker is not None:
        Cluster.attach(folder).start_broker(broker)
        print(f"Broker {broker} answers.")
        return
    plan = Plan.read(Files(folder).plan)
    cluster = Cluster(
        folder, brokers or (plan.brokers if plan else 1), secure or bool(plan and plan.secure)
    )
    cluster.start()
    _describe(cluster)


@app.command()
def stop(broker: MaybeNode = None, folder: Folder = DEFAULT_FOLDER) -> None:
    """Stop the brokers, or one of them, gracefully; their data stays."""
    cluster = Cluster.attach(folder)
    if broker is None:
        cluster.stop()
        print("Stopped.")
    else:
        cluster.stop_broker(broker)
        print(f"Broker {broker} is stopped.")


@app.command()
def kill(broker: Node, folder: Folder = DEFAULT_FOLDER) -> None:
    """Kill a broker (SIGKILL), to see what happens; `start BROKER` brings it back.

    After 5 s the others take over its partitions.
    """
    Cluster.attach(folder).kill_broker(broker)
    print(f"Broker {broker} is killed.")


@app.command()
def status(folder: Folder = DEFAULT_FOLDER) -> None:
    """Show the brokers and their addresses.

    The exit status is 0 only if all run and answer.
    """
    cluster = Cluster.attach(folder)
    pids = cluster.pids()
    answering = cluster.answering() if any(pids.values()) else set()
    well = [pid is not None and node in answering for node, pid in pids.items()]
    for (node, pid), answers in zip(pids.items(), well, strict=True):
        state = "answers" if answers else "does not answer"
        shown = f"process {pid} {state}" if pid else "is not running"
        print(f"broker {node}  {cluster.plan.address(node, 'PLAINTEXT')}  {shown}")
    for name in cluster.plan.listeners:
        if name != "CONTROLLER":
            print(f"{name:9} {cluster.plan.addresses(name)}")
    raise typer.Exit(0 if all(well) else 1)


@app.command()
def clean(folder: Folder = DEFAULT_FOLDER) -> None:
    """Stop the brokers, and remove the folder with all data."""
    # only if it holds a cluster: --folder may be a mistake
    Cluster.attach(folder).remove()
    print(f"Removed {folder}.")


@app.command()
def run(
    command: Annotated[
        list[str], typer.Argument(metavar="COMMAND", help="What to run, with its arguments.")
    ],
    brokers: Brokers = None,
    secure: Secure = False,
) -> None:
    """Run a command with new brokers in a temporary folder, and stop them when it ends.

    The command finds their addresses in TEST_KAFKA, and their folder in TEST_KAFKA_FOLDER. The
    exit status is that of the command, as in `python -m deploy.kafka run -- pytest -m kafka`.
    """
    program = shutil.which(command[0])
    if program is None:
        raise KafkaError(f"there is no command {command[0]}")
    status = 0
    with until_interrupted() as interruption, Cluster(None, brokers or 1, secure) as cluster:
        status = _run_beside(cluster, [program, *command[1:]], interruption)
    raise typer.Exit(interruption.status or status)


def _describe(cluster: Cluster) -> None:
    print(f"Apache Kafka in {cluster.folder}. For fluxplain.toml:")
    print(f'\n[kafka]\nbootstrap_servers = "{cluster.bootstrap_servers}"')
    if cluster.plan.secure:
        print(
            "\nor, with a password and TLS (mechanism SCRAM-SHA-512, SCRAM-SHA-256 or PLAIN):"
            f'\n\n[kafka]\nbootstrap_servers = "{cluster.sasl_bootstrap_servers}"'
            f'\nsecurity_protocol = "SASL_SSL"\nusername = "{cluster.username}"'
            f'\npassword_file = "{cluster.password_file}"\nca_file = "{cluster.ca_file}"'
            "\n\nor, with TLS and a client's certificate, which is not required:"
            f'\n\n[kafka]\nbootstrap_servers = "{cluster.tls_bootstrap_servers}"'
            f'\nsecurity_protocol = "SSL"\nca_file = "{cluster.ca_file}"'
            f'\nclient_cert_file = "{cluster.client_cert_file}"'
            f'\nclient_key_file = "{cluster.client_key_file}"'
        )


def _run_beside(cluster: Cluster, command: list[str], interruption: Interruption) -> int:
    """Run a command, and return its exit status as a shell would."""
    environment = {
        **os.environ,
        "TEST_KAFKA": cluster.bootstrap_servers,
        "TEST_KAFKA_FOLDER": str(cluster.folder),
    }
    with subprocess.Popen(command, env=environment) as child:  # noqa: S603  the user's
        try:
            status = child.wait()
        except KeyboardInterrupt:
            # Ctrl-C in a terminal also reaches the command
            _end(child, asked=interruption.by == signal.SIGINT)
            raise
    return status if status >= 0 else 128 - status


def _end(child: "subprocess.Popen[bytes]", *, asked: bool) -> None:
    """End a command: ask it unless that was done, wait for its cleanup, and finally kill it."""
    if not asked:
        child.terminate()
    for insist in (child.terminate, child.kill):
        try:
            child.wait(COMMAND_STOP_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            insist()


if __name__ == "__main__":
    main()
