"""What doctor advises in front of made-up permissions, containers, WSL, kernels and drivers."""
import errno
import os
import re

from machine import BACKENDS, MachineTest, device_line, main, needs, vulkan_line

LLVMPIPE = vulkan_line("llvmpipe (LLVM 19)", "0000:00:00.0", kind=4, driver="llvmpipe", number=13, vendor="10005")


class Advice(MachineTest):
    """Advice for a machine with one Radeon."""

    def radeon(self, kfd=(0o660, 109), node=(0o660, 109)):
        self.machine.add_kfd(*kfd)
        self.machine.add_gpu(*node)

    @needs("hip")
    def test_a_hidden_render_node(self):  # row 8
        self.machine.add_kfd()
        self.machine.add_gpu(node=False)
        self.machine.add_hip()
        self.assertIn("/dev/dri/renderD128 is not there, which the GPU 0000:03:00.0 needs: start the container with "
                      "--device /dev/dri", self.advice())
        self.assertNotIn("VISIBLE", self.advice())

    @needs("hip")
    def test_a_user_who_is_in_no_group(self):
        self.radeon()
        self.machine.add_hip()
        self.assertIn("sudo usermod -aG render,video $USER, then log in again", self.advice(user="1000:1000"))
        self.assertNotIn("usermod", self.advice(user="1000:109"))
        self.machine.write("/etc/group", "root:x:0:\nrender:x:109:\n")
        self.assertIn("sudo usermod -aG render $USER", self.advice(user="1000:1000"))

    @needs("hip")
    def test_a_group_without_a_name(self):  # row 9
        self.radeon(kfd=(0o660, 993), node=(0o660, 993))
        self.machine.add_hip()
        advice = self.advice(user="1000:1000")
        self.assertIn("start the container with --group-add 993", advice)
        self.assertNotIn("usermod", advice)

    @needs("hip")
    def test_a_group_in_a_container(self):
        self.radeon()
        self.machine.add_hip()
        self.machine.write("/.dockerenv", "")
        self.assertIn("start the container with --group-add 109", self.advice(user="1000:1000"))
        self.machine.write("/run/.containerenv", "")
        self.assertIn("--group-add keep-groups", self.advice(user="1000:1000"))

    @needs("hip")
    def test_nogroup_in_rootless_podman(self):  # row 10
        self.radeon(kfd=(0o660, 65534), node=(0o660, 65534))
        self.machine.add_hip()
        advice = self.advice(user="1000:1000")
        self.assertIn("--group-add keep-groups", advice)
        self.assertNotIn("usermod", advice)

    @needs("hip")
    def test_a_file_of_root_alone(self):  # row 11
        self.radeon(kfd=(0o600, 0), node=(0o600, 0))
        self.machine.add_hip()
        advice = self.advice(user="1000:1000")
        self.assertIn('SUBSYSTEM=="kfd", KERNEL=="kfd", GROUP="render", MODE="0660"', advice)
        self.assertNotIn("usermod", advice)
        os.chmod(self.machine.path("/dev/kfd"), 0o660)  # and with rights for the group root
        self.assertNotIn("usermod", self.advice(user="1000:1000"))

    @needs("hip")
    def test_variables_that_hide_gpus(self):  # row 13
        self.radeon()
        self.machine.add_hip()
        advice = self.advice()
        self.assertIn("the HIP runtime finds none of the GPUs that the kernel shows (gfx1100)", advice)
        self.assertNotIn("VISIBLE", advice)
        self.assertNotIn("GPU_DEVICE_ORDINAL", advice)
        advice = self.advice(env={"CUDA_VISIBLE_DEVICES": "1", "HIP_VISIBLE_DEVICES": ""})
        self.assertIn("hides the GPUs that the kernel shows (gfx1100), since the environment has "
                      "CUDA_VISIBLE_DEVICES=1: unset it", advice)
        self.assertNotIn("HIP_VISIBLE_DEVICES", advice)
        self.assertNotIn("ROCR_VISIBLE_DEVICES", advice)

    @needs("hip")
    def test_wsl(self):  # rows 14 and 15
        self.machine.write("/dev/dxg", "", 0o666)
        self.assertNotIn("ROCm", self.advice())
        reason = self.devices()["hip0"]["reason"]
        self.assertIn("librocdxg", reason)
        self.assertIn("HSA_ENABLE_DXG_DETECTION=1", reason)
        self.assertNotIn("dmesg", reason)
        self.machine.add_hip()
        advice = self.advice()
        self.assertIn("librocdxg", advice)
        self.assertIn("HSA_ENABLE_DXG_DETECTION=1", advice)
        self.assertNotIn("dmesg", advice)
        self.assertEqual(self.value("environment", "HSA_ENABLE_DXG_DETECTION", env={"HSA_ENABLE_DXG_DETECTION": "1"}), "1")

    @needs("hip", "vulkan")
    def test_the_gpu_of_another_maker(self):  # row 15
        self.machine.add_gpu(driver="nvidia", target=0, id="10DE:2684")
        self.machine.write("/dev/dxg", "", 0o666)
        self.assertNotIn("ROCm", self.advice())
        self.machine.add_vulkan(vulkan_line("NVIDIA GeForce RTX 4090", vendor="10de", driver="NVIDIA", number=4))
        self.assertEqual(self.advice(), "")

    @needs("vulkan")
    def test_flatpak(self):  # row 17
        self.radeon()
        self.machine.write("/.flatpak-info", "")
        self.machine.add_vulkan(LLVMPIPE)
        self.assertIn("org.freedesktop.Platform.GL", self.advice())
        self.machine.add_vulkan(vulkan_line())
        self.assertNotIn("flatpak", self.advice())

    def test_a_gpu_without_a_driver(self):  # row 18
        device = "/sys/bus/pci/devices/0000:03:00.0/"
        for name, text in [("vendor", "0x1002\n"), ("device", "0x7550\n"), ("class", "0x030000\n")]:
            self.machine.write(device + name, text)
        advice = self.advice()
        self.assertIn("gpu 0000:03:00.0: the kernel has no driver for this AMD GPU (1002:7550)", advice)
        self.assertIn("Linux 6.12", advice)
        self.machine.write(device + "class", "0x040300\n")  # its sound
        self.assertEqual(self.advice(), "")
        self.machine.write(device + "class", "0x038000\n")
        self.machine.write(device + "driver/module", "")
        self.assertEqual(self.advice(), "")

    @needs("vulkan")
    def test_a_mesa_that_is_too_old(self):  # row 19
        self.machine.add_gpu(target=120001)
        self.machine.add_vulkan(LLVMPIPE)
        self.assertIn("gfx1201 needs Mesa 25.0 or newer", self.advice())
        self.machine.add_vulkan(vulkan_line())
        self.assertNotIn("Mesa", self.advice())

    def test_firmware(self):  # row 20
        device = self.machine.add_gpu(target=110501)
        self.machine.write(f"{device}/fw_version/mes_fw_version", "0x00000083\n")
        self.machine.write(f"{device}/fw_version/smc_fw_version", "0x00647200\n")
        self.assertEqual(self.value("gpu 0000:03:00.0", "firmware"), "MES 0x83, SMC 0x647200")
        self.assertIn("update linux-firmware", self.advice())
        self.machine.write(f"{device}/fw_version/mes_fw_version", "0x00000086\n")
        self.assertNotIn("linux-firmware", self.advice())

    def test_the_list_of_bad_firmware(self):  # row 20
        path = os.path.join(os.path.dirname(__file__), "../../src/runtime/known_faults.def")
        rows = re.findall(r'^FIRMWARE\("gfx(\d+)(.)(.)", (0x\w+), "(.*)"\)$', open(path).read(), re.MULTILINE)
        self.assertGreater(len(rows), 4)
        for major, minor, step, version, fault in rows:
            with self.subTest(version=version, target=major + minor + step):
                self.machine.nodes = 0
                device = self.machine.add_gpu(target=int(major) * 10000 + int(minor) * 100 + int(step, 16))
                self.machine.write(f"{device}/fw_version/mes_fw_version", f"0x{int(version, 16):08x}\n")
                self.assertIn(f"update linux-firmware: with MES {version} {fault}", self.advice())
                self.machine.write(f"{device}/fw_version/mes_fw_version", "0x0000008f\n")
                self.assertNotIn("linux-firmware", self.advice())

    @needs("hip")
    def test_what_is_known_of_a_runtime(self):  # rows 34 and 35
        self.radeon()
        for version, words in [(60443484, "before HIP 7.2.1"), (70253210, "before HIP 7.2.1"), (70253211, "take turns"),
                               (71300000, "take turns"), (71400000, None), (71526333, None)]:
            with self.subTest(version=version):
                self.machine.add_hip("/opt/rocm/lib/libamdhip64.so.7", f"version {version}", device_line())
                known = self.value("hip0", "known faults")
                self.assertIn(words, known) if words else self.assertIsNone(known)

    @needs("vulkan")
    def test_what_is_known_of_the_vendors_driver(self):  # row 53
        self.radeon()
        amdvlk = vulkan_line("AMD Radeon", driver="AMDVLK", number=2, version="2025.Q2.1")
        self.machine.add_vulkan(amdvlk)
        self.assertIn("install Mesa's driver RADV", self.advice())
        self.machine.add_vulkan(amdvlk, vulkan_line())
        self.assertNotIn("RADV", self.advice())

    def test_limits_of_the_kernel(self):  # rows 21 and 63
        self.machine.add_gpu()
        folder = "/sys/module/amdgpu/parameters/"
        self.machine.write(folder + "lockup_timeout", "-1\n")
        self.machine.write(folder + "user_queue", "0\n")
        self.assertEqual(self.value("amdgpu", "lockup_timeout"), "the kernel's own, 10 s before Linux 7.0")
        self.machine.write("/proc/sys/kernel/osrelease", "7.0.0-28-generic\n")
        self.assertEqual(self.value("amdgpu", "lockup_timeout"), "the kernel's own, 2 s since Linux 7.0")
        self.machine.write(folder + "lockup_timeout", "10000,60000\n")
        self.assertEqual(self.value("amdgpu", "lockup_timeout"), "10000,60000 ms")
        self.assertEqual(self.value("amdgpu", "user_queue"), "0")

    @needs("hip")
    def test_targets_that_do_not_compile(self):  # rows 46 and 47
        for number, name, compiles in [(90012, "gfx90c", False), (100100, "gfx1010", False), (90006, "gfx906", True)]:
            with self.subTest(name):
                self.machine.add_kfd()
                self.machine.add_gpu(target=number)
                self.machine.nodes = 0
                self.machine.add_hip("/opt/rocm/lib/libamdhip64.so.7", device_line(name))
                self.assertEqual("-DGRETA_HIP_TARGETS=" + name in self.advice(), compiles)

    def test_absurd_values(self):
        device = self.machine.add_gpu()
        for name, text in [("mem_info_vram_total", ""), ("mem_info_vram_used", "99999999999999999999999999\n"),
                           ("mem_info_gtt_total", "-5\n"), ("pp_dpm_sclk", ":::\n"), ("pp_dpm_mclk", "1: \n\n*"),
                           ("fw_version/mes_fw_version", "no number"), ("power/runtime_status", "\0\1\2")]:
            self.machine.write(f"{device}/{name}", text)
        self.machine.write("/sys/class/kfd/kfd/topology/nodes/7/properties", "simd_count 18446744073709551615\n"
                           "gfx_target_version 4294967295\nlocation_id 18446744073709551615\ndrm_render_minor -1\n")
        self.machine.write("/etc/group", ":::\n\n:")
        self.machine.write("/sys/class/drm/renderD99999999999999999999/device/uevent", "DRIVER=\nPCI_SLOT_NAME=\n")
        self.told("doctor")
        self.told("devices")

    def test_trees_that_cannot_be_read(self):
        self.machine.add_kfd()
        device = self.machine.add_gpu()
        os.symlink("loop", self.machine.path("/sys/class/drm/renderD129"))
        os.symlink("renderD129", self.machine.path("/sys/class/drm/loop"))
        os.symlink("uevent", self.machine.path(f"{device}/mem_info_vram_total"))
        os.symlink("mem_info_gtt_total", self.machine.path(f"{device}/mem_info_gtt_total"))
        for path in ["/sys/class/kfd", "/dev", "/etc"]:
            os.chmod(self.machine.path(path), 0)
        self.told("doctor", user="1000:1000")
        self.told("devices", user="1000:1000")
        with self.assertRaises(OSError) as raised:
            os.stat(self.machine.path("/sys/class/drm/loop"))
        self.assertEqual(raised.exception.errno, errno.ELOOP)


if __name__ == "__main__":
    main()
