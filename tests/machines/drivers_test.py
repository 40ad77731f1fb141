"""Drivers that die, hang or print when they are asked: the program lives, and says what they do."""
import json
import os
import time

from machine import BACKENDS, FAKES, MachineTest, device_line, main, needs, vulkan_line

MODEL = os.path.realpath(f"{os.path.dirname(__file__)}/../../models/tales-llama-7m-q4_k_m.gguf")
SECONDS = 3  # what a driver may take in the tests of one that hangs


class Drivers(MachineTest):
    def setUp(self):
        super().setUp()
        self.machine.add_kfd()
        self.machine.add_gpu()
        self.machine.copy(MODEL, "/model.gguf")

    def run_a_model(self, **kwargs):
        """What the CPU writes, and what is said meanwhile. The GPUs of these tests cannot be opened."""
        out, err = self.told("run", "-m", "/model.gguf", "-p", "Once upon a time", "-n", "4", "--temp", "0", **kwargs)
        self.assertRegex(out, r"^[ -~]*[a-z]{2}[ -~\n]*$")
        return out, err

    def check_broken(self, kind, words, **kwargs):
        """All three commands end well, name the driver and use what is left."""
        device = self.devices(**kwargs)[f"{kind}0"]
        self.assertFalse(device["usable"])
        self.assertRegex(device["reason"], words)
        self.assertTrue(self.devices(**kwargs)["cpu"]["usable"])
        found = [f for f in self.findings(**kwargs) if (f["subject"], f["key"]) == (kind, "usable")]
        self.assertEqual(len(found), 1)
        self.assertRegex(found[0]["value"], "^no: " + words)
        self.assertRegex(found[0]["advice"], "update")
        self.told("doctor", **kwargs)
        self.assertRegex(" ".join(self.run_a_model(**kwargs)[1].split()), f"{kind} is left out: {words}")

    @needs("hip")
    def test_hip_dies(self):  # row 6
        for deed, words in [("segv count", "signal 11, Segmentation fault"), ("abort count", "signal 6, Aborted"),
                            ("exit load", "exit code 3"), ("segv load", "signal 11"), ("segv properties", "signal 11")]:
            with self.subTest(deed):
                self.machine.add_hip("/opt/rocm/lib/libamdhip64.so.7", device_line(), deed)
                self.check_broken("hip", rf"its driver /opt/rocm/lib/libamdhip64\.so\.7 ends the process that asks it "
                                         rf"\({words}.*\)")

    @needs("hip")
    def test_the_last_words_of_one_that_dies(self):
        self.machine.add_hip("/opt/rocm/lib/libamdhip64.so.7", "abort count")
        self.assertIn("hipErrorNoBinaryForGpu: no code for this GPU", self.devices()["hip0"]["reason"])

    @needs("vulkan")
    def test_vulkan_dies(self):  # row 17
        self.machine.add_vulkan(vulkan_line(), "segv devices")
        self.check_broken("vulkan", r"its driver libvulkan\.so\.1 ends the process that asks it \(signal 11")

    def check_opening(self, kind, words, **kwargs):
        """A driver that is asked well and dies when its device is opened costs its kind, and nothing else."""
        self.assertTrue(self.devices(**kwargs)[f"{kind}0"]["usable"])
        self.told("doctor", **kwargs)
        for _ in range(2):  # what failed is not remembered as good
            self.assertRegex(" ".join(self.run_a_model(**kwargs)[1].split()), f"{kind} is left out: {kind}0 {words}")

    @needs("vulkan")
    def test_vulkan_dies_when_it_is_opened(self):
        self.machine.add_vulkan(vulkan_line(), "segv open")
        self.check_opening("vulkan", r"ends the process that opens it \(signal 11, Segmentation fault\)")
        self.machine.add_vulkan(vulkan_line(), "hang open")
        self.check_opening("vulkan", "does not answer within 6 seconds", env={"GRETA_DRIVER_SECONDS": "1"})
        out, err = self.told("run", "-m", "/model.gguf", "-p", "a", "-n", "1", "--device", "cpu")
        self.assertNotIn("left out", err)

    @needs("hip")
    def test_hip_dies_when_it_is_opened(self):
        self.machine.add_hip("/opt/rocm/lib/libamdhip64.so.7", device_line(), "abort open")
        self.check_opening("hip", r"ends the process that opens it \(signal 6, Aborted\): hipErrorNoBinaryForGpu")

    @needs("hip")
    def test_a_page_fault_is_told(self):  # row 5
        """ROCr's function is found in the library that the runtime has opened for itself alone."""
        self.machine.add_hip("/opt/rocm/lib/libamdhip64.so.7", device_line(), "fault open")
        self.machine.copy(FAKES / "libfake_rocr.so", "/opt/rocm/lib/libhsa-runtime64.so.1")
        err = self.told("run", "-m", "/model.gguf", "-p", "a", "-n", "1", "--device", "hip0", code=1)[1]
        self.assertIn("was lost (a page fault: a kernel used memory at 0xdead000)", " ".join(err.split()))

    @needs("vulkan")
    def test_what_was_opened_well_is_remembered(self):
        self.machine.add_vulkan(vulkan_line())
        self.run_a_model()
        opened = self.machine.path("/home/.cache/greta/opened")
        told = opened.read_text()
        self.assertIn("AMD Radeon (RADV)", told)
        self.assertEqual(opened.stat().st_mode & 0o777, 0o600)
        opened.write_text(told)  # it is not written again
        before = opened.stat().st_mtime_ns
        self.run_a_model()
        self.assertEqual(opened.stat().st_mtime_ns, before)
        self.machine.add_vulkan(vulkan_line(version="Mesa 25.3.0"), "segv open")  # another driver is tried
        self.check_opening("vulkan", "ends the process that opens it")

    @needs("hip", "vulkan")
    def test_both_hang(self):
        self.machine.add_hip("/opt/rocm/lib/libamdhip64.so.7", device_line(), "hang count")
        self.machine.add_vulkan(vulkan_line(), "hang instance")
        env = {"GRETA_DRIVER_SECONDS": str(SECONDS)}
        start = time.monotonic()
        devices = self.devices(env=env)
        self.assertLess(time.monotonic() - start, 2 * SECONDS + 10)  # they are asked at the same time
        for kind in ["hip0", "vulkan0"]:
            self.assertRegex(devices[kind]["reason"], f"does not answer within {SECONDS} seconds")
        self.assertTrue(devices["cpu"]["usable"])
        self.check_broken("hip", r"its driver .* does not answer within", env=env)

    @needs("hip", "vulkan")
    def test_what_they_print_is_no_output(self):
        self.machine.add_hip("/opt/rocm/lib/libamdhip64.so.7", device_line(), "print count")
        self.machine.add_vulkan(vulkan_line(), "print instance")
        json.loads(self.told("devices", "--json")[0])
        json.loads(self.told("doctor", "--json", "--measure")[0])
        self.assertEqual(self.run_a_model()[0], self.run_a_model(env={"HIP_VISIBLE_DEVICES": "0"})[0])
        for word in ["amdgpu.ids", "conformant"]:
            self.assertNotIn(word, self.run_a_model()[0])

    @needs("hip")
    def test_a_gpu_that_disappears_between_two_questions(self):
        self.machine.add_hip("/opt/rocm/lib/libamdhip64.so.7", device_line(), "vanish properties")
        self.assertEqual(list(self.devices()), ["hip0"] + (["vulkan0"] if "vulkan" in BACKENDS else []) + ["cpu"])
        self.told("doctor")

    def test_one_that_is_named_is_opened_all_the_same(self):
        self.machine.add_hip("/opt/rocm/lib/libamdhip64.so.7", device_line())
        for kind in [name for name in BACKENDS if name != "cpu"]:
            out, err = self.told("run", "--device", f"{kind}0", "-m", "/model.gguf", "-p", "a", "-n", "1", code=1)
            self.assertEqual(out, "")
            self.assertIn(f"device {kind}0: ", err)

    def test_the_version_asks_no_driver(self):
        self.machine.add_hip("/opt/rocm/lib/libamdhip64.so.7", "segv load")
        self.assertIn("backends:", self.told("--version")[0])

    def test_measuring_a_device_that_cannot_be_opened(self):
        self.assertIn("measured bandwidth", self.told("doctor", "--measure")[0])


if __name__ == "__main__":
    main()
