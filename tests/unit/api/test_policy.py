"""What a policy refuses, and how it reads."""

import pytest

import reconpriv as rp
from reconpriv.errors import PolicyError
from reconpriv.policy.policy import Policy
from reconpriv.theory.tails.bounds import BOUNDS, Bound


@pytest.mark.parametrize("value", ["0.5", None, True])
def test_a_policy_of_no_numbers_is_refused(value):
    with pytest.raises(PolicyError, match="number"):
        rp.Policy(value, 0.5, 0.3)


@pytest.mark.parametrize("bound", sorted(BOUNDS))
def test_a_policy_reads_as_it_is_written(bound):
    policy = Policy(0.5, 0.5, 0.3, bound=bound, sample_size="paper")
    assert eval(repr(policy)) == policy
    assert " at 0x" not in repr(policy) and "<" not in repr(policy)


def test_the_text_of_a_policy_is_short():
    assert repr(Policy(0.5, 0.5, 0.3)) == (
        "Policy(retention=0.5, epsilon=0.5, delta=0.3, bound='chernoff', sample_size='octave',"
        " unattainable='refuse')"
    )


def test_a_bound_of_ones_own_shows_its_name():
    def my_bound(count):
        raise NotImplementedError

    policy = Policy(0.5, 0.5, 0.3, bound=my_bound, sample_size="paper")
    assert "bound=my_bound," in repr(policy)
    # A name that is taken is still not the bound of that name.
    same = Policy(0.5, 0.5, 0.3, bound=Bound("chernoff", my_bound), sample_size="paper")
    assert "bound=chernoff," in repr(same)
