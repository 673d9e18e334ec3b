"""One name, one type, as a test. Usage: check_type_names.py ROOT

- Two types of src/ and kernels/ that are not in an unnamed namespace have two names within their namespace.
- A type in an unnamed namespace has no name that such a type has: where a unity build joins the two files, neither name is known any more, and which files it joins
  changes with every new one.

Of two types `A` of one namespace the linker keeps one destructor for both. Neither compiler nor linker says so, and optimised code works as long as each is
inlined.
"""
import collections
import pathlib
import re
import sys

import check_sizes

# clang-format's layout: namespaces do not indent and say at their end which they were.
NAMESPACE = re.compile(r"^namespace\s*([\w:]*)\s*\{")
NAMESPACE_END = re.compile(r"^\}\s*//\s*(?:unnamed\s+)?namespace\b")
TYPE = re.compile(
    r"^(?:template\s*<.*>\s*)?(?:struct|class|union|enum(?:\s+class|\s+struct)?)\s+(?:alignas\s*\([^)]*\)\s*)?(\w+)(?:\s+final)?\s*(?:\{|:(?!:)|$)")


def types(text):
    """(line number, namespace, name, is it in an unnamed namespace?) of each type outside of others."""
    namespaces = []
    code = check_sizes.code_of(text).splitlines()
    for number, (line, bare) in enumerate(zip(text.splitlines(), code), 1):
        if match := NAMESPACE.match(bare):
            namespaces.append(match[1])
        elif NAMESPACE_END.match(line) and namespaces:
            namespaces.pop()
        elif match := TYPE.match(bare):
            yield number, "::".join(filter(None, namespaces)), match[1], "" in namespaces


def violations(root):
    places, unnamed, files = collections.defaultdict(list), [], 0
    for top in ("src", "kernels"):
        for path in sorted((root / top).rglob("*")):
            if path.suffix in check_sizes.CPP:
                files += 1
                for number, namespace, name, own in types(path.read_text()):
                    place = f"{path.relative_to(root)}:{number}"
                    if own:
                        unnamed.append((place, (namespace, name)))
                    else:
                        places[namespace, name].append(place)
    if files < 10:
        yield f"only {files} source files found under {root}: nothing was checked"
    for (_, name), where in places.items():
        if len(where) > 1:
            yield f"{where[0]}: {name} is also the name of another type, {', '.join(where[1:])}"
    for place, type_name in unnamed:
        if others := places.get(type_name):
            yield f"{place}: {type_name[1]} is also the name of a type that other files may know, {others[0]}"


if __name__ == "__main__":
    found = list(violations(pathlib.Path(sys.argv[1])))
    print("\n".join(found) or "names of types hold")
    sys.exit(bool(found))
