"""Distributes the partitions over a group's members so that as few as possible move."""

from collections.abc import MutableMapping

from faust.assignor.client_assignment import CopartitionedAssignment
from faust.assignor.copartitioned_assignor import CopartitionedAssignor


class FewestMoves(CopartitionedAssignor):
    """Takes no more partitions from a member than it must, and gives them to those with fewest.

    Faust's own assignor reduces all members to the smallest share, and then distributes what it has
    taken, often to others than before. Tables, of which it keeps replicas, are not used here.
    """

    def get_assignment(self) -> MutableMapping[str, CopartitionedAssignment]:
        """Return the new assignment of each member."""
        assignments: MutableMapping[str, CopartitionedAssignment] = self._client_assignments
        members = dict(sorted(assignments.items()))
        self._unassign_overassigned(active=True)
        least, larger = divmod(self.num_partitions, len(members))
        # those with the most partitions keep the larger shares
        ordered = sorted(members.values(), key=lambda member: -len(member.actives))
        for i, member in enumerate(ordered):
            member.unassign_extras(least + (i < larger), replicas=0)
        for partition in self._get_unassigned(active=True):
            fewest = min(members.values(), key=lambda member: len(member.actives))
            fewest.assign_partition(partition, active=True)
        return assignments
