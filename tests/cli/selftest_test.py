"""greta-cli selftest: what it says of a device, and how it is stopped."""
import fcntl
import json
import os
import signal
import struct
import termios

from support import LIMIT, CliTest, main, start


class Selftest(CliTest):
    def test_an_op_that_is_right(self):
        out, err = self.run_cli("selftest", "--op", "softcap", "--device", "cpu")
        self.assertRegex(out, r"^softcap +ok +\d+ kernels, +\d+ launches\nall ops right on cpu \(.+\), \d+ kernels, ")
        self.assertRegex(err, r"^greta-cli: this checks cpu \(.+\)\n$")
        self.assertEqual(self.run_cli("selftest", "--op", "softcap", "--device", "cpu", "-q")[1], "")

    def test_quickly(self):
        def of_gate(*options):
            return json.loads(self.out("selftest", "--op", "gate", "--device", "cpu", "--json", *options))["ops"][0]
        quick = of_gate("--quick")
        self.assertTrue(quick["passed"])
        self.assertEqual(quick["kernels"], of_gate()["kernels"])
        self.assertLess(quick["launches"], of_gate()["launches"] // 10)

    def test_json(self):
        told = json.loads(self.out("selftest", "--op", "softcap", "--device", "cpu", "--json"))
        self.assertEqual((told["device"], told["passed"], told["stopped"]), ("cpu", True, False))
        self.assertEqual([(op["op"], op["passed"], op["failure"]) for op in told["ops"]], [("softcap", True, "")])

    def test_an_op_that_is_not_there(self):
        self.assertIn("softca", self.error(1, "selftest", "--op", "softca", "--device", "cpu", "-q"))

    def test_without_a_driver_it_says_where_it_ran(self):
        nowhere = {**os.environ, "VK_DRIVER_FILES": "/nonexistent.json", "VK_ICD_FILENAMES": "/nonexistent.json"}
        self.assertIn("all ops right on cpu (", self.out("selftest", "--op", "softcap", env=nowhere))

    def test_a_device_by_its_number(self):
        ids = [d["id"] for d in json.loads(self.out("devices", "--json")) if d["usable"]]
        if "vulkan0" not in ids:
            self.skipTest("no Vulkan device")
        for name in ("vulkan0", "vulkan"):
            told = json.loads(self.out("selftest", "--op", "softcap", "--device", name, "--json"))
            self.assertEqual(told["device"], "vulkan0")

    def test_no_progress_where_it_is_quiet(self):
        terminal = self.terminal("selftest", "--device", "cpu", "--op", "norm", "-q")
        self.assertEqual(terminal.exit_code(), 0)
        self.assertNotIn("\x1b", terminal.whole)


class CtrlC(CliTest):
    def test_in_a_pipe(self):
        child = start("selftest", "--device", "cpu", "--op", "matmul")
        self.assertIn(b"this checks cpu", child.stderr.readline())
        child.send_signal(signal.SIGINT)
        out, err = child.communicate(timeout=LIMIT)
        self.assertEqual(child.returncode, 130, err)
        self.assertRegex(out, rb"^stopped.*, before that 0 ops right, on cpu \(.+\)\n$")
        self.assertEqual(err, b"")

    def test_as_json(self):
        child = start("selftest", "--device", "cpu", "--op", "matmul", "--json")
        self.assertIn(b"this checks cpu", child.stderr.readline())
        child.send_signal(signal.SIGINT)
        told = json.loads(child.communicate(timeout=LIMIT)[0])
        self.assertEqual(child.returncode, 130)
        self.assertEqual((told["passed"], told["stopped"], told["ops"]), (False, True, []))

    def test_within_an_op_on_a_terminal(self):
        terminal = self.terminal("selftest", "--device", "cpu", "--op", "matmul")
        terminal.wait_for(r"matmul \([1-9]\d* of \d+ kernels\): \w+")
        terminal.send(b"\x03")
        terminal.wait_for(r"stopped in matmul \(\d+ of \d+ kernels\), before that 0 ops right, on cpu")
        self.assertEqual(terminal.exit_code(), 130)

    def test_progress_stays_on_its_line(self):
        terminal = self.terminal("selftest", "--device", "cpu", "--op", "matmul")
        fcntl.ioctl(terminal.fd, termios.TIOCSWINSZ, struct.pack("4H", 24, 30, 0, 0))
        terminal.wait_for(r"\rselftest [^\r]{20}\r")
        terminal.send(b"\x03")
        self.assertEqual(terminal.exit_code(), 130)


if __name__ == "__main__":
    main()
