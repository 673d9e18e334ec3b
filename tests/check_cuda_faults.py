"""Faults put into the CUDA kernels' arithmetic, one by one: cuda_arithmetic_test.cpp must see each. Usage: check_cuda_faults.py ROOT C++-COMPILER [--update]

Each is one replacement in a header of kernels/cuda, which must hold the text exactly once. Each costs a compilation of 5 s, so all of them are tried only when the headers, the
test or this list have changed since all were seen (tests/data/cuda_faults.json, written with --update); else every tenth.
"""
import json
import pathlib
import shutil
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "scripts"))
from source_hash import source_hash  # noqa: E402

TESTS = ("cuda_arithmetic_test.cpp", "cuda_emulated.hpp", "cuda_pairs.hpp")
CCACHE = [found] if (found := shutil.which("ccache")) else []   # the faults are the same in every run: paths are relative, so that a second one finds what the first compiled

FAULTS = [  # (header, what stands there, the fault)
    ("element.hpp", "power_of_two(kBias64 - bias_of(f))", "power_of_two(kBias64 + 1 - bias_of(f))"),
    ("element.hpp", "if (magnitude >= first_special(f)) return", "if (magnitude > first_special(f)) return"),
    ("element.hpp", "static_cast<uint32_t>(bits) << 16));", "static_cast<uint32_t>(bits) << 15));"),
    ("element.hpp", "if (narrow >= first_special(f)) return false;", ""),
    ("element.hpp", "if ((significand & ((uint64_t{1} << dropped) - 1)) != 0) return false;", ""),
    ("pair_step.hpp", "other.max_d == t.max_d && other.worst < t.worst", "other.max_d == t.max_d && other.worst > t.worst"),
    ("tile_sums.hpp", "if (fabs(d) > t_.max_d) {", "if (fabs(d) >= t_.max_d) {"),
    ("tile_sums.hpp", "return mr + mc;", "return mr - mc;"),
    ("tile_sums.hpp", "t_.special_mismatch += kind_r != kind_c;", ""),
    ("tile_sums.hpp", "t_.not_finite += 1;", ""),
    ("pair_step.hpp", "t.sum_dr += other.sum_dr;", ""),
    ("tile_sums.hpp", "t_.any_candidate |= magnitude(c, type_c());", ""),
    ("pair_step.hpp", "t.bits_known = t.bits_known && other.bits_known;", ""),
    ("pair_step.hpp", "t.differs_candidate |= other.differs_candidate;", ""),
    ("tile_sums.hpp", "static_cast<int32_t>(above >> 31);", "static_cast<int32_t>(above >> 30);"),
    ("tile_sums.hpp", "above <= bands_.band[b].width &&", "above < bands_.band[b].width &&"),
    ("tile_sums.hpp", "t_.tied[b] += tied;", ""),
    ("pair_step.hpp", "t.tied[b] += other.tied[b];", ""),
    ("tile_sums.hpp", "k < i + kBatch && place(k) < pair_.n; ++k", "k < i + kBatch && place(k) + 1 < pair_.n; ++k"),
    ("tile_sums.hpp", "t_.worst < 0 ? -1 : place(t_.worst)", "t_.worst < 0 ? -1 : begin_ + t_.worst"),
    ("order.hpp", "at < count ? tiles[at] : PairTotals()", "at + 1 < count ? tiles[at] : PairTotals()"),
    ("tile_sums.hpp", "if (place(i + kBatch - 1) >= pair_.n) return false;", "if (place(i) >= pair_.n) return false;"),
    ("bands.hpp", "static_cast<int64_t>(place + margin) + 1", "static_cast<int64_t>(place)"),
    ("bands.hpp", "(hash >> 32) % static_cast<uint64_t>(begin(k + 1) - begin(k))", "0"),
    ("bands.hpp", "first < 0 ? 0 : keys[first]", "first < 0 ? keys[0] : keys[first]"),
    ("interval.hpp", "bits >= kInfinity64 ||", ""),
    ("interval.hpp", "while ((patterns - 1) >> shift >= kBins)", "while (patterns >> shift >= 4 * kBins)"),
    ("rank_search.hpp", "rank >= counts[bin]) rank -=", "rank > counts[bin]) rank -="),
    ("rank_search.hpp", "{ return {interval.low, interval.shift}; }", "{ return {0, interval.shift}; }"),
    ("rank_search.hpp", "rank >= less && rank < less + ties", "rank >= less && rank <= less + ties"),
    ("rank_search.hpp", "counts[static_cast<size_t>(bin)] += tie_.times;", "counts[static_cast<size_t>(bin)] += 0;"),
]


def test_runner(compiler, folder):
    """doctest's own code, compiled once: it is most of what a test of its own has to compile."""
    (folder / "main.cpp").write_text("#define DOCTEST_CONFIG_IMPLEMENT_WITH_MAIN\n#include <doctest/doctest.h>\n")
    subprocess.run([*CCACHE, compiler, "-std=c++20", "-c", "main.cpp", "-o", "main.o"], cwd=folder, check=True)


def passes(root, compiler, folder, fault=None):
    """Does the test pass with that fault in a copy of the headers? Raises when it does not compile."""
    headers = folder / "kernels" / "cuda"
    shutil.rmtree(folder / "kernels", ignore_errors=True)
    shutil.copytree(root / "kernels" / "cuda", headers)
    if fault:
        name, right, wrong = fault
        text = (headers / name).read_text()
        if text.count(right) != 1:
            sys.exit(f"{name} holds {text.count(right)} times: {right}")
        (headers / name).write_text(text.replace(right, wrong))
    subprocess.run([*CCACHE, compiler, "-std=c++20", "-O1", "-I.", "-c", "cuda_arithmetic_test.cpp", "-o", "test.o"], cwd=folder, check=True)
    subprocess.run([compiler, "test.o", "main.o", "-o", "test"], cwd=folder, check=True)
    return subprocess.run([str(folder / "test"), "--abort-after=1"], capture_output=True).returncode == 0


def sources(root):
    tests = [root / "tests" / name for name in (*TESTS, "check_cuda_faults.py")]
    return source_hash(root, ["kernels/cuda"], tests)


def unseen(root, compiler, faults):
    """Those that the test does not see."""
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        for file in TESTS:
            shutil.copy(root / "tests" / file, folder)
        test_runner(compiler, folder)
        if not passes(root, compiler, folder):
            sys.exit("the test fails without any fault")
        return [fault for fault in faults if passes(root, compiler, folder, fault)]


def main(root, compiler, update):
    now, record = {"sources": sources(root), "seen": len(FAULTS)}, root / "tests" / "data" / "cuda_faults.json"
    known = not update and record.exists() and json.loads(record.read_text()) == now
    faults = FAULTS[::10] if known else FAULTS
    lost = unseen(root, compiler, faults)
    for name, right, wrong in lost:
        print(f"{name}: nobody sees {wrong or 'nothing'} in place of {right}")
    print(f"{len(faults) - len(lost)} of {len(faults)} faults are seen" + (f"; all {len(FAULTS)} were, with these sources" if known else ""))
    if lost:
        return 1
    if update:
        record.write_text(json.dumps(now) + "\n")
    elif not known:
        print("record it: tests/check_cuda_faults.py ROOT C++-COMPILER --update")
    return 0


if __name__ == "__main__":
    sys.exit(main(pathlib.Path(sys.argv[1]).resolve(), sys.argv[2], "--update" in sys.argv[3:]))
