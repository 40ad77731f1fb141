"""Which GPUs are shown of machines with several, and which driver is taken."""
import os
import subprocess

from machine import BACKENDS, MachineTest, device_line, main, needs, vulkan_line

AMDVLK = {"name": "AMD Radeon (AMDVLK)", "driver": "AMD", "number": 2}


class Products(MachineTest):
    @needs("vulkan")
    def test_two_drivers_for_one_gpu(self):  # row 53
        self.machine.add_gpu()
        self.machine.add_vulkan(vulkan_line(**AMDVLK), vulkan_line())
        self.assertEqual(self.value("gpu 0000:03:00.0", "devices"), "vulkan0, vulkan1")
        self.assertIn("the same GPU as vulkan0", self.told("devices")[0])
        # Neither can be opened, and the order in which they are tried is told.
        for device in ["auto", "vulkan"]:
            err = self.machine.run("run", "-v", "--device", device, "-p", "a", "-n", "1", "-m", "/nowhere").stderr
            self.assertLess(err.index("(RADV)"), err.index("(AMDVLK)"), err)
        self.assertEqual(self.value("environment", "AMD_VULKAN_ICD", env={"AMD_VULKAN_ICD": "RADV"}), "RADV")

    @needs("hip")
    def test_partitions(self):  # row 48
        self.machine.add_kfd()
        self.machine.add_gpu(target=90402, pci="0000:c1:00.0", render=128)
        for part in [1, 2]:
            self.machine.add_gpu(target=90402, pci="0000:c1:00.0", render=128 + part)
            uevent = f"/sys/class/drm/renderD{128 + part}/device/uevent"
            self.machine.write(uevent, "DRIVER=amdgpu_xcp_drv\nMODALIAS=platform:amdgpu_xcp\n")
        self.machine.add_hip("/opt/rocm/lib/libamdhip64.so.7", *3 * [device_line("gfx942", "0000:c1:00.0")])
        for part in range(3):
            subject = f"gpu 0000:c1:00.0, part {part + 1} of 3"
            self.assertEqual(self.value(subject, "devices"), f"hip{part}")
            self.assertEqual(self.value(subject, "target"), "gfx942")

    @needs("hip", "vulkan")
    def test_many_gpus(self):
        self.machine.add_kfd()
        lines, drawn = [], []
        for i in range(64):
            pci = f"0000:{i + 1:02x}:00.0"
            self.machine.add_gpu(target=90402, pci=pci, render=128 + i)
            lines.append(device_line("gfx942", pci, name=f"Instinct {i}"))
            drawn.append(vulkan_line(f"Instinct {i}", pci))
        self.machine.add_hip("/opt/rocm/lib/libamdhip64.so.7", *lines)
        self.machine.add_vulkan(*drawn)
        self.assertEqual(len(self.devices()), 129)
        self.assertEqual(self.value("gpu 0000:40:00.0", "devices"), "hip63, vulkan63")
        self.machine.add_hip("/opt/rocm/lib/libamdhip64.so.7")
        self.assertIn("finds none of the GPUs that the kernel shows (gfx942)", self.devices()["hip0"]["reason"])

    def test_a_gpu_that_sleeps_is_not_woken(self):  # row 49
        device = self.machine.add_gpu()
        self.machine.write(f"{device}/pp_dpm_sclk", "0: 500Mhz *\n1: 2304Mhz\n")
        self.machine.write(f"{device}/power/runtime_status", "suspended\n")
        self.assertIsNone(self.value("gpu 0000:03:00.0", "clock"))
        self.assertEqual(self.value("gpu 0000:03:00.0", "power"), "asleep, so that its clocks are not read")
        self.machine.write(f"{device}/power/runtime_status", "active\n")
        self.assertEqual(self.value("gpu 0000:03:00.0", "clock"), "500 to 2304 MHz, now 500")

    @needs("vulkan")
    def test_a_driver_of_the_processor(self):  # row 60
        self.machine.add_vulkan(vulkan_line("llvmpipe (LLVM 19)", "0000:00:00.0", kind=4, driver="llvmpipe", number=13))
        self.assertIn("it runs on the processor, and auto never takes it", self.told("devices")[0])


if __name__ == "__main__":
    main()
