"""Room that is shared by however many there come to be."""


class Shares:
    """Equal shares of some room, which halve whenever those who share it double.

    So all together never take more than there is, and rarely must one give back.

    Parameters
    ----------
    room
        What there is, in whatever unit.

    Examples
    --------
    >>> shares = Shares(room=1000)
    >>> [(shares.join(), shares.each) for _ in range(5)]
    [(False, 1000), (True, 500), (True, 250), (False, 250), (True, 125)]
    """

    def __init__(self, room: int) -> None:
        self.each = room
        self._room = room
        self._places = 1
        self._taken = 0

    def join(self) -> bool:
        """Give one more a share; return whether those of the others are smaller for it."""
        self._taken += 1
        if self._taken <= self._places:
            return False
        self._places *= 2
        self.each = self._room // self._places
        return True
