#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
# Copyright (c) 2026 The attune authors
"""Builds the API's pages with Doxygen: every public entity is documented, and no comment is misread.

    docs/site/api.py FOLDER               FOLDER/api/index.html
    docs/site/api.py FOLDER --baseline    and lower docs/site/undocumented.txt to what has no comment now; never adds to it

Doxygen reads a copy of the headers, in FOLDER/headers, without what is internal or a header of an old path. In the copy, formulas of
comments are quoted as they are, sections ("Numerics: ...") are paragraphs, and the comment on top of a file belongs to the file.
Every warning is an error but for
    docs/site/doxygen_faults.txt    warnings that say nothing about attune: regular expressions, each with a reason
    docs/site/undocumented.txt      names of namespaces without a comment, and how many members of classes a header has without one. Both
                                    may only become fewer. Another version of Doxygen than the one that it names finds others: then
                                    the list is not looked at
"""
import argparse
import os
import pathlib
import re
import shutil
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
LIST = HERE / "undocumented.txt"
HEAD = "# Public names without a comment, then members of classes by header. It only becomes shorter (scripts/docs --baseline). Doxygen "
# Internal: whoever uses attune does not include them.
INTERNAL = re.compile(r"^(exec/cpu/(?!decode/float8_cache)[^/]+/|line/(?!thrust/)[^/]+/)")
SECTION = re.compile(r"^([A-Z][a-z]+(?: [a-z]+)?):(\s+|$)")
UNDOCUMENTED = re.compile(r"^(?:Member|Compound) (.*?)(?: \(([\w ]+)\) of (\w+) (.*?))? is not documented\.$")


def quoted(text):
    """Text as Doxygen shows it: nothing in it is a command or a tag; code spans are code, and pages of docs/ are links."""
    text = re.sub(r"([\\@<>&$#%\"])", r"\\\1", text).replace("::", "\\::")
    text = re.sub(r"(`+)((?:[^\n]|\n(?!\s*\n))+?)\1", r"<code>\2</code>", text)
    return re.sub(r"\bdocs/([\w/-]+)\.md((?:\\#[\w-]+)?)", lambda page: f'<a href="../docs/{page[1]}.html{page[2][1:]}">{page[0]}</a>', text)


def comments(lines):
    """The lines of a header with its comments prepared; as many as before."""
    out, i = list(lines), 0
    if len(lines) > 2 and lines[0].startswith("// SPDX"):
        out[0] = "/// \\file"
        for i in range(1, len(lines)):
            if not lines[i].startswith("//"):
                break
            out[i] = "///" if i == 1 else "/" + lines[i]
    first = 0
    while first < len(out):
        if not re.match(r"^\s*///(?![/<])", out[first]):
            trailing = re.match(r"^(.*?\S\s*///<\s?|\s*///<\s?)(.*)$", out[first])
            if trailing:
                out[first] = trailing[1] + quoted(trailing[2])
            first += 1
            continue
        last = first
        while last < len(out) and re.match(r"^\s*///(?![/<])", out[last]):
            last += 1
        out[first:last] = prepared(out[first:last])
        first = last
    return out


def prepared(block):
    """One comment of several lines."""
    out, section, formula = [], False, False
    texts = quoted("\n".join(re.sub(r"^\s*///", "", line) for line in block)).split("\n")
    for line, text in zip(block, texts):
        indent = line[: line.index("///")]
        if line.strip() == "/// \\file":
            out.append(line)
            continue
        deep = len(text) - len(text.lstrip()) >= 3
        new = SECTION.match(text.strip()) if not deep else None
        if new or not text.strip():
            section = bool(new)
        is_formula = deep and not section
        body = text
        if new:
            body = f" <p><b>{new[0].rstrip()}</b> " + text.strip()[new.end() :]
        if is_formula and not formula:
            body = " <pre>" + body[3:]
        elif is_formula:
            body = body[3:]
        if formula and not is_formula:
            out[-1] += "</pre>"
        formula = is_formula
        out.append(f"{indent}///{body}")
    if formula:
        out[-1] += "</pre>"
    return out


def prepare(to):
    """Copies the public headers; their number."""
    shutil.rmtree(to, ignore_errors=True)
    count = 0
    for header in sorted((ROOT / "include/attune").rglob("*.hpp")):
        name = header.relative_to(ROOT / "include/attune").as_posix()
        if INTERNAL.match(name):
            continue
        copy = to / "include/attune" / name
        copy.parent.mkdir(parents=True, exist_ok=True)
        copy.write_text("\n".join(comments(header.read_text(encoding="utf-8").splitlines())) + "\n", encoding="utf-8")
        count += 1
    shutil.copy(HERE / "main.dox", to / "include")
    return count


def faults():
    """Doxygen's own: regular expressions."""
    found = []
    for number, line in enumerate((HERE / "doxygen_faults.txt").read_text(encoding="utf-8").splitlines(), 1):
        if line.strip() and not line.startswith("#"):
            pattern, arrow, reason = line.partition(" => ")
            if not arrow or not reason.strip():
                sys.exit(f"doxygen_faults.txt:{number}: a reason is missing: REGULAR EXPRESSION => REASON")
            found.append(re.compile(pattern.strip()))
    return found


def warnings(text, headers):
    """(place, message), a message of several lines as one."""
    found = []
    for line in text.splitlines():
        place = re.match(r"^(\S+?):(\d+): (.*)$", line)
        if place:
            name = place[1].replace(f"{headers}/", "")
            found.append([f"{name}:{place[2]}", re.sub(r"^warning: ", "", place[3])])
        elif line.strip() and found:
            found[-1][1] += " " + line.strip()
        elif line.strip():
            found.append(["Doxygen", line.strip()])
    return found


def read_list():
    """(Doxygen's version, names without a comment, header -> number of members without one)."""
    version, names, members = None, set(), {}
    for line in LIST.read_text(encoding="utf-8").splitlines() if LIST.is_file() else []:
        counted = re.match(r"^(\S+): (\d+) members$", line)
        if line.startswith(HEAD):
            version = line[len(HEAD) :].strip()
        elif counted:
            members[counted[1]] = int(counted[2])
        elif line.strip() and not line.startswith("#"):
            names.add(line)
    return version, names, members


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=pathlib.Path, metavar="FOLDER")
    parser.add_argument("--doxygen", default="doxygen", metavar="PROGRAM", help="which Doxygen")
    parser.add_argument("--baseline", action="store_true", help="lower the list of undocumented names")
    arguments = parser.parse_args()
    folder = arguments.folder.resolve()
    headers = folder / "headers"
    folder.mkdir(parents=True, exist_ok=True)
    count = prepare(headers)
    shutil.rmtree(folder / "api", ignore_errors=True)
    run = subprocess.run([arguments.doxygen, str(HERE / "Doxyfile")], env=dict(os.environ, ATTUNE_HEADERS=str(headers), ATTUNE_API=str(folder)),
                         stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace")
    if run.returncode:
        print(run.stdout, file=sys.stderr)
        sys.exit(f"doxygen failed (status {run.returncode})")

    own, names, members, problems = faults(), {}, {}, []
    for place, message in warnings(run.stdout, headers):
        if any(fault.search(message) for fault in own):
            continue
        header, missing = place.rsplit(":", 1)[0], UNDOCUMENTED.match(message)
        if not missing:
            problems.append(f"{place}: {message}")
        elif missing[3] in (None, "namespace", "file"):
            owner = f"{missing[4]}::" if missing[3] == "namespace" else ""
            names[re.sub(r"\s+", " ", f"{header}: {owner}{missing[1]}")] = place
        else:
            members.setdefault(header, []).append(f"{place}: no comment: {missing[4]}::{missing[1]}")
    total = sum(len(found) for found in members.values())
    print(f"{count} headers; without a comment: {len(names)} classes, functions, ... and {total} members; other warnings: {len(problems)}")

    version = subprocess.run([arguments.doxygen, "--version"], stdout=subprocess.PIPE, text=True, check=True).stdout.split()[0]
    old_version, old_names, old_members = read_list()
    if arguments.baseline and old_version in (None, version):
        kept = sorted(name for name in names if old_version is None or name in old_names)
        counts = {header: min(len(found), old_members.get(header, len(found) if old_version is None else 0)) for header, found in members.items()}
        lines = [HEAD + version, "", *kept, "", *(f"{header}: {number} members" for header, number in sorted(counts.items()) if number)]
        LIST.write_text("\n".join(lines) + "\n", encoding="utf-8")
        print(f"{LIST.relative_to(ROOT)}: {len(kept)} names, {sum(counts.values())} members")
        _, old_names, old_members = read_list()
    if old_version not in (None, version):
        print(f"names without a comment are not judged: {LIST.relative_to(ROOT)} was written with Doxygen {old_version}, this is {version}")
    else:
        problems += [f"{names[name]}: no comment: {name.split(': ', 1)[1]}" for name in sorted(names) if name not in old_names]
        for header, found in sorted(members.items()):
            if len(found) > old_members.get(header, 0):
                problems += [f"{header}: {len(found)} members without a comment, {old_members.get(header, 0)} are allowed:", *found]
        fewer = [name for name in sorted(old_names) if name not in names]
        fewer += [f"{header}: {number} members" for header, number in sorted(old_members.items()) if len(members.get(header, [])) < number]
        if fewer:
            print("Less is missing than allowed; run scripts/docs --baseline:", *fewer, sep="\n  ")
    for problem in problems:
        print(problem, file=sys.stderr)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
