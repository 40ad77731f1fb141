"""Where a HIP runtime is found, and what is said of one that cannot be used."""
import os
import re

from machine import FAKES, MachineTest, device_line, main, needs


@needs("hip")
class Runtimes(MachineTest):
    def setUp(self):
        super().setUp()
        self.machine.add_kfd()
        self.machine.add_gpu()

    def library(self, **kwargs):
        """The file of the runtime that was opened, which has one device."""
        return self.value("hip0", "library", **kwargs)

    def add(self, *paths, target="gfx1100"):
        for path in paths:
            self.machine.add_hip(path, device_line(target))

    def test_packages_put_it_below_opt(self):  # row 1
        self.add("/opt/rocm-6.4.0/lib/libamdhip64.so.6")
        self.assertEqual(self.library(), "/opt/rocm-6.4.0/lib/libamdhip64.so.6")
        self.add("/opt/rocm-10.0.0/lib/libamdhip64.so.7", "/opt/rocm-9.1.0/lib/libamdhip64.so.7")
        self.assertEqual(self.library(), "/opt/rocm-10.0.0/lib/libamdhip64.so.7")
        self.add("/opt/rocm/core-7.14/lib/libamdhip64.so.7")
        self.assertEqual(self.library(), "/opt/rocm/core-7.14/lib/libamdhip64.so.7")
        self.add("/opt/rocm/core-10.0/lib/libamdhip64.so.7")
        self.assertEqual(self.library(), "/opt/rocm/core-10.0/lib/libamdhip64.so.7")
        self.add("/opt/rocm/lib/libamdhip64.so.7")
        self.assertEqual(self.library(), "/opt/rocm/lib/libamdhip64.so.7")

    def test_the_loader_and_the_user_come_before(self):  # row 1
        self.add("/opt/rocm/lib/libamdhip64.so.7", f"{self.machine.libraries}/libamdhip64.so.6")
        self.assertEqual(self.library(), f"{self.machine.libraries}/libamdhip64.so.6")
        self.add("/home/rocm/lib/libamdhip64.so.7", "/home/hip/lib64/libamdhip64.so.7")
        self.assertEqual(self.library(env={"HIP_PATH": "/home/hip"}), "/home/hip/lib64/libamdhip64.so.7")
        self.assertEqual(self.library(env={"HIP_PATH": "/home/hip", "ROCM_PATH": "/home/rocm"}),
                         "/home/rocm/lib/libamdhip64.so.7")
        self.assertEqual(self.library(env={"ROCM_PATH": "/nowhere"}), f"{self.machine.libraries}/libamdhip64.so.6")

    def test_a_wheel_comes_last(self):  # row 2
        wheel = "/home/venv/lib/python3.12/site-packages/_rocm_sdk_core/lib/libamdhip64.so.7"
        self.add(wheel)
        self.assertIsNone(self.library())
        self.assertEqual(self.library(env={"VIRTUAL_ENV": "/home/venv"}), wheel)
        self.add("/opt/rocm/lib/libamdhip64.so.7")
        self.assertEqual(self.library(env={"VIRTUAL_ENV": "/home/venv"}), "/opt/rocm/lib/libamdhip64.so.7")

    def test_versions_are_numbers_and_new_ones_are_taken(self):  # row 5
        self.add("/opt/rocm/lib/libamdhip64.so.7", "/opt/rocm/lib/libamdhip64.so.10", "/opt/rocm/lib/libamdhip64.so.6",
                 "/opt/rocm/lib/libamdhip64.so.7.15.26333", "/opt/rocm/lib/libamdhip64.so")
        self.assertEqual(self.library(), "/opt/rocm/lib/libamdhip64.so.10")
        self.machine.add_hip("/opt/rocm/lib/libamdhip64.so.11", device_line(), fake="fake_hip_lacks_function")
        self.assertEqual(self.library(), "/opt/rocm/lib/libamdhip64.so.10")

    def test_one_that_is_loaded_is_taken(self):  # row 3
        self.add("/opt/rocm/lib/libamdhip64.so.7", "/home/torch/lib/libamdhip64.so")
        self.assertEqual(self.library(env={"LD_PRELOAD": "/home/torch/lib/libamdhip64.so"}),
                         "/home/torch/lib/libamdhip64.so")

    def test_a_library_that_it_lacks_is_named(self):  # row 4
        self.machine.add_hip("/opt/rocm/lib/libamdhip64.so.7", device_line(), fake="fake_hip_lacks_library")
        reason = self.devices()["hip0"]["reason"]
        self.assertIn("/opt/rocm/lib/libamdhip64.so.7: librocprofiler-register.so: cannot open", reason)
        self.assertIn("librocprofiler-register.so: cannot open", self.advice())
        self.machine.copy(FAKES / "librocprofiler-register.so", f"{self.machine.libraries}/librocprofiler-register.so")
        self.assertEqual(self.library(), "/opt/rocm/lib/libamdhip64.so.7")

    def test_a_function_that_it_lacks_is_named(self):
        self.machine.add_hip("/opt/rocm/lib/libamdhip64.so.8", device_line(), fake="fake_hip_lacks_function")
        self.assertIn("/opt/rocm/lib/libamdhip64.so.8 has no hipGetDevicePropertiesR0600",
                      self.devices()["hip0"]["reason"])

    def test_an_old_one_is_passed_over_and_named(self):
        self.machine.add_hip("/opt/rocm-5.7.0/lib/libamdhip64.so.5", "version 50730000", device_line())
        self.assertRegex(self.devices()["hip0"]["reason"], r"libamdhip64\.so\.5 is HIP 5\.7\.30000, which is too old")
        self.add("/opt/rocm-6.0.0/lib/libamdhip64.so.6")
        self.assertEqual(self.library(), "/opt/rocm-6.0.0/lib/libamdhip64.so.6")

    def test_none(self):
        self.assertIn("no HIP runtime (libamdhip64.so.7, or another from .6 on): install ROCm 6.4 or newer",
                      self.advice())

    def test_bad_folders(self):
        for name in ["core-10.0", "core-99999999999999999999999", "core-"]:
            self.machine.path(f"/opt/rocm/{name}/lib").mkdir(parents=True)
        os.symlink("loop", self.machine.path("/opt/rocm/lib"))
        os.symlink("lib", self.machine.path("/opt/rocm/loop"))
        os.symlink("/opt/rocm-8", self.machine.path("/opt/rocm-8"))
        self.machine.write("/opt/rocm/core-10.0/lib/libamdhip64.so.7", "no library")
        self.machine.write("/opt/rocm/core-10.0/lib/libamdhip64.so.6", "", mode=0)
        reason = self.devices()["hip0"]["reason"]
        self.assertTrue(re.search(r"libamdhip64\.so\.7: (invalid ELF header|file too short)", reason), reason)


if __name__ == "__main__":
    main()
