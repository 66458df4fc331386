"""Estimate the capacity that SCC on Spark needs: machines, hours, shuffled bytes and hot keys.

    python benchmarks/scale_model.py [--points 1e9 3e10] [--machines 20 100 400]
        [--cpu 6.3e-6] [--exponent 1] [--measured-at 7.1e6] [--shuffled 48] [--written 19] [--overhead 5]

The model simulates the rounds. In each round every remaining edge is read, shuffled and written, and a share of
the edges disappears; once the graph fits one machine it is handed off. The cost per edge was measured by
benchmarks/spark.py in a round that merges most clusters, so that all edges move; see docs/guide/scale.md. The
options set the costs of other machines. No run of this size has been made.
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass, fields


@dataclass(frozen=True)
class Costs:
    """Costs per edge and round; see docs/guide/scale.md."""

    cpu: float  # seconds of one core
    shuffled: float  # bytes sent over the network
    written: float  # bytes of Parquet
    exponent: float  # of the growth of CPU cost with the number of edges
    measured_at: float  # number of edges at which cpu was measured
    overhead: float  # fixed seconds of a round


@dataclass(frozen=True)
class Job:
    """The clustering problem."""

    points: float
    degree: float = 25  # edges per point
    rounds: int = 60  # that merge clusters, before the hand-off
    shrink: float = 0.85  # share of the edges that remain after a round
    handoff: float = 5e7  # edges that fit one machine
    hub: float = 1e-5  # share of all edge ends at the largest cluster


@dataclass(frozen=True)
class Machine:
    """A machine of the cluster."""

    cores: int = 16
    network: float = 1.0e9  # bytes per second, in and out
    disk: float = 0.5e9  # bytes per second to the storage of runs
    busy: float = 0.6  # share of the time that cores are busy


@dataclass(frozen=True)
class Plan:
    """The estimate of the model."""

    machines: int
    rounds: int
    hours: float
    core_hours: float
    shuffled: float  # total bytes
    largest: float  # maximum bytes shuffled in a round
    hub: float  # rows of the hottest key, before they are split among tasks


def plan(job: Job, machines: int, costs: Costs, machine: Machine) -> Plan:
    """Simulate the rounds."""
    edges = job.points * job.degree
    hub = job.hub * 2 * edges
    seconds = cores = shuffled = largest = 0.0
    n_rounds = 0
    while edges > job.handoff and n_rounds < job.rounds:
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
        n_rounds += 1
    return Plan(machines, n_rounds, seconds / 3600, cores / 3600, shuffled, largest, hub)


def table(points: list[float], machines: list[int], costs: Costs) -> str:
    """Format the plans as a Markdown table."""
    lines = [
        "| points | machines of 16 cores | rounds on Spark | hours | core hours | shuffled, TB "
        "| maximum per round, TB | rows of the hottest key |",
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


# A round that moves all edges, of 7.1 million, two cores; see docs/guide/scale.md.
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
