"""What doctor says of processors, memory and limits of made-up machines."""
from machine import MachineTest, main


class Host(MachineTest):
    def test_a_machine_that_tells_nothing(self):
        for key in ("instruction sets", "governor", "huge pages", "memory limit", "processor limit"):
            self.assertIsNone(self.value("system", key))

    def test_processors(self):
        self.machine.write("/proc/cpuinfo", "processor\t: 0\nmodel name\t: A processor\n"
                           "flags\t\t: fpu sse2 fma avx2 avx512f avx512_vnni avx2x\n\nprocessor\t: 1\n")
        self.machine.write("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor", "powersave\n")
        self.assertEqual(self.value("system", "instruction sets"), "avx2 fma avx512f avx512_vnni")
        self.assertEqual(self.value("system", "governor"), "powersave")

    def test_huge_pages(self):
        path = "/sys/kernel/mm/transparent_hugepage/enabled"
        for text, value in (("always [madvise] never\n", "madvise"), ("[always] madvise never\n", "always"), ("nothing", None), ("] [", None)):
            self.machine.write(path, text)
            self.assertEqual(self.value("system", "huge pages"), value)
            self.assertNotIn("hugepage", self.advice())
        self.machine.write(path, "always madvise [never]\n")
        self.assertIn("echo madvise | sudo tee " + path, self.advice())

    def test_limits_of_a_container(self):
        self.machine.write("/proc/self/cgroup", "0::/box\n")
        self.machine.write("/sys/fs/cgroup/box/memory.max", f"{3 << 30}\n")
        self.machine.write("/sys/fs/cgroup/box/cpu.max", "150000 100000\n")
        self.assertEqual(self.value("system", "memory limit"), "3.00 GiB")
        self.assertEqual(self.value("system", "processor limit"), "2")

    def test_a_bar_that_cannot_be_resized(self):
        folder = self.machine.add_gpu()
        gpu = "gpu 0000:03:00.0"
        self.machine.write(f"{folder}/mem_info_vram_total", str(24 << 30))
        self.assertIsNone(self.value(gpu, "resizable BAR"))
        self.machine.write(f"{folder}/mem_info_vis_vram_total", str(256 << 20))
        self.assertEqual(self.value(gpu, "resizable BAR"), "off: the host sees 256.00 MiB of the memory")
        self.assertIn("Resizable BAR", self.advice())
        self.machine.write(f"{folder}/mem_info_vis_vram_total", str(24 << 30))
        self.assertEqual(self.value(gpu, "resizable BAR"), "on")
        self.assertNotIn("Resizable BAR", self.advice())


if __name__ == "__main__":
    main()
