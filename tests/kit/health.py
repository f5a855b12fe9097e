"""What a worker's health and metrics answer."""

import json
import re
import time
import urllib.request
from typing import Any
from urllib.error import HTTPError

from tests.kit.kafka_pipeline import KafkaPipeline


def address(pipeline: KafkaPipeline, role: str) -> str:
    """Return where the role's newest worker listens, as its log says."""
    found: list[str] = []
    while not found:
        pipeline.workers.check()
        found = re.findall(rf"{role}: health at (http://\S+)", pipeline.log)
        time.sleep(0.1)
    return found[-1]


def ask(url: str) -> tuple[int, dict[str, Any]]:
    try:
        with urllib.request.urlopen(url, timeout=10) as answer:
            return answer.status, json.load(answer)
    except HTTPError as error:
        return error.code, json.load(error)


def wait_for(url: str, status: int) -> dict[str, Any]:
    deadline = time.monotonic() + 60
    while (answer := ask(url))[0] != status:
        assert time.monotonic() < deadline, answer
        time.sleep(0.2)
    return answer[1]
