# SPDX-License-Identifier: MIT
"""ferry-tune --memory device without a GPU, and on modelled ones. Arguments: mpiexec, ferry-tune,
ferry-info, the folder of the modelled module."""

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from support import script_cases

MPIEXEC = sys.argv[1]
TUNE, INFO, MODULE = (str(Path(name).resolve()) for name in sys.argv[2:5])
GPU = "2 x modelled MI300X, HIP 60000000"
LIMIT = 150


def run(command, **variables):
    return subprocess.run(
        list(map(str, command)), capture_output=True, text=True, timeout=LIMIT, check=False,
        env={**os.environ, **variables})


def table_with(folder, slot_bytes):
    """A table as another run has measured it, with the checksum of doc/tuning.md."""
    content = json.loads(run([INFO, "--table", "--json"], FERRY_TABLE="builtin").stdout)
    content.pop("checksum")
    content["entries"]["slot_bytes"].update(value=slot_bytes, **{"from": "measured"})
    value = 0xcbf29ce484222325
    for byte in json.dumps(content, sort_keys=True, separators=(",", ":")).encode():
        value = (value ^ byte) * 0x100000001b3 % 2**64
    path = Path(folder) / "before.json"
    path.write_text(json.dumps({**content, "checksum": f"fnv1a64:{value:016x}"}, indent=1))
    return str(path)


def modelled(folder):
    """The file of the module is HIP, too."""
    hip = Path(folder) / "libamdhip64.so.6"
    hip.symlink_to(Path(MODULE) / "libferry-amd.so")
    old = os.environ.get("LD_LIBRARY_PATH", "")
    return {"LD_LIBRARY_PATH": f"{folder}:{old}".rstrip(":"), "FERRY_MODULE_PATH": MODULE,
            "TEST_GPUS": "2"}


def measure(path, variables):
    """A machine that does other things, too, may be too noisy for all entries."""
    for _ in range(3):
        done = run([TUNE, "--memory", "device", "--quick", "--mpiexec", MPIEXEC, "-o", path],
                   **variables)
        if done.returncode == 0 or "nothing could be measured" not in done.stderr:
            break
    return done


def test_entries_are_measured_written_and_taken():
    with tempfile.TemporaryDirectory() as folder:
        variables = modelled(folder)
        path = Path(folder) / "table.json"
        before = table_with(folder, 100)
        done = measure(path, {**variables, "FERRY_TABLE": before})
        if "kernels do not carry" in done.stderr and "code object" in done.stderr:
            print("no kernels in this build:", done.stderr)
            return
        assert done.returncode == 0, done.stderr
        assert f"ferry-tune: {GPU}" in done.stderr, done.stderr
        table = json.loads(path.read_text())
        assert table["machine"]["gpu"] == GPU, table
        measured = {name: entry for name, entry in table["entries"].items()
                    if entry["from"] == "measured"}
        assert measured.pop("slot_bytes")["value"] == 100, "what was measured before stays"
        assert measured and all(name.startswith("amd_") for name in measured), measured
        for name, entry in measured.items():
            assert f"{name}: {entry['value']}, spread {entry['spread']} %" in done.stderr, name
        shown = run([INFO, "--table"], FERRY_TABLE=str(path))
        assert GPU in shown.stdout, shown
        found = table["entries"]["amd_alltoall_engines_from"]
        if found["from"] == "measured": # kernels of the model are slow
            assert found["value"] == 512, found
        # The library goes by it: on both sides of a size that was found, or built in.
        rows = Path(folder) / "rows.json"
        sizes = "4096,1048576"
        job = run([MPIEXEC, "-n", 2, TUNE, "--gpu-job", rows, 1, sizes],
                  **variables, FERRY_TABLE=str(path))
        assert job.returncode == 0, job.stderr
        for i, row in enumerate(json.loads(rows.read_text())):
            name = f"amd_{row['operation']}_engines_from"
            entry = table["entries"][name]
            size = [4096, 1048576][i % 2]
            way = "kernels" if size < entry["value"] else "sdma"
            assert row["why"].startswith(f"device: {way}: "), (row, entry)
            source = f"measured on {GPU})" if entry["from"] == "measured" else "RCCL"
            assert f"({name} {entry['value']}, {path}: {source}" in row["why"], (row, entry)


def test_without_gpus():
    done = run([TUNE, "--memory", "device", "--mpiexec", MPIEXEC], TEST_GPUS="0")
    assert done.returncode == 1 and done.stdout == "", done
    assert "no AMD GPU: " in done.stderr and "on LD_LIBRARY_PATH" in done.stderr, done.stderr
    with tempfile.TemporaryDirectory() as folder:
        one = {**modelled(folder), "TEST_GPUS": "1"}
        done = run([TUNE, "--memory", "device", "--mpiexec", MPIEXEC], **one)
        assert done.returncode == 1 and "one GPU: it has no peers" in done.stderr, done.stderr
    done = run([TUNE, "--memory", "gpu"])
    assert done.returncode == 2 and "--memory: host or device" in done.stderr, done.stderr


if __name__ == "__main__":
    sys.exit(script_cases.run(globals()))
