"""What several attacks are tried on."""

from __future__ import annotations

from collections.abc import Callable

import pytest

import reconpriv as rp
from reconpriv.attacks.attacked_table import AttackedTable


@pytest.fixture(scope="module")
def target(census_tables: Callable[[str], rp.Table], policy: rp.Policy) -> AttackedTable:
    """The census with Education sensitive, under the paper's default policy."""
    return AttackedTable.of(census_tables("Education"), policy)


@pytest.fixture(scope="module")
def exposed(target: AttackedTable) -> AttackedTable:
    """Its 355 groups that violate the policy."""
    return target.only(target.violating())
