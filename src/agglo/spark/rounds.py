"""SCC on Spark: prepare, then round after round, then hand what is left to the core; every step durable."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
from pyspark.sql import Column, DataFrame, Observation
from pyspark.sql import functions as F

from agglo.neighbors.graph import Kind, Missing, WeightSummary
from agglo.progress import Progress
from agglo.rounds.linkage import GRAPH_LINKAGES, GraphLinkageName, Grid, check_linkage, grid
from agglo.rounds.plan import Advance, RoundPlan, affinity_plan, scc_plan
from agglo.rounds.schedule import ScheduleName
from agglo.spark.edges import (
    Numbers,
    PreparedGraph,
    check_options,
    check_supported,
    checked,
    collected,
    fingerprint,
    prepare,
)
from agglo.spark.folder import EDGES, GRAPH, MERGES, MOVES, NEAREST, Folder, State
from agglo.spark.handoff import HandedOff, handed_off
from agglo.spark.hierarchy import SparkHierarchy, plan_of
from agglo.spark.linkage import SqlLinkage, check_sums
from agglo.spark.round import close_enough, components, contracted, find_hubs, merges, nearest
from agglo.spark.stretch import between, stretch, warn_of_many_rounds
from agglo.spark.whole import Whole, prepare_whole, whole
from agglo.tree.forest import Round

HANDOFF_EDGES = 5_000_000
_FORMAT = 2  # of what is noted of a run
_FEW = 200_000  # merges that may be sent to every machine


def scc(
    edges: DataFrame,
    path: str,
    *,
    kind: Kind,
    missing: Missing | None = None,
    metric: str | None = None,
    points: DataFrame | None = None,
    thresholds: ScheduleName | npt.ArrayLike = "odds",
    n_thresholds: int | None = None,
    linkage: GraphLinkageName = "average",
    advance: Advance = "every-round",
    handoff_edges: int = HANDOFF_EDGES,
    resume: bool = False,
    progress: Progress | None = None,
    **elsewhere: object,
) -> SparkHierarchy:
    """The tree of the Sub-Cluster Component algorithm, the one that :func:`agglo.scc` makes of the same graph.

    Parameters
    ----------
    edges : DataFrame
        Columns ``src`` and ``dst`` (whole numbers or strings) and ``weight``, an edge in one direction or both.
        Self-loops are dropped, but their points count; of several edges between two points the closest stays.
        The table is read up to four times, so it had better be one that is stored.
    path : str
        A folder on a file system that all machines see, for the tables of the run.
    kind : {"similarity", "distance"}
        Whether a larger weight is closer, or a smaller one.
    missing : float or "ignore", optional
        The value of a pair without an edge, as for :class:`agglo.NeighborGraph`.
    metric : str, optional
        What the weights measure, for the record, and for the range of thresholds of squared distances.
    points : DataFrame, optional
        A column of ids, for points that may have no edges.
    thresholds, n_thresholds, linkage, advance
        As for :func:`agglo.scc`.
    handoff_edges : int
        When the graph between clusters has no more edges than this, the rest is done by the core in the driver,
        which needs about 150 bytes an edge; and before, those rounds in which clusters with no more edges take
        part. Tables with no more rows are cleaned in the driver as well. It does not change the tree. With 0 all
        rounds are done on Spark.
    resume : bool
        Go on with the run in ``path`` from the last round that it finished, if there is one, and the process
        that began it is not known to be alive.
    progress : callable, optional
        Called as ``progress("rounds", done, total)`` after each round, in points merged away and points.
    **elsewhere
        Other arguments of :func:`agglo.scc` are an error that says what to do instead.

    Returns
    -------
    SparkHierarchy
        The tree, as tables in ``path``.

    Examples
    --------
    >>> import agglo.spark
    >>> spark = agglo.spark.session()
    >>> rows = [("ant", "bee", 0.9), ("bee", "cow", 0.2), ("cow", "dog", 0.8)]
    >>> edges = spark.createDataFrame(rows, "src string, dst string, weight float")
    >>> tree = agglo.spark.scc(edges, "run", kind="similarity")
    >>> tree.clusters_per_round
    [4, 3, 2, 1]
    >>> sorted(tuple(row) for row in tree.labels(round=2).collect())
    [('ant', 'ant'), ('bee', 'ant'), ('cow', 'cow'), ('dog', 'cow')]
    """
    about = {
        "linkage": linkage,
        "advance": advance,
        "thresholds": thresholds if isinstance(thresholds, str) else np.asarray(thresholds).tolist(),
        "n_thresholds": n_thresholds,
    }

    def plan(graph: WeightSummary) -> RoundPlan:
        return scc_plan(graph, thresholds, n_thresholds, linkage, advance)

    check_supported(linkage, elsewhere)
    run = _Run(edges, path, points, {"method": "scc", "kind": kind, "missing": missing, "metric": metric} | about)
    return run.to_the_end(plan, handoff_edges, resume, progress)


def affinity(
    edges: DataFrame,
    path: str,
    *,
    kind: Kind,
    missing: Missing | None = None,
    metric: str | None = None,
    points: DataFrame | None = None,
    linkage: GraphLinkageName = "average",
    handoff_edges: int = HANDOFF_EDGES,
    resume: bool = False,
    progress: Progress | None = None,
    **elsewhere: object,
) -> SparkHierarchy:
    """The tree of Affinity clustering, the one that :func:`agglo.affinity` makes; see :func:`scc`."""
    about = {"method": "affinity", "kind": kind, "missing": missing, "metric": metric, "linkage": linkage}
    check_supported(linkage, elsewhere)
    run = _Run(edges, path, points, about)
    return run.to_the_end(lambda graph: affinity_plan(linkage), handoff_edges, resume, progress)


class _Run:
    """A run in its folder."""

    def __init__(self, edges: DataFrame, path: str, points: DataFrame | None, parameters: dict[str, Any]) -> None:
        check_options(parameters["kind"], parameters["missing"])
        check_linkage(parameters["linkage"], GRAPH_LINKAGES)
        self.edges, self.points, self.parameters = checked(edges), points, parameters
        self.folder = Folder(edges.sparkSession, path)
        self.whole: Whole | None = None  # the graph, once it has come to the driver as it is

    def to_the_end(
        self,
        make_plan: Callable[[WeightSummary], RoundPlan],
        handoff_edges: int,
        resume: bool,
        progress: Progress | None,
    ) -> SparkHierarchy:
        if isinstance(handoff_edges, bool) or not isinstance(handoff_edges, int) or handoff_edges < 0:
            raise ValueError(f"handoff_edges={handoff_edges!r} must be a whole number, 0 for never")
        head = self._found(resume)
        states = self.folder.states() if head else []
        if not states or not states[-1].done:
            with self.folder.owner.held():
                self.progress = progress
                self._go_on(head or self._prepared(make_plan, handoff_edges), handoff_edges)
        return SparkHierarchy(self.folder.spark, self.folder.path)

    def _go_on(self, head: dict[str, Any], handoff_edges: int) -> None:
        if head["format"] != _FORMAT:
            raise ValueError(
                f"cannot resume the run in {self.folder.path}: it is of format {head['format']}, which another "
                f"version of agglo wrote, but this one writes {_FORMAT}; pass another path to start anew"
            )
        self.plan = plan_of(head)
        self.numbers, self.grid = Numbers(**head["graph"]), Grid(*head["grid"])
        linkage: GraphLinkageName = head["parameters"]["linkage"]
        if linkage == "average" and not 0 < self.numbers.n_edges <= handoff_edges:  # else all sums are the core's
            check_sums(PreparedGraph(self.numbers, self.folder.read(GRAPH)), self.grid)
        self.linkage = SqlLinkage(linkage, self.numbers.kind, self.numbers.missing, self.grid)
        # Larger is closer, as inside every engine.
        self.thresholds = None if self.plan.thresholds is None else self.linkage.sign * self.plan.thresholds
        self.last = None if self.thresholds is None else float(self.thresholds[-1])
        states = self.folder.states()  # now that nobody else adds any
        state = states[-1] if states else self._started()
        while not state.done:
            state = self._next(state, handoff_edges)
            self.folder.append(state)
            if self.progress is not None:
                self.progress("rounds", self.numbers.n_points - state.clusters, self.numbers.n_points)

    # ---- the beginning ----

    def _found(self, resume: bool) -> dict[str, Any] | None:
        """What an earlier run in the folder was started with, if it is to be resumed and is the same."""
        head = self.folder.head()
        if head is None:
            return None
        if not resume:
            raise FileExistsError(
                f"{self.folder.path} holds a run already: pass resume=True to go on with it, or another path"
            )
        for name, value in self.parameters.items():
            if head["parameters"].get(name) != value:
                raise ValueError(
                    f"cannot resume the run in {self.folder.path}: it has "
                    f"{name}={head['parameters'].get(name)!r}, but {name}={value!r} was passed; pass the same, or "
                    "another path"
                )
        if head["input"] != fingerprint(self.edges, self.points):
            raise ValueError(
                f"cannot resume the run in {self.folder.path}: the edges or points are not those that it was "
                f"started with ({head['input']['rows']} rows); pass the same, or another path"
            )
        return head

    def _prepared(self, make_plan: Callable[[WeightSummary], RoundPlan], handoff_edges: int) -> dict[str, Any]:
        """The tables to start from, written; and what was started, noted."""
        about = self.parameters
        options = self.folder, about["kind"], about["missing"], about["metric"]
        graph: WeightSummary
        if self._fits(handoff_edges):
            rows, found = collected(self.edges, self.points)
            self.whole = prepare_whole(rows, self.points, *options)
            graph = self.whole.graph
        else:
            found = fingerprint(self.edges, self.points)
            graph = prepare(self.edges, self.points, *options)
        plan, fixed = make_plan(graph), grid(graph)
        if self.whole is None:
            warn_of_many_rounds(plan, graph, handoff_edges)
        head = {
            "format": _FORMAT,
            "parameters": about,
            "input": found,
            "graph": {name: getattr(graph, name) for name in Numbers._fields},
            "grid": [fixed.shift, fixed.limbs],
            "thresholds": None if plan.thresholds is None else plan.thresholds.tolist(),
            "about": plan.about,
        }
        self.folder.start(head)
        return head

    def _fits(self, handoff_edges: int) -> bool:
        """Whether the tables are so small that the driver may clean them."""
        if not 0 < self.edges.count() <= handoff_edges:
            return False
        return self.points is None or self.points.count() <= handoff_edges

    def _started(self) -> State:
        """The first state: all points, and the edges that can matter."""
        state = State(0, GRAPH, self.numbers.n_edges, None, self.numbers.n_points, 0)
        if self.whole is not None:  # the core will do all of it, and what can matter need not be known
            return state._replace(number=-1)
        state = self._known(state, self._edges(state).agg(*self._seen()).collect()[0].asDict())
        self.folder.append(state)
        return state

    def _edges(self, state: State) -> DataFrame:
        """The graph between the clusters of a state."""
        if state.edges != GRAPH:
            return self.folder.read(state.edges)
        edges = self.linkage.of_edges(self.folder.read(GRAPH))
        reach = self.linkage.may_reach(self.last)
        return edges if reach is None else edges.filter(reach)

    # ---- the rounds ----

    def _next(self, state: State, handoff_edges: int) -> State:
        if state.edges == GRAPH and 0 < self.numbers.n_edges <= handoff_edges:
            done = self._whole().handed_off(self.plan, self.progress)
            return self._merged_by_core(state, done)._replace(best=None, done=True)
        step = self._next_step(state)
        if step is None:
            return state._replace(number=state.number + 1, merges=None, rounds=[], done=True)
        edges = self._edges(state)
        if state.n_edges <= handoff_edges:
            done = self._handed_off(edges, slice(step, None))
            return self._merged_by_core(state, done)._replace(best=None, done=True)
        started = time.perf_counter()
        if self.thresholds is None or not handoff_edges:
            near = self.folder.write(nearest(edges, self.linkage, self._threshold(step)), self.folder.own(NEAREST))
            return self._round(state, edges, step, near, started)
        # All nearest neighbours tell how far few enough of them take part for the core to do the rounds.
        near = self.folder.write(nearest(edges, self.linkage, None), self.folder.own(NEAREST))
        end = stretch(near, state.clusters, self.linkage, self.thresholds, step, handoff_edges)
        if end == step:
            joins = close_enough(F.col("value"), self._threshold(step))
            return self._round(state, edges, step, near.filter(joins), started)
        taking_part = near.filter(self.linkage.reaches(self.thresholds[end - 1], F.col("value")))
        done = self._handed_off(between(edges, taking_part), slice(step, end))
        new = self._merged_by_core(state, done)._replace(step=end)
        moves = done.moves()
        written = self.folder.write(self.folder.sent(moves), self.folder.own(MOVES))
        return self._contracted(new, state, edges, written, len(moves))

    def _whole(self) -> Whole:
        if self.whole is None:
            rows = self.folder.read(GRAPH).toArrow()
            self.whole = whole(rows, self.numbers.kind, self.numbers.missing, self.numbers.metric)
        return self.whole

    def _next_step(self, state: State) -> int | None:
        """The first threshold from the state's on that any pair reaches: those between would merge nothing."""
        if state.best is None:
            return None
        if self.thresholds is None:
            return 0
        reached = np.float32(state.best) >= self.thresholds.astype(np.float32)
        reached[: state.step] = False
        return int(reached.argmax()) if reached.any() else None

    def _threshold(self, step: int) -> float | None:
        return None if self.thresholds is None else float(self.thresholds[step])

    def _handed_off(self, edges: DataFrame, steps: slice) -> HandedOff:
        return handed_off(edges, self.plan, steps, self.grid, self.numbers.kind, self.numbers.missing)

    def _merged_by_core(self, state: State, done: HandedOff) -> State:
        """The next state, but for its graph, after rounds in the core."""
        rounds, number = done.rounds(state.clusters), state.number + 1
        if not rounds:
            return state._replace(number=number, merges=None, rounds=[])
        table = f"{MERGES}/{number:05}-{self.folder.owner.token}"
        self.folder.write(self.folder.sent(done.merges(self.linkage.sign, state.n_rounds)), table)
        return state._replace(
            number=number,
            clusters=rounds[-1].after,
            n_rounds=state.n_rounds + len(rounds),
            merges=table,
            rounds=rounds,
        )

    def _round(self, state: State, edges: DataFrame, step: int, near: DataFrame, started: float) -> State:
        """The next state, after a round on Spark that began with finding nearest neighbours."""
        number = state.number + 1
        seen = Observation()
        merged = merges(components(near, self.folder), state.n_rounds + 1).observe(
            seen,
            F.count(F.lit(1)).alias("parts"),
            F.count_if(F.col("child") == F.col("cluster")).alias("made"),  # one part keeps its name
        )
        table = f"{MERGES}/{number:05}-{self.folder.owner.token}"
        merged = self.folder.write(merged, table)
        parts, made = seen.get["parts"], seen.get["made"]
        after = state.clusters - parts + made
        new = state._replace(
            number=number,
            clusters=after,
            step=step if self.plan.until_stable else step + 1,
            n_rounds=state.n_rounds + 1,
            merges=table,
        )
        new = self._contracted(new, state, edges, merged, parts)
        shown = float("nan") if self.plan.thresholds is None else float(self.plan.thresholds[step])
        return new._replace(rounds=[Round(shown, state.clusters, after, time.perf_counter() - started)])

    def _contracted(self, new: State, old: State, edges: DataFrame, moves: DataFrame, parts: int) -> State:
        """The new state with its graph, contracted from the old one's by ``parts`` moves, and written."""
        few = parts <= _FEW
        hubs = [] if few else find_hubs(edges, old.n_edges)
        left_out = 10 * (old.beyond - old.spared) > old.n_edges
        if left_out and self.last is not None and self.linkage.only_gets_farther(self.last):
            joining = edges.filter(self.linkage.reaches(self.last))
            edges = between(edges, joining.select(F.explode(F.array("lo", "hi")).alias("cluster")).distinct())
        edges = contracted(edges, moves, self.linkage, self.last, few, hubs)
        seen = Observation()
        new = new._replace(edges=self.folder.own(EDGES[new.number % 2]))
        self.folder.write(edges.observe(seen, *self._seen()), new.edges)
        new = self._known(new, seen.get)
        return new._replace(spared=new.beyond) if left_out else new

    def _seen(self) -> list[Column]:
        """What has to be known of a graph."""
        beyond = F.lit(False) if self.last is None else ~self.linkage.reaches(self.last)
        return [
            F.count(F.lit(1)).alias("n_edges"),
            F.max(self.linkage.value()).alias("best"),
            F.count_if(beyond).alias("beyond"),
        ]

    def _known(self, state: State, seen: dict[str, Any]) -> State:
        return state._replace(**{name: seen[name] for name in ("n_edges", "best", "beyond")})
