from pathlib import Path

from benchmarks.scale_model import MEASURED, Costs, Job, Machine, plan, table

PAGE = Path(__file__).parents[2] / "docs" / "guide" / "scale.md"


def test_the_page_has_the_table_that_the_model_makes():
    assert table([1e9, 3e10], [20, 100, 400], MEASURED) in PAGE.read_text()


def test_what_is_slowest_sets_the_time():
    job, machine = Job(4e6, degree=25, rounds=1), Machine(cores=1, network=1e6, disk=1e6, busy=1.0)
    work = Costs(cpu=1e-3, shuffled=1, written=1, exponent=1.0, measured_at=1e6, overhead=0)
    found = plan(job, 10, work, machine)
    assert (found.rounds, found.hours * 3600, found.core_hours * 3600) == (1, 1e4, 1e5)
    moved = plan(job, 10, Costs(1e-9, 1e4, 1, 1.0, 1e6, overhead=7), machine)
    assert moved.hours * 3600 == 1e12 / 1e7 + 7
    assert moved.shuffled == moved.largest == 1e12
