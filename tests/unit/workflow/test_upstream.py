import pytest

from cuarl.errors import ConfigError
from cuarl.workflow.targets import Target
from cuarl.workflow.upstream import check

HERE = Target("policy", "base")
THERE = Target("endpoint", "http://host/v1")


@pytest.mark.parametrize(
    ("target", "named", "adapters", "said"),
    [
        (Target("scripted", "oracle"), True, False, "oracle can't be served"),
        (THERE, False, False, "needs the name of its model"),
        (Target("tinker", "tinker"), False, False, "needs the name of its model"),
        (THERE, True, True, "a policy in this process only"),
    ],
    ids=["agent", "endpoint without a name", "tinker without a name", "adapters elsewhere"],
)
def test_what_can_not_be_served_so_is_refused(target, named, adapters, said):
    with pytest.raises(ConfigError, match=said):
        check(target, named=named, adapters=adapters)


@pytest.mark.parametrize(
    ("target", "named", "adapters"), [(HERE, False, True), (THERE, True, False)], ids=["here", "elsewhere"]
)
def test_what_can_be_served_is_let_through(target, named, adapters):
    check(target, named=named, adapters=adapters)


def test_weights_of_a_run_need_no_name(tmp_path):
    check(Target("tinker", "tinker://a/w", run=tmp_path), named=False, adapters=False)
