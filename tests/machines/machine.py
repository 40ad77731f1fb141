"""Machines that are made up: a folder with files in place of the system's, in which greta-cli runs through chroot."""
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

PROGRAM = os.environ.get("GRETA_CLI", "")
FAKES = pathlib.Path(os.environ.get("GRETA_FAKES", "."))
LIMIT = 120  # seconds, for a sanitized build on a busy machine
SKIPPED = 77
BACKENDS = subprocess.run([PROGRAM, "--version"], capture_output=True, text=True).stdout.split("backends:")[-1].split()

GPU = {"pci": "0000:03:00.0", "render": 128, "target": 110000, "id": "1002:744C", "driver": "amdgpu"}


def needs(*backends):
    missing = [name for name in backends if name not in BACKENDS]
    return unittest.skipIf(missing, f"this build has no {', '.join(missing)}")


class Machine:
    """A root folder. Files are written by their absolute path; drivers are fakes with a role."""

    def __init__(self, root):
        self.root = pathlib.Path(root)
        for path in ["tmp", "proc", "dev", "opt", "sys/class/drm", "home"]:
            (self.root / path).mkdir(parents=True, exist_ok=True)
        self.write("/etc/passwd", "root:x:0:0:root:/root:/bin/sh\nuser:x:1000:1000::/home:/bin/sh\n")
        self.write("/etc/group", "root:x:0:\nvideo:x:44:\nrender:x:109:\nuser:x:1000:\nnogroup:x:65534:\n")
        self.write("/etc/os-release", 'PRETTY_NAME="Made-up Linux"\n')
        self.write("/proc/sys/kernel/osrelease", "6.12.0\n")
        self.write("/sys/class/kfd/kfd/topology/nodes/0/properties", "cpu_cores_count 16\nsimd_count 0\n")
        self.nodes = 0
        self.program()

    def path(self, path):
        return self.root / path.lstrip("/")

    def write(self, path, text, mode=None, group=None):
        self.path(path).parent.mkdir(parents=True, exist_ok=True)
        self.path(path).write_text(text)
        if mode is not None:
            os.chmod(self.path(path), mode)
        if group is not None:
            os.chown(self.path(path), 0, group)

    def copy(self, source, path):
        self.path(path).parent.mkdir(parents=True, exist_ok=True)
        self.path(path).unlink(missing_ok=True)  # never write into what is linked here
        try:
            os.link(source, self.path(path))
        except OSError:
            shutil.copy(source, self.path(path))

    def program(self):
        """greta-cli with the libraries that it needs."""
        self.copy(os.path.realpath(PROGRAM), "/greta-cli")
        listed = subprocess.run(["ldd", PROGRAM], capture_output=True, text=True, check=True).stdout
        for library in re.findall(r"(?:=> )?(/\S+) \(0x", listed):
            self.copy(os.path.realpath(library), library)
            self.libraries = os.path.dirname(library) if "libc.so" in library else getattr(self, "libraries", "")

    # ---- GPUs ----

    def add_kfd(self, mode=0o660, group=109):
        self.write("/dev/kfd", "", mode, group)

    def add_gpu(self, mode=0o660, group=109, node=True, **facts):
        """What the kernel shows of a GPU. A target of 0 is one that the compute driver does not list."""
        gpu = {**GPU, **facts}
        render = f"renderD{gpu['render']}"
        device = f"/sys/class/drm/{render}/device"
        if gpu["render"] and node:
            self.write(f"/dev/dri/{render}", "", mode, group)
        if gpu["render"] and facts.get("drm", True):
            self.write(f"{device}/uevent", f"DRIVER={gpu['driver']}\nPCI_ID={gpu['id']}\nPCI_SLOT_NAME={gpu['pci']}\n")
        if gpu["target"]:
            self.nodes += 1
            domain, bus, slot, function = (int(part, 16) for part in re.split("[:.]", gpu["pci"]))
            self.write(f"/sys/class/kfd/kfd/topology/nodes/{self.nodes}/properties",
                       f"cpu_cores_count {gpu.get('cores', 0)}\nsimd_count 192\ngfx_target_version {gpu['target']}\n"
                       f"vendor_id 4098\nlocation_id {bus << 8 | slot << 3 | function}\ndomain {domain}\n"
                       f"drm_render_minor {gpu['render']}\n")
        return device

    # ---- drivers ----

    def add_hip(self, path="/opt/rocm/lib/libamdhip64.so.7", *lines, fake="fake_hip"):
        self.copy(FAKES / f"lib{fake}.so", path)
        self.write(path + ".role", "\n".join(lines) + "\n")

    def add_vulkan(self, *lines):
        path = f"{self.libraries}/libvulkan.so.1"
        self.copy(FAKES / "libfake_vulkan.so", path)
        self.write(path + ".role", "\n".join(lines) + "\n")

    # ---- running ----

    def run(self, *args, user=None, env=None, **kwargs):
        command = ["chroot", *(["--userspec", user] if user else []), str(self.root), "/greta-cli", *args]
        environment = {"PATH": os.environ["PATH"], "HOME": "/home", **(env or {})}
        return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=LIMIT,
                              stdin=subprocess.DEVNULL, **kwargs)


def device_line(target="gfx1100", pci="0000:03:00.0", integrated=0, memory=24576, free=20480, name="Radeon"):
    return f"device {target} {pci} {integrated} {memory} {free} {name}"


def vulkan_line(name="AMD Radeon (RADV)", pci="0000:03:00.0", kind=2, driver="radv", number=3, vendor="1002",
                version="Mesa 25.2.0"):
    return f"device {vendor} 744c {kind} {pci} {number} 24576 {driver} {version} | {name}"


class MachineTest(unittest.TestCase):
    maxDiff = 4000

    def setUp(self):
        if os.geteuid() != 0:
            self.skipTest("chroot needs root")
        folder = tempfile.TemporaryDirectory(dir=FAKES.parent)  # beside the program, so that it can be linked
        self.addCleanup(folder.cleanup)
        os.chmod(folder.name, 0o755)
        self.machine = Machine(folder.name)

    def told(self, *args, code=0, **kwargs):
        done = self.machine.run(*args, **kwargs)
        self.assertEqual(done.returncode, code, f"{args}: {done.stdout}{done.stderr}")
        return done.stdout, done.stderr

    def findings(self, *args, **kwargs):
        told = json.loads(self.told("doctor", "--json", *args, **kwargs)[0])
        self.assertEqual(told["healthy"], not any(f["advice"] for f in told["findings"]))
        return told["findings"]

    def value(self, subject, key, **kwargs):
        values = [f["value"] for f in self.findings(**kwargs) if (f["subject"], f["key"]) == (subject, key)]
        return values[0] if values else None

    def advice(self, **kwargs):
        return "\n".join(f"{f['subject']}: {f['advice']}" for f in self.findings(**kwargs) if f["advice"])

    def devices(self, **kwargs):
        return {d["id"]: d for d in json.loads(self.told("devices", "--json", **kwargs)[0])}


def main():
    if not PROGRAM:
        sys.exit("GRETA_CLI names the program to test")
    done = unittest.main(verbosity=2, exit=False).result
    for test, reason in done.skipped:
        print(f"skipped: {test.id()}: {reason}")
    sys.exit(1 if not done.wasSuccessful() else SKIPPED if done.skipped else 0)
