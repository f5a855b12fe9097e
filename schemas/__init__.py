"""One typed record per topic, and its JSON Schema beside it.

``python -m schemas`` writes the JSON Schemas anew.
"""

from schemas.change import Change
from schemas.control import Control
from schemas.dead_letter import DeadLetter
from schemas.evaluation import Evaluation
from schemas.explanation import Explanation
from schemas.late_label import LateLabel
from schemas.observation import Observation
from schemas.prediction import Prediction
from schemas.record import (
    FIRST_INCARNATION,
    BadRecordError,
    Incarnation,
    Record,
    is_newer,
    parse_stream,
    stream_name,
)

RECORDS: tuple[type[Record], ...] = (
    Observation,
    LateLabel,
    Control,
    Prediction,
    Evaluation,
    Explanation,
    Change,
    DeadLetter,
)

INPUTS: tuple[type[Record], ...] = (Observation, LateLabel, Control)
"""What is taken in; the pipeline publishes the others."""

__all__ = [
    "FIRST_INCARNATION",
    "INPUTS",
    "RECORDS",
    "BadRecordError",
    "Change",
    "Control",
    "DeadLetter",
    "Evaluation",
    "Explanation",
    "Incarnation",
    "LateLabel",
    "Observation",
    "Prediction",
    "Record",
    "is_newer",
    "parse_stream",
    "stream_name",
]
