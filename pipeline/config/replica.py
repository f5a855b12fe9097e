"""Roles of the pipeline, and replicas: a role or one shard of the model role."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

Role = Literal["join", "model", "explainer", "drift"]
"""The roles in the order of the data flow. Only a pipeline with several input topics has join."""


@dataclass(frozen=True, slots=True)
class Replica:
    """A role, or one shard of the model role, with its own consumer group and state.

    Examples
    --------
    >>> str(Replica("drift")), str(Replica("model", shard=0, shards=2))
    ('drift', 'model-0of2')
    >>> Replica("model", shard=1, shards=2).share(["a", "b", "c", "d"])
    ['b', 'd']
    """

    role: Role
    shard: int = 0
    shards: int = 1

    def __str__(self) -> str:
        return self.role if self.shards == 1 else f"{self.role}-{self.shard}of{self.shards}"

    def share(self, explained: Iterable[str]) -> list[str]:
        """Return the features, groups and pairs that this replica evaluates."""
        return list(explained)[self.shard :: self.shards]
