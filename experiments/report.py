"""The report of an ablation, made again from its results.json and its archives.

    python -m experiments.report --workdir=experiments/results/table5/night

judges the claims by today's analysis. It writes results.json, report.html, report.md and plots/,
there or in --output, which gets the archives too. It needs no data: what the analysis asks of
single examples is in archives/.
Where --workdir is a folder of tables, it writes claims.md: their claims side by side. With
--overwrite what stands in --output, or an earlier claims.md, is renamed first (NAME.~1~).
"""

import dataclasses

from data_prep.jobs import command_flags, commands
from data_prep.jobs.locks import exclusive
from data_prep.jobs.output_folder import begin
from data_prep.jobs.outputs import check_outputs
from experiments.tables.judging import archives, judgement
from experiments.tables.judging.results import Results, read
from experiments.tables.reporting import overview, report
from experiments.tables.run import origins
from official_bert.common.errors import UserError
from official_bert.common.files import atomic_write
from official_bert.common.paths import local_path


def main(_):
    asked = command_flags.values(rejudge)
    path = local_path(asked["workdir"]) / "results.json"
    if not path.exists() and any(path.parent.glob("*/*/results.json")):
        for name in ("output", "strict", "ask"):
            if asked[name]:
                raise UserError(f"--{name} is for one table; {path.parent} is a folder of tables")
        print(overview.write(path.parent, asked["overwrite"]))
        return
    if not path.exists():
        raise UserError(f"{path} is missing; experiments.ablate writes it")
    results, paths = rejudge(**asked)
    print(report.text(results))  # this text is in no file
    for name, file in paths.items():
        print(f"{name}: {file}")


def rejudge(
    workdir: str, output: str = "", strict: bool = False, ask: str = "", overwrite: bool = False
):
    """Judge the results of a folder by today's analysis and write their report.

    Args:
      workdir: folder of an ablation, with its results.json.
      output: folder of the report, and of copies of the archives; empty: the same.
      strict: refuse runs of different code, versions or machines.
      ask: configuration of experiments.ablate, whose further claims are judged too, as exploratory
        ones.
      overwrite: rename another folder that stands at the output to NAME.~1~ first.

    Returns: (the results, what was written as `report.write` returns it)
    Raises:
      UserError: results or archives are damaged or missing, the output holds another table or no
        table's files, or `strict`.
    """
    path = local_path(workdir) / "results.json"
    results = read(path)
    if strict:
        origins.refuse_warnings(origins.warnings(results.made_by))
    runs = archives.runs(results, path.parent / archives.FOLDER)
    claims = tuple(verdict.claim for verdict in results.verdicts)
    if ask:
        from experiments.training.settings.config_files import load_config

        claims += further(claims, results, load_config(ask))
    results = judgement.judge_results(results, claims, runs)
    output = local_path(output or workdir)
    elsewhere = output != path.parent
    check_outputs(work=[output])
    with exclusive(output) as lock:
        if elsewhere:
            if (output / path.name).exists() and not overwrite:
                _check_same(results, read(output / path.name), output)
            names = [*report.FILES, archives.FOLDER]
            begin(output, path.name, names, overwrite, lock)
        paths = report.write(results, output)
        for copy, archive in archives.copies(path.parent, output).items() if elsewhere else ():
            with atomic_write(copy, "wb", own=True) as file:
                file.write(archive.read_bytes())
    return results, paths


def further(claims, results: Results, table) -> tuple:
    """Return the claims of a table's configuration that its results lack, as exploratory ones.

    Claims about a row or a column that the results lack are left out."""
    known = {claim.name for claim in claims}
    rows, columns = ({one.label for one in some} for some in (results.rows, results.columns))
    return tuple(
        dataclasses.replace(claim, exploratory=True)
        for claim in table.claims
        if claim.name not in known
        and all(rows.issuperset(c.rows) and c.column in columns for c in claim.comparisons)
    )


def _check_same(results, there, folder):
    """Refuse a folder of another table: its drawings and archives would be taken for this one's."""
    one, other = (f"{table.name}:{table.scale}" for table in (results, there))
    if one != other:
        raise UserError(
            f"{folder} holds the report of {other}, not of {one}; give another folder, or pass "
            "--overwrite, which renames it"
        )


def _define_flags():
    command_flags.define(rejudge)


if __name__ == "__main__":
    _define_flags()
    commands.run(main)
