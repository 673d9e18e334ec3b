"""The project's documents as their tests read them: commands, examples, links, paths. What marks a block is in CONTRIBUTING.md, "Documents"."""
import re
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
FOLDERS = ("src", "kernels", "probes", "reference_dumps", "reports", "scripts", "tests")
DOCUMENTS = sorted(ROOT.glob("*.md")) + [path for folder in FOLDERS for path in sorted((ROOT / folder).rglob("*.md"))
                                         if path.name in ("README.md", "FORMAT.md")]


@dataclass(frozen=True)
class Command:
    line: str
    status: int = 0  # the exit status that it is shown with


def name(document):
    return str(document.relative_to(ROOT))


def blocks(document, language):
    return re.findall(rf"^```{language}\n(.*?)^```$", document.read_text(), re.S | re.M)


def command_of(line):
    shown = re.search(r"\s+# exit status (\d+)$", line)
    return Command(line[:shown.start()], int(shown[1])) if shown else Command(line)


def commands():
    """Every line of every `sh` block, each once, in order."""
    found = [command_of(line) for document in DOCUMENTS for block in blocks(document, "sh") for line in block.splitlines() if line.strip()]
    return list(dict.fromkeys(found))


def needs_jax(example):
    return re.search(r"^\s*(import|from) (jax|flax)\b", example, re.M) is not None


def examples(jax):
    """{document: its Python examples}: those that need JAX, or the others."""
    found = {name(d): [e for e in blocks(d, "python") if needs_jax(e) == jax] for d in DOCUMENTS}
    return {document: some for document, some in found.items() if some}


def programs():
    """(document, C++ example)."""
    return [(name(d), e) for d in DOCUMENTS for e in blocks(d, "cpp")]


def prose(document):
    """Without fenced blocks."""
    return re.sub(r"^```.*?^```$", "", document.read_text(), flags=re.S | re.M)


def links(document):
    """Targets of relative links and pictures, anchors included."""
    return [t for t in re.findall(r"\]\(([^)\s]+)\)", prose(document)) if "://" not in t]


def anchors(document):
    """Of its headings, as they are made from them on the web."""
    heads = re.findall(r"^#+ (.*)$", prose(document), re.M)
    return {re.sub(r"[^\w\- ]", "", h.lower()).strip().replace(" ", "-") for h in heads}


def paths(document):
    """Files and folders named as code: `src/judge/limits.hpp`, `probes/maps/*.map`. Those with my_ in them are the reader's to make."""
    spans = re.findall(r"`((?:%s)/[\w./*\-]+)`" % "|".join(FOLDERS), prose(document))
    return [s for s in spans if not re.search(r"my[_-]", s) and not s.startswith("reports/latest")]
