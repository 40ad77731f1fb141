"""greta-cli doctor: what it says on the machine at hand, which may have no GPU."""
import json
import os
import pathlib
import tempfile

from support import MODEL, CliTest, main


class Doctor(CliTest):
    def findings(self, *options, **kwargs):
        told = json.loads(self.out("doctor", "--json", *options, **kwargs))
        self.assertEqual(told["healthy"], not any(f["advice"] for f in told["findings"]))
        return told["findings"]

    def test_the_text_begins_with_what_is_to_be_done(self):
        out, err = self.run_cli("doctor")
        self.assertRegex(out, r"^(Nothing to do\.|To do, in this order:\n 1\. )")
        self.assertRegex(out, r"\ngreta\n  version +\d+\.\d+\.\d+\n")
        self.assertRegex(out, r"\ncpu\n  name +\S")
        self.assertEqual(err, "")

    def test_json(self):
        found = {(f["subject"], f["key"]): f["value"] for f in self.findings()}
        self.assertEqual(found["cpu", "usable"], "yes")
        self.assertIn(("system", "kernel"), found)
        for finding in self.findings():
            self.assertEqual(list(finding), ["subject", "key", "value", "advice"])

    def test_variables_that_drivers_read_are_named(self):
        env = {**os.environ, "HSA_OVERRIDE_GFX_VERSION": "10.3.0", "ROCR_VISIBLE_DEVICES": "1"}
        found = {f["key"]: f for f in self.findings(env=env) if f["subject"] == "environment"}
        self.assertEqual(found["ROCR_VISIBLE_DEVICES"]["value"], "1")
        self.assertEqual(found["ROCR_VISIBLE_DEVICES"]["advice"], "")
        self.assertIn("unset it", found["HSA_OVERRIDE_GFX_VERSION"]["advice"])
        out = self.out("doctor", env=env)
        self.assertRegex(out, r"^To do, in this order:\n 1\. environment, HSA_OVERRIDE_GFX_VERSION: 10\.3\.0\n    unset it")

    def test_measured(self):
        found = {(f["subject"], f["key"]): f["value"] for f in self.findings("--measure")}
        self.assertRegex(found["cpu", "measured bandwidth"], r"^\d+\.\d GB/s$")
        self.assertRegex(found["cpu", "free memory"], r"^\d+\.\d+ [MG]iB$")
        self.assertRegex(found["cpu", "measured arithmetic"], r"^\d+\.\d{3} TFLOP/s$")
        self.assertRegex(found["cpu", "quick self-test"], r"^\d+ kernels of \d+ ops right")

    def test_a_models_file(self):
        found = {(f["subject"], f["key"]): f for f in self.findings("-m", str(MODEL))}
        self.assertRegex(found["model", "reading"]["value"], r"^\d+\.\d\d GB/s over the first \d")
        found = {(f["subject"], f["key"]): f for f in self.findings("-m", "/no such file")}
        self.assertIn("No such file", found["model", "reading"]["value"])
        self.assertIn("/no such file", found["model", "reading"]["advice"])

    def test_what_is_kept(self):
        with tempfile.TemporaryDirectory() as folder:
            env = {**os.environ, "XDG_CACHE_HOME": folder}
            kept = lambda: {f["key"]: f["value"] for f in self.findings(env=env) if f["subject"] == "cache"}
            self.assertEqual(kept(), {"folder": f"{folder}/greta", "compiled kernels": "none yet", "tuning tables": "none: greta-cli tune makes one"})
            os.mkdir(f"{folder}/greta")
            for name, text in (("greta-vulkan-01.cache", "x" * 2048), ("tuning-cpu-01-02.jsonl", "{}"), ("tuning-cpu-01-02.jsonl.lock", "x")):
                pathlib.Path(folder, "greta", name).write_text(text)
            self.assertEqual((kept()["compiled kernels"], kept()["tuning tables"]), ("1 files, 2.00 KiB", "1"))
        env = {key: value for key, value in os.environ.items() if key not in ("HOME", "XDG_CACHE_HOME")}
        (none,) = [f for f in self.findings(env=env) if f["subject"] == "cache"]
        self.assertIn("XDG_CACHE_HOME", none["advice"])


if __name__ == "__main__":
    main()
