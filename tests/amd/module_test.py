# SPDX-License-Identifier: MIT
"""libferry-amd.so loads where there is no GPU, says so with a reason, and exports one symbol.
Argument: the module."""

import ctypes
import os
import subprocess
import sys

module = sys.argv[1]
lines = subprocess.run(["nm", "-D", "--defined-only", module], capture_output=True, text=True,
                       check=True).stdout.split("\n")
symbols = [line.split()[-1] for line in lines if line]
if symbols != ["ferry_device_backend"]:
    sys.exit(f"exported symbols: {symbols}")
needed = subprocess.run(["objdump", "-p", module], capture_output=True, text=True, check=True).stdout
for library in ("libamdhip64", "libhsa-runtime64", "libhsakmt", "libdrm"):
    if library in needed:
        sys.exit(f"{module} is linked to {library}")
entry = ctypes.CDLL(module, mode=os.RTLD_NOW).ferry_device_backend
entry.restype = ctypes.c_void_p
why = ctypes.c_char_p()
if entry(ctypes.byref(why)) is not None:
    print("there is an AMD GPU here")
    sys.exit(77)
if not why.value:
    sys.exit("no backend, and no reason")
print("no AMD device:", why.value.decode())
