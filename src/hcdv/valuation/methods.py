"""The methods by name: how the budgets of coalitions reach the points."""

from __future__ import annotations

from typing import Any

from hcdv.hierarchy.tree import Tree
from hcdv.valuation.algorithm1 import value_paper
from hcdv.valuation.nested import Valuation, value_nested
from hcdv.valuation.plan import Plan
from hcdv.valuation.points import Case
from hcdv.valuation.pointwise import Probe
from hcdv.valuation.semivalues import value_semivalue
from hcdv.valuation.winter import value_winter

METHODS = ("nested", "winter", "paper")


def value(
    case: Case, tree: Tree, plan: Plan, progress: Any = None, probe: Probe | None = None
) -> Valuation:
    """Value every point and coalition of a case. probe: one set up before, to be kept."""
    if plan.semivalue != "shapley":
        return value_semivalue(case, tree, plan, progress, probe)
    if plan.method == "paper":
        return value_paper(case, tree, plan, progress, probe)
    if plan.method == "winter":
        return value_winter(case, tree, plan, progress, probe)
    return value_nested(case, tree, plan, progress, probe)
