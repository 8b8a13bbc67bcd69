# SPDX-License-Identifier: MIT
# Copyright (c) 2026 The attune authors
"""benchmarks/tables.py on numbers that a reader can redo by hand; the other scripts of that folder need torch, and are only compiled."""
import json
import pathlib
import sys
import tempfile
import unittest

BENCHMARKS = pathlib.Path(__file__).resolve().parents[2] / "benchmarks"
sys.dont_write_bytecode = True
sys.path.insert(0, str(BENCHMARKS))
import tables


def line(name, seconds, **more):
    return dict(group="prefill", case="softmax", shape="B1 H8 L1024 D64 full", name=name, threads=1, dtype="f32", median_s=seconds) | more


class Tables(unittest.TestCase):
    def rows(self, lines):
        (cases,) = tables.by_case(lines).values()
        return [[cell.strip() for cell in row.strip("| ").split("|")] for row in tables.table(cases).splitlines()]

    def test_a_peer_is_a_multiple_of_our_time(self):
        ours = line("attune", 0.010, gflops=53.7, pct_peak=33.4)
        head, _, row = self.rows([line("SDPA", 0.015), ours, line("eager", 0.2)])
        self.assertEqual(head, ["case", "shape", "attune", "GFLOP/s", "of peak", "SDPA", "eager"])
        self.assertEqual(row, ["softmax", "B1 H8 L1024 D64 full", "10 ms", "53.7", "33 %", "1.50×", "20×"])

    def test_the_page_says_how_it_was_measured(self):
        self.assertIn("run in turn", tables.page([line("attune", 0.01, rounds=7)]))
        self.assertIn("attune alone", tables.page([line("attune", 0.01)]))

    def test_seconds_are_not_written_with_an_exponent(self):
        self.assertEqual(self.rows([line("attune", 2.4189)])[2][2], "2419 ms")

    def test_memory_decides_where_bytes_were_counted(self):
        head, _, row = self.rows([line("attune", 0.001, gflops=1.0, gbps=12.5, pct_read=80.4)])
        self.assertEqual(head[3:], ["GB/s", "of read"])
        self.assertEqual(row[3:], ["12.5", "80 %"])

    def test_without_our_result_peers_have_their_times(self):
        head, _, row = self.rows([line("SDPA", 0.015), line("attune", 0.01, shape="other")])[:3]
        self.assertEqual(row[2:], ["–", "–", "–", "15 ms"])

    def test_a_later_run_replaces_an_earlier_one(self):
        *_, row = self.rows([line("attune", 0.010), line("attune", 0.020)])
        self.assertEqual(row[2], "20 ms")

    def test_a_wrong_result_is_marked_and_listed(self):
        lines = [line("SDPA", 0.01, correct=True, error=0.0), line("attune", 0.01, correct=False, error="NaN")]
        self.assertIn("10 ms WRONG", tables.page(lines))
        self.assertIn("1 of 2 results are WRONG", tables.page(lines))
        self.assertIn("All 1 results agree", tables.page(lines[:1]))

    def test_what_did_not_run_is_named(self):
        skipped = dict(group="storage", case="softmax", shape="s", name="attune", threads=1, dtype="bf16", skipped="not in this library")
        page = tables.page([skipped, dict(name="entmax", missing="No module named 'entmax'")])
        self.assertIn("- attune in storage (softmax bf16): not in this library", page)
        self.assertIn("- entmax: No module named 'entmax'", page)

    def test_a_run_of_attune_track(self):
        def run(name, **more):
            return dict(name=name, run_name=name, run_type="iteration", real_time=4.0, time_unit="ms") | more

        whole = dict(context=dict(date="2026-01-02T03:04:05", num_cpus=2, executable="attune_track", load_avg=[0.5]),
                     benchmarks=[run("machine/fma float/real_time", **{"FLOP/s": 100e9}),
                                 run("machine/read T2/real_time", bytes_per_second=20e9),
                                 run("forward/softmax/causal/B1 H8 L1024 D64 T2/real_time", **{"FLOP/s": 150e9}),
                                 run("decode/softmax/full/B1 H32 Hk8 Lq1 Lk4096 D64 T2/real_time", bytes_per_second=10e9)])
        with tempfile.TemporaryDirectory() as folder:
            file = pathlib.Path(folder, "track.json")
            file.write_text(json.dumps(whole))
            environment, forward, decode = tables.read(file)
        self.assertEqual(environment["load"], 0.5)
        self.assertEqual((forward["case"], forward["shape"], forward["threads"]), ("softmax", "B1 H8 L1024 D64 causal", 2))
        self.assertAlmostEqual(forward["median_s"], 0.004)
        self.assertAlmostEqual(forward["pct_peak"], 75)  # 150 of 2 x 100
        self.assertAlmostEqual(decode["pct_read"], 50)

    def test_a_plot_has_a_column_for_each_curve(self):
        lines = [line(name, seconds, shape=f"B1 H8 L{length} D64 {mask}")
                 for name, length, mask, seconds in [("SDPA", 512, "full", 0.002), ("attune", 512, "full", 0.001),
                                                     ("attune", 1024, "full", 0.004), ("attune", 512, "causal", 0.0005)]]
        with tempfile.TemporaryDirectory() as folder:
            self.assertTrue(tables.plot(lines, pathlib.Path(folder, "x")))
            self.assertEqual(pathlib.Path(folder, "x.csv").read_text().splitlines(),
                             ['L,"attune, causal","attune, full","SDPA, full"', "512,0.5,1.0,2.0", "1024,,4.0,"])
            self.assertFalse(tables.plot([line("attune", 1, shape="B1 H12 L128 D32 full")], pathlib.Path(folder, "y")))


class Scripts(unittest.TestCase):
    def test_every_script_compiles(self):
        for script in sorted(BENCHMARKS.glob("*.py")):
            compile(script.read_text(), str(script), "exec")


if __name__ == "__main__":
    unittest.main()
