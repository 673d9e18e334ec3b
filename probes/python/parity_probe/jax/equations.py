"""Lines of source of traced equations: JAX keeps the Python stack that each was traced from."""
from .. import lines
from .marks import mark_p


def source(equation):
    """The innermost user frame's line, "" when there is none."""
    traceback = getattr(getattr(equation, "source_info", None), "traceback", None)
    for frame in traceback.frames if traceback is not None else ():
        if lines.kind_of(frame.file_name) is lines.USER:
            return lines.text(frame.file_name, frame.line_num, frame.function_name.rpartition(".")[2])  # some releases say Class.function
    return ""


def makers(jaxpr):
    """{variable: the equation that computes it}; marks hand on, they compute nothing."""
    made = {}
    for equation in jaxpr.eqns:
        if equation.primitive is mark_p:
            made.update((o, made.get(i)) for o, i in zip(equation.outvars, equation.invars) if not hasattr(i, "val"))
        else:
            made.update((o, equation) for o in equation.outvars)
    return made
