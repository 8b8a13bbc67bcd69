#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
# Copyright (c) 2026 The attune authors
"""scripts/lib/machines.py in small git repositories; and its lists against this tree."""
import datetime
import importlib.util
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest
import unittest.mock

TREE = pathlib.Path(__file__).resolve().parents[2]
sys.dont_write_bytecode = True
TODAY = datetime.date.today().isoformat()
AMX_MACHINE = ["AVX-512 of Intel", "AMX"]
V4 = "sse2 avx avx2 fma avx512f avx512bw avx512cd avx512dq avx512vl"


def load(tree):
    spec = importlib.util.spec_from_file_location("machines", tree / "scripts/lib/machines.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def cpuinfo(vendor, flags):
    one = f"processor\t: 0\nvendor_id\t: {vendor}\nflags\t\t: fpu {flags}\nvmx flags\t: avx512f\n"
    return one + one


class Kinds(unittest.TestCase):
    def test_columns_of_processors(self):
        of = load(TREE).processor_kinds
        self.assertEqual(of("x86_64", cpuinfo("AuthenticAMD", "sse2")), ["SSE2"])
        self.assertEqual(of("x86_64", cpuinfo("GenuineIntel", "sse2 avx avx2 fma")), ["AVX2"])
        self.assertEqual(of("x86_64", cpuinfo("AuthenticAMD", f"{V4} avx512_bf16")), ["AVX-512 of AMD"])
        self.assertEqual(of("x86_64", cpuinfo("GenuineIntel", V4)), ["AVX-512 of Intel"])
        self.assertEqual(of("x86_64", cpuinfo("GenuineIntel", f"{V4} amx_tile amx_int8 amx_bf16")), AMX_MACHINE)
        self.assertEqual(of("aarch64", "CPU implementer\t: 0x41\n"), ["NEON"])

    def test_processors_without_a_column(self):
        of = load(TREE).processor_kinds
        self.assertEqual(of("x86_64", cpuinfo("GenuineIntel", "sse2 avx")), [])
        self.assertEqual(of("x86_64", cpuinfo("CentaurHauls", f"{V4} amx_tile amx_bf16")), [])
        self.assertEqual(of("x86_64", cpuinfo("GenuineIntel", "sse2 avx avx2 fma avx512f")), [])
        self.assertEqual(of("riscv64", ""), [])

    def test_parts_with_columns_of_their_own(self):
        columns = load(TREE).columns
        self.assertEqual(columns("hooks", AMX_MACHINE, True), (AMX_MACHINE, ""))
        self.assertEqual(columns("sse2", AMX_MACHINE, False), (["SSE2"], ""))
        self.assertEqual(columns("avx2", AMX_MACHINE, False), (["AVX2"], ""))
        self.assertEqual(columns("aarch64", AMX_MACHINE, False), (["NEON"], "qemu"))
        self.assertEqual(columns("cuda", ["AVX2"], True), (["GPU"], ""))
        self.assertEqual(columns("cuda", ["AVX2"], False), (["AVX2"], "compiled"))


@unittest.skipUnless(shutil.which("git"), "git is not installed")
class Records(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        kept = {name: value for name, value in os.environ.items() if name != "CI" and not name.startswith("GIT_")}
        named = {f"GIT_{who}_{what}": "a@example.org" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}
        patch = unittest.mock.patch.dict(os.environ, {**kept, **named}, clear=True)
        patch.start()
        self.addCleanup(patch.stop)
        self.root = pathlib.Path(folder.name)
        for name in ["scripts/lib/machines.py", "scripts/lib/machines.sh", "scripts/lib/common.sh"]:
            (self.root / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(TREE / name, self.root / name)
        self.write("scripts/test", "part unit dev\npart hooks dev\npart sse2 sse2\n")
        self.write("docs/contributing/machines.md", "before\n<!-- machines: begin -->\n<!-- machines: end -->\nafter\n")
        self.write("include/a.hpp", "1")
        self.git("init", "-q")
        self.commit()
        self.machines = load(self.root)

    def write(self, name, text):
        file = self.root / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)

    def git(self, *arguments):
        return subprocess.run(["git", "-C", str(self.root), *arguments], check=True, stdout=subprocess.PIPE, text=True).stdout.strip()

    def commit(self, *names):
        for name in names:
            self.write(name, f"{name} once more after {self.git('rev-parse', 'HEAD')}")
        self.git("add", "--all")
        self.git("commit", "-q", "-m", "a change")
        return self.git("rev-parse", "--short", "HEAD")

    def record(self, part="hooks", at=None, junit=None, kinds=("AVX2",), remark=""):
        return self.machines.record(part, at or self.machines.state(), junit, list(kinds), remark)

    def lines(self):
        file = self.root / "docs/contributing/machines.tsv"
        return [line.split("\t") for line in file.read_text().splitlines()[1:]] if file.exists() else []

    def row(self, part):
        text = (self.root / "docs/contributing/machines.md").read_text()
        self.assertTrue(text.startswith("before\n") and text.endswith("\nafter\n"))
        (found,) = [line for line in text.splitlines() if line.startswith(f"| `{part}` ")]
        return [cell.strip() for cell in found.split("|")[2:-1]]

    def test_a_run_fills_its_cell_and_no_other(self):
        commit = self.git("rev-parse", "--short", "HEAD")
        self.assertEqual(self.record(), f"recorded for AVX2: {commit} ({TODAY})")
        self.assertEqual(self.lines(), [["hooks", "AVX2", commit, TODAY, ""]])
        self.assertEqual(self.row("hooks"), ["", f"`{commit}` {TODAY}", "", "", "", "", "–"])
        self.assertEqual(self.row("sse2"), ["", "–", "–", "–", "–", "–", "–"])

    def test_a_later_run_takes_the_cell(self):
        self.record()
        self.record("unit")
        later = self.commit("include/a.hpp")
        self.record(remark="qemu")
        self.assertIn(["hooks", "AVX2", later, TODAY, "qemu"], self.lines())
        self.assertEqual(len(self.lines()), 2)
        self.assertEqual(self.row("hooks")[1], f"`{later}` {TODAY} (qemu)")

    def test_two_kinds_at_once_and_the_next_part_after_a_record(self):
        self.assertIn("recorded for AVX-512 of Intel and AMX", self.record(kinds=AMX_MACHINE))
        self.assertIn("recorded", self.record("unit"))  # the two files differ from HEAD by now, and that is no change
        self.assertEqual([line[:2] for line in self.lines()],
                         [["unit", "AVX2"], ["hooks", "AVX-512 of Intel"], ["hooks", "AMX"]])

    def test_changes_without_a_commit_are_refused(self):
        for name in ["include/a.hpp", "tests/new_test.cpp"]:
            at = self.machines.state()
            self.write(name, "changed after the tests started")
            said = self.record(at=at)
            self.assertIn(f"not recorded: changes without a commit: {name}", said)
            self.assertIn("never recorded on AVX2", said)
            self.assertIn(name, self.machines.state())
            self.assertEqual(self.lines(), [])
            self.commit()

    def test_a_commit_while_the_tests_ran_is_refused(self):
        at = self.machines.state()
        now = self.commit("include/a.hpp")
        self.assertIn(f"not recorded: HEAD was {at} when the tests started, and is {now}", self.record(at=at))
        self.assertIn("not recorded: why; never", self.record(at="not recorded: why"))
        self.assertIn("not recorded", self.record(kinds=()))
        self.assertEqual(self.lines(), [])

    def test_ci_writes_nothing(self):
        with unittest.mock.patch.dict(os.environ, {"CI": "true"}):
            self.assertIn("nothing is written. It would be: AVX2: ", self.record())
        self.assertEqual(self.git("status", "--porcelain"), "")

    def test_skipped_tests_are_remarked_and_a_part_of_nothing_else_is_no_run(self):
        (self.root / ".git/results.xml").write_text('<testsuite tests="5" failures="0" disabled="1" skipped="2"/>')
        self.assertIn("(" + TODAY + ", 3 skipped)", self.record(junit=self.root / ".git/results.xml"))
        (self.root / ".git/results.xml").write_text('<testsuite tests="3" failures="0" disabled="0" skipped="3"/>')
        self.assertIn("every test was skipped", self.record("unit", junit=self.root / ".git/results.xml"))
        self.assertEqual([line[0] for line in self.lines()], ["hooks"])

    def stale(self):
        return self.machines.stale(lambda part: ["SSE2"] if part == "sse2" else ["AVX2"])

    def test_a_record_is_stale_when_its_code_has_commits_since(self):
        at = self.machines.state()
        for part, kind in [("quick", "AVX2"), ("hooks", "AVX2"), ("sse2", "SSE2")]:
            self.record(part, kinds=[kind])
        self.commit("docs/page.md")
        self.assertEqual(self.stale(), ["never recorded on AVX2: unit"])
        self.commit("tests/hooks/one_test.cpp")
        self.assertEqual(self.stale(), [f"part quick: last green on AVX2 at {at} ({TODAY}), 1 commit of its code since",
                                        f"part hooks: last green on AVX2 at {at} ({TODAY}), 1 commit of its code since",
                                        "never recorded on AVX2: unit"])
        self.commit("include/a.hpp")
        self.assertIn(f"part sse2: last green on SSE2 at {at} ({TODAY}), 1 commit of its code since", self.stale())
        self.assertIn("2 commits of its code since", self.stale()[1])
        self.assertEqual([line.split() for line in self.machines.table()][3], ["hooks", at, TODAY, "+2"])

    def test_a_commit_that_the_clone_lacks(self):
        self.write("docs/contributing/machines.tsv", "# head\nhooks\tAVX2\t0123abc\t2026-01-02\t\n")
        self.assertIn("part hooks: last green on AVX2 at 0123abc (2026-01-02), this clone lacks commit 0123abc, so how old that is is not known",
                      self.stale())

    def test_of_two_lines_that_a_merge_left_the_later_date_counts(self):
        self.write("docs/contributing/machines.tsv", "# head\nhooks\tAVX2\taaaaaaa\t2026-01-03\t\nhooks\tAVX2\tbbbbbbb\t2026-01-02\t\n")
        self.assertEqual(self.machines.read(), {("hooks", "AVX2"): ("aaaaaaa", "2026-01-03", "")})

    def test_a_line_that_is_none_is_named(self):
        self.write("docs/contributing/machines.tsv", "# head\nhooks\tAVX3\taaaaaaa\t2026-01-03\t\n")
        with self.assertRaisesRegex(SystemExit, "machines.tsv:2: .*AVX3"):
            self.machines.read()

    def test_the_page_is_checked(self):
        check = [sys.executable, self.root / "scripts/lib/machines.py", "page"]
        self.assertNotEqual(subprocess.run([*check, "--check"], stderr=subprocess.DEVNULL).returncode, 0)
        subprocess.run(check, check=True)
        self.assertEqual(subprocess.run([*check, "--check"]).returncode, 0)

    def shell(self, text):
        return subprocess.run(["bash", "-c", f"set -euo pipefail; . scripts/lib/common.sh; . scripts/lib/machines.sh; {text}"], cwd=self.root,
                              stdout=subprocess.PIPE, text=True)

    def test_the_summary_of_ctest_is_held_back(self):
        ctest = r"printf '1/1 Test\n\n50%% tests passed, 1\n\nTotal\n'; echo FAILED >&2; exit 8"
        done = self.shell(f'summary_last .git/held bash -c "{ctest}"')
        self.assertEqual((done.returncode, done.stdout), (8, "1/1 Test\n\n"))
        self.assertEqual((self.root / ".git/held").read_text(), "50% tests passed, 1\n\nTotal\nFAILED\n")

    def test_arguments_for_ctest_choose(self):
        self.assertIn("not recorded: arguments for ctest choose among the tests: -R unit", self.shell("state_before -R unit").stdout)

    def test_a_program_that_fails_is_said_and_ends_nothing(self):
        self.assertIn("machines.py cell failed (status 1)\nafter", self.shell("machines cell no_part 2>&1; echo after").stdout)


class InstructionSets(unittest.TestCase):
    MACROS = {"-march=native": {"__SSE2__", "__AVX__", "__AVX2__"}, "-march=x86-64": {"__SSE2__"},
              "-march=new": {"__SSE2__", "__AVX__", "__AVX2__", "__AVX512F__", "__AVX512BF16__", "__AMXBF16__"}}

    def test_what_ran_and_what_was_only_compiled(self):
        machines = load(TREE)
        machines.macros_of = lambda compiler, flags: self.MACROS[flags[0]]
        commands = [("-march=native", "tests/CMakeFiles/attune_unit.dir/a.cpp.o"), ("-march=native", "tests/CMakeFiles/attune_unit.dir/b.cpp.o"),
                    ("-march=x86-64", "tests/CMakeFiles/attune_fast_math.dir/c.cpp.o"),
                    ("-march=new", "tests/CMakeFiles/attune_other.dir/d.cpp.o")]  # this processor cannot run it, whatever the target is
        with tempfile.TemporaryDirectory() as folder:
            text = ",".join(f'{{"command": "ccache g++ -DX=1 {flag} -MD -o {to} -c x.cpp"}}' for flag, to in commands)
            (pathlib.Path(folder) / "compile_commands.json").write_text(f"[{text}]")
            self.assertEqual(list(machines.sets([folder])), ["code ran:      AVX2 (2 files), SSE2 (1 file)",
                                                             "only compiled: AVX-512, AVX-512 BF16, AMX",
                                                             "neither:       NEON, BF16 of ARM"])
        self.assertTrue(machines.COMPILED_ONLY.search("tests/CMakeFiles/attune_compiled_for_x86-64-v3.dir/a.o"))
        self.assertFalse(machines.COMPILED_ONLY.search("tests/CMakeFiles/attune_unit.dir/a.o"))


class ThisTree(unittest.TestCase):
    def test_every_part_has_its_code_and_every_path_exists(self):
        machines = load(TREE)
        self.assertEqual(sorted(machines.CODE), sorted(machines.parts()))
        self.assertEqual([path for paths in [machines.EVERY, *machines.CODE.values()] for path in paths if not (TREE / path).exists()], [])

    def test_the_page_is_what_the_records_say(self):
        machines = load(TREE)
        self.assertEqual(machines.page(machines.read()), (TREE / machines.PAGE).read_text())


if __name__ == "__main__":
    unittest.main()
