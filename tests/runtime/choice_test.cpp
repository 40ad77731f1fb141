// Which device `auto` takes among backends that are made up, and what the log says of the others.
#include <catch2/matchers/catch_matchers_string.hpp>
#include <cstring>

#include "support/devices.h"
#include "support/fake_backends.h"
#include "support/fake_gpus.h"

using namespace greta;
using Catch::Matchers::ContainsSubstring;

namespace {

using Hip = FakeHip;
using Vulkan = FakeVulkan;

struct Choice {
  std::string id, warnings, told;
};

// The fakes are those of a machine with ROCm and a Radeon; tests change them.
struct Machine {
  FakeGpus tree;
  const char* without = nullptr;
  Machine() {
    tree.add_kfd();
    Hip::devices = {{"Radeon", "gfx1100"}};
    Hip::none = {"", "", false, false, "no HIP runtime"};
    Hip::asked = 0;
    Vulkan::devices = {{"Radeon (RADV)", "vulkan:amd"}};
    Vulkan::none = {"", "", false, false, "no Vulkan loader"};
    FakeCpu::devices = {{"CPU", "cpu:avx2", true, true}};
  }
  Choice choose() {
    Choice choice;
    DeviceOptions options;
    options.system = tree.view();
    options.without = without;
    options.log = {[](void* to, uint32_t level, const char* text) {
                     auto& told = *static_cast<Choice*>(to);
                     if (level >= uint32_t(LogLevel::Info))
                       (level >= uint32_t(LogLevel::Warning) ? told.warnings : told.told) += text;
                   },
                   &choice};
    const Backend* const all[] = {&kFakeVulkan, &kFakeHip, &kFakeCpu};
    NamedDevice named;
    CHECK(open_best(all, options, &named).ok());
    choice.id = named.id;
    delete named.device;
    return choice;
  }
};

}  // namespace

TEST_CASE("turns: an Instinct takes HIP, another GPU Vulkan", "[runtime]") {
  Machine machine;
  CHECK(machine.choose().id == "vulkan0");
  for (const char* arch : {"gfx90a", "gfx942", "gfx950"}) {
    Hip::devices = {{"Radeon", "gfx1100"}, {"Instinct", arch}};
    const Choice choice = machine.choose();
    CHECK(choice.id == "hip1");
    CHECK(choice.warnings.empty());
  }
  Hip::devices = {{"Radeon Pro", "gfx906"}};  // GCN without matrix units
  CHECK(machine.choose().id == "vulkan0");
}

TEST_CASE("turns: HIP serves a GPU that Vulkan has no driver for", "[runtime]") {
  Machine machine;
  Vulkan::devices = {};
  CHECK(machine.choose().id == "hip0");
  CHECK(machine.choose().warnings.empty());  // nothing that is there was passed over
  Vulkan::devices = {{"lavapipe", "vulkan:mesa", true, true}};
  CHECK(machine.choose().id == "hip0");
  CHECK(machine.choose().warnings.empty());
  Vulkan::devices = {{"integrated", "vulkan:intel", true}};  // a GPU with memory of its own comes first
  CHECK(machine.choose().id == "hip0");
  Hip::devices = {{"APU", "gfx1151", true}};
  CHECK(machine.choose().id == "vulkan0");
  Vulkan::devices = {{"Radeon (RADV)", "vulkan:amd", false, false, "its driver lacks int8"}};
  const Choice choice = machine.choose();
  CHECK(choice.id == "hip0");
  CHECK(choice.warnings == "vulkan0, Radeon (RADV): its driver lacks int8; hip0 is taken");
}

TEST_CASE("turns: HIP is not asked where there is no /dev/kfd and no /dev/dxg", "[runtime]") {
  Machine machine;
  std::filesystem::remove(machine.tree.path + "/dev/kfd");
  Hip::devices = {{"Instinct", "gfx942"}};
  CHECK(machine.choose().id == "vulkan0");
  CHECK(Hip::asked == 0);
  Vulkan::devices = {};
  CHECK(machine.choose().warnings == "no GPU to use, running on the CPU: no Vulkan loader");
  machine.tree.write("/dev/dxg", "");  // which GPUs of other makers have, too
  CHECK(machine.choose().id == "cpu");
  machine.tree.write("/opt/rocm/lib/librocdxg.so.1", "");
  CHECK(machine.choose().id == "hip0");
}

TEST_CASE("turns: an Instinct that HIP cannot use is passed over aloud", "[runtime]") {
  Machine machine;
  Hip::devices = {{"Instinct", "gfx942", false, false, "HIP 6.2 is older than 6.4"}};
  Choice choice = machine.choose();
  CHECK(choice.id == "vulkan0");
  CHECK(choice.warnings == "hip0, Instinct: HIP 6.2 is older than 6.4; vulkan0 is taken");
  Hip::devices = {};  // no library, but the kernel's driver shows what is there
  Hip::none = {"", "gfx942", false, false, "no HIP runtime"};
  choice = machine.choose();
  CHECK(choice.warnings == "hip0: no HIP runtime; vulkan0 is taken");
  Vulkan::devices = {};
  choice = machine.choose();
  CHECK(choice.id == "cpu");
  CHECK(choice.warnings == "no GPU to use, running on the CPU: hip0: no HIP runtime; no Vulkan loader");
}

TEST_CASE("turns: a Radeon that HIP cannot use is only told of, since Vulkan has its turn before",
          "[runtime]") {
  Machine machine;
  Hip::devices = {{"Radeon", "gfx1013", false, false, "no code object fits gfx1013"}};
  const Choice choice = machine.choose();
  CHECK(choice.id == "vulkan0");
  CHECK(choice.warnings.empty());
  CHECK(choice.told == "hip0, Radeon: no code object fits gfx1013");
}

TEST_CASE("turns: of two drivers for one GPU the vendor's comes behind", "[runtime]") {
  Machine machine;
  const FakeDevice vendor{"Radeon (AMDVLK)", "vulkan:amd", false, false, "", "0000:03:00.0", "", true};
  const FakeDevice radv{"Radeon (RADV)", "vulkan:amd", false, false, "", "0000:03:00.0"};
  const FakeDevice other{"other (RADV)", "vulkan:amd", false, false, "", "0000:04:00.0"};
  Vulkan::devices = {vendor, radv};
  CHECK(machine.choose().id == "vulkan1");
  Vulkan::devices = {radv, vendor};
  CHECK(machine.choose().id == "vulkan0");
  Vulkan::devices = {vendor, other};  // another GPU is no reason
  CHECK(machine.choose().id == "vulkan0");
  Vulkan::devices = {vendor, other, radv};
  CHECK(machine.choose().id == "vulkan2");
}

TEST_CASE("turns: a driver that is left out is not asked", "[runtime]") {
  Machine machine;
  Hip::devices = {{"Instinct", "gfx942"}};
  machine.without = "cuda,hip";
  CHECK(machine.choose().id == "vulkan0");
  CHECK(Hip::asked == 0);
  machine.without = "vulkan";
  CHECK(machine.choose().id == "hip0");
}
