"""The code in the guide and the notebook runs."""

import json
import re
import shutil
import sys

import pytest
from conftest import FIXTURES, ROOT
from test_compare import steps

GUIDE = ROOT / "docs" / "guide" / "python.md"
NOTEBOOK = ROOT / "docs" / "examples" / "evidence.ipynb"


@pytest.fixture
def place(tmp_path, monkeypatch):
    """A directory with the files used in the guide and the notebook."""
    shutil.copy(FIXTURES / "amd-native.json", tmp_path / "trace.json")
    for name, kernel_us in (("before", 2_000), ("after", 3_000)):
        (tmp_path / f"{name}.json").write_text(json.dumps(steps(kernel_us)))
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.skipif(sys.platform != "linux", reason="sampling requires Linux")
def test_guide_code_runs(place, capsys):
    for package in ("polars", "pyarrow", "duckdb", "pandas"):
        pytest.importorskip(package)
    blocks = re.findall(r"```python\n(.*?)```", GUIDE.read_text(), re.DOTALL)
    assert len(blocks) >= 7
    names = {"__name__": "guide"}
    for block in blocks:
        exec(compile(block, str(GUIDE), "exec"), names)
    stdout = capsys.readouterr().out
    assert "same-kernel-slower" in stdout and "samples," in stdout
    assert (place / "bench.json").exists() and (place / "run.lag").exists()


def test_notebook_runs(place):
    nbformat = pytest.importorskip("nbformat")
    client = pytest.importorskip("nbclient")
    pytest.importorskip("ipykernel")
    notebook = nbformat.read(NOTEBOOK, as_version=4)
    client.NotebookClient(notebook, timeout=300, kernel_name="python3", resources={"metadata": {"path": place}}).execute()
    shown = json.dumps([cell.get("outputs", []) for cell in notebook.cells])
    assert "text/html" in shown and "same-kernel-slower" in shown
