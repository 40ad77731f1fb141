// What is read of GPUs in /sys and /dev, on trees that are made up.
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <cstring>

#include "support/fake_gpus.h"

using namespace greta;
using Catch::Matchers::ContainsSubstring;
using Catch::Matchers::Equals;

static std::string reason(const FakeGpus& tree) {
  CHECK(explain_no_hip_gpu(tree.view()).code == Code::Unsupported);
  return error_text();
}

TEST_CASE("gpus: a machine without one", "[platform]") {
  FakeGpus tree;
  const SystemGpus system = read_system_gpus(tree.view());
  CHECK(system.gpus.empty());
  CHECK(!system.has_hip());
  CHECK(!system.kfd.there);
  CHECK(!system.find(""));
  CHECK_THAT(reason(tree),
             Equals("there is no /dev/kfd, so this machine has no AMD GPU, or its driver amdgpu is "
                    "not loaded (sudo modprobe amdgpu)"));
}

TEST_CASE("gpus: two of them, with targets, nodes and clocks", "[platform]") {
  FakeGpus tree;
  tree.add_kfd();
  tree.add(kInstinct);
  tree.add(kRadeon);
  tree.write(tree.device(kRadeon) + "pp_dpm_sclk", "0: 500Mhz \n1: 132Mhz *\n2: 2304Mhz \n");
  tree.write(tree.device(kRadeon) + "product_name", "AMD Radeon RX 7900 XTX\n");
  const SystemGpus system = read_system_gpus(tree.view(), true);
  CHECK(system.has_hip());
  CHECK(system.kfd.usable);
  CHECK(system.kfd.owner == "root");
  CHECK(system.kfd.group == "render");
  REQUIRE(system.gpus.size() == 2);
  const SystemGpu &radeon = system.gpus[0], &instinct = system.gpus[1];
  CHECK(radeon.pci == "0000:03:00.0");
  CHECK(radeon.target == "gfx1100");
  CHECK(radeon.name == "AMD Radeon RX 7900 XTX");
  CHECK(radeon.render.path == "/dev/dri/renderD128");
  CHECK(radeon.render.there);
  CHECK(radeon.clock == "500 to 2304 MHz, now 132");
  CHECK(radeon.memory_clock.empty());
  CHECK(instinct.target == "gfx942");
  CHECK(system.find("0000:c1:00.0") == &instinct);
  CHECK(!system.find("0000:c2:00.0"));
  CHECK_THAT(reason(tree),
             ContainsSubstring("finds none of the GPUs that the kernel shows (gfx1100, gfx942)"));
}

TEST_CASE("gpus: variables that hide them are named, if they are set", "[platform]") {
  FakeGpus tree;
  tree.add_kfd();
  tree.add(kRadeon);
  CHECK_THAT(reason(tree), !ContainsSubstring("environment"));
  SystemView view = tree.view();
  view.hiding = "CUDA_VISIBLE_DEVICES=1";
  CHECK(!explain_no_hip_gpu(view).ok());
  CHECK_THAT(error_text(), ContainsSubstring("hides the GPUs that the kernel shows (gfx1100), since the "
                                             "environment has CUDA_VISIBLE_DEVICES=1: unset it"));
}

TEST_CASE("gpus: clocks are read where they are asked for, and never of a GPU that sleeps", "[platform]") {
  FakeGpus tree;
  tree.add(kRadeon);
  tree.write(tree.device(kRadeon) + "pp_dpm_sclk", "0: 500Mhz *\n");
  CHECK(read_system_gpus(tree.view()).gpus[0].clock.empty());
  CHECK(read_system_gpus(tree.view(), true).gpus[0].clock == "500 to 500 MHz, now 500");
  tree.write(tree.device(kRadeon) + "power/runtime_status", "suspended\n");
  const SystemGpu asleep = read_system_gpus(tree.view(), true).gpus[0];
  CHECK(asleep.asleep);
  CHECK(asleep.clock.empty());
}

TEST_CASE("gpus: a file that does not open though its permissions allow it", "[platform]") {
  FakeGpus tree;
  tree.add_kfd();
  tree.add(kRadeon);
  FakeGpus::refused = "/dev/kfd";
  FakeGpus::error = EACCES;
  CHECK_THAT(reason(tree), ContainsSubstring("AppArmor, SELinux or a sandbox forbids it"));
  FakeGpus::error = EPERM;
  CHECK_THAT(reason(tree), ContainsSubstring("AppArmor"));
  tree.write("/.dockerenv", "");
  CHECK_THAT(reason(tree), ContainsSubstring("this container may not use /dev/kfd: start it with --device"));
  FakeGpus::error = EINVAL;
  CHECK_THAT(reason(tree), ContainsSubstring("its driver has failed (see sudo dmesg)"));
  FakeGpus::refused = "renderD128";
  FakeGpus::error = EACCES;
  CHECK_THAT(reason(tree), ContainsSubstring("/dev/dri/renderD128 may not be opened"));
}

TEST_CASE("gpus: targets are written as compilers write them", "[platform]") {
  const std::pair<uint32_t, const char*> cases[] = {
      {90010, "gfx90a"}, {90500, "gfx950"}, {100302, "gfx1032"}, {110501, "gfx1151"}, {120001, "gfx1201"}};
  for (const auto& [number, name] : cases) {
    FakeGpus tree;
    tree.add({"0001:03:1f.3", 130, number});
    const SystemGpus system = read_system_gpus(tree.view());
    REQUIRE(system.gpus.size() == 1);
    CHECK(system.gpus[0].target == name);
  }
}

TEST_CASE("gpus: one whose render node a container hides is found by its address", "[platform]") {
  FakeGpus tree;
  tree.add({"0001:03:1f.3", 130, 110000});
  std::filesystem::remove_all(tree.path + "/sys/class/drm");
  std::filesystem::remove_all(tree.path + "/dev/dri");
  const SystemGpus system = read_system_gpus(tree.view());
  REQUIRE(system.gpus.size() == 1);
  CHECK(system.gpus[0].pci == "0001:03:1f.3");
  CHECK(!system.gpus[0].render.there);
  CHECK_THAT(reason(tree),
             ContainsSubstring("there is no /dev/kfd, though there is an AMD GPU; a container") &&
                 ContainsSubstring("--device /dev/kfd --device /dev/dri"));
}

TEST_CASE("gpus: who may not open a node is told the group", "[platform]") {
  FakeGpus tree;
  tree.add_kfd();
  tree.add(kRadeon);
  FakeGpus::forbidden = "/dev/kfd";
  CHECK(!read_system_gpus(tree.view()).kfd.usable);
  CHECK_THAT(reason(tree), Equals("this user may not open /dev/kfd, which belongs to the group render (sudo "
                                  "usermod -aG render,video $USER, then log in again)"));
  FakeGpus::forbidden = "/dev/dri/renderD128";
  CHECK_THAT(reason(tree), ContainsSubstring("may not open /dev/dri/renderD128"));
  tree.write("/etc/group", "gpu-people:x:0:\n");
  CHECK_THAT(reason(tree), ContainsSubstring("the group gpu-people (sudo usermod -aG gpu-people $USER"));
  tree.write("/etc/group", "render:x:10:\n");  // nobody has given the number a name
  CHECK_THAT(reason(tree), ContainsSubstring("the group 0 (start the container with --group-add 0)"));
}

TEST_CASE("gpus: a driver without a GPU that computes", "[platform]") {
  FakeGpus tree;
  tree.add_kfd();
  tree.add({"0000:00:02.0", 128, 0, "i915"});
  CHECK_THAT(reason(tree), ContainsSubstring("/dev/kfd is there, but the kernel shows no AMD GPU"));
  CHECK(!read_system_gpus(tree.view()).gpus[0].is_amd());
}

TEST_CASE("gpus: memory of an APU is its own and the host's", "[platform]") {
  FakeGpus tree;
  tree.add(kRadeon);
  CHECK(read_system_gpus(tree.view()).gpus[0].memory == 0);
  tree.add_memory(kRadeon, 512, 100, 16384, 2000);
  const SystemGpu apu = read_system_gpus(tree.view()).gpus[0];
  CHECK(apu.memory == 512);
  CHECK(apu.memory_used == 100);
  CHECK(apu.host_memory == 16384);
  CHECK(apu.host_memory_used == 2000);
}
