"""What needs no device: backends that are missing, the list of devices, and the kernels as CUDA."""

from __future__ import annotations

import ctypes
import importlib
import json
import re
import sys
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import mphfstore as ms
from mphfstore import _cli, _device

KEYS = np.arange(100)


@pytest.fixture
def bare(monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine without PyOpenCL and PyCUDA."""
    for name in ("pyopencl", "pycuda", "pycuda.driver"):
        monkeypatch.setitem(sys.modules, name, None)
    monkeypatch.setattr(_device, "_sessions", cache(_device._sessions.__wrapped__))


@pytest.mark.parametrize(("backend", "advice"), [("opencl", r"pip install pyopencl"), ("cuda", r"pip install pycuda")])
def test_a_missing_backend_says_what_to_install(backend: str, advice: str, bare: None, tmp_path: Path) -> None:
    function = ms.MPHF.build(KEYS)
    for call in (
        lambda: ms.MPHF.build(KEYS, backend=backend),
        lambda: ms.Filter.build(KEYS, backend=backend),
        lambda: ms.build(tmp_path / "s", KEYS, values=None, backend=backend),
        lambda: function.to_device(backend),
    ):
        with pytest.raises(ms.UnavailableError, match=advice):
            call()
    assert list(tmp_path.iterdir()) == []
    with pytest.raises(ms.UnavailableError, match=r"pycuda.*pyopencl"):
        function.to_device()


def test_auto_never_fails(bare: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_device, "AUTO_KEYS", 0)
    expected = ms.MPHF.build(KEYS, seed=1, backend="native").to_bytes()
    assert ms.MPHF.build(KEYS, seed=1).to_bytes() == expected

    def broken(backend: str) -> Any:
        raise OSError("a driver's trouble")

    monkeypatch.setattr(_device, "sessions", broken)
    assert ms.MPHF.build(KEYS, seed=1).to_bytes() == expected


def test_auto_does_not_take_a_processor_for_a_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    class Processor:
        class device:
            gpu = False

    monkeypatch.setattr(_device, "sessions", lambda backend: [Processor])
    assert _device.chosen("auto", 1 << 30) == []
    assert _device.chosen("native", 1 << 30) == []


def test_auto_does_not_look_for_a_gpu_for_few_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_device, "sessions", lambda backend: pytest.fail("looked"))
    ms.MPHF.build(KEYS)


def test_backends_that_are_none() -> None:
    with pytest.raises(ValueError, match="backend is one of auto, native, cuda, opencl"):
        ms.MPHF.build(KEYS, backend="gpu")
    with pytest.raises(ValueError, match="backend is one of"):
        ms.MPHF.build(KEYS).to_device("gpu")


def test_the_command_lists_devices(bare: None, capsys: pytest.CaptureFixture[str]) -> None:
    assert _cli.main(["info", "--devices"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines] == ["cuda", "opencl"] and all("pip install" in line for line in lines)
    assert _cli.main(["info", "--devices", "--json"]) == 0
    assert [one["backend"] for one in json.loads(capsys.readouterr().out)] == ["cuda", "opencl"]
    assert _cli.main(["info"]) == 2
    assert "FILE, or --devices" in capsys.readouterr().err


def test_the_command_builds_with_a_backend(tmp_path: Path, capsys: pytest.CaptureFixture[str], bare: None) -> None:
    (tmp_path / "in").write_text("a\t1\n")
    arguments = ["build", str(tmp_path / "out"), str(tmp_path / "in"), "--backend"]
    assert _cli.main([*arguments, "native"]) == 0
    assert _cli.main([*arguments, "cuda"]) == 2
    assert "pip install pycuda" in capsys.readouterr().err


def test_the_program_is_one_text() -> None:
    text = _device.kernel_text()
    assert "#include" not in text  # not in a comment either: PyCUDA would preprocess it for every look in its cache
    for name in ("chain_locate", "rice_locate", "xxh3_128", "build_chained", "look_up_chained", "search_together"):
        assert text.count(f" {name}(") >= 1


def test_every_text_is_installed() -> None:
    listed = (
        (Path(__file__).parents[1] / "native/CMakeLists.txt").read_text().partition("# What programs for devices")[2]
    )
    for name in _device.TEXTS:
        assert name in listed, name


ARCHITECTURES = ["sm_75", "sm_80", "sm_86", "sm_89", "sm_90", "sm_100", "sm_120"]


@pytest.fixture(scope="module")
def nvrtc() -> Any:
    """NVIDIA's compiler as a library: pip install nvidia-cuda-nvrtc-cu12. It needs no GPU and no driver."""
    for package in ("nvidia.cuda_nvrtc", "nvidia.cu13"):
        try:
            folder = Path(importlib.import_module(package).__path__[0])
        except ImportError:
            continue
        for library in folder.glob("lib/libnvrtc.so*"):
            if "alt" not in library.name:
                return ctypes.CDLL(str(library))
    pytest.skip("no NVRTC: pip install nvidia-cuda-nvrtc-cu12")


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_the_program_is_cuda_without_warnings(architecture: str, nvrtc: Any) -> None:
    program, size = ctypes.c_void_p(), ctypes.c_size_t()
    text = _device.kernel_text().encode()
    assert nvrtc.nvrtcCreateProgram(ctypes.byref(program), text, b"kernels.cu", 0, None, None) == 0
    options = [f"--gpu-architecture={architecture}".encode(), b"--std=c++14"]
    status = nvrtc.nvrtcCompileProgram(program, len(options), (ctypes.c_char_p * len(options))(*options))
    nvrtc.nvrtcGetProgramLogSize(program, ctypes.byref(size))
    log = ctypes.create_string_buffer(size.value)
    nvrtc.nvrtcGetProgramLog(program, log)
    assert (status, log.value.decode().strip()) == (0, "")
    nvrtc.nvrtcGetPTXSize(program, ctypes.byref(size))
    ptx = ctypes.create_string_buffer(size.value)
    nvrtc.nvrtcGetPTX(program, ptx)
    nvrtc.nvrtcDestroyProgram(ctypes.byref(program))
    kernels = ptx.value.decode().split(".visible .entry ")[1:]
    build = next(kernel for kernel in kernels if kernel.startswith("build_chained("))
    atomics = re.findall(r"\b(?:atom|red)\.(\w+)", build)
    assert set(atomics) == {"shared", "global"}, (
        "pointers of which the compiler does not know that they are to shared memory"
    )
