"""The archive that doctor writes for a report, and what it leaves out."""
import json
import tarfile

from machine import MachineTest, device_line, main, needs


class Bundle(MachineTest):
    def archive(self, **kwargs):
        """Its files, by name."""
        self.told("doctor", "--bundle", "/tmp/F.tar", **kwargs)
        files = {}
        with tarfile.open(self.machine.path("/tmp/F.tar")) as archive:
            for member in archive.getmembers():
                self.assertEqual((member.uid, member.gid, member.uname, member.gname, member.mtime), (0, 0, "", "", 0))
                files[member.name] = archive.extractfile(member).read().decode()
        return files

    def test_it_holds_what_doctor_says(self):
        self.machine.add_kfd()
        self.machine.add_gpu()
        files = self.archive()
        self.assertEqual(list(files), ["greta-doctor/doctor.txt", "greta-doctor/doctor.json"])
        shown = lambda *args: self.told("doctor", *args)[0].replace("/home/.cache/greta", ".../greta")  # the folder is private
        self.assertEqual(files["greta-doctor/doctor.txt"], shown())
        self.assertEqual(json.loads(files["greta-doctor/doctor.json"]), json.loads(shown("--json")))

    @needs("hip")
    def test_it_holds_nothing_private(self):
        self.machine.write("/etc/group", "root:x:0:\nrender:x:109:\nzaphod:x:1000:\n")
        self.machine.write("/etc/passwd", "root:x:0:0:root:/root:/bin/sh\nzaphod:x:1000:1000::/home/zaphod:/bin/sh\n")
        self.machine.add_kfd(group=1000)
        self.machine.add_gpu(group=1000)
        self.machine.add_hip("/home/zaphod/rocm/lib/libamdhip64.so.7", device_line())
        env = {"ROCM_PATH": "/home/zaphod/rocm", "HIP_VISIBLE_DEVICES": "secret-device", "LD_LIBRARY_PATH": "/home/zaphod/lib"}
        self.assertIn("/home/zaphod", self.told("doctor", env=env)[0])
        for _ in range(2):
            text = "".join(self.archive(env=env).values())
            for word in ["zaphod", "/home", "secret", "environment", "ROCM_PATH"]:
                self.assertNotIn(word, text)
            self.assertIn("libamdhip64.so.7", text)
            self.assertIn("gfx1100", text)
            self.machine.add_hip("/home/zaphod/rocm/lib/libamdhip64.so.7", "abort count")

    def test_a_file_that_cannot_be_written(self):
        out, err = self.told("doctor", "--bundle", "/nowhere/F.tar", code=1)
        self.assertIn("cpu", out)
        self.assertIn("/nowhere/F.tar: No such file", err)


if __name__ == "__main__":
    main()
