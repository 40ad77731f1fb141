"""greta-cli kernel: one kernel is checked and timed; what cannot be tried is refused in words."""
import json
import pathlib
import tempfile

from support import CliTest, main

CPU = ["--device", "cpu", "-t", "2"]
NAME = "matmul_plain_q4_k"


class Kernel(CliTest):
    def test_a_kernel_is_checked_and_timed(self):
        result = json.loads(self.out("kernel", NAME, "--shape", "64,512,2", "--json", *CPU))
        self.assertTrue(result["passed"])
        self.assertGreater(result["launches"], 0)
        self.assertGreaterEqual(result["rounds"], 6)
        self.assertGreater(result["ns"], 0)
        self.assertGreater(result["bytes"], 64 * 512 // 2)
        self.assertEqual(result["ratio"], 0)  # there is no other code
        out = self.out("kernel", NAME, "--shape", "64,512,2", *CPU)
        self.assertRegex(out, r"^right, \d+ rows of the table in \d+ launches\nbuilt in .* us .* GB/s .* TFLOP/s\nNMSE ")

    def test_a_kernel_without_a_product_is_checked_alone(self):
        self.assertRegex(self.out("kernel", "norm_plain", *CPU), r"^right, \d+ rows of the table in \d+ launches\n$")
        self.assertIn("not timed: no row of this name", self.out("kernel", "norm_plain", "--shape", "64,512,2", *CPU))

    def test_what_cannot_be_tried_is_refused(self):
        self.assertIn("has no kernel matmul_of_another_year", self.error(1, "kernel", "matmul_of_another_year", *CPU))
        self.assertIn("--shape takes", self.error(2, "kernel", NAME, "--shape", "64x512", *CPU))
        self.assertIn("at most 512", self.error(1, "kernel", NAME, "--shape", "64,512,513", *CPU))
        with tempfile.TemporaryDirectory() as folder:
            code = pathlib.Path(folder) / "code"
            code.write_bytes(b"no code")
            self.assertIn("functions of the program", self.error(1, "kernel", NAME, "--code", code, *CPU))
            code.write_bytes(b"")
            self.assertIn("is empty", self.error(1, "kernel", NAME, "--code", code, *CPU))
            self.assertIn("nowhere", self.error(1, "kernel", NAME, "--code", pathlib.Path(folder) / "nowhere", *CPU))


if __name__ == "__main__":
    main()
