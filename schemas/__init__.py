"""The typed record of each topic.

``python -m fluxplain.schemas`` writes the JSON and Avro schemas from these definitions.
"""

from fluxplain.schemas.change import Change
from fluxplain.schemas.control import Control
from fluxplain.schemas.dead_letter import DeadLetter
from fluxplain.schemas.evaluation import Evaluation
from fluxplain.schemas.explanation import Explanation
from fluxplain.schemas.late_label import LateLabel
from fluxplain.schemas.observation import Observation
from fluxplain.schemas.prediction import Prediction
from fluxplain.schemas.reasons import Reasons
from fluxplain.schemas.record import (
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
    Reasons,
    Evaluation,
    Explanation,
    Change,
    DeadLetter,
)

INPUTS: tuple[type[Record], ...] = (Observation, LateLabel, Control)
"""Records that users write; the pipeline publishes the others."""

OUTPUTS: dict[str, type[Record]] = {
    record.TOPIC: record for record in (Prediction, Reasons, Explanation, Change, DeadLetter)
}
"""Topic that users read → its record, in the order of the data flow."""

__all__ = [
    "FIRST_INCARNATION",
    "INPUTS",
    "OUTPUTS",
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
    "Reasons",
    "Record",
    "is_newer",
    "parse_stream",
    "stream_name",
]
