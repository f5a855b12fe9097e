"""Findings about this machine: the folder of checkpoints, free disk, and ports."""

import os
import shutil
import urllib.request
from collections.abc import Iterator
from http.client import HTTPException
from pathlib import Path
from urllib.error import HTTPError

import orjson

from fluxplain.cli.doctor.findings import Finding, ok
from fluxplain.cli.ports import why_busy, worker_ports
from fluxplain.config import Config

GB = 1_000_000_000

LITTLE = GB
"""Free bytes below which the disk is nearly full: checkpoints can take some hundred MB."""

LONGEST_ANSWER = 100_000
"""Most bytes to read of an answer."""

ANSWER_S = 2.0
"""Seconds to wait for whoever has a port."""


def checkpoint_findings(config: Config) -> Iterator[Finding]:
    """Check the folder where workers save their state, if there is one."""
    if config.checkpoint.store == "topic":
        yield ok("checkpoints: in their topic, signed with a key")
        return
    folder = config.checkpoint.directory.absolute()
    there = _existing(folder)
    if not there.is_dir():
        yield Finding("problem", f"checkpoint.directory is {folder}, but {there} is a file")
        return
    if not os.access(there, os.W_OK | os.X_OK):
        remedy = "Give this user the right, or set checkpoint.directory to another folder"
        yield Finding("problem", f"checkpoints: this user cannot write to {there}", remedy)
        return
    free = shutil.disk_usage(there).free
    what = f"checkpoints: {folder}, {free / GB:,.1f} GB free"
    if free < LITTLE:
        remedy = "Free some: a worker that cannot save its state ends"
        yield Finding("warning", what, remedy)
    else:
        yield ok(what)


def port_findings(config: Config) -> Iterator[Finding]:
    """Check that `fluxplain up` can have its ports, or has them already."""
    host, ports = config.health.host, worker_ports(config, 1)
    roles = []
    for port in ports:
        reason = why_busy(host, port)
        if reason and (role := _worker_at(host, port)):
            roles.append(role)
        elif reason:
            remedy = "Another program has it: set health.port to another one, or to 0"
            yield Finding("problem", f"no worker can listen at {host}:{port}: {reason}", remedy)
    if roles:
        yield ok(f"ports: workers of this machine answer: {', '.join(roles)}")
    elif ports:
        yield ok(f"ports: health endpoints at {host}:{ports[0]} to {ports[-1]}")
    page = config.dashboard
    if not (page.enabled and page.port):
        return
    if reason := why_busy(page.host, page.port):
        yield Finding(
            "warning",
            f"the dashboard's port {page.port} is taken: {reason}",
            "All is well if a dashboard of this pipeline runs there; else set dashboard.port",
        )
    else:
        yield ok(f"ports: dashboard at {page.host}:{page.port}")


def _worker_at(host: str, port: int) -> str | None:
    """Return the role of the worker that has a port; None if it is no worker."""
    name = "localhost" if host in {"0.0.0.0", "::"} else host  # noqa: S104  not to listen there
    url = f"http://{f'[{name}]' if ':' in name else name}:{port}/healthz"
    try:
        with urllib.request.urlopen(url, timeout=ANSWER_S) as answer:
            body = answer.read(LONGEST_ANSWER)
    except HTTPError as error:
        body = error.read(LONGEST_ANSWER)
    except (OSError, HTTPException):
        return None
    try:
        return str(orjson.loads(body)["role"])
    except (ValueError, TypeError, KeyError):
        return None


def disk_finding(folder: Path, needed: float) -> Finding:
    """Compare the free disk with what checkpoints and their history need, in bytes."""
    there = _existing(folder)
    free = shutil.disk_usage(there).free
    what = f"checkpoints and their history need about {needed / GB:,.2f} GB of {free / GB:,.1f} GB"
    if needed > free:
        return Finding("problem", what, "Free some, or reduce checkpoint.history")
    return ok(what)


def _existing(folder: Path) -> Path:
    """Return the folder, or the nearest one above it that exists."""
    return next(each for each in (folder, *folder.parents) if each.exists())
