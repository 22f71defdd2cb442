"""What several attacks are tried on."""

from __future__ import annotations

from collections.abc import Callable

import pytest

import reconpriv as rp
from reconpriv.attacks.target import Target


@pytest.fixture(scope="module")
def target(census_tables: Callable[[str], rp.Table], policy: rp.Policy) -> Target:
    """The census with Education sensitive, under the paper's default policy."""
    return Target.of(census_tables("Education"), policy)


@pytest.fixture(scope="module")
def exposed(target: Target) -> Target:
    """Its 355 groups that violate the policy."""
    return target.only(target.violating())
