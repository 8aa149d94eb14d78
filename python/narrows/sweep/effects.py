"""Effects in a sweep: main effects of its parameters on a metric, and interactions of pairs.

The main effect of a parameter is the share of a metric's variance over the points that the parameter alone
explains, Var(E[Y | X]) / Var(Y): the first-order index of Sobol (1993), estimated from means over classes of
points as alike in X as their number allows (correlation ratio; Saltelli et al. 2008, section 1.2.7). An
interaction is the share that two parameters explain together beyond their separate shares. Means of few
points vary by chance alone, which would look like an effect: the share that chance explains on average, (k -
1) / (n - 1) for k classes of n points, is subtracted (epsilon squared; Kelley 1935).
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from narrows.analysis.metrics import unit_of
from narrows.blocks.model import Column, Table
from narrows.documents.results import Quantity
from narrows.errors import DataError
from narrows.statistics.runs import median_over_runs
from narrows.sweep.store import SweepFolder

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

#: Classes of a parameter with many values, alone and in an interaction.
CLASSES, OF_PAIRS = 10, 4
#: Classes with fewer points are not meaningful.
FEWEST = 4
#: Three means are shown if there are more than this, and up to this many pairs that explain at least this
#: share.
MOST_MEANS, MOST_PAIRS, LEAST_SHARE = 5, 3, 0.01


@dataclass(frozen=True)
class Points:
    """The points of a scheme: values of the parameters, and the median of a metric over the valid runs."""

    scheme: str
    #: By column name: numbers, or texts for keys without order.
    values: dict[str, list[Any]]
    metric: NDArray[np.float64]


@dataclass(frozen=True)
class Effects:
    """Shares of the variance of a metric over the points of a scheme."""

    scheme: str
    points: int
    #: By parameter: the share that it explains alone, and the mean of the metric in each class with the
    #: class's midpoint.
    main: dict[str, float]
    means: dict[str, list[tuple[Any, float]]]
    #: By pairs of parameters: the share that both explain together beyond their separate shares.
    pairs: dict[tuple[str, str], float]


def points_of(folder: SweepFolder, metric: str, flow: int | None = None) -> list[Points]:
    """The points of each scheme, from the rows of one flow or of all together; raises `DataError` if there
    are none.
    """
    import numpy as np
    import pyarrow.compute as pc

    names = [key.name for key in folder.document.parameters]
    if metric not in folder.document.metrics:
        raise DataError(f"{folder.path}: has no metric {metric}; narrows sweep show --list names them")
    table = folder.table(["point", "scheme", "flow", "verdict", *names, metric])
    mine = pc.is_null(table["flow"]) if flow is None else pc.equal(table["flow"], flow)
    table = table.filter(pc.and_(mine, pc.not_equal(table["verdict"], "invalid")))
    table = table.filter(pc.is_valid(table[metric]))
    if table.num_rows == 0:
        raise DataError(f"{folder.path}: no valid run has {metric}")
    runs = table.group_by(["scheme", "point", *names]).aggregate([(metric, "list")]).sort_by("point")
    points = []
    for scheme in dict.fromkeys(runs["scheme"].to_pylist()):
        own = runs.filter(pc.equal(runs["scheme"], scheme))
        values = {name: own[name].to_pylist() for name in names}
        medians = map(median_over_runs, own[f"{metric}_list"].to_pylist())
        points.append(Points(scheme, values, np.fromiter(medians, np.float64, own.num_rows)))
    return points


def classes(values: list[Any], most: int) -> NDArray[np.intp]:
    """The class of each point: one for each value, or `most` classes of equal size if there are
    more values.
    """
    import numpy as np

    different = sorted(set(values), key=lambda item: (isinstance(item, str), item))
    if len(different) <= most or not all(isinstance(item, int | float) for item in different):
        place = {value: at for at, value in enumerate(different)}
        return np.array([place[value] for value in values])
    ranks = np.argsort(np.argsort(np.array(values, float), kind="stable"), kind="stable")
    return ranks * most // len(values)


def effects(points: Points) -> Effects:
    """Main effects and interactions."""
    import numpy as np

    count = len(points.metric)
    most = max(2, min(CLASSES, count // FEWEST))
    varied = {name: values for name, values in points.values.items() if len(set(values)) > 1}
    main, means = {}, {}
    for name, values in varied.items():
        of = classes(values, most)
        main[name] = _share_explained(points.metric, of)
        means[name] = [
            (
                _middle([values[at] for at in np.flatnonzero(of == item)]),
                float(points.metric[of == item].mean()),
            )
            for item in np.unique(of)
        ]
    pairs = {}
    few = max(2, min(OF_PAIRS, int((count / FEWEST) ** 0.5)))
    coarse = {name: classes(values, few) for name, values in varied.items()}
    alone = {name: _share_explained(points.metric, of) for name, of in coarse.items()}
    for first, second in itertools.combinations(varied, 2):
        both = coarse[first] * (int(coarse[second].max()) + 1) + coarse[second]
        beyond = _share_explained(points.metric, both) - alone[first] - alone[second]
        pairs[first, second] = max(0.0, beyond)
    return Effects(points.scheme, count, main, means, pairs)


def effects_table(items: Sequence[Effects], metric: Quantity, labels: Mapping[str, str]) -> Table:
    """The share of each parameter and of the pairs that matter, largest first, and the means of the metric;
    with a column of schemes if there are several. `labels` are those of the parameters by name.
    """
    several = len(items) > 1
    heads = (
        *([Column("scheme", "left", names=True)] if several else []),
        Column("key", "left", names=not several),
        Column("explains"),
        Column("means, low to high", "left", unit=unit_of(metric)),
    )
    rows = []
    for item in items:
        first = [item.scheme] if several else []
        for name in sorted(item.main, key=lambda key: -item.main[key]):
            means = [f"{value * metric.show_scale:.4g}" for _, value in item.means[name]]
            shown = means if len(means) <= MOST_MEANS else [means[0], means[len(means) // 2], means[-1]]
            rows.append([*first, labels[name], f"{item.main[name]:.0%}", ", ".join(shown)])
        pairs = sorted(item.pairs.items(), key=lambda pair: -pair[1])[:MOST_PAIRS]
        rows += [
            [*first, f"{labels[one_key]} with {labels[other_key]}", f"{share:.0%}", ""]
            for (one_key, other_key), share in pairs
            if share >= LEAST_SHARE
        ]
    return Table.new(heads, rows, label=f"Effects on {metric.label}", style="effects")


def _share_explained(metric: NDArray[np.float64], of: NDArray[np.intp]) -> float:
    """The share of the variance between classes, minus the share that chance explains."""
    import numpy as np

    total = float(((metric - metric.mean()) ** 2).sum())
    kinds, sizes = np.unique(of, return_counts=True)
    if total <= 0 or len(metric) <= len(kinds):
        return 0.0
    middles = np.array([metric[of == kind].mean() for kind in kinds])
    between = float((sizes * (middles - metric.mean()) ** 2).sum())
    within = (total - between) / (len(metric) - len(kinds))
    return max(0.0, (between - (len(kinds) - 1) * within) / total)


def _middle(values: list[Any]) -> Any:
    ordered = sorted(values)
    return ordered[len(ordered) // 2]
