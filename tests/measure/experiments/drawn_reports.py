"""Reports as they are written: from results in JSON, and drawn."""

import json
from typing import Any

from matplotlib.figure import Figure

from tests.measure.experiments.experiment import Report


def reported(module: Any, results: dict[str, Any]) -> Report:
    """Return the report after a round trip through JSON, drawn."""
    report: Report = module.report(json.loads(json.dumps(results)))
    report.draw(Figure())
    return report
