"""scripts/any_cpu takes an emulated CPU as recorded exactly as long as nothing that it computes with has changed, and runs every library at every level then, too.

Usage: check_emulated_when_changed.py ROOT"""
import importlib.machinery
import importlib.util
import json
import pathlib
import sys
import tempfile

ROOT = pathlib.Path(sys.argv[1])


def loaded():
    sys.path.insert(0, str(ROOT / "scripts"))
    loader = importlib.machinery.SourceFileLoader("any_cpu", str(ROOT / "scripts" / "any_cpu"))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader("any_cpu", loader))
    sys.modules["any_cpu"] = module  # dataclasses look their module up
    loader.exec_module(module)
    return module


def main():
    any_cpu = loaded()
    emulated = {name for name, setting in any_cpu.SETTINGS.items() if setting.emulated}
    assert set(json.loads(any_cpu.RECORDED.read_text())["came out"]) == emulated, "not every emulated CPU is recorded: scripts/any_cpu --update"
    settings = any_cpu.SETTINGS.values()
    together = {level for setting in settings if not setting.alone for level in [*setting.environment.items(), setting.arguments]}
    left_out = {level for setting in settings if setting.alone for level in [*setting.environment.items(), setting.arguments]} - together
    assert not left_out, f"settings that run with changed sources alone: {left_out}"
    with tempfile.TemporaryDirectory() as folder:
        tree = any_cpu.ROOT = pathlib.Path(folder)
        sources = [tree / folder / "a.cpp" for folder in any_cpu.COMPUTES]
        others = [tree / "tests" / "main_job_test.cpp", tree / "tests" / "propagation_test.cpp", tree / "reference_dumps" / "requirements.txt",
                  *(tree / "reference_dumps" / f"{name}.h5" for name in any_cpu.QUICK_DUMPS if name not in any_cpu.SLOW_TO_EMULATE)]
        for file in sources + others:
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text("as recorded")
        any_cpu.RECORDED = tree / "recorded.json"
        assert any_cpu.recorded() == {}, "nothing is recorded, and it is taken as recorded"
        any_cpu.RECORDED.write_text(json.dumps({"sources": any_cpu.what_computes(), "came out": {"a CPU": {}}}))
        assert any_cpu.recorded() == {"a CPU": {}}
        for file in sources + others:
            file.write_text("other")
            assert any_cpu.recorded() == {}, f"{file.relative_to(tree)} has changed, and the CPU is taken as recorded"
            file.write_text("as recorded")
        (tree / "src" / "judge" / "b.hpp").write_text("")
        assert any_cpu.recorded() == {}, "a new file is no change"


main()
