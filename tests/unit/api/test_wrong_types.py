"""A Python call with an argument of the wrong type gets one sentence, whatever the function."""

import inspect
import warnings
from pathlib import Path

import pyarrow as pa
import pytest

import reconpriv as rp
from reconpriv.errors import RolesError

WRONG = [
    None, True, 5, -1, 2.5, float("nan"), "", "x", "x\0y", b"x", [], [None], ["x\0y"], {}, {"x": 5},
    {5: None}, object(), Path("x\0y"), lambda: None,
]  # fmt: skip
POLICY = rp.Policy(0.5, 0.5, 0.3)
VALUES = ["a", "b"]
LEFT_OUT = {"close", "interrupt"}


def records():
    return pa.table(
        {
            "age": [i % 4 for i in range(40)],
            "sex": [VALUES[i % 2] for i in range(40)],
            "ill": [VALUES[i % 3 == 0] for i in range(40)],
        }
    )


FRAME = {"source": records(), "sensitive": "ill", "public": "all"}
PLAIN = {"values": ["a", "b", "a"], "domain": VALUES, "retention": 0.5}
FUNCTIONS = {
    "read": FRAME,
    "open": {"folder": "release"},
    "audit": FRAME | {"policy": POLICY},
    "publish": FRAME | {"policy": POLICY},
    "perturb": PLAIN,
    "reconstruct": {"perturbed": ["a", "b", "a"], "domain": VALUES, "retention": 0.5},
    "invariant_matrix": PLAIN,
    "pram_matrix": {"matrix": [[0.8, 0.2], [0.3, 0.7]], "domain": VALUES},
    "describe": {"source": records()},
    "preset": {"name": "paper"},
    "dataset_path": {"name": "adult"},
    "Policy": {"retention": 0.5, "epsilon": 0.5, "delta": 0.3},
    "Margins": {"epsilon": 1.0},
    "Quantiles": {"bins": 4},
    "Key": {"secret": bytes(range(32))},
    "Ledger": {"key": "my.key"},
}
# What a method needs besides what it has by default.
NEEDED = {
    "policy": POLICY,
    "out": "out",
    "path": "file.html",
    "query": "SELECT count(*) FROM release",
    "by": ["sex"],
    "a": {"sex": "a"},
    "b": {"sex": "b"},
    "of": "age",
    "share": 0.5,
    "queries": [{"sex": "a"}],
    "columns": "sex",
    "features": ["sex"],
    "target": "a",
    "outcome": "age",
    "database": "base.db",
    "name": "released",
}
OWN = {
    ("Table", "with_records"): {"records": records()},
    ("Table", "workload"): {},
    ("Table", "tune"): {"retentions": [0.5], "epsilons": [0.5], "deltas": [0.3], "queries": 20},
    ("Table", "tuner"): {"queries": 20},
    ("Release", "answer_many"): {"queries": []},
    ("Release", "export"): {"path": "file.csv"},
    ("Release", "select"): {"query": {"sex": "a"}},
    ("Release", "compare"): {"a": {"sex": "a"}, "b": {"sex": "b"}, "ill": "a"},
    ("Release", "naive_bayes"): {},
}
INTERNAL = {"progress", "watch", "also"}  # called by surfaces, with functions


def methods(kind):
    return [
        (kind.__name__, name)
        for name, one in vars(kind).items()
        if inspect.isfunction(one) and not name.startswith("_") and name not in LEFT_OUT
    ]


def parameters(function):
    return [
        name
        for name, one in inspect.signature(function).parameters.items()
        if one.kind not in (one.VAR_KEYWORD, one.VAR_POSITIONAL)
        and name not in INTERNAL | {"self", "cls"}
    ]


def walk():
    for name in FUNCTIONS:
        for parameter in parameters(getattr(rp, name)):
            yield "", name, parameter
    for kind in (rp.Table, rp.Release):
        for owner, name in methods(kind):
            for parameter in parameters(getattr(kind, name)):
                yield owner, name, parameter


@pytest.fixture(scope="module")
def objects(tmp_path_factory):
    folder = tmp_path_factory.mktemp("wrong-types")
    table = rp.read(records(), sensitive="ill", public="all")
    key = rp.Key.generate()
    OWN["Release", "workload_error"] = {"workload": table.workload(queries=5, min_selectivity=0.1)}
    return {"Table": table, "Release": table.publish(POLICY, folder / "release", key=key)}


def call_of(owner, name, objects):
    if not owner:
        return getattr(rp, name), FUNCTIONS[name]
    bound = getattr(objects[owner], name)
    own = OWN.get((owner, name))
    if own is None:
        needed = {
            one
            for one, said in inspect.signature(bound).parameters.items()
            if said.default is said.empty and said.kind is not said.VAR_KEYWORD
        }
        own = {one: NEEDED[one] for one in needed if one in NEEDED}
    return bound, own


@pytest.mark.parametrize(("owner", "name", "parameter"), [*walk()])
def test_a_wrong_argument_is_answered_or_refused_in_one_sentence(
    owner, name, parameter, objects, tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    rp.Key.generate().write("my.key")
    function, usual = call_of(owner, name, objects)
    for wrong in WRONG:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                made = function(**(usual | {parameter: wrong}))
            except rp.ReconprivError as error:
                proposed = isinstance(error, RolesError)  # a line for each column
                assert proposed or "\n" not in str(error)
                continue
            except Exception as error:
                pytest.fail(f"{name}({parameter}={wrong!r}) raised {type(error).__name__}: {error}")
            if isinstance(made, rp.Table):
                made.close()
            elif inspect.isgenerator(made):
                next(made)


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (lambda t, r: t.audit(POLICY, worst=None), "worst must be a whole number; got None."),
        (lambda t, r: t.audit(POLICY, k=None), "k must be a whole number; got None."),
        (
            lambda t, r: r.logistic("a", "sex", merge=b"x"),
            "merge must be a dictionary or None; got a value of type bytes.",
        ),
        (
            lambda t, r: t.publish(POLICY, "a\0b"),
            "out holds a NUL character, which no path can have.",
        ),
        (lambda t, r: r.export(5), "path must be a path; got a value of type int."),
        (
            lambda t, r: t.publish(POLICY, "out", key=5),
            "key must be a Key, bytes, a path or None; got a value of type int.",
        ),
        (
            lambda t, r: rp.read("a\0.csv", sensitive="x", public="all"),
            "source holds a NUL character",
        ),
        (
            lambda t, r: rp.read(records(), sensitive="ill", public="all", domain="a\0b"),
            "domain holds a NUL character",
        ),
        (lambda t, r: t.report(POLICY, "a\0b.html"), "path holds a NUL character"),
        (
            lambda t, r: rp.read(records(), sensitive="ill", public=[5]),
            "public must be a list of texts, text or None; got a value of type list.",
        ),
    ],
)
def test_the_sentence_names_the_argument_and_what_it_takes(
    call, sentence, objects, tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(rp.ReconprivError) as caught:
        call(objects["Table"], objects["Release"])
    assert sentence in str(caught.value)
    assert list(tmp_path.iterdir()) == []
