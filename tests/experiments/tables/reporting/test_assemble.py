"""Results of a table from its cells."""

from experiments.tables.reporting import assemble
from experiments.training.folder.run_results import CellResults


def test_times_count_work_before_an_interruption_and_no_pauses():
    finished = [
        CellResults(seconds=10.0, ended=110.0),
        CellResults(seconds=10.0, ended=115.0),  # beside the first
        # Resumed at 500 after 30 seconds of earlier work, which its run has counted.
        CellResults(seconds=40.0, ended=510.0),
    ]
    assert assemble._wall_seconds(finished) == 55.0
