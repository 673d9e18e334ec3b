"""Cases in which any two values of two parameters meet, where all combinations would take minutes: a fault that needs three of them at once is rare (Kuhn, Wallace, Gallo 2004, IEEE Transactions
on Software Engineering 30:418)."""
import pytest
from allpairspy import AllPairs


def pairwise(possible=lambda case: True, **parameters):
    """A mark as of `pytest.mark.parametrize` for each of `parameters`: lists, or {id: value}. `possible` is given {parameter: id or value} of some or all."""
    ids = {name: list(values) for name, values in parameters.items()}
    rows = AllPairs(list(ids.values()), filter_func=lambda row: possible(dict(zip(ids, row))))
    value = {name: values if isinstance(values, dict) else {} for name, values in parameters.items()}
    cases = [pytest.param(*(value[name].get(one, one) for name, one in zip(ids, row)), id="-".join(map(str, row))) for row in rows]
    return pytest.mark.parametrize(list(ids), cases)
