"""A Python call with an argument of the wrong type gets one sentence, whatever the function."""

import datetime as dt
import inspect
import warnings
from decimal import Decimal
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import reconpriv as rp
from reconpriv import attacks, learning
from reconpriv.answers.crosstab import Crosstab
from reconpriv.errors import RolesError
from reconpriv.show.charts.chart import Chart

WRONG = [
    None, True, 5, -1, 2.5, float("nan"), "", "x", "x\0y", b"x", [], [None], ["x\0y"], {}, {"x": 5},
    {5: None}, object(), Path("x\0y"), lambda: None, float("inf"), 10**400, 1j, "\ud800", ("x",),
    [["x"]], {"sex": object()}, {"sex": ["a", None]}, range(3), iter("x"), {"x"}, bytearray(b"x"),
    int, np.array(3), np.array([1.5]), np.float32(0.5), pd.DataFrame({"x": [1]}), pd.Series([1]),
    pd.NA, pd.NaT, pl.Series(["x"]), Decimal("NaN"), Decimal("0.5"), dt.date(2020, 1, 1),
    "postgresql://x\0y", "sqlite:///x\0y", "s3://x\0y",
]  # fmt: skip
POLICY = rp.Policy(retention=0.5, tolerance=0.5, doubt=0.3)
VALUES = ["a", "b"]
LEFT_OUT = {"close", "interrupt", "of"}


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
    "Policy": {"retention": 0.5, "tolerance": 0.5, "doubt": 0.3},
    "Margins": {"epsilon": 1.0},
    "Quantiles": {"bins": 4},
    "Key": {"secret": bytes(range(32))},
    "Ledger": {"key": "my.key"},
    "attacks.attack": {"name": "micro"},
    "attacks.attack_release": {"name": "micro"},
}
# In place of what only a fixture can make.
GIVEN = {
    "attacks.attack": {"table": "Table", "policy": "Policy"},
    "attacks.attack_release": {"folder": "folder"},
}
KEYWORD = "sex"  # a column, for methods that take columns with their values
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
    ("Table", "publish"): {"policy": POLICY, "out": "out"},
    ("Table", "report"): {"policy": POLICY, "path": "file.html"},
    ("Table", "workload"): {},
    ("Table", "tune"): {"retentions": [0.5], "tolerances": [0.5], "doubts": [0.3], "queries": 20},
    ("Table", "tuner"): {"queries": 20},
    ("Release", "answer_many"): {"queries": []},
    ("Release", "export"): {"path": "file.csv"},
    ("Release", "select"): {"query": {"sex": "a"}},
    ("Release", "compare"): {"a": {"sex": "a"}, "b": {"sex": "b"}, "ill": "a"},
    ("Release", "naive_bayes"): {},
    ("Key", "from_file"): {"path": "my.key"},
    ("Key", "from_hex"): {"text": "00" * 32},
    ("Key", "write"): {"path": "new.key"},
    ("Ledger", "withdraw"): {"line": 1, "why": "x"},
    ("PramMatrix", "ordered"): {"values": VALUES},
}
INTERNAL = {"progress", "watch", "also"}  # called by surfaces, with functions


KINDS = {
    "Table": rp.Table,
    "Release": rp.Release,
    "Key": rp.Key,
    "Ledger": rp.Ledger,
    "Estimate": rp.Estimate,
    "Crosstab": Crosstab,
    "PramMatrix": rp.PramMatrix,
    "Chart": Chart,
    "NaiveBayes": learning.ReconstructedNaiveBayes,
}
SKLEARN = {  # what scikit-learn calls, and judges by its own rules
    "fit", "predict", "predict_proba", "predict_log_proba", "predict_joint_log_proba",
    "decision_function", "score", "get_params", "set_params", "get_metadata_routing",
}  # fmt: skip


def methods(kind):
    """Those that users call, also of the classes it is made from."""
    for name in dir(kind):
        one = inspect.getattr_static(kind, name)
        one = one.__func__ if isinstance(one, classmethod | staticmethod) else one
        if inspect.isfunction(one) and name[0] != "_" and name not in LEFT_OUT | SKLEARN:
            yield name, one


def parameters(function):
    found = inspect.signature(function).parameters
    for name, one in found.items():
        if one.kind is one.VAR_KEYWORD:
            yield from [KEYWORD] if name in ("equal", "labels") else []
        elif one.kind is not one.VAR_POSITIONAL and name not in INTERNAL | {"self", "cls"}:
            yield name


def function_of(name):
    home, _, own = name.rpartition(".")
    return getattr({"": rp, "attacks": attacks}[home], own)


def walk():
    for name in FUNCTIONS:
        for parameter in parameters(function_of(name)):
            yield "", name, parameter
    for owner, kind in KINDS.items():
        for name, function in methods(kind):
            for parameter in parameters(function):
                yield owner, name, parameter


@pytest.fixture(scope="module")
def objects(tmp_path_factory):
    folder = tmp_path_factory.mktemp("wrong-types")
    table = rp.read(records(), sensitive="ill", public="all")
    key = rp.Key.generate()
    key.write(folder / "its.key")
    OWN["Release", "workload_error"] = {"workload": table.workload(queries=5, min_selectivity=0.1)}
    release = table.publish(POLICY, folder / "release", key=folder / "its.key")
    counted = release.crosstab(["sex", "ill"], totals=True)
    return {
        "Table": table,
        "Release": release,
        "Policy": POLICY,
        "folder": folder / "release",
        "Key": key,
        "Ledger": rp.Ledger(folder / "its.key"),
        "Estimate": release.count(ill="a"),
        "Crosstab": counted,
        "PramMatrix": rp.pram_matrix([[0.8, 0.2], [0.3, 0.7]], VALUES),
        "Chart": counted.plot(),
    }


def call_of(owner, name, objects):
    if not owner:
        given = {one: objects[made] for one, made in GIVEN.get(name, {}).items()}
        return function_of(name), FUNCTIONS[name] | given
    bound = getattr(objects.get(owner, KINDS[owner]), name)
    own = OWN.get((owner, name))
    if own is None:
        needed = {
            one
            for one, said in inspect.signature(bound).parameters.items()
            if said.default is said.empty and said.kind is not said.VAR_KEYWORD
        }
        own = {one: NEEDED[one] for one in needed if one in NEEDED}
        own |= dict.fromkeys(needed & {"release"}, objects["Release"])
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
