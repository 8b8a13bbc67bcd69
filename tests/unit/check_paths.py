#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
# Copyright (c) 2026 The attune authors
"""The unit test of include/attune/PATH.hpp is tests/unit/PATH_test.cpp. tests/unit/headers_without_test.txt lists the others.

    check_paths.py               fail if a header has neither a test nor a line, or if a line is of no use
    check_paths.py --write       take the lines off that are of no use, first; a new line is written by hand
    check_paths.py --self-test   the same with planted trees
"""
import argparse
import pathlib
import sys
import tempfile

LIST = "tests/unit/headers_without_test.txt"


def check(root, write):
    """What is wrong with the tree, in lines. With `write`, lines of no use are removed from the list."""
    headers, tests = root / "include/attune", root / "tests/unit"
    paths = {file.relative_to(headers).with_suffix("").as_posix() for file in headers.rglob("*.hpp")}
    tested = {path for path in paths if (tests / f"{path}_test.cpp").is_file()}
    listed = (root / LIST).read_text(encoding="utf-8").splitlines()
    useful = [line for line in listed if line in paths - tested]
    if write and useful != listed:
        (root / LIST).write_text("".join(f"{line}\n" for line in useful), encoding="utf-8")
        listed = useful
    gone = [f"{LIST}: {line}: there is no such header; take the line off" for line in listed if line not in paths]
    done = [f"{LIST}: {line}: has a test; take the line off" for line in listed if line in tested]
    new = [f"include/attune/{path}.hpp: no tests/unit/{path}_test.cpp, nor a line in {LIST}" for path in sorted(paths - tested - set(listed))]
    return gone + done + new


def self_test():
    with tempfile.TemporaryDirectory() as folder:
        root = pathlib.Path(folder)

        def plant(path, text=""):
            (root / path).parent.mkdir(parents=True, exist_ok=True)
            (root / path).write_text(text, encoding="utf-8")

        plant("include/attune/core/tested.hpp")
        plant("tests/unit/core/tested_test.cpp")
        plant("include/attune/untested.hpp")
        plant("tests/unit/core/untested_test.cpp")
        plant(LIST, "untested\n")
        assert check(root, False) == []
        plant(LIST)
        for write in (False, True):  # a line is never added
            assert [line.split(":")[0] for line in check(root, write)] == ["include/attune/untested.hpp"]
            assert (root / LIST).read_text() == ""
        plant(LIST, "core/tested\ngone\nuntested\n")
        assert [line.split(": ")[1:] for line in check(root, False)] == [
            ["gone", "there is no such header; take the line off"],
            ["core/tested", "has a test; take the line off"],
        ]
        assert check(root, True) == [] and (root / LIST).read_text() == "untested\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--write", action="store_true", help="take lines of no use off the list")
    parser.add_argument("--self-test", action="store_true", help="find planted mistakes")
    options = parser.parse_args()
    if options.self_test:
        return self_test()
    problems = check(pathlib.Path(__file__).resolve().parents[2], options.write)
    print("\n".join(problems), end="\n" if problems else "")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
