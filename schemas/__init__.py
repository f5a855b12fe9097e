"""One typed record per topic, and its JSON Schema beside it.

``python -m schemas`` writes the JSON Schemas anew.
"""

from schemas.change import Change
from schemas.dead_letter import DeadLetter
from schemas.evaluation import Evaluation
from schemas.explanation import Explanation
from schemas.observation import Observation
from schemas.prediction import Prediction
from schemas.record import BadRecordError, Record, parse_stream, stream_name

RECORDS: tuple[type[Record], ...] = (
    Observation,
    Prediction,
    Evaluation,
    Explanation,
    Change,
    DeadLetter,
)

__all__ = [
    "RECORDS",
    "BadRecordError",
    "Change",
    "DeadLetter",
    "Evaluation",
    "Explanation",
    "Observation",
    "Prediction",
    "Record",
    "parse_stream",
    "stream_name",
]
