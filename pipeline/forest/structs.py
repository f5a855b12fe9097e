"""The arrays as compiled loops take them: one pointer, however many arrays there are.

A tuple of arrays would be passed value by value, which takes minutes to compile.
"""

from collections.abc import Sequence
from typing import Any

from numba import typeof
from numba.core import types
from numba.experimental import structref

from fluxplain.evaluate.compiled import compiled
from fluxplain.forest.names import UnsupportedError
from fluxplain.forest.state import (
    Adaptive,
    Edges,
    Entries,
    Free,
    Leaves,
    Models,
    News,
    Nodes,
    Observers,
    Points,
    Settings,
    State,
    Trees,
)


# Numba's cache finds each type by its name in this module
class _Struct(types.StructRef):  # type: ignore[name-defined]
    def preprocess_fields(self, fields: Sequence[tuple[str, Any]]) -> tuple[tuple[str, Any], ...]:
        return tuple((name, types.unliteral(of)) for name, of in fields)  # type: ignore[attr-defined]


def _type(name: str) -> type:
    return structref.register(type(name, (_Struct,), {"__module__": __name__}))  # type: ignore[no-any-return]


def _proxy(name: str, of: type, fields: Sequence[str]) -> Any:
    proxy = type(name, (structref.StructRefProxy,), {"__module__": __name__})
    structref.define_proxy(proxy, of, list(fields))
    return proxy


TreesType, NodesType, EdgesType = map(_type, ("TreesType", "NodesType", "EdgesType"))
LeavesType, ObserversType = map(_type, ("LeavesType", "ObserversType"))
EntriesType, NewsType, FreeType = map(_type, ("EntriesType", "NewsType", "FreeType"))
AdaptiveType = _type("AdaptiveType")
SettingsType, StateType = map(_type, ("SettingsType", "StateType"))
PointsType, ModelsType = map(_type, ("PointsType", "ModelsType"))

_Trees = _proxy("_Trees", TreesType, Trees._fields)
_Nodes = _proxy("_Nodes", NodesType, Nodes._fields)
_Edges = _proxy("_Edges", EdgesType, Edges._fields)
_Leaves = _proxy("_Leaves", LeavesType, Leaves._fields)
_Observers = _proxy("_Observers", ObserversType, Observers._fields)
_Entries = _proxy("_Entries", EntriesType, Entries._fields)
_Points = _proxy("_Points", PointsType, Points._fields)
_Models = _proxy("_Models", ModelsType, Models._fields)
_News = _proxy("_News", NewsType, News._fields)
_Adaptive = _proxy("_Adaptive", AdaptiveType, Adaptive._fields)
_Free = _proxy("_Free", FreeType, Free._fields)
_Settings = _proxy("_Settings", SettingsType, Settings._fields)
_State = _proxy("_State", StateType, State._fields)


_types: dict[str, Any] = {}
"""The type of the first pointer: :class:`Direct` calls take no other one."""


@compiled
def _pointer(  # type: ignore[no-untyped-def]
    trees, nodes, edges, leaves, observers, entries, points, models, news, adaptive, free, settings
):
    return _State(
        _Trees(*trees),
        _Nodes(*nodes),
        _Edges(*edges),
        _Leaves(*leaves),
        _Observers(*observers),
        _Entries(*entries),
        _Points(*points),
        _Models(*models),
        _News(*news),
        _Adaptive(*adaptive),
        _Free(*free),
        _Settings(*settings),
    )


def pointer_to(state: State) -> Any:
    """Return what compiled loops take for the arrays, always of the same type."""
    make: Any = _pointer
    pointer = make(*state)
    if _types.setdefault("state", typeof(pointer)) != typeof(pointer):
        raise UnsupportedError("its arrays or parameters have other types than usual")
    return pointer
