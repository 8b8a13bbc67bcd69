#!/usr/bin/env python3
"""What the tests of a build folder run, and which files they depend on.

    build_tests.py targets FOLDER [--tests REGEX]
        the ninja targets that these tests run, one a line
    build_tests.py changed FOLDER --since REV [--leave-out LABEL]
        which tests of FOLDER, a folder whose CTestTestfile.cmake lists build folders, depend on a file that differs from REV. Prints
        what is left out to stderr, and the numbers of the rest, as `ctest -I` takes them, to stdout. The folders must be built.

A test depends on the sources of the programs that it runs and on their headers, as ninja and the compilers' dependency files list
them, and on files and folders named in its command. A C++ file named in a command brings what it includes. Tests of the whole tree
(WHOLE_TREE) depend on every file. If a CMake file of the build differs from REV, so may every command: then all tests are chosen.
"""
import argparse
import json
import os
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
WHOLE_TREE = re.compile(r"^([a-z0-9-]+/)?(consumer|docs|meta)\.")  # they install, read pages, or walk through the tree
BUILD_FILE = re.compile(r"(^|/)(CMakeLists\.txt|CMakePresets\.json|[^/]*\.cmake(\.in)?)$")
RUN_BY_A_TEST = re.compile(r"^tests/(cmake/(Check|Expect|Install|Run)|consumer/)|^cmake/RunExample")  # no part of the build, though CMake's
SOURCE = re.compile(r"\.(cpp|cu|hpp|cuh)$")


def output(*command):
    return subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.PIPE, text=True).stdout


def tests_of(folder):
    """(name, command) of every test of a build folder and the folders below it, in CTest's order; built or not."""
    text = (folder / "CTestTestfile.cmake").read_text()
    for added, below in re.findall(r"^add_test\((.*)\)$|^subdirs\(\"(.*)\"\)$", text, re.MULTILINE):
        if below:
            yield from tests_of(folder / below)
        else:
            name, rest = re.match(r"\[=\[(.*?)\]=\] (.*)", added).groups()
            yield name, [re.sub(r"\\(.)", r"\1", word) for word in re.findall(r'"((?:\\.|[^"\\])*)"', rest)]


def paths_in(command):
    for word in command:
        for part in re.split(r"[;=]", word):
            if part.startswith("/"):
                yield pathlib.Path(part)


class ninja:
    """The graph of one build folder: targets, and the files that each is made of."""

    def __init__(self, folder):
        self.folder = folder
        self.targets = {line.rsplit(": ", 1)[0] for line in self.ask("targets", "all").splitlines()}
        self.files = {}

    def ask(self, tool, *arguments):
        return output("ninja", "-C", str(self.folder), "-t", tool, *arguments)

    def target(self, path):
        try:
            name = str(path.relative_to(self.folder))
        except ValueError:
            return None
        return name if name in self.targets else None

    def read_dependencies(self):
        self.dependencies, files = {}, None
        for line in self.ask("deps").splitlines():
            if line.startswith("    "):
                files.append(line.strip())
            elif ": #deps" in line:
                files = self.dependencies.setdefault(line.split(": #deps")[0], [])

    def files_of(self, target):
        if target not in self.files:
            inputs = self.ask("inputs", target).splitlines()
            self.files[target] = {within(self.folder / file) for one in inputs for file in [one, *self.dependencies.get(one, [])]}
        return self.files[target]


def within(path):
    """A file's name below the project's folder; the whole path where it lies elsewhere."""
    path = os.path.normpath(path)
    return os.path.relpath(path, ROOT) if path.startswith(f"{ROOT}/") else path


def included_by(name, known={}):
    """The project's files that a C++ file includes, itself and theirs too. Conditions are not looked at."""
    if name not in known:
        known[name] = {name}
        text = (ROOT / name).read_text()
        for mark, file in re.findall(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]', text, re.MULTILINE):
            beside = [(ROOT / name).parent] if mark == '"' else []
            for folder in [*beside, ROOT / "include", ROOT / "tests"]:
                if (folder / file).is_file():
                    known[name] = known[name] | included_by(within(folder / file))
                    break
    return known[name]


def changed_files(revision):
    named = output("git", "diff", "--name-only", "--no-renames", revision, "--").splitlines()
    return set(named) | set(output("git", "ls-files", "--others", "--exclude-standard").splitlines())


def depends_on(command, builds, changed):
    """Whether a command's programs, files or folders are among what changed."""
    for path in paths_in(command):
        for build in builds:
            if (target := build.target(path)) and path.suffix != ".gch":  # precompiled to save time, whether a source needs it or not
                if not changed.isdisjoint(build.files_of(target)):
                    return True
        name = within(path)
        if os.path.isabs(name) or name == ".":
            continue
        if path.is_dir() and name != "include" and any(file.startswith(f"{name}/") for file in changed):
            return True
        if path.is_file() and not changed.isdisjoint(included_by(name) if SOURCE.search(name) else {name}):
            return True
    return False


def choose(folder, revision, label):
    changed = changed_files(revision)
    build_files = sorted(file for file in changed if BUILD_FILE.search(file) and not RUN_BY_A_TEST.search(file))
    builds = [ninja(pathlib.Path(line)) for line in re.findall(r'"(.*)"', (folder / "CTestTestfile.cmake").read_text())]
    for build in builds:
        build.read_dependencies()
    listed = json.loads(output("ctest", "--test-dir", str(folder), "--show-only=json-v1"))["tests"]
    left_out, numbers = [], []
    for number, test in enumerate(listed, start=1):
        labels = {p["name"]: p["value"] for p in test["properties"]}.get("LABELS", [])
        if label in labels:
            continue
        command = test.get("command", [])
        if changed and (build_files or WHOLE_TREE.search(test["name"]) or not command or depends_on(command, builds, changed)):
            numbers.append(number)
        else:
            left_out.append(test["name"])
    say = lambda text: print(text, file=sys.stderr)
    say(f"{len(changed)} files differ from {revision}; of {len(numbers) + len(left_out)} tests {len(numbers)} depend on them")
    if build_files:
        say(f"all of them, since files of the build differ: {' '.join(build_files)}")
    if left_out:
        say("left out:")
        for line in by_group(left_out):
            say(f"  {line}")
    print(",".join(map(str, [0, 0, 0, *numbers])) if numbers else "")


def by_group(names):
    """Names that share everything before their last dot, on one line."""
    groups = {}
    for name in names:
        group, dot, last = name.rpartition(".")
        groups.setdefault(group + dot, []).append(last)
    return [f"{group}{{{','.join(last)}}}" if len(last) > 1 else group + last[0] for group, last in groups.items()]


def targets(folder, expression):
    build = ninja(folder)
    chosen = [command for name, command in tests_of(folder) if re.search(expression, name)]
    if not chosen:
        sys.exit(f"{folder}: no test whose name matches {expression}")
    for name in sorted({t for command in chosen for path in paths_in(command) if (t := build.target(path))}):
        print(name)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["targets", "changed"])
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--tests", default="")
    parser.add_argument("--since")
    parser.add_argument("--leave-out", default="")
    args = parser.parse_args()
    folder = args.folder.resolve()
    if args.what == "targets":
        targets(folder, args.tests)
    else:
        choose(folder, args.since, args.leave_out)


if __name__ == "__main__":
    main()
