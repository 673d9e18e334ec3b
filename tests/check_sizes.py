"""Sizes and numbers in the sources, as a test. Usage: check_sizes.py ROOT

- No C++ or Python file is longer than 300 lines.
- No C++ function is longer than 40 lines, from the line of its name to its closing brace.
- src/judge, src/pair, src/calls, src/ranks, src/diagnose, src/jobs and src/gate have their numbers in tables: a decimal literal (1.5, .05, 1e-6) stands in limits.hpp, limits.cpp or
  constants.hpp, each with its origin, and nowhere else.
"""
import pathlib
import re
import sys

FILE_LINES, FUNCTION_LINES = 300, 40
FOLDERS = ("src", "kernels", "probes", "tests", "scripts")
CPP, PYTHON = (".cpp", ".hpp", ".cu", ".h"), (".py",)
NUMBERED = ("judge", "pair", "calls", "ranks", "diagnose", "gate", "jobs")  # folders that decide
TABLES = ("limits.hpp", "limits.cpp", "constants.hpp")

SKIPPED = re.compile(
    r"""//[^\n]*|/\*.*?\*/|(?<![0-9A-Za-z_])R"(?P<d>[^(\s]*)\(.*?\)(?P=d)"|"(?:\\.|[^"\\\n])*"|(?<![0-9A-Za-z_])'(?:\\.|[^'\\\n])+'""",
    re.DOTALL)
DECIMAL = re.compile(r"(?<![\w.])(?:\d[\d']*\.[\d']*(?:[eE][+-]?\d+)?|\.\d[\d']*(?:[eE][+-]?\d+)?|\d[\d']*[eE][+-]?\d+|0[xX][\dA-Fa-f.]+[pP][+-]?\d+)")
SCOPE = re.compile(r"^\s*(?:template\s*<.*>\s*)?(?:inline\s+)?(?:namespace|class|struct|union|enum|extern)\b", re.DOTALL)
BRANCH = re.compile(r"^\s*(?:else\s+)?(?:if|for|while|switch|catch)\b")


def code_of(text):
    """The text without comments and strings, line by line as it was; no preprocessor lines."""
    bare = SKIPPED.sub(lambda m: ('""' if m[0][-1] in "\"'" else "") + "\n" * m[0].count("\n"), text)
    return re.sub(r"^[ \t]*#(?:[^\n]*\\\n)*[^\n]*", lambda m: "\n" * m[0].count("\n"), bare, flags=re.MULTILINE)


def is_function(header):
    """Does `header`, what stands before an opening brace, begin a function or a lambda?"""
    if SCOPE.match(header) or BRANCH.match(header) or ")" not in header and "]" not in header:
        return False
    return re.search(r"(?:[\])]|\b(?:const|noexcept|override|final|mutable)|->\s*[\w:<>,&*\s]+)\s*$", header) is not None


def functions(code):
    """(first line, name, lines) of every function that lies in no other one, in order."""
    open_braces = []  # of each open brace: (where its header begins, the header) or None
    header, begin, line, within = "", 1, 1, 0
    for character in code:
        line += character == "\n"
        if character == "{":
            function = within == 0 and is_function(header)
            within += function
            open_braces.append((function, header, begin))
            header = ""
        elif character == "}" and open_braces:
            function, before, first = open_braces.pop()
            within -= function
            if function:
                yield first, " ".join(before.split())[:70], line - first + 1
            is_scope = function or SCOPE.match(before)
            header, begin = ("", line) if is_scope else (before + ")", first)  # `a_{a}` in a constructor's head goes on
        elif character == ";":
            header = ""
        elif header or not character.isspace():
            begin = begin if header else line
            header += character


def violations(root):
    found = [path for folder in FOLDERS for path in sorted((root / folder).rglob("*")) if path.suffix in CPP + PYTHON and path.is_file()]
    if len(found) < 10:
        yield f"only {len(found)} source files found under {root}: nothing was checked"
    for path in found:
        where, text = path.relative_to(root), path.read_text()
        if (lines := text.count("\n")) > FILE_LINES:
            yield f"{where}: {lines} lines, at most {FILE_LINES}: split it"
        if path.suffix not in CPP:
            continue
        code = code_of(text)
        for first, name, lines in functions(code):
            if lines > FUNCTION_LINES:
                yield f"{where}:{first}: {lines} lines, at most {FUNCTION_LINES}: {name}"
        if where.parts[0] == "src" and where.parts[1] in NUMBERED and not path.name.endswith(TABLES):
            for number, line in enumerate(code.splitlines(), 1):
                for literal in DECIMAL.findall(line):
                    yield f"{where}:{number}: {literal} belongs in a table of limits, with its origin"


if __name__ == "__main__":
    found = list(violations(pathlib.Path(sys.argv[1])))
    print("\n".join(found) or "sizes and numbers hold")
    sys.exit(bool(found))
