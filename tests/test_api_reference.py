"""The reference of the documentation has all public names, each with an example."""

import doctest
import importlib
import inspect
import pkgutil
import re
from pathlib import Path

import pytest

import agglo

REFERENCE = Path(__file__).parent.parent / "docs/reference"
NAMES = sorted(
    {
        name
        for page in REFERENCE.glob("*.rst")
        for name in re.findall(r"^   (agglo\.[\w.]+)$", page.read_text("utf-8"), re.MULTILINE)
    }
)
MODULES = ["metrics", "contents", "topic_models", "plot", "explore", "spark"]
MODULES += ["paper.baselines", "paper.datasets", "paper.dpmeans"]
OF_SCIKIT_LEARN = {"agglo.paper.baselines.KMeans", "agglo.paper.baselines.BisectingKMeans"}


def resolve(name):
    """The object of a name: the function `agglo.plot.treemap`, not the module of the same name."""
    module, _, attribute = name.rpartition(".")
    return getattr(pkgutil.resolve_name(module), attribute)


def examples(found):
    """The source of the examples in a docstring."""
    parsed = doctest.DocTestParser().get_examples(inspect.getdoc(found) or "")
    return "".join(example.source for example in parsed)


def public_methods(found):
    """The methods of a class that agglo defines, without deprecated ones."""
    for name, method in inspect.getmembers(found, inspect.isroutine):
        module = str(getattr(inspect.unwrap(getattr(method, "__func__", method)), "__module__", None))
        if not name.startswith("_") and module.startswith("agglo.") and "deprecated" not in (method.__doc__ or ""):
            yield name, method


@pytest.fixture(scope="module")
def all_examples():
    found = [resolve(name) for name in NAMES]
    methods = [method for each in found if inspect.isclass(each) for _, method in public_methods(each)]
    return "".join(map(examples, [*found, *methods]))


def test_the_reference_has_every_public_name():
    names = {f"agglo.{name}" for name in agglo.__all__ if not inspect.ismodule(getattr(agglo, name))}
    for module in MODULES:
        names |= {f"agglo.{module}.{name}" for name in importlib.import_module(f"agglo.{module}").__all__}
    testing = importlib.import_module("agglo.testing")
    own = (
        name
        for name, found in inspect.getmembers(testing, inspect.isfunction)
        if found.__module__ == "agglo.testing"
    )
    names |= {f"agglo.testing.{name}" for name in own}
    assert sorted(names - set(NAMES) - OF_SCIKIT_LEARN) == []


@pytest.mark.parametrize("name", NAMES)
def test_every_name_of_the_reference_has_an_example(name, all_examples):
    found = resolve(name)
    if not (inspect.isclass(found) or inspect.isroutine(found)):
        assert name.rpartition(".")[2] in all_examples  # a value
        return
    assert examples(found), f"{name} has no example"
    if inspect.isclass(found):
        methods = [key for key, method in public_methods(found) if not examples(method)]
        assert [key for key in methods if not re.search(rf"\.{key}\(|def {key}\(", all_examples)] == []
