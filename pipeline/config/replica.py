"""What the pipeline consists of: roles, and the shards of the model role."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

Role = Literal["join", "model", "explainer", "drift"]
"""In the order of the data's flow. A pipeline has the first if labels have a topic of their own."""


@dataclass(frozen=True, slots=True)
class Replica:
    """What has a consumer group and a state of its own: a role, or one shard of the model role.

    Examples
    --------
    >>> str(Replica("drift")), str(Replica("model", shard=0, shards=2))
    ('drift', 'model-0of2')
    """

    role: Role
    shard: int = 0
    shards: int = 1

    def __str__(self) -> str:
        return self.role if self.shards == 1 else f"{self.role}-{self.shard}of{self.shards}"

    def share(self, explained: Iterable[str]) -> list[str]:
        """Return which of the features and groups this replica evaluates.

        Examples
        --------
        >>> Replica("model", shard=1, shards=2).share(["a", "b", "c", "d"])
        ['b', 'd']
        """
        return list(explained)[self.shard :: self.shards]
