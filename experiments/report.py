"""Draws the report of an ablation again from its results.json.

    python -m experiments.report --workdir=runs/table5

writes report.html, report.md and plots/, for instance after a change of the template.
"""

from data_prep.jobs import storage
from experiments.tables import report
from official_bert import commands
from official_bert.errors import UserError
from official_bert.files import local_path


def main(_):
    from absl import flags

    folder = flags.FLAGS.workdir
    if not folder:
        raise UserError("--workdir is missing; give the folder of an ablation")
    path = local_path(folder) / "results.json"
    if not path.exists():
        raise UserError(f"{path} is missing; experiments.ablate writes it")
    results = storage.read_json(path, finite=False)
    print(report.text(results))
    for name, written in report.write(results, folder).items():
        print(f"{name}: {written}")


if __name__ == "__main__":
    from absl import flags as _flags

    _flags.DEFINE_string("workdir", None, "folder of an ablation, with its results.json")
    commands.run(main)
