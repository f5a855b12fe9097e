"""Taking and freeing places in the arrays."""

from typing import Any

from fluxplain.evaluate.compiled import compiled
from fluxplain.forest.state import CATEGORIES, LEAF, OFF, Integers, Models, State

NODES, LEAVES, EDGES, ENTRIES, POINTS = range(5)
"""Places in the counts of free places."""


@compiled
def take(count: Integers, which: int, places: Integers) -> int:
    """Take a free place; the caller sees to it that there is one."""
    count[which] -= 1
    return int(places[count[which]])


@compiled
def give_back(count: Integers, which: int, places: Integers, place: int) -> None:
    """Free a place."""
    places[count[which]] = place
    count[which] += 1


@compiled
def fill(row: Any, value: Any) -> None:
    """Fill a row: a loop, since NumPy's notation takes many times longer to compile."""
    for i in range(len(row)):
        row[i] = value


@compiled
def move_up(rows: Any, i: int) -> None:
    """Copy the next row into a row."""
    for k in range(rows.shape[1]):
        rows[i, k] = rows[i + 1, k]


@compiled
def free_entries(state: State, first: int) -> None:
    """Free a list of entries."""
    entry = first
    while entry >= 0:
        following = state.entries.following[entry]
        give_back(state.free.n, ENTRIES, state.free.entries, entry)
        entry = following


@compiled
def free_points(state: State, first: int) -> None:
    """Free a point and all below it; among the free places, they wait for their turn."""
    points, free = state.points, state.free
    turn = free.n[POINTS]
    if first >= 0:
        give_back(free.n, POINTS, free.points, first)
    while turn < free.n[POINTS]:
        point = free.points[turn]
        for below in (points.left[point], points.right[point]):
            if below >= 0:
                give_back(free.n, POINTS, free.points, below)
        turn += 1


@compiled
def forget_observed(state: State, leaf: int) -> None:
    """Empty a leaf's observers; features that are switched off stay so."""
    leaves = state.leaves
    for place in range(leaves.n_observed[leaf]):
        feature = leaves.observed[leaf, place]
        forget_observer(state, leaf, place)
        leaves.place[leaf, feature] = -1
    leaves.n_observed[leaf] = 0


@compiled
def forget_observer(state: State, leaf: int, place: int) -> None:
    """Empty one observer."""
    observers = state.observers
    for k in range(observers.n_classes[leaf, place]):
        c = observers.order[leaf, place, k]
        free_entries(state, observers.first[leaf, place, c])
        observers.first[leaf, place, c] = observers.last[leaf, place, c] = -1
        observers.known[leaf, place, c] = False
    free_entries(state, observers.values[leaf, place, 0])
    fill(observers.values[leaf, place], -1)
    observers.n_classes[leaf, place] = 0
    free_points(state, observers.point[leaf, place])
    observers.point[leaf, place] = -1


@compiled
def remove_observer(state: State, leaf: int, place: int) -> None:
    """Switch a feature off: its observer goes, the next ones move up."""
    leaves, observers = state.leaves, state.observers
    leaves.place[leaf, leaves.observed[leaf, place]] = OFF
    forget_observer(state, leaf, place)
    for i in range(place, leaves.n_observed[leaf] - 1):
        feature = leaves.observed[leaf, i + 1]
        leaves.observed[leaf, i], leaves.place[leaf, feature] = feature, i
        observers.n_classes[leaf, i] = observers.n_classes[leaf, i + 1]
        observers.point[leaf, i] = observers.point[leaf, i + 1]
        move_up(observers.order[leaf], i)
        move_up(observers.known[leaf], i)
        move_up(observers.first[leaf], i)
        move_up(observers.last[leaf], i)
        move_up(observers.values[leaf], i)
        for kept in range(observers.gaussian.shape[3]):
            move_up(observers.gaussian[leaf, :, :, kept], i)
    leaves.n_observed[leaf] -= 1
    leaves.is_fresh[leaf] = False


@compiled
def new_model(models: Models, leaf: int, intercept: float) -> None:
    """Make a leaf's model one that has learned nothing."""
    fill(models.weight[leaf], 0.0)
    fill(models.known[leaf], False)
    fill(models.errors[leaf], 0.0)
    models.intercept[leaf], models.steps[leaf] = intercept, 0


@compiled
def new_leaf(state: State, depth: int) -> int:
    """Return a node that is a leaf without statistics."""
    nodes, leaves, free = state.nodes, state.leaves, state.free
    node = take(free.n, NODES, free.nodes)
    leaf = take(free.n, LEAVES, free.leaves)
    nodes.kind[node], nodes.depth[node], nodes.leaf[node] = LEAF, depth, leaf
    fill(nodes.below[node], -1)
    nodes.n_classes[node] = 0
    fill(nodes.known[node], False)
    fill(nodes.weight[node], 0.0)
    fill(nodes.moments[node], 0.0)
    new_model(state.models, leaf, state.settings.intercept)
    if node < len(state.adaptive.alternate):
        state.adaptive.alternate[node] = -1
        fill(state.adaptive.errors[node], 0.0)
    leaves.is_active[leaf] = True
    fill(leaves.correct[leaf], 0.0)
    leaves.tried[leaf] = 0.0
    leaves.n_chosen[leaf] = leaves.n_observed[leaf] = 0
    fill(leaves.place[leaf], -1)
    leaves.is_fresh[leaf] = False
    return node


@compiled
def free_leaf(state: State, node: int) -> None:
    """Free the place of a node among the leaves."""
    leaf = state.nodes.leaf[node]
    forget_observed(state, leaf)
    give_back(state.free.n, LEAVES, state.free.leaves, leaf)
    state.nodes.leaf[node] = -1


@compiled
def alternate_of(state: State, node: int) -> int:
    """Return the alternate tree of a node, -1 without one."""
    alternate = state.adaptive.alternate
    return int(alternate[node]) if node < len(alternate) else -1


@compiled
def free_tree(state: State, node: int) -> None:
    """Free a node, its alternate tree, and all below it."""
    nodes, edges, free, alternate = state.nodes, state.edges, state.free, alternate_of(state, node)
    if alternate >= 0:
        free_tree(state, alternate)
        state.adaptive.alternate[node] = -1
    if nodes.kind[node] == LEAF:
        free_leaf(state, node)
    elif nodes.kind[node] == CATEGORIES:
        edge = nodes.below[node, 0]
        while edge >= 0:
            following = edges.following[edge]
            free_tree(state, edges.node[edge])
            give_back(free.n, EDGES, free.edges, edge)
            edge = following
    else:
        free_tree(state, nodes.below[node, 0])
        free_tree(state, nodes.below[node, 1])
    give_back(free.n, NODES, free.nodes, node)


@compiled
def add_edge(state: State, node: int, category: int, below: int) -> None:
    """Append a way to a branch by categories."""
    nodes, edges, free = state.nodes, state.edges, state.free
    edge = take(free.n, EDGES, free.edges)
    edges.category[edge], edges.node[edge], edges.following[edge] = category, below, -1
    if nodes.below[node, 0] < 0:
        nodes.below[node, 0] = edge
    else:
        edges.following[nodes.below[node, 1]] = edge
    nodes.below[node, 1] = edge
