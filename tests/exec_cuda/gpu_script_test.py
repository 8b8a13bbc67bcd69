# SPDX-License-Identifier: MIT
# Copyright (c) 2026 The attune authors
"""scripts/gpu with programs, compilers and tools that only pretend: what it says, runs, leaves out and writes to gpu.json."""
import json
import os
import pathlib
import shutil
import subprocess
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
PROBE = """[ "${1:-}" != alive ] || exit "$(cat "$(dirname "$0")/dead" 2>/dev/null || echo 0)"
echo "PASS  mma m16n8k16, bf16                           0 of 4096 words differ"
"""
PASSES = """echo "NVIDIA Pretended, sm_90"
echo "PASS  softmax                            bf16 B1"
"""
TIMES = PASSES + """echo "TIME  softmax causal                     bf16 B4 H16 L4096 D64  2.000 ms  100 TFLOP/s"
echo "TIME  softmax causal                     fp32 B4 H16 L4096 D64  4.000 ms  50 TFLOP/s"
"""
FAILS = """echo "PASS  softmax                            bf16 B1"
echo "FAIL  softmax causal                     bf16 B1"
exit 1
"""
THRUST = """echo "[doctest] test cases:    2 |    2 passed | 0 failed | 0 skipped"
"""
# NAME SOURCE... -o PROGRAM: copies a program that passes, or fails where the source is of group 3.
NVCC = """for last; do :; done
case "$*" in *-E*) exit 0 ;; *ATTUNE_GROUP=3*) echo "error: pretended"; exit 1 ;; esac
cp "$(dirname "$0")/program" "$last"
"""


class Script(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp())
        self.addCleanup(shutil.rmtree, self.folder)
        self.tools, self.out = self.folder / "tools", self.folder / "a folder"
        self.tools.mkdir()
        self.out.mkdir()
        self.tool("nvidia-smi", 'case "$*" in *compute_cap*) echo 9.0 ;; *) echo "NVIDIA Pretended, 1" ;; esac')
        # The limits of steps are a minute and more; here, they are 2 seconds.
        self.tool("timeout", f'[ "${{1#-}}" = "$1" ] || shift; shift; exec {shutil.which("timeout")} --kill-after=1 2 "$@"')
        self.tool("compute-sanitizer", 'while [ "${1#-}" != "$1" ]; do case $1 in --tool|--error-exitcode) shift ;; esac; shift; done; exec "$@"')

    def tool(self, name, text):
        self.write(self.tools / name, text)

    def write(self, path, text):
        path.write_text("#!/bin/sh\n" + text + "\n")
        path.chmod(0o755)

    def programs(self, **changed):
        """Programs that pass, but for these; None: the program is not there."""
        texts = {"probe": PROBE, "times": TIMES, "tiles": PASSES} | {f"cuda_{n}": PASSES for n in ("softmax", "large", "gradients", *range(15))}
        texts |= {"thrust_" + p.stem: THRUST for p in (ROOT / "tests/cuda").glob("*.cu")}
        texts |= {"example_" + p.stem: "" for p in (ROOT / "examples/cuda").glob("*.cu")}
        for name, text in (texts | changed).items():
            if text is not None:
                self.write(self.out / name, text)
        (self.out / "arch").write_text("sm_90\n")
        (self.out / "main.o").write_text("")

    def run_script(self, *arguments):
        path = f"{self.tools}:{os.environ['PATH']}"
        done = subprocess.run([ROOT / "scripts/gpu", "--out", self.out, "--no-times", *arguments], capture_output=True, text=True,
                              env=os.environ | {"PATH": path}, timeout=300)
        found = self.out / "gpu.json"
        report = json.loads(found.read_text()) if found.exists() else None
        return done.returncode, done.stdout + done.stderr, report, {s["name"]: s for s in report["steps"]} if report else {}

    def test_all_pass(self):
        self.programs()
        status, text, report, steps = self.run_script("--run-only")
        wrong = {n: s["result"] for n, s in steps.items() if s["result"] != "passed" and n != "python"}
        self.assertEqual((status, wrong), (0, {}), text)
        self.assertEqual(len([n for n in steps if n.startswith("cuda_")]), 18)
        self.assertEqual(report["cases"]["cuda_7"], dict(passed=1, failed=[]))
        self.assertEqual(report["cases"]["thrust_masses"], dict(passed=2, failed=[]))
        self.assertEqual([(r["element"], r["ms"]) for r in report["times"]], [("bf16", 2.0), ("fp32", 4.0)])
        self.assertEqual(report["device"], "NVIDIA Pretended")
        self.assertIn("2.000      100", text)

    def test_a_step_that_fails_keeps_no_other_from_running(self):
        self.programs(cuda_softmax=FAILS, cuda_1=None, cuda_2="sleep 100", cuda_3="kill -SEGV $$")
        status, text, report, steps = self.run_script("--run-only", "--only", "cuda_[^5-9]|cuda_softmax|times|thrust_masses|memcheck_cuda_0")
        self.assertEqual(status, 1)
        results = {n: steps[n]["result"] for n in ("cuda_softmax", "cuda_0", "cuda_1", "cuda_2", "cuda_3", "cuda_4", "thrust_masses", "memcheck_cuda_0")}
        self.assertEqual(results, dict(cuda_softmax="failed", cuda_0="passed", cuda_1="not compiled", cuda_2="timed out", cuda_3="failed", cuda_4="passed",
                                       thrust_masses="passed", memcheck_cuda_0="passed"), text)
        self.assertEqual(report["cases"]["cuda_softmax"]["failed"], ["softmax causal"])
        # No times of an operator that is wrong.
        self.assertEqual((steps["times"]["result"], steps["times"]["text"]), ("left out", "cuda_softmax: failed"))
        self.assertEqual(report["times"], [])

    def test_what_cannot_run_is_left_out(self):
        self.programs(cuda_large='echo "large tensors take 26 GiB, the device has 8"; exit 77')
        for program in self.out.glob("thrust_*"):
            program.unlink()
        (self.out / "main.o").unlink()
        (self.out / "no_thrust").write_text("no doctest/doctest.h when it was compiled")
        status, text, report, steps = self.run_script("--run-only", "--only", "cuda_large|thrust_masses|memcheck_thrust_masses")
        self.assertEqual(status, 0, text)
        self.assertEqual({n: (s["result"], s["text"]) for n, s in steps.items()},
                         {"cuda_large": ("left out", "large tensors take 26 GiB, the device has 8"),
                          "thrust_masses": ("left out", "no doctest/doctest.h when it was compiled"),
                          "memcheck_thrust_masses": ("left out", "no doctest/doctest.h when it was compiled")}, text)

    def test_nothing_runs_once_the_device_is_lost(self):
        self.programs(cuda_4='echo 1 >"$(dirname "$0")/dead"; echo "STOP  after RBF: an illegal address"; exit 1')
        status, text, report, steps = self.run_script("--run-only", "--only", "cuda_[3-6]|example_.*|memcheck_.*|python")
        self.assertEqual(status, 1)
        self.assertEqual((steps["cuda_3"]["result"], steps["cuda_4"]["result"]), ("passed", "failed"))
        after = {s["result"] for n, s in steps.items() if list(steps).index(n) > list(steps).index("cuda_4")}
        self.assertEqual(after, {"left out"}, text)
        self.assertEqual(steps["cuda_5"]["text"], "the device does not answer after cuda_4")

    def test_no_device(self):
        self.programs(probe="exit 77")
        status, text, report, steps = self.run_script("--run-only")
        self.assertEqual((status, list(steps)), (1, ["device"]))
        self.assertIn("no CUDA device answers here", text)
        self.tool("nvidia-smi", "exit 9")
        status, text, *_ = self.run_script()
        self.assertTrue(status == 1 and "--build-only --arch sm_90" in text, text)

    def test_programs_of_another_architecture(self):
        self.programs()
        (self.out / "arch").write_text("sm_100\n")
        status, text, report, steps = self.run_script("--run-only")
        self.assertEqual((status, steps["device"]["result"]), (1, "failed"))
        self.assertIn("the programs in", text)

    def test_time_is_over(self):
        self.programs(probe=PROBE + "sleep 1.5")
        status, text, report, steps = self.run_script("--run-only", "--seconds", "1", "--only", "probe|cuda_[0-3]")
        self.assertEqual({n: s["result"] for n, s in steps.items()}, {"probe": "passed"} | {f"cuda_{n}": "left out" for n in range(4)}, text)
        self.assertEqual(steps["cuda_0"]["text"], "the 1 seconds are over")

    def test_one_step(self):
        self.programs()
        status, _, report, steps = self.run_script("--run-only", "--only", "cuda_1|times")
        self.assertEqual((status, list(steps)), (0, ["cuda_1", "times"]))

    def test_a_program_that_does_not_compile(self):
        self.tool("nvcc", NVCC)
        self.write(self.tools / "program", PROBE + "exit 0")
        status, text, report, steps = self.run_script("--jobs", "2", "--only", "cuda_[2-4]")
        self.assertEqual((status, steps["cuda_3"]["result"]), (1, "not compiled"), text)
        self.assertEqual((steps["cuda_2"]["result"], steps["cuda_4"]["result"]), ("passed", "passed"))
        self.assertIn("does not compile: cuda_3", text)
        status, text, *_ = self.run_script("--build-only", "--arch", "sm_90", "--only", "cuda_.*")
        self.assertTrue(status == 1 and "not compiled: cuda_3" in text, text)

    def test_wrong_arguments(self):
        for arguments, words in ((["--frob"], "unknown argument: --frob"), (["--jobs", "x"], "wants a number"),
                                 (["--build-only", "--run-only"], "give one of them"), (["--run-only"], "run scripts/gpu --build-only first")):
            status, text, *_ = self.run_script(*arguments)
            self.assertTrue(status == 1 and words in text, text)


if __name__ == "__main__":
    unittest.main()
