// What is found on machines that are made up, and what is advised there.
#include "runtime/machine.h"

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <cstring>
#include <stdexcept>

#include "greta.h"
#include "support/fake_backends.h"
#include "support/fake_gpus.h"

using namespace greta;
using Catch::Matchers::ContainsSubstring;
using Catch::Matchers::StartsWith;

namespace {

constexpr FakeDevice kCpuDevice{"CPU", "cpu:avx2", true, true};
constexpr FakeDevice kRadeonByVulkan{"Radeon (RADV)", "vulkan:amd:744c", false, false, "", "0000:03:00.0"};
constexpr FakeDevice kRadeonByHip{"Radeon", "gfx1100", false, false, "", "0000:03:00.0", "/opt/rocm/a.so"};
constexpr FakeDevice kInstinctByHip{"Instinct", "gfx942", false, false, "", "0000:c1:00.0"};

struct Machine {
  FakeGpus tree;
  std::vector<std::string> targets = {"gfx11-generic", "gfx942"};
  std::vector<Finding> findings;
  const char* without = nullptr;

  Machine() {
    tree.write("/etc/os-release", "ID=debian\nPRETTY_NAME=\"Debian GNU/Linux 12 (bookworm)\"\n");
    tree.write("/proc/sys/kernel/osrelease", "6.1.0-28-amd64\n");
    FakeHip::devices = {};
    FakeHip::none = {"", "", false, false, "no HIP runtime: install it"};
    FakeVulkan::devices = {};
    FakeVulkan::none = {"", "", false, false, "no Vulkan loader: install it"};
    FakeCpu::devices = {kCpuDevice};
  }
  void examine() {
    static constexpr const Backend* kAll[] = {&kFakeVulkan, &kFakeHip, &kFakeCpu};
    DeviceOptions options;
    options.system = tree.view();
    options.without = without;
    findings = examine_machine({kAll, targets, options});
  }
  std::string value(std::string_view subject, std::string_view key) const {
    for (const Finding& f : findings)
      if (f.subject == subject && f.key == key) return f.value;
    return "not found";
  }
  std::string advice() const {
    std::string all;
    for (const Finding& f : findings)
      if (!f.advice.empty()) all += f.subject + ": " + f.advice + "\n";
    return all;
  }
};

}  // namespace

TEST_CASE("machine: without a GPU there is nothing to do", "[api]") {
  Machine machine;
  machine.examine();
  CHECK(machine.advice().empty());
  CHECK(machine.value("build", "backends") == "vulkan, hip, cpu");
  CHECK(machine.value("build", "code objects") == "gfx11-generic, gfx942");
  CHECK(machine.value("system", "name") == "Debian GNU/Linux 12 (bookworm)");
  CHECK(machine.value("system", "kernel") == "6.1.0-28-amd64");
  CHECK(machine.value("/dev/kfd", "access") == "it is not there");
  CHECK(machine.value("hip", "usable") == "no: no HIP runtime: install it");
  CHECK(machine.value("cpu", "usable") == "yes");
}

TEST_CASE("machine: an Instinct without HIP, step by step", "[api]") {
  Machine machine;
  machine.tree.add(kInstinct);
  machine.examine();
  CHECK(machine.value("gpu 0000:c1:00.0", "target") == "gfx942");
  CHECK(machine.value("gpu 0000:c1:00.0", "code object") == "gfx942");
  CHECK(machine.value("gpu 0000:c1:00.0", "devices") == "none");
  CHECK_THAT(machine.advice(), StartsWith("/dev/kfd: there is no /dev/kfd, though there is an AMD GPU") &&
                                   ContainsSubstring("\nhip: no HIP runtime: install it\n"));
  machine.tree.add_kfd();
  FakeGpus::forbidden = "/dev/kfd";
  machine.examine();
  CHECK(machine.value("/dev/kfd", "access") ==
        "owner root, group render, permissions 660, this user may not open it");
  CHECK_THAT(machine.advice(), ContainsSubstring("sudo usermod -aG render,video $USER"));
  FakeGpus::forbidden = "renderD129";
  machine.examine();
  CHECK_THAT(machine.advice(), StartsWith("gpu 0000:c1:00.0: sudo usermod -aG render,video $USER"));
  FakeGpus::forbidden.clear();
  machine.examine();
  CHECK(machine.advice() == "hip: no HIP runtime: install it\n");
  FakeHip::devices = {kInstinctByHip};
  machine.examine();
  CHECK(machine.advice().empty());
  CHECK(machine.value("gpu 0000:c1:00.0", "devices") == "hip0");
}

TEST_CASE("machine: a Radeon is served by either driver", "[api]") {
  Machine machine;
  machine.tree.add_kfd();
  machine.tree.add(kRadeon);
  machine.examine();
  CHECK(machine.advice() == "vulkan: no Vulkan loader: install it\nhip: no HIP runtime: install it\n");
  FakeVulkan::devices = {kRadeonByVulkan};
  machine.examine();
  CHECK(machine.advice().empty());
  FakeVulkan::devices = {};
  FakeHip::devices = {kRadeonByHip};
  machine.examine();
  CHECK(machine.advice().empty());
  CHECK(machine.value("gpu 0000:03:00.0", "code object") == "gfx11-generic");
  CHECK(machine.value("hip0", "library") == "/opt/rocm/a.so");
}

TEST_CASE("machine: two GPUs, of which one is hidden", "[api]") {
  Machine machine;
  machine.tree.add_kfd();
  machine.tree.add(kRadeon);
  machine.tree.add(kInstinct);
  FakeVulkan::devices = {kRadeonByVulkan};
  FakeHip::none.reason = "the HIP runtime hides the GPUs";
  machine.examine();
  CHECK(machine.advice() == "hip: the HIP runtime hides the GPUs\n");
  FakeHip::devices = {kRadeonByHip, kInstinctByHip};
  machine.examine();
  CHECK(machine.advice().empty());
  CHECK(machine.value("gpu 0000:03:00.0", "devices") == "vulkan0, hip0");
  CHECK(machine.value("gpu 0000:c1:00.0", "devices") == "hip1");
}

TEST_CASE("machine: a target that no code object fits", "[api]") {
  Machine machine;
  machine.targets = {"gfx942"};
  machine.tree.add_kfd();
  machine.tree.add(kRadeon);
  FakeHip::devices = {{"Radeon", "gfx1100", false, false, "no code object fits", "0000:03:00.0"}};
  machine.examine();
  CHECK(machine.value("gpu 0000:03:00.0", "code object") == "none fits");
  CHECK(machine.value("build", "code objects") == "gfx942");
  CHECK_THAT(machine.advice(),
             ContainsSubstring("gpu 0000:03:00.0: build with -DGRETA_HIP_TARGETS=gfx1100\n") &&
                 ContainsSubstring("hip0: no code object fits\n"));
}

TEST_CASE("machine: code for a target and for its family", "[api]") {
  Machine machine;
  machine.targets = {"gfx11-generic", "gfx9-4-generic", "gfx950"};
  machine.tree.add_kfd();
  machine.tree.add(kInstinct);
  FakeHip::devices = {kInstinctByHip};
  machine.examine();
  CHECK(machine.value("gpu 0000:c1:00.0", "code object") == "gfx9-4-generic");
  FakeHip::devices = {{"Instinct", "gfx950", false, false, "", "0000:f1:00.0"}};
  machine.examine();
  CHECK(machine.value("hip0", "code object") == "gfx9-4-generic, gfx950");
}

TEST_CASE("machine: an APU has little memory of its own", "[api]") {
  Machine machine;
  machine.tree.add_kfd();
  machine.tree.add(kRadeon);
  machine.tree.add_memory(kRadeon, 512 << 20, 1 << 20, uint64_t(15) << 30, 3 << 20);
  machine.examine();
  CHECK(machine.value("gpu 0000:03:00.0", "memory") == "512.00 MiB, 1.00 MiB in use");
  CHECK(machine.value("gpu 0000:03:00.0", "host memory") == "15.00 GiB, 3.00 MiB in use");
}

TEST_CASE("machine: a driver that is left out is not asked", "[api]") {
  Machine machine;
  machine.tree.add_kfd();
  FakeHip::asked = FakeVulkan::asked = 0;
  machine.without = "hip,other";
  machine.examine();
  CHECK(FakeHip::asked == 0);
  CHECK(FakeVulkan::asked > 0);
  CHECK(machine.value("hip", "usable") == "not found");
  CHECK(machine.value("build", "backends") == "vulkan, hip, cpu");
}

TEST_CASE("machine: a GPU of another vendor without a driver", "[api]") {
  Machine machine;
  machine.tree.add({"0000:00:02.0", 128, 0, "i915"});
  machine.examine();
  CHECK_THAT(machine.advice(), ContainsSubstring("vulkan: no Vulkan loader: install it\n") &&
                                   !ContainsSubstring("hip") && !ContainsSubstring("kfd"));
}

TEST_CASE("machine: this one is examined through the interface", "[api]") {
  std::string subjects;
  const auto note = [](void* to, const greta_finding* finding) {
    CHECK(finding->struct_size == sizeof *finding);
    CHECK(*finding->key);
    CHECK(*finding->value);
    *static_cast<std::string*>(to) += finding->subject + std::string(" ");
    return 0;
  };
  REQUIRE(greta_machine_examine(note, &subjects) == GRETA_OK);
  CHECK_THAT(subjects, ContainsSubstring("system ") && ContainsSubstring("cpu "));
  CHECK(greta_machine_examine([](void*, const greta_finding*) { return 1; }, nullptr) ==
        GRETA_ERROR_CANCELLED);
  CHECK(greta_machine_examine([](void*, const greta_finding*) -> int { throw std::runtime_error("odd"); },
                              nullptr) == GRETA_ERROR_ARGUMENT);
  CHECK_THAT(greta_error_text(), ContainsSubstring("on_finding") && ContainsSubstring("odd"));
}
