"""The checks of the sources go red: each of their rules on a tree with one violation, and none on a tree without. Usage: check_checks.py"""
import pathlib
import tempfile
import unittest

import check_folder_order
import check_sizes
import check_type_names

FUNCTION = "int f(int x) {\n" + "  x += 1;\n" * 38 + "  return x;\n}\n"  # 41 lines
CLEAN = {f"src/{folder}/a.cpp": f'#include "{folder}/a.hpp"\n' for folder in check_folder_order.ORDER if folder != "kernels"}
CLEAN |= {f"src/{folder}/a.hpp": "#pragma once\n" for folder in check_folder_order.ORDER}
CLEAN["tests/a.py"] = "x = 1.5\n"


def found(check, **changed):
    """What `check` says of the clean tree with these files changed; their names with _ for / and __ for a dot."""
    with tempfile.TemporaryDirectory() as folder:
        root = pathlib.Path(folder)
        for name, text in {**CLEAN, **{name.replace("__", ".").replace("_", "/"): text for name, text in changed.items()}}.items():
            (root / name).parent.mkdir(parents=True, exist_ok=True)
            (root / name).write_text(text)
        check_folder_order.includes.cache_clear()
        return list(check.violations(root))


class Sizes(unittest.TestCase):
    def only(self, part, **changed):
        said = found(check_sizes, **changed)
        self.assertEqual(len(said), 1, said)
        self.assertIn(part, said[0])

    def test_clean(self):
        self.assertEqual(found(check_sizes), [])

    def test_files(self):
        self.only("src/pair/long.cpp: 301 lines", src_pair_long__cpp="//\n" * 301)
        self.only("tests/long.py: 301 lines", tests_long__py="#\n" * 301)
        self.assertEqual(found(check_sizes, src_pair_long__cpp="//\n" * 300), [])

    def test_functions(self):
        self.only("src/video/f.cpp:1: 41 lines", src_video_f__cpp=FUNCTION)
        self.assertEqual(found(check_sizes, src_video_f__cpp=FUNCTION.replace("  x += 1;\n", "", 1)), [])
        body = FUNCTION[FUNCTION.index("{"):]
        for head in ("void A::f(int x) const noexcept ", "A::A(int x) : a_(x), b_{x} ", "template <class T>\nauto f(T x) -> std::vector<T> ",
                     'TEST_CASE("{ a } \\" {") ', "const auto kF = [](int x) ", "bool operator==(const A& a, const A& b) "):
            self.only(f"src/video/f.cpp:3: {41 + head.count(chr(10))} lines", src_video_f__cpp="\n\n" + head + body)
        self.only("lines, at most 40: int f(int x)", src_video_f__cpp="namespace a {\nclass B : public C<int(int)> {\n" + FUNCTION + "};\n}\n")

    def test_what_is_no_function(self):
        data = "".join(f"    {{{i}, [](int x) {{ return x; }}}},\n" for i in range(60))
        self.assertEqual(found(check_sizes, src_video_f__cpp=f"const std::vector<Row> kRows{{\n{data}}};\n"), [])
        members = "".join(f"  int f{i}() const {{ return {i}; }}\n" for i in range(60))
        self.assertEqual(found(check_sizes, src_video_f__cpp=f"struct A {{\n{members}}};\n"), [])
        self.assertEqual(found(check_sizes, src_video_f__cpp="/* int f() {\n" + "\n" * 60 + "} */\n"), [])

    def test_numbers(self):
        for text in ("1.5", "1.", ".05", "1e-6", "0x1p-53", "1'000.5", "2.F"):
            self.only(f"src/judge/a.cpp:2: {text.rstrip('F')} belongs", src_judge_a__cpp=f"\nconst auto x = {text};\n")
        for text in ("12", "1'000", "0x10", "a.b1.c", "std::get<0>(t)", '"1.5"', "x[0].y", "' '", 'R"(1.5)"', "1 // 1.5", "p1e5"):
            self.assertEqual(found(check_sizes, src_diagnose_a__cpp=f"const auto x = {text};\n"), [], text)
        for name in ("src_pair_limits__hpp", "src_judge_limits__cpp", "src_diagnose_faults_constants__hpp", "src_measure_a__cpp"):
            self.assertEqual(found(check_sizes, **{name: "const auto x = 1.5;\n"}), [], name)

    def test_nothing_to_check(self):
        with tempfile.TemporaryDirectory() as folder:
            self.assertIn("nothing was checked", list(check_sizes.violations(pathlib.Path(folder)))[0])


class FolderOrder(unittest.TestCase):
    def only(self, part, **changed):
        said = found(check_folder_order, **changed)
        self.assertEqual(len(said), 1, said)
        self.assertIn(part, said[0])

    def test_clean(self):
        self.assertEqual(found(check_folder_order), [])

    def test_order(self):
        self.only("src/measure/a.cpp:2: measure must not include judge/a.hpp", src_measure_a__cpp='\n#include "judge/a.hpp"\n')
        self.assertEqual(found(check_folder_order, src_judge_a__cpp='#include "measure/a.hpp"\n'), [])

    def test_homes(self):
        self.only("hdf5.h belongs in dump alone", src_pair_a__cpp="#include <hdf5.h>\n")

    def test_tensors(self):
        self.only("core knows no tensor", src_core_a__cpp="#include <ATen/ATen.h>\n")
        self.only("measure/a.hpp -> ATen/Tensor.h", src_measure_a__hpp="#include <ATen/Tensor.h>\n", src_judge_a__cpp='#include "measure/a.hpp"\n')

    def test_unknown_folder(self):
        self.only("folder 'other' has no place", src_other_a__cpp="\n")


class TypeNames(unittest.TestCase):
    def two(self, first, second):
        within = "namespace parity {{\n{}\n}}  // namespace parity\n".format
        return found(check_type_names, src_gate_b__hpp=within(first), src_weights_b__cpp=within(second))

    def test_clean(self):
        self.assertEqual(found(check_type_names), [])

    def test_two_types_of_one_name(self):
        for kind in ("struct A {", "class A {", "enum class A {", "class A final : public B {",
                     "class A\n    : public B {", "template <class T>\nstruct A {", "struct alignas(64) A {"):
            said = self.two("struct A {\n};", f"{kind}\n}};")
            self.assertEqual(len(said), 1, (kind, said))
            self.assertIn("A is also the name of another type", said[0])

    def test_unnamed_beside_a_named_one(self):
        said = self.two("struct A {\n};", "namespace {\nstruct A {\n};\n}  // namespace")
        self.assertEqual(len(said), 1, said)
        self.assertIn("src/weights/b.cpp:3: A is also the name of a type that other files may know, src/gate/b.hpp:2", said[0])

    def test_what_is_no_second_type(self):
        unnamed = "namespace {\nstruct B {\n};\n}  // namespace"
        other = "namespace other {\nstruct A {\n};\n}  // namespace other"
        for second in (unnamed, other, "struct A;", "struct A::State {\n};", "// struct A {", "struct AB {\n};",
                       "struct B {\n  struct A {\n  };\n};", "struct A f();"):
            self.assertEqual(self.two("struct A {\n};", second), [], second)


if __name__ == "__main__":
    unittest.main()
