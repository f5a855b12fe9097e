"""Messages that Faust delivers together: all of them, in order, and not too many at a time."""

from aiokafka.structs import ConsumerRecord
from faust.types import TP
from hypothesis import given
from hypothesis import strategies as st

from fluxplain.kafka.faust.delivery import MOST_BYTES, MOST_MESSAGES, Delivery, Record, Together
from fluxplain.kafka.headers import size_of

SIZES = st.lists(st.sampled_from([0, 10, MOST_BYTES // 3, MOST_BYTES]), min_size=1, max_size=60)


def record(tp: TP, offset: int, size: int = 1) -> Record:
    return ConsumerRecord(
        *(tp.topic, tp.partition, offset, 1_500 + offset, 0, b"", b"v" * size, None, 0, size, ())
    )


@given(st.dictionaries(st.builds(TP, st.sampled_from("ab"), st.integers(0, 2)), SIZES))
def test_each_message_is_in_one_delivery_in_order_and_none_is_too_large(
    fetched: dict[TP, list[int]],
) -> None:
    records = {
        tp: [record(tp, 2 * i, size) for i, size in enumerate(sizes)]
        for tp, sizes in fetched.items()
    }
    delivered: dict[TP, list[Record]] = {tp: [] for tp in records}
    for tp, together in Together().iterate(records):
        assert 0 < len(together) <= MOST_MESSAGES
        assert sum(map(size_of, together[:-1])) < MOST_BYTES
        delivered[tp] += together
    assert delivered == records


def test_its_messages_are_as_they_were_read() -> None:
    tp = TP("features", 3)
    delivery = Delivery.of(tp, [record(tp, 7), record(tp, 9)], generation_id=4)
    assert (delivery.topic, delivery.partition, delivery.offset) == ("features", 3, 7)
    assert delivery.next_offset == 10
    first, second = delivery.messages()
    assert (first.offset, second.offset) == (7, 9)
    assert (first.timestamp, first.value, first.generation_id) == (1.507, b"v", 4)


def test_partitions_take_turns() -> None:
    records = {TP("a", n): [record(TP("a", n), i) for i in range(40)] for n in range(3)}
    order = [tp.partition for tp, _ in Together().iterate(records)]
    assert order == [0, 1, 2] * 3
