"""What a policy refuses, and how it reads."""

import pytest

import reconpriv as rp
from reconpriv.errors import PolicyError
from reconpriv.policy.policy import Policy
from reconpriv.theory.tails.bounds import BOUNDS, Bound


@pytest.mark.parametrize("value", ["0.5", None, True])
def test_a_policy_of_no_numbers_is_refused(value):
    with pytest.raises(PolicyError, match="number"):
        rp.Policy(retention=value, tolerance=0.5, doubt=0.3)


@pytest.mark.parametrize("bound", sorted(BOUNDS))
def test_a_policy_reads_as_it_is_written(bound):
    policy = Policy(retention=0.5, tolerance=0.5, doubt=0.3, bound=bound, sampling="paper")
    assert eval(repr(policy)) == policy
    assert " at 0x" not in repr(policy) and "<" not in repr(policy)


def test_the_text_of_a_policy_is_short():
    assert repr(Policy(retention=0.5, tolerance=0.5, doubt=0.3)) == (
        "Policy(retention=0.5, tolerance=0.5, doubt=0.3, bound='chernoff', sampling='octave',"
        " unattainable='refuse')"
    )


def test_a_bound_of_ones_own_shows_its_name():
    def my_bound(count):
        raise NotImplementedError

    policy = Policy(retention=0.5, tolerance=0.5, doubt=0.3, bound=my_bound, sampling="paper")
    assert "bound=my_bound," in repr(policy)
    # A name that is taken is still not the bound of that name.
    same = Policy(
        retention=0.5, tolerance=0.5, doubt=0.3, bound=Bound("chernoff", my_bound), sampling="paper"
    )
    assert "bound=chernoff," in repr(same)
