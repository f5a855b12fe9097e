"""The typed record of each topic.

``python -m fluxplain.schemas`` writes the JSON and Avro schemas from these definitions.
"""

from fluxplain.schemas.change import Change
from fluxplain.schemas.control import Control
from fluxplain.schemas.dead_letter import DeadLetter
from fluxplain.schemas.evaluation import Evaluation
from fluxplain.schemas.explanation import Explanation
from fluxplain.schemas.late_label import LateLabel
from fluxplain.schemas.note import Note
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

INPUTS: tuple[type[Record], ...] = (Observation, LateLabel, Control)
"""Records that users write, and that the pipeline reads."""

PUBLISHED: tuple[type[Record], ...] = (
    Prediction,
    Reasons,
    Evaluation,
    Explanation,
    Change,
    DeadLetter,
)
"""Records that the pipeline publishes."""

RECORDS: tuple[type[Record], ...] = (*INPUTS, *PUBLISHED, Note)

OUTPUTS: dict[str, type[Record]] = {
    record.TOPIC: record for record in (Prediction, Reasons, Explanation, Change, DeadLetter)
}
"""Topic that users read → its record, in the order of the data flow."""

SHOWN: dict[str, type[Record]] = {**OUTPUTS, Note.TOPIC: Note}
"""Topic that the user interfaces read → its record."""

__all__ = [
    "FIRST_INCARNATION",
    "INPUTS",
    "OUTPUTS",
    "PUBLISHED",
    "RECORDS",
    "SHOWN",
    "BadRecordError",
    "Change",
    "Control",
    "DeadLetter",
    "Evaluation",
    "Explanation",
    "Incarnation",
    "LateLabel",
    "Note",
    "Observation",
    "Prediction",
    "Reasons",
    "Record",
    "is_newer",
    "parse_stream",
    "stream_name",
]
