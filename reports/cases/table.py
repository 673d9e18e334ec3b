"""README.md of the cases, from cases.json and results.json. table.py writes it; run.py calls it."""
import json
import pathlib

HERE = pathlib.Path(__file__).resolve().parent
HEAD = """# Bugs of real projects

Numerical bugs that were released, found and fixed, each repeated from the packages on PyPI: the version with the bug is the port, the fixed one the reference, and a
third release without the bug the control. Models are tiny, with weights from a seed. No rule of the judge was changed
to find or name one of them. One was changed after they were scored: what is fitted must explain most of a difference to be its name; two wrong names went, none came.

{score}

Found: `compare` fails. At its module: the first divergence lies in the module that the fix changed. Named: the sentence says what was wrong, not only how much; with a wrong
name it counts as not named. A case whose control is not green does not count, and none is left out because it failed. Change of the result: relative L2 in
the free run, 0 where the bug shows only inside; weights and inputs were chosen so that the bug is visible. "Patched" is the faulty version with a fix of our own. Versions further
apart than the fix differ by other things too: where the first divergence names one of those, it counts as not at its module.

| project | bug | versions | expected at | found | at its module | named | control | change of the result | s |
|---|---|---|---|:-:|:-:|:-:|---|--:|--:|
"""
TAIL = """
## What it said

The beginning of the first divergence's sentence, beside the module that it names.

| case | module | sentence |
|---|---|---|
{sentences}

## Set aside

Looked at, and no case, because no two releases differ by the bug:

{aside}

## Run them

`python reports/cases/run.py` with the Python of `.venv-models`, some minutes at the first time: it downloads each version (a few MB, without dependencies) into `build/cases`. Names
of cases after it run these alone. `cases.json` says what is a case, `models/` has its model and inputs, `results.json` what came out.
"""


def yes(value):
    return "yes" if value else "**no**"


def counted(rows):
    """Rows whose control is green."""
    return [row for row in rows if row["control"] == "pass"]


def score(rows):
    """The sentence with the numbers, which the root README repeats."""
    kept = counted(rows)
    found, placed, named = (sum(row[key] for row in kept) for key in ("found", "at_module", "named"))
    return f"{found} of {len(kept)} released bugs found, {placed} at their module, {named} named."


def readme(cases, aside, rows):
    """The whole text."""
    by_name = {case["name"]: case for case in cases}
    lines, sentences = [], []
    for row in rows:
        case = by_name[row["name"]]
        module = case["at"].replace("|", "\\|")
        control = f"{case['control']}, {'green' if row['control'] == 'pass' else '**' + row['control'] + '**, not counted'}"
        lines.append(f"| {case['project']} | [{case['bug']}]({case['link']}) | {case['faulty']} → {case['fixed']} | `{module}` | {yes(row['found'])} | {yes(row['at_module'])} | "
                     f"{yes(row['named'])} | {control} | {row['output_difference']:.2g} | {row['seconds']} |")
        sentence = row["sentence"].split(";")[0].replace("|", "\\|") or "none"
        sentences.append(f"| {row['name']} | `{row['path'] or '–'}` | {sentence}{')' if sentence.count('(') > sentence.count(')') else ''} |")
    asides = "\n".join(f"- [{one['what']}]({one['link']}): {one['why']}" for one in aside)
    return HEAD.format(score=score(rows)) + "\n".join(lines) + "\n" + TAIL.format(sentences="\n".join(sentences), aside=asides)


def load():
    """(cases, set aside, rows)"""
    described = json.loads((HERE / "cases.json").read_text())
    return described["cases"], described["set_aside"], json.loads((HERE / "results.json").read_text())


def write():
    (HERE / "README.md").write_text(readme(*load()))


if __name__ == "__main__":
    write()
