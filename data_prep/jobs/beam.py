"""Runs the tasks of pre-training data on Apache Beam: Dataflow, Flink, Spark or local processes.

    python -m data_prep.create_pretraining_data ... --runner=DataflowRunner \\
        --beam_options=project=P,region=R,temp_location=gs://B/tmp

Each step is one small pipeline, Create | FlatMap | Reshuffle | Map: the same functions as on one
machine, so the records are the same. Create makes one element, the path of a file with the tasks:
its elements are part of the job graph, which runners limit to some megabytes. Tasks carry paths,
never texts; files go through the folder that all workers share (see docs/data_at_scale.md).
"""

import contextlib
import os
from collections.abc import Callable

from data_prep.jobs import checked_json, storage
from data_prep.jobs.workers import missing_tasks, run_task, summaries
from official_bert.common.errors import check_installed


class BeamWorkers(contextlib.AbstractContextManager):
    """Runs tasks as `data_prep.jobs.workers.LocalWorkers` does, on a Beam runner.

    Args:
      runner: a Beam runner's name: DirectRunner, DataflowRunner, FlinkRunner, SparkRunner,
        PortableRunner.
      options: further pipeline options, "name=value" or "name".

    Raises:
      UserError: apache-beam is not installed.
    """

    def __init__(self, runner: str, options: list[str] = ()):
        check_installed("apache_beam", "--runner needs Apache Beam", "beam")
        from apache_beam.options.pipeline_options import PipelineOptions

        flags = [f"--runner={runner}", *(f"--{option.lstrip('-')}" for option in options)]
        self._options = PipelineOptions(flags)

    def __exit__(self, kind, error, trace):
        return None

    def run(self, function: Callable[[dict], dict], tasks: list[dict], title: str) -> list[dict]:
        """Run the tasks that have no summary yet; return the summaries of all, in their order."""
        import apache_beam as beam

        missing = missing_tasks(tasks)
        if missing:
            path = os.path.join(os.path.dirname(missing[0]["summary"]), "tasks.json")
            checked_json.write(path, {"tasks": missing})
            with beam.Pipeline(options=self._options) as pipeline:
                _ = (
                    pipeline
                    | f"{title}: file" >> beam.Create([path])
                    | f"{title}: tasks" >> beam.FlatMap(_tasks)
                    | f"{title}: spread" >> beam.Reshuffle()
                    | title >> beam.Map(_run, function)
                )
            storage.remove(path)
        return summaries(tasks)


def _tasks(path):
    return checked_json.read(path)["tasks"]


def _run(task, function):
    run_task(function, task)
    return task["summary"]
