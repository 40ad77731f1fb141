// Which device `auto` and `vulkan` take, and what the log says if there is no GPU.
#include <catch2/matchers/catch_matchers_string.hpp>
#include <cstdlib>
#include <cstring>

#include "places.h"
#include "support/vulkan_devices.h"

using namespace greta;
using Catch::Matchers::ContainsSubstring;

namespace {

// The device that was opened, and the lines of the log.
struct Choice {
  Status status;
  std::string id, log;
  std::unique_ptr<Device> device;

  Log to() {
    return {[](void* self, uint32_t level, const char* text) {
              if (level >= uint32_t(LogLevel::Warning))
                static_cast<Choice*>(self)->log += std::string(text) + "\n";
            },
            this};
  }
  void opened(Status with, const NamedDevice& named) {
    status = with;
    id = named.id;
    device.reset(named.device);
  }
};

std::unique_ptr<Choice> choose(MockDevices& mock, const char* name) {
  auto choice = std::make_unique<Choice>();
  NamedDevice named;
  choice->opened(mock.open(name, &named, choice->to()), named);
  return choice;
}

struct Environment {  // sets one variable while it lives
  const char* name;
  std::string before;
  bool was_set;
  Environment(const char* variable, const char* value)
      : name(variable), was_set(std::getenv(variable) != nullptr) {
    if (was_set) before = std::getenv(variable);
    setenv(name, value, 1);
  }
  ~Environment() { was_set ? setenv(name, before.c_str(), 1) : unsetenv(name); }
};

}  // namespace

TEST_CASE("choice: a GPU with memory of its own comes before one that shares the host's",
          "[runtime][vulkan]") {
  MockDevices mock;
  for (const char* name : {"auto", "vulkan"}) {
    CAPTURE(name);
    const std::pair<const char*, const char*> cases[] = {{"discrete integrated", "vulkan0"},
                                                         {"integrated discrete", "vulkan1"},
                                                         {"processor integrated", "vulkan1"}};
    for (const auto& [list, id] : cases) {
      CAPTURE(list);
      mock.list(list);
      const auto choice = choose(mock, name);
      CHECK(choice->status.ok());
      CHECK(choice->id == id);
      CHECK(choice->log.empty());
    }
  }
  mock.list("discrete integrated");
  CHECK(choose(mock, "vulkan1")->id == "vulkan1");  // a number is taken at its word
}

TEST_CASE("choice: a GPU that cannot be used is passed over, by name", "[runtime][vulkan]") {
  MockDevices mock;
  mock.list("discrete-old integrated");
  for (const char* name : {"auto", "vulkan"}) {
    const auto choice = choose(mock, name);
    CHECK(choice->id == "vulkan1");
    CHECK(choice->log ==
          "vulkan0, mock discrete-old 0: its driver has Vulkan 1.2, 1.3 is needed; vulkan1 is taken\n");
  }
  CHECK(choose(mock, "vulkan0")->status.code == Code::Unsupported);

  mock.list("discrete-old processor");
  const auto on_cpu = choose(mock, "auto");
  CHECK(on_cpu->id == "cpu");
  CHECK(on_cpu->log ==
        "no GPU to use, running on the CPU: vulkan0, mock discrete-old 0: its driver has Vulkan 1.2, 1.3 is "
        "needed\n");
  const auto refused = choose(mock, "vulkan");
  CHECK(refused->status.code == Code::Unsupported);
  CHECK_THAT(error_text(),
             ContainsSubstring("device vulkan: vulkan0, mock discrete-old 0: its driver has Vulkan 1.2"));
}

TEST_CASE("choice: a device has the PCI address that its driver tells", "[runtime][vulkan]") {
  MockDevices mock;
  mock.list("discrete integrated");
  CHECK(!strcmp(choose(mock, "vulkan0")->device->info().pci, "0000:c0:03.0"));
  CHECK(!strcmp(choose(mock, "vulkan1")->device->info().pci, "0000:c1:03.0"));
}

TEST_CASE("choice: a driver on the processor is taken by name, or as the only one", "[runtime][vulkan]") {
  MockDevices mock;
  for (const char* list : {"processor", "processor-old", "processor-old processor"}) {
    CAPTURE(list);
    mock.list(list);
    const auto choice = choose(mock, "auto");
    CHECK(choice->id == "cpu");
    CHECK_THAT(choice->log, ContainsSubstring("no GPU to use, running on the CPU: vulkan0, mock processor") &&
                                ContainsSubstring(": it runs on the processor\n") &&
                                !ContainsSubstring("1.2"));
  }
  CHECK(choose(mock, "vulkan")->id == "vulkan1");
  CHECK(choose(mock, "vulkan1")->id == "vulkan1");
}

TEST_CASE("choice: without devices the reason is said", "[runtime][vulkan]") {
  MockDevices mock;
  mock.list("");
  const auto choice = choose(mock, "auto");
  CHECK(choice->id == "cpu");
  CHECK_THAT(choice->log, ContainsSubstring("no GPU to use, running on the CPU: the Vulkan drivers") &&
                              ContainsSubstring("find no device"));
  for (const char* name : {"vulkan", "vulkan0"}) {
    CHECK(choose(mock, name)->status.code == Code::Unsupported);
    CHECK_THAT(error_text(),
               ContainsSubstring(std::string("device ") + name) && ContainsSubstring("find no device"));
  }
}

TEST_CASE("choice: without a driver or a loader it is said what to install", "[runtime][vulkan]") {
  if (!*MOCK_VULKAN_LIBRARY) SKIP("this build has no Vulkan backend");
  const Environment drivers("VK_DRIVER_FILES", "/nonexistent");
  DeviceOptions options = with_threads(1);
  Choice choice;
  options.log = choice.to();
  NamedDevice named;
  choice.opened(open_device("auto", options, &named), named);
  CHECK(choice.id == "cpu");
  CHECK_THAT(choice.log, ContainsSubstring("no GPU to use, running on the CPU: no Vulkan"));
  for (const char* name : {"vulkan", "vulkan0"}) {
    CHECK(open_device(name, options, &named).code == Code::Unsupported);
    CHECK_THAT(error_text(), ContainsSubstring("no Vulkan") && ContainsSubstring("(install "));
  }
  options.driver_library = "/nonexistent/libvulkan.so";
  choice.log.clear();
  choice.opened(open_device("auto", options, &named), named);
  CHECK(choice.id == "cpu");
  CHECK_THAT(choice.log, ContainsSubstring("no GPU to use, running on the CPU: no Vulkan loader (install "));
}
