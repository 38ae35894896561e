"""Nothing in the sources unpickles, evaluates, runs a shell, or trusts the code of a repository.

The package imports only what it declares in pyproject.toml, and nothing of tests or benchmarks.
Also: whatever they import from lors is there, within functions too, which only run now and then.
"""

from __future__ import annotations

import ast
import importlib
import re
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
FILES = sorted(
    path for name in ("src", "examples", "benchmarks") for path in ROOT.glob(f"{name}/**/*.py")
)

MODULES = {"pickle", "cPickle", "_pickle", "marshal", "shelve", "dill", "cloudpickle", "joblib"}
CALLS = {"eval", "exec", "compile", "__import__", "os.system", "os.popen", "yaml.unsafe_load"}
CALLS |= {"yaml.full_load", "torch.load", "torch.save", "torch.hub.load", "torch.jit.load"}
CALLS |= {"subprocess.getoutput", "subprocess.getstatusoutput"}
ALLOWED = {
    "src/lors/files/torch_files.py": {"torch.load", "torch.save"},
    "benchmarks/speed/published.py": {"torch.load", "torch.save"},
    "benchmarks/speed/snapshots.py": {"torch.load", "torch.save"},
}
"""The first opens pickled files of others, as tensors alone, and writes such. The others time how
the published code reads experts, on files that they have just written themselves."""
SAFE_LOADERS = {"yaml.SafeLoader", "CSafeLoader", "_Loader"}
"""``_Loader`` is that of ``lors.config``, a ``yaml.SafeLoader`` that knows no aliases."""

IMPORTED_AS = {
    "open_clip_torch": "open_clip",
    "pillow": "PIL",
    "pyyaml": "yaml",
    "scikit_learn": "sklearn",
    "umap_learn": "umap",
}


def problems(source: str) -> Iterator[str]:
    """What must not be in a source file."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            yield from (a.name for a in node.names if a.name.partition(".")[0] in MODULES)
        elif isinstance(node, ast.ImportFrom):
            if (node.module or "").partition(".")[0] in MODULES:
                yield f"from {node.module}"
        elif isinstance(node, ast.Call):
            yield from _of_call(ast.unparse(node.func), node)


def _of_call(name: str, call: ast.Call) -> Iterator[str]:
    given = {keyword.arg: ast.unparse(keyword.value) for keyword in call.keywords}
    method = name.rpartition(".")[2]
    if name in CALLS:
        yield name
    if name in ("np.load", "numpy.load") and given.get("allow_pickle") != "False":
        yield f"{name} without allow_pickle=False"
    if name in ("yaml.load", "yaml.load_all"):
        loader = given.get("Loader") or (ast.unparse(call.args[1]) if len(call.args) > 1 else "")
        if loader not in SAFE_LOADERS:
            yield f"{name} with {loader or 'no loader'}"
    if given.get("shell", "False") != "False":
        yield f"{name} with a shell"
    if given.get("trust_remote_code", "False") != "False":
        yield f"{name} with trust_remote_code"
    if given.get("weights_only", "True") != "True" or (
        name == "torch.load" and "weights_only" not in given
    ):
        yield f"{name} without weights_only=True"
    if method == "from_pretrained" and given.get("trust_remote_code") != "False":
        yield f"{name} without trust_remote_code=False"


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(ROOT)))
def test_a_source_file_does_nothing_dangerous(path: Path) -> None:
    allowed = ALLOWED.get(str(path.relative_to(ROOT)), set())
    assert set(problems(path.read_text("utf-8"))) <= allowed


def test_pickled_files_are_opened_for_imports_alone() -> None:
    """Nothing but reading published sets and experts leads to the one file that may."""
    users = {
        str(path.relative_to(ROOT)): names
        for path in FILES
        if (names := {m for m, n in from_lors(path.read_text("utf-8")) if "torch_files" in m})
    }
    assert list(users) == ["src/lors/files/published.py"]
    readers = {
        str(path.relative_to(ROOT))
        for path in FILES
        for module, name in from_lors(path.read_text("utf-8"))
        if module == "lors.files.published" and ("read" in name or "experts" in name)
    }
    assert readers == {f"src/lors/share/{name}.py" for name in ("importing", "importing_experts")}


def from_lors(source: str) -> Iterator[tuple[str, str]]:
    """The modules of lors, and what is imported from them."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.ImportFrom) and (node.module or "").partition(".")[0] == "lors":
            yield from ((str(node.module), alias.name) for alias in node.names)


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(ROOT)))
def test_what_is_imported_from_lors_is_there(path: Path) -> None:
    """mypy does not see it: ``lors`` finds its names when they are asked for."""
    for module, name in from_lors(path.read_text("utf-8")):
        if not hasattr(importlib.import_module(module), name):
            importlib.import_module(f"{module}.{name}")


@pytest.mark.parametrize(
    "line",
    [
        "import pickle",
        "import joblib.numpy_pickle",
        "from marshal import loads",
        "torch.load(path, weights_only=True)",
        "np.load(path)",
        "np.load(path, allow_pickle=True)",
        "yaml.load(text)",
        "yaml.load(text, yaml.Loader)",
        "eval('1')",
        "os.system('ls')",
        "subprocess.run('ls', shell=True)",
        "Model.from_pretrained(name)",
        "Model.from_pretrained(name, trust_remote_code=True)",
        "load_dataset(name, trust_remote_code=yes)",
    ],
)
def test_the_scan_finds_what_it_looks_for(line: str) -> None:
    assert list(problems(line))


def test_datasets_run_no_code_of_a_repository() -> None:
    datasets = pytest.importorskip("datasets")
    assert int(datasets.__version__.partition(".")[0]) >= 4  # scripts are gone since 4.0


def imports(node: ast.AST, lazy: bool = False) -> Iterator[tuple[str, bool]]:
    """The packages that a module imports, and whether only in a function or for types."""
    if isinstance(node, ast.Import):
        yield from ((alias.name.partition(".")[0], lazy) for alias in node.names)
    elif isinstance(node, ast.ImportFrom):
        yield (node.module or "").partition(".")[0], lazy
    for child in ast.iter_child_nodes(node):
        types = isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"
        yield from imports(child, lazy or types or isinstance(node, ast.FunctionDef))


def distributions(requirements: list[str]) -> set[str]:
    """The names in a list of requirements, spelt as they are imported."""
    names = {re.split(r"[<>=\[]", line)[0].lower().replace("-", "_") for line in requirements}
    return {IMPORTED_AS.get(name, name) for name in names}


def test_the_package_imports_only_what_it_declares() -> None:
    tomllib = pytest.importorskip("tomllib")  # Python 3.11
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    always = distributions(project["dependencies"])
    extras = project["optional-dependencies"].items()
    sometimes = distributions([line for name, lines in extras if name != "dev" for line in lines])
    assert always.isdisjoint(sometimes)
    undeclared = {
        f"{path.relative_to(ROOT)}: {package}"
        for path in ROOT.glob("src/lors/**/*.py")
        for package, lazy in imports(ast.parse(path.read_text("utf-8")))
        if package not in sys.stdlib_module_names | always | {"lors"}
        if not (lazy and package in sometimes)
    }
    assert undeclared == set()
