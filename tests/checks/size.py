# SPDX-License-Identifier: MIT
"""Files have at most 400 lines, functions at most 60; functions over 40 are listed."""

import os
import re
import sys

import common

FILE_LINES = 400
FUNCTION_LINES = 60
LISTED_LINES = 40

ATTRIBUTE = re.compile(r"\[\[.*?\]\]|\b(alignas|__attribute__)\s*\(+[^()]*\)+")
TEMPLATE = re.compile(r"^template\s*<.*?>\s*(?=\w)", re.DOTALL)
QUALIFIER = re.compile(r"\b(const|noexcept|override|final|try|mutable)$")


def without_directives(code):
    """Preprocessor lines, with their continuations, as blank lines."""
    kept, continued = [], False
    for line in code.split("\n"):
        directive = continued or line.lstrip().startswith("#")
        continued = directive and line.endswith("\\")
        kept.append("" if directive else line)
    return "\n".join(kept)


def closing(code, at):
    """Position of the brace that closes the one at `at`."""
    depth = 0
    for match in re.compile(r"[{}]").finditer(code, at):
        depth += 1 if match.group() == "{" else -1
        if depth == 0:
            return match.start()
    return len(code) - 1


def opens_function(head):
    """Whether a brace behind this head, outside of functions, opens the body of one."""
    plain = TEMPLATE.sub("", ATTRIBUTE.sub("", head)).strip()
    outside = re.sub(r"\([^()]*\)", "", plain)
    initialiser = re.search(r"[^=!<>]=(?!=)", outside) and "operator" not in outside
    return "(" in plain and (not initialiser or bool(re.search(r"=\s*\[", plain)))


def initialises_member(head):
    """Whether a brace behind this head belongs to a member in a constructor's initialiser list."""
    return bool(re.search(r"\)\s*(noexcept\s*)?:[^:]", head)) and bool(
        re.search(r"[\w>]$", head)) and not QUALIFIER.search(head)


def functions(text):
    """(first line, lines) of every function body outside of other functions."""
    code = without_directives(common.code_only(text))
    found, start, at = [], 0, 0
    while at < len(code):
        here = code[at]
        if here in ";}":
            start = at + 1
        elif here == "{":
            head = code[start:at].strip()
            if initialises_member(head):
                at = closing(code, at)
            elif opens_function(head):
                first = code.count("\n", 0, start + len(code[start:at]) - len(code[start:at].lstrip()))
                at = closing(code, at)
                found.append((first + 1, code.count("\n", 0, at) - first + 1))
                start = at + 1
            else:
                start = at + 1
        at += 1
    return found


def measure(root):
    """(faults, functions that are long but allowed)."""
    faults, listed = [], []
    for path in common.files(root):
        lines = common.lines_of(root, path)
        if len(lines) > FILE_LINES:
            faults.append(f"{path}:{FILE_LINES}: the file has {len(lines)} lines")
        for first, count in functions("\n".join(lines)):
            if count > LISTED_LINES:
                kind = faults if count > FUNCTION_LINES else listed
                kind.append(f"{path}:{first}: the function has {count} lines")
    return faults, listed


def check(root):
    return measure(root)[0]


def body(lines):
    return "{\n" + "  if (a) { b(); }\n" * (lines - 2) + "}\n"


LONG_CASE = '#include "a.hpp"\n\nTEST_CASE("a { b") ' + body(61)
LONG_MEMBER = "namespace a {\nclass B : public C {\n  int d() const noexcept " + body(61) + "};\n}\n"
LONG_CONSTRUCTOR = "A::A(int b)\n    : b_{b}, c_(b), d_{'{'} " + body(60)
LONG_TEMPLATE = "template <class T = int>\nvoid f(T a = 1) " + body(60)
LONG_LAMBDA = "\nconst auto kF = [](int a) " + body(61)
SHORT = (
    "struct alignas(64) A {\n" + "  int b = 1'000;  // {\n" * 70 + "};\n"
    "const char* c[] = {\n" + '  "{",\n' * 70 + "};\n"
    "#define D(x) {\\\n  x\n"
    'extern "C" {\nint e(int f) ' + body(60) + "}\n"
    "auto g() -> std::vector<int> " + body(60) +
    "constexpr auto kH = std::to_array<I>({\n" + "  {1, 2},\n" * 70 + "});\n"
)
PLANTS = [
    ({"lib/a.cpp": SHORT, "lib/b.cpp": "\n" * 400}, []),
    ({"tests/a.cpp": LONG_CASE}, ["tests/a.cpp:3"]),
    ({"lib/a.hpp": LONG_MEMBER}, ["lib/a.hpp:3"]),
    ({"lib/a.cpp": "int a;\n" + LONG_CONSTRUCTOR}, ["lib/a.cpp:2"]),
    ({"lib/a.cpp": LONG_TEMPLATE, "lib/b.cpp": LONG_LAMBDA}, ["lib/a.cpp:1", "lib/b.cpp:2"]),
    ({"lib/a.cpp": "\n" * 401}, ["lib/a.cpp:400"]),
]

if __name__ == "__main__":
    for entry in measure(os.path.abspath(sys.argv[1]))[1]:
        print("long, but allowed with a reason:", entry)
    common.run(check, PLANTS)
