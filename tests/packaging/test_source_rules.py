"""Rules about the text of the packages: sizes that a reader can take in, and no way to run what data says."""

import ast
import textwrap
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SOURCES = sorted(path for room in ("gnl_middleware", "adapters") for path in (ROOT / room).rglob("*.py"))
FILE_LINES = 400
FUNCTION_LINES = 40

CODE_LOADING_MODULES = {
    "cloudpickle",
    "dill",
    "joblib",
    "jsonpickle",
    "langchain_core.load",
    "marshal",
    "pickle",
    "shelve",
}
CODE_RUNNING_NAMES = {"__import__", "eval", "exec"}
NAME_RESOLVERS = {"pkgutil.resolve_name", "pydoc.locate"}
IMPORTS_BY_A_NAME = {
    # The lazy public names, and the lazy commands: the module comes from a table of literals that stands above the call.
    "gnl_middleware/__init__.py": "import_module(module, __name__)",
    "gnl_middleware/cli/app.py": "import_module(f'.{module}', __package__)",
    # What the user named on the command line.
    "gnl_middleware/cli/loading.py": "import_module(module)",
}
SAFE_YAML = {
    "CSafeLoader",
    "Node",
    "SafeDumper",
    "SafeLoader",
    "YAMLError",
    "dump",
    "safe_dump",
    "safe_load",
    "safe_load_all",
}


def source_name(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def long_functions(tree: ast.AST) -> Iterator[str]:
    """Functions of more lines than we allow; a docstring is for readers and does not count."""
    for node in ast.walk(tree):
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            continue
        lines = node.end_lineno - node.lineno + 1
        if ast.get_docstring(node) is not None:
            lines -= node.body[0].end_lineno - node.body[0].lineno + 1
        if lines >= FUNCTION_LINES:
            yield f"{node.name} at line {node.lineno} has {lines} lines"


def imported_names(node: ast.AST) -> list[str]:
    """The dotted names that an import statement brings in."""
    if isinstance(node, ast.Import):
        return [alias.name for alias in node.names]
    if isinstance(node, ast.ImportFrom) and node.module and not node.level:
        return [node.module, *(f"{node.module}.{alias.name}" for alias in node.names)]
    return []


def loads_code(dotted: str) -> bool:
    """Whether a dotted name can turn data into code."""
    room, _, name = dotted.rpartition(".")
    return (
        any(dotted == module or dotted.startswith(f"{module}.") for module in CODE_LOADING_MODULES)
        or dotted in NAME_RESOLVERS
        or (room in {"", "builtins"} and name in CODE_RUNNING_NAMES)
        or (room == "yaml" and name not in SAFE_YAML)
    )


def imports_by_computed_name(node: ast.AST) -> bool:
    """Whether a node calls `import_module` with anything but a name written out in the source."""
    if not isinstance(node, ast.Call) or ast.unparse(node.func).rpartition(".")[2] != "import_module":
        return False
    return not (node.args and isinstance(node.args[0], ast.Constant))


def code_from_data(tree: ast.AST) -> Iterator[str]:
    """Places that could run code or load a module which data names."""
    for node in ast.walk(tree):
        names = imported_names(node)
        if isinstance(node, ast.Name | ast.Attribute):
            names = [ast.unparse(node)]
        yield from (f"line {node.lineno}: {name}" for name in names if loads_code(name))
        if imports_by_computed_name(node):
            yield f"line {node.lineno}: {ast.unparse(node)}"


def test_rules_see_both_packages():
    """The rules below read the core and the adapters, not an empty list."""
    rooms = {path.relative_to(ROOT).parts[0] for path in SOURCES}

    assert rooms == {"gnl_middleware", "adapters"}


@pytest.mark.parametrize("path", SOURCES, ids=source_name)
def test_file_is_short(path):
    """A source file can be read in one sitting: fewer than 400 lines."""
    lines = len(path.read_text(encoding="utf-8").splitlines())

    assert lines < FILE_LINES


@pytest.mark.parametrize("path", SOURCES, ids=source_name)
def test_functions_are_short(path):
    """A function fits on a screen: fewer than 40 lines without its docstring."""
    tree = ast.parse(path.read_text(encoding="utf-8"))

    assert list(long_functions(tree)) == []


@pytest.mark.parametrize("path", SOURCES, ids=source_name)
def test_no_code_comes_from_data(path):
    """Nothing in the packages unpickles, evaluates, or imports by a name that data could supply."""
    tree = ast.parse(path.read_text(encoding="utf-8"))

    found = [complaint.partition(": ")[2] for complaint in code_from_data(tree)]

    assert found == [text for name, text in IMPORTS_BY_A_NAME.items() if name == source_name(path)]


@pytest.mark.parametrize(
    ("path", "name"), [("gnl_middleware/__init__.py", "_PLACES"), ("gnl_middleware/cli/app.py", "_COMMANDS")]
)
def test_lazy_names_come_from_a_literal_table(path, name):
    """The imports by a name that nobody typed take it from a table written out in the source."""
    tree = ast.parse((ROOT / path).read_text(encoding="utf-8"))

    (table,) = [
        node.value
        for node in tree.body
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == name
    ]

    assert ast.literal_eval(table)


@pytest.mark.parametrize(("lines", "complaints"), [(FUNCTION_LINES - 1, 0), (FUNCTION_LINES, 1)])
def test_long_function_is_noticed(lines, complaints):
    """The length rule counts the lines of the code, and neither docstring nor decorator."""
    body = [
        "@decorator",
        "async def subject():",
        '    """Tells',
        '    a lot."""',
        *["    pass"] * (lines - 1),
    ]

    found = list(long_functions(ast.parse("\n".join(body))))

    assert len(found) == complaints


@pytest.mark.parametrize(
    "source",
    [
        "import pickle",
        "import shelve as store",
        "from pickle import loads",
        "from langchain_core.load import load",
        "from langchain_core import load",
        "import langchain_core.load.load",
        "eval('1')",
        "map(exec, texts)",
        "import builtins; builtins.eval('1')",
        "__import__(name)",
        "import yaml; yaml.load(text)",
        "import yaml; yaml.unsafe_load(text)",
        "from yaml import full_load",
        "import importlib; importlib.import_module(name)",
        "from importlib import import_module; import_module(f'{room}.x')",
        "import pydoc; pydoc.locate(name)",
        "def inner():\n    from pkgutil import resolve_name",
    ],
)
def test_code_from_data_is_noticed(source):
    """The rule against code from data sees each way in, wherever the line stands."""
    found = list(code_from_data(ast.parse(source)))

    assert found != []


def test_harmless_relatives_are_allowed():
    """Reading YAML safely, compiling patterns and importing a written-out name stay allowed."""
    source = textwrap.dedent("""
        import importlib
        import re
        import yaml

        importlib.import_module("langchain")
        re.compile("eval")
        yaml.safe_load("a: 1")
        cursor.exec("select 1")
    """)

    found = list(code_from_data(ast.parse(source)))

    assert found == []
