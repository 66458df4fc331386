"""The driver of a clustering run on Spark: it prepares the graph, then runs rounds on Spark or in the C++ core.

Every step appends the state of the run to a log in the run's folder. An interrupted run resumes from the last
state in the log.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np
from pyspark.sql import Column, DataFrame, Observation
from pyspark.sql import functions as F

from agglo.neighbors.graph import FixedPoint, WeightSummary, fixed_point_for
from agglo.progress import Progress
from agglo.rounds.linkage import GRAPH_LINKAGES, GraphLinkageName, check_linkage
from agglo.rounds.schedule import RoundPlan, run_plan
from agglo.spark.edges import (
    DriverGraph,
    GraphSummary,
    PreparedGraph,
    check_edges,
    check_options,
    collect_edges,
    fingerprint,
    load_driver_graph,
    prepare_driver_graph,
    prepare_graph,
)
from agglo.spark.folder import EDGES, GRAPH, MERGES, MOVES, NEAREST, Folder, State
from agglo.spark.handoff import CoreResult, edges_between, plan_handoff, run_core, warn_many_rounds
from agglo.spark.hierarchy import SparkHierarchy, plan_from_header
from agglo.spark.linkage import SqlLinkage, check_sums
from agglo.spark.round import build_merges, contract, find_components, find_hubs, find_nearest, within_threshold
from agglo.tree.hierarchy import Round

_MAX_BROADCAST = 200_000  # maximum number of merges that are broadcast to every machine


class Driver:
    """The driver of one clustering run, whose tables are in the folder ``path``; see :func:`agglo.spark.scc`.

    The header of the run, a JSON file in the folder, stores ``parameters``.
    """

    def __init__(self, edges: DataFrame, path: str, points: DataFrame | None, parameters: dict[str, Any]) -> None:
        check_options(parameters["kind"], parameters["missing"])
        check_linkage(parameters["linkage"], GRAPH_LINKAGES)
        self.edges, self.points, self.parameters = check_edges(edges), points, parameters
        self.folder = Folder(edges.sparkSession, path)
        self.driver_graph: DriverGraph | None = None  # the input graph, if it fits the driver's memory

    def run(
        self,
        make_plan: Callable[[WeightSummary], RoundPlan],
        handoff_edges: int,
        resume: bool,
        progress: Progress | None,
    ) -> SparkHierarchy:
        """Run all rounds of a new run, or the remaining rounds of an interrupted run; return the tree."""
        if isinstance(handoff_edges, bool) or not isinstance(handoff_edges, int) or handoff_edges < 0:
            raise ValueError(f"handoff_edges={handoff_edges!r} must be an integer of at least 0; 0 disables it")
        header = self._read_header(resume)
        states = self.folder.read_states() if header else []
        if not states or not states[-1].done:
            with self.folder.lock.acquire():
                self.progress = progress
                self._run_rounds(header or self._prepare(make_plan, handoff_edges), handoff_edges)
        return SparkHierarchy(self.folder.spark, self.folder.path)

    def _run_rounds(self, header: dict[str, Any], handoff_edges: int) -> None:
        self.plan = plan_from_header(header)
        self.graph, self.grid = GraphSummary(**header["graph"]), FixedPoint(*header["grid"])
        linkage: GraphLinkageName = header["parameters"]["linkage"]
        core_runs_all_rounds = 0 < self.graph.n_edges <= handoff_edges
        if linkage == "average" and not core_runs_all_rounds:
            check_sums(PreparedGraph(self.graph, self.folder.read(GRAPH)), self.grid)
        self.linkage = SqlLinkage(linkage, self.graph.kind, self.graph.missing, self.grid)
        # Negate distances, so that larger values are closer.
        self.thresholds = None if self.plan.thresholds is None else self.linkage.sign * self.plan.thresholds
        self.last_threshold = None if self.thresholds is None else float(self.thresholds[-1])
        states = self.folder.read_states()  # read the log again, because only now the lock excludes other drivers
        state = states[-1] if states else self._first_state()
        while not state.done:
            state = self._next_state(state, handoff_edges)
            self.folder.append_state(state)
            if self.progress is not None:
                self.progress("rounds", self.graph.n_points - state.clusters, self.graph.n_points)

    # ---- preparation ----

    def _read_header(self, resume: bool) -> dict[str, Any] | None:
        """Return the header of the run (parameters, graph summary, thresholds), or None if there is no run.

        Raise an error if the run cannot be resumed with this driver's edges, points and parameters.
        """
        header = self.folder.read_header()
        if header is None:
            return None
        path = self.folder.path
        if not resume:
            raise FileExistsError(f"{path} contains a run already: pass resume=True to resume it, or another path")
        for name, value in self.parameters.items():
            old = header["parameters"].get(name)
            if old != value:
                raise ValueError(
                    f"cannot resume the run in {path}: it has {name}={old!r}, but {name}={value!r} was passed; "
                    "pass the same value, or another path"
                )
        if header["input"] != fingerprint(self.edges, self.points):
            raise ValueError(
                f"cannot resume the run in {path}: the edges or points differ from those that it was started with "
                f"({header['input']['rows']} rows); pass the same, or another path"
            )
        return header

    def _prepare(self, make_plan: Callable[[WeightSummary], RoundPlan], handoff_edges: int) -> dict[str, Any]:
        """Write the tables of points and edges and the header of the run; return the header."""
        parameters = self.parameters
        options = {name: parameters[name] for name in ("kind", "missing", "metric")}
        graph: WeightSummary
        if self._fits_driver(handoff_edges):
            rows, input_fingerprint = collect_edges(self.edges, self.points)
            self.driver_graph = prepare_driver_graph(rows, self.points, self.folder, **options)
            graph = self.driver_graph.graph
        else:
            input_fingerprint = fingerprint(self.edges, self.points)
            graph = prepare_graph(self.edges, self.points, self.folder, **options)
        plan, fixed = make_plan(graph), fixed_point_for(graph)
        if self.driver_graph is None:
            warn_many_rounds(plan, graph, handoff_edges)
        header = {
            "parameters": parameters,
            "input": input_fingerprint,
            "graph": {name: getattr(graph, name) for name in GraphSummary._fields},
            "grid": [fixed.shift, fixed.limbs],
            "thresholds": None if plan.thresholds is None else plan.thresholds.tolist(),
            "about": plan.about,
        }
        self.folder.write_header(header)
        return header

    def _fits_driver(self, handoff_edges: int) -> bool:
        if not 0 < self.edges.count() <= handoff_edges:
            return False
        return self.points is None or self.points.count() <= handoff_edges

    def _first_state(self) -> State:
        state = State(0, GRAPH, self.graph.n_edges, None, self.graph.n_points, 0)
        if self.driver_graph is not None:  # the core runs all rounds and needs no statistics
            return state._replace(number=-1)
        state = state._replace(**self._edges(state).agg(*self._statistics()).collect()[0].asDict())
        self.folder.append_state(state)
        return state

    def _edges(self, state: State) -> DataFrame:
        """Return the graph of the clusters of a state (contracted graph): one row per pair with an edge."""
        if state.edges != GRAPH:
            return self.folder.read(state.edges)
        edges = self.linkage.from_points(self.folder.read(GRAPH))
        keep = self.linkage.may_matter(self.last_threshold)
        return edges if keep is None else edges.filter(keep)

    # ---- rounds ----

    def _next_state(self, state: State, handoff_edges: int) -> State:
        """Run one step, which is one or several rounds; return the state after the step.

        A step is a round on Spark, several rounds in the C++ core, or all remaining rounds in the core.
        """
        if state.edges == GRAPH and 0 < self.graph.n_edges <= handoff_edges:
            result = self._run_core_on_points()
            return self._write_core_merges(state, result)._replace(best=None, done=True)
        step = self._next_step(state)
        if step is None:
            return state._replace(number=state.number + 1, merges=None, rounds=[], done=True)
        edges = self._edges(state)
        if state.n_edges <= handoff_edges:
            result = self._run_core(edges, slice(step, None))
            return self._write_core_merges(state, result)._replace(best=None, done=True)
        started = time.perf_counter()
        if self.thresholds is None or not handoff_edges:
            nearest = self._write_nearest(edges, self._threshold(step))
            return self._run_round(state, edges, step, nearest, started)
        # The nearest neighbours of all clusters determine which of the next rounds the core can run.
        nearest = self._write_nearest(edges, None)
        end = plan_handoff(nearest, state.clusters, self.linkage, self.thresholds, step, handoff_edges)
        if end == step:
            nearest = nearest.filter(within_threshold(F.col("value"), self._threshold(step)))
            return self._run_round(state, edges, step, nearest, started)
        participants = nearest.filter(self.linkage.reaches(self.thresholds[end - 1], F.col("value")))
        result = self._run_core(edges_between(edges, participants), slice(step, end))
        new = self._write_core_merges(state, result)._replace(step=end)
        moves = result.moves()
        move_table = self.folder.write(self.folder.upload(moves), self.folder.work_table(MOVES))
        return self._contract(new, state, edges, move_table, len(moves))

    def _run_core_on_points(self) -> CoreResult:
        """Run all rounds in the C++ core on the input graph; return the merges."""
        if self.driver_graph is None:
            options = {"kind": self.graph.kind, "missing": self.graph.missing, "metric": self.graph.metric}
            self.driver_graph = load_driver_graph(self.folder.read(GRAPH).toArrow(), **options)
        ids, graph = self.driver_graph
        forest = run_plan(None, self.progress, graph, self.plan, None)
        return CoreResult(ids, np.ones(len(ids), np.int64), forest)

    def _next_step(self, state: State) -> int | None:
        """Return the index of the next threshold that a pair of clusters reaches; None if there is none."""
        if state.best is None:
            return None
        if self.thresholds is None:
            return 0
        is_reached = np.float32(state.best) >= self.thresholds.astype(np.float32)
        is_reached[: state.step] = False
        return int(is_reached.argmax()) if is_reached.any() else None

    def _threshold(self, step: int) -> float | None:
        return None if self.thresholds is None else float(self.thresholds[step])

    def _write_nearest(self, edges: DataFrame, threshold: float | None) -> DataFrame:
        return self.folder.write(find_nearest(edges, self.linkage, threshold), self.folder.work_table(NEAREST))

    def _run_core(self, edges: DataFrame, steps: slice) -> CoreResult:
        return run_core(edges, self.plan, steps, self.grid, self.graph.kind, self.graph.missing)

    def _merge_table(self, number: int) -> str:
        return f"{MERGES}/{number:05}-{self.folder.lock.token}"

    def _write_core_merges(self, state: State, result: CoreResult) -> State:
        """Write the merges of the C++ core; return the next state, whose graph is not contracted yet."""
        rounds, number = result.rounds(state.clusters), state.number + 1
        if not rounds:
            return state._replace(number=number, merges=None, rounds=[])
        table = self._merge_table(number)
        self.folder.write(self.folder.upload(result.merges(self.linkage.sign, state.n_rounds)), table)
        return state._replace(
            number=number,
            clusters=rounds[-1].after,
            n_rounds=state.n_rounds + len(rounds),
            merges=table,
            rounds=rounds,
        )

    def _run_round(self, state: State, edges: DataFrame, step: int, nearest: DataFrame, started: float) -> State:
        """Run a round on Spark, given each cluster's nearest neighbour within the threshold; return the state."""
        number = state.number + 1
        observed = Observation()
        merges = build_merges(find_components(nearest, self.folder), state.n_rounds + 1).observe(
            observed,
            F.count(F.lit(1)).alias("children"),
            F.count_if(F.col("child") == F.col("cluster")).alias("parents"),  # a parent has the id of one child
        )
        table = self._merge_table(number)
        merges = self.folder.write(merges, table)
        n_children, n_parents = observed.get["children"], observed.get["parents"]
        after = state.clusters - n_children + n_parents
        new = state._replace(
            number=number,
            clusters=after,
            step=step if self.plan.until_stable else step + 1,
            n_rounds=state.n_rounds + 1,
            merges=table,
        )
        new = self._contract(new, state, edges, merges, n_children)
        threshold = float("nan") if self.plan.thresholds is None else float(self.plan.thresholds[step])
        return new._replace(rounds=[Round(threshold, state.clusters, after, time.perf_counter() - started)])

    def _contract(self, new: State, old: State, edges: DataFrame, moves: DataFrame, n_moves: int) -> State:
        """Contract the graph of the state ``old`` and write it; return ``new`` with the name of the new table."""
        broadcast = n_moves <= _MAX_BROADCAST
        hubs = [] if broadcast else find_hubs(edges, old.n_edges)
        drop = 10 * (old.n_unreachable - old.n_unreachable_kept) > old.n_edges
        if drop and self.last_threshold is not None and self.linkage.cannot_get_closer(self.last_threshold):
            reachable = edges.filter(self.linkage.reaches(self.last_threshold))
            clusters = reachable.select(F.explode(F.array("lo", "hi")).alias("cluster")).distinct()
            edges = edges_between(edges, clusters)
        edges = contract(edges, moves, self.linkage, self.last_threshold, broadcast, hubs)
        observed = Observation()
        new = new._replace(edges=self.folder.work_table(EDGES[new.number % 2]))
        self.folder.write(edges.observe(observed, *self._statistics()), new.edges)
        new = new._replace(**observed.get)
        return new._replace(n_unreachable_kept=new.n_unreachable) if drop else new

    def _statistics(self) -> list[Column]:
        """Return SQL aggregates that summarize a contracted graph.

        The aggregates are the number of edges, the closest linkage of two clusters, and the number of edges that
        are farther than the last threshold.
        """
        last = self.last_threshold
        is_unreachable = F.lit(False) if last is None else ~self.linkage.reaches(last)
        return [
            F.count(F.lit(1)).alias("n_edges"),
            F.max(self.linkage.value()).alias("best"),
            F.count_if(is_unreachable).alias("n_unreachable"),
        ]
