"""A capacity plan for SCC on Spark: machines, hours, shuffles and hot keys, by a model of a few numbers.

    python benchmarks/scale_model.py [--points 1e9 3e10] [--machines 20 100 400]
        [--cpu 6.3e-6] [--exponent 1] [--measured-at 7.1e6] [--shuffled 48] [--written 19] [--overhead 5]

The model plays the rounds: in each, every edge that is left is read, shuffled and written, and a share of them is
merged away; the rest is handed to one machine once it fits. What an edge costs was measured by benchmarks/spark.py
in a round that merges most clusters, so that all edges move; see docs/scale.md. Other machines have other numbers,
which is what the options are for. Nothing here was run at that size.
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass, fields


@dataclass(frozen=True)
class Costs:
    """What is spent on each edge in each round; see docs/scale.md."""

    cpu: float  # seconds of one core
    shuffled: float  # bytes that go over the network
    written: float  # bytes of Parquet
    exponent: float  # of the growth of CPU cost with the number of edges
    measured_at: float  # edges that cpu is for
    overhead: float  # seconds of a round that has nothing to do


@dataclass(frozen=True)
class Job:
    """What is to be clustered."""

    points: float
    degree: float = 25  # edges a point
    rounds: int = 60  # that merge anything, before the hand-off
    shrink: float = 0.85  # edges that are left after a round, as a share
    handoff: float = 5e7  # edges that fit one machine
    hub: float = 1e-5  # the share of all ends of edges that the largest cluster has


@dataclass(frozen=True)
class Machine:
    """A machine of the cluster."""

    cores: int = 16
    network: float = 1.0e9  # bytes a second, in and out
    disk: float = 0.5e9  # bytes a second to where runs are kept
    busy: float = 0.6  # the share of the time that cores do work


@dataclass(frozen=True)
class Plan:
    """What the model says."""

    machines: int
    rounds: int
    hours: float
    core_hours: float
    shuffled: float  # bytes, in all
    largest: float  # bytes that one round shuffles at most
    hub: float  # rows of the hottest key, before they are dealt among tasks


def plan(job: Job, machines: int, costs: Costs, machine: Machine) -> Plan:
    """The rounds, played."""
    edges = job.points * job.degree
    hub = job.hub * 2 * edges
    seconds = cores = shuffled = largest = 0.0
    played = 0
    while edges > job.handoff and played < job.rounds:
        cpu = edges * costs.cpu * (edges / costs.measured_at) ** (costs.exponent - 1)
        moved = edges * costs.shuffled
        work = cpu / (machines * machine.cores * machine.busy)
        network = moved / (machines * machine.network)
        disk = edges * costs.written / (machines * machine.disk)
        seconds += max(work, network, disk) + costs.overhead
        cores += cpu
        shuffled += moved
        largest = max(largest, moved)
        edges *= job.shrink
        played += 1
    return Plan(machines, played, seconds / 3600, cores / 3600, shuffled, largest, hub)


def table(points: list[float], machines: list[int], costs: Costs) -> str:
    """The plans as a table in Markdown."""
    lines = [
        "| points | machines of 16 cores | rounds on Spark | hours | core hours | shuffled, TB "
        "| at most in a round, TB | rows of the hottest key |",
        "| --- | --- | --- | --- | --- | --- | --- | --- |",
    ]
    for n in points:
        for count in machines:
            found = plan(Job(n), count, costs, Machine())
            lines.append(
                f"| {n:.0e} | {count} | {found.rounds} | {found.hours:.1f} | {found.core_hours:,.0f} "
                f"| {found.shuffled / 1e12:,.1f} | {found.largest / 1e12:,.2f} | {found.hub:.0e} |"
            )
    return "\n".join(lines)


# A round that moves all edges, of 7.1 million, two cores; see docs/scale.md.
MEASURED = Costs(cpu=6.3e-6, shuffled=48, written=19, exponent=1.0, measured_at=7.1e6, overhead=5)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--points", type=float, nargs="+", default=[1e9, 3e10])
    parser.add_argument("--machines", type=int, nargs="+", default=[20, 100, 400])
    names = [field.name for field in fields(Costs)]
    for name in names:
        parser.add_argument(f"--{name.replace('_', '-')}", type=float, default=getattr(MEASURED, name))
    arguments = parser.parse_args()
    print(table(arguments.points, arguments.machines, Costs(*(getattr(arguments, name) for name in names))))


if __name__ == "__main__":
    main()
