# SPDX-License-Identifier: MIT
"""Writes code objects into a C++ file. Arguments: the file, the compiler that made them, then
code objects named kernels.PROCESSOR.co."""

import pathlib
import subprocess
import sys

HEAD = """\
// Generated from kernels.hip.cpp.
#include "lib/amd/kernels/kernels.hpp"

namespace ferry::amd {

"""


def version_of(compiler):
    if compiler == "none":
        return "none"
    done = subprocess.run([compiler, "--version"], capture_output=True, text=True, check=True)
    return done.stdout.splitlines()[0].strip()


def array(name, data):
    rows = [", ".join(map(str, data[at:at + 24])) for at in range(0, len(data), 24)]
    return f"alignas(4096) static const unsigned char {name}[] = {{\n" + ",\n".join(rows) + "};\n\n"


def main(output, compiler, images):
    text, rows = HEAD, []
    for image in map(pathlib.Path, images):
        processor = image.name.split(".")[1]
        text += array(processor, image.read_bytes())
        rows.append(f'    {{"{processor}", {processor}, sizeof {processor}}},\n')
    table = "nullptr"
    if rows:
        text += "static const CodeObject objects[] = {\n" + "".join(rows) + "};\n\n"
        table = "objects"
    text += (f"CodeObjects code_objects() {{\n"
             f'  return {{{table}, {len(rows)}, "{version_of(compiler)}"}};\n}}\n\n'
             f"}} // namespace ferry::amd\n")
    pathlib.Path(output).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], sys.argv[3:])
