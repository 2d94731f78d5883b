"""Every public function shows how it is called, and what an example says is what happens."""

import doctest
import importlib
import inspect
import pkgutil

import pytest

from gnl_middleware.codec import tree

MODULES = (
    "gnl_middleware",
    "gnl_middleware.adapter",
    "gnl_middleware.cassettes",
    "gnl_middleware.testing",
    "gnl_httpx",
    "gnl_langchain",
    "gnl_langgraph",
    "gnl_openai_agents",
)
HANDED_ON = {"Call", "Encryption", "Integrity", "ModelCall", "Request", "Session"}
"""Classes whose methods only our own floors and adapters call."""


def documented(name, found):
    """The functions that a public name offers: itself, or the methods of its class that are no override of a framework's."""
    if inspect.isfunction(found):
        yield name, found
    elif inspect.isclass(found) and not issubclass(found, BaseException) and name not in HANDED_ON:
        foreign = {
            method
            for base in found.__mro__[1:]
            if not base.__module__.startswith("gnl_")
            for method in vars(base)
        }
        for method, value in vars(found).items():
            function = getattr(value, "__func__", value)
            if inspect.isfunction(function) and not method.startswith("_") and method not in foreign:
                yield f"{name}.{method}", function


def public_functions():
    seen = set()
    for module_name in MODULES:
        module = importlib.import_module(module_name)
        for name in module.__all__:
            for path, function in documented(name, getattr(module, name)):
                if function.__qualname__ not in seen and function.__module__.startswith("gnl_"):
                    seen.add(function.__qualname__)
                    yield pytest.param(function, id=f"{module_name}.{path}")


@pytest.mark.parametrize("function", list(public_functions()))
def test_it_has_an_example(function):
    """Whoever looks a function up finds how it is called."""
    assert "Example:" in (inspect.getdoc(function) or "")


def modules_with_examples():
    for package_name in (
        "gnl_middleware",
        "gnl_langchain",
        "gnl_langgraph",
        "gnl_openai_agents",
        "gnl_httpx",
    ):
        package = importlib.import_module(package_name)
        yield package_name
        for found in pkgutil.walk_packages(package.__path__, f"{package_name}."):
            if not found.name.endswith("__main__"):
                yield found.name


@pytest.fixture
def registrations(monkeypatch):
    """What an example registers is forgotten: other tests of this process hold that such classes are refused."""
    for table in ("_writers", "_readers", "_registered", "derived", "own_tags"):
        monkeypatch.setattr(tree, table, getattr(tree, table).copy())


@pytest.mark.usefixtures("registrations")
@pytest.mark.parametrize("module_name", list(modules_with_examples()))
def test_its_examples_are_true(module_name):
    """An example that is not marked as needing more than the module gives what stands under it."""
    module = importlib.import_module(module_name)

    assert doctest.testmod(module).failed == 0
