"""The package's types are what they say."""

import importlib.resources
import subprocess
import sys

import pytest

pytest.importorskip("mypy")


def test_the_stubs_of_the_extension_are_true():
    line = [sys.executable, "-m", "mypy.stubtest", "laggard._laggard"]
    done = subprocess.run(line, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_package_is_typed_throughout():
    assert (importlib.resources.files("laggard") / "py.typed").is_file()
    line = [sys.executable, "-m", "mypy", "--strict", "--ignore-missing-imports", "-p", "laggard"]
    done = subprocess.run(line, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stdout + done.stderr
