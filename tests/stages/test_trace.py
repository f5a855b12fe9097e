"""Traces: what a consumer with OpenTelemetry takes from a prediction is the producer's span."""

from collections.abc import Mapping
from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st
from opentelemetry.trace import get_current_span
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

from fluxplain.schemas import DeadLetter, Prediction
from fluxplain.stages import JoinStage, ModelStage, process
from fluxplain.stages.stage import Message
from fluxplain.stages.trace import MAX_STATE, trace_of
from tests.kit.support import PROPERTY, linear_config, message

PARENT = b"00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"

CONTEXT = {"traceparent": PARENT, "tracestate": b"vendor=1,other=x"}


def traced(value: bytes, headers: Mapping[str, bytes] = CONTEXT, seq: int = 0) -> Message:
    return replace(message(seq, value), headers=headers)


def of_prediction(headers: Mapping[str, bytes]) -> Mapping[str, bytes]:
    record = Prediction("features-0", 0, None, None, None, 1, None, None, None, None)
    return trace_of(record, traced(b"{}", headers))


def test_only_the_context_is_passed_on() -> None:
    assert of_prediction({**CONTEXT, "tenant": b"7"}) == CONTEXT
    assert of_prediction({}) == {}
    assert of_prediction({"tracestate": b"vendor=1"}) == {}
    assert of_prediction({"traceparent": PARENT}) == {"traceparent": PARENT}


def test_a_state_that_need_not_be_passed_on_is_left_out() -> None:
    assert of_prediction({**CONTEXT, "tracestate": b"a=" + b"1" * (MAX_STATE - 1)}) == {
        "traceparent": PARENT
    }


HEX = st.text("0123456789abcdef", min_size=32, max_size=32)


@PROPERTY
@given(
    parent=st.builds(
        "{}-{}-{}-{}".format,
        HEX.map(lambda text: text[:2]) | st.sampled_from(["00", "ff", "0", "0A"]),
        HEX | st.sampled_from(["0" * 32, "1" * 31, "A" * 32]),
        HEX.map(lambda text: text[:16]) | st.sampled_from(["0" * 16, "1" * 17]),
        HEX.map(lambda text: text[:2]) | st.sampled_from(["", "1", "01-"]),
    )
    | st.text()
)
def test_exactly_what_open_telemetry_takes_for_a_context_is_passed_on(parent: str) -> None:
    taken = TraceContextTextMapPropagator().extract({"traceparent": parent})
    is_valid = get_current_span(taken).get_span_context().is_valid
    goes_on = of_prediction({"traceparent": parent.encode(errors="surrogatepass")})
    if goes_on:
        assert is_valid
    elif len(parent) == 55:  # later versions may be longer, but there are none
        assert not is_valid


def test_what_is_of_one_message_has_its_context_and_what_is_of_another_has_not() -> None:
    label = {"type": "number", "wait": 1, "unlabelled": "dead-letter"}
    stage = ModelStage(linear_config(label=label), "features-0")
    other = {"traceparent": PARENT.replace(b"01", b"00")}
    x = b'{"x": {"a": 1, "b": 2, "c": "red"}'
    messages = [
        traced(x + b', "id": 1}', CONTEXT, seq=0),
        traced(b'{"x": {"a": 1}}', other, seq=1),
        traced(x + b', "y": 1}', other, seq=2),
        traced(x + b', "y": 1}', {}, seq=3),
    ]
    traces = {
        (type(record), record.seq): trace_of(record, each)
        for each in messages
        for record in process(stage, each)
        if isinstance(record, Prediction | DeadLetter)
    }
    assert traces == {
        (Prediction, 0): CONTEXT,
        (DeadLetter, 1): other,
        (DeadLetter, 0): {},  # waited in vain for its label until the last came
        (Prediction, 2): other,
        (Prediction, 3): {},
    }


def test_what_is_passed_on_keeps_its_context() -> None:
    [record] = process(JoinStage(), traced(b"{}"))
    assert CONTEXT.items() <= record.message_headers().items()
    assert trace_of(record, traced(b"{}")) == CONTEXT
