// A server whose device is the processor, which is lost when SIGUSR1 comes: nothing is submitted to it any
// more. SIGUSR2: devices that are opened from then on are lost, too.
//
// lost_device MODEL PATH.sock
#include <csignal>
#include <cstdio>
#include <deque>
#include <memory>

#include "api/handles.h"
#include "serve.h"
#include "support/faulty_device.h"

using namespace greta;

namespace {

// The submissions to each device that was opened, and to the last one. A signal may come at any time.
std::deque<test::Submissions> all_submissions;
std::atomic<test::Submissions*> submissions{nullptr};
std::atomic<bool> broken{false};

void lose(int) { submissions.load()->fail_after = 0; }
void break_all(int) { broken = true; }

// A runtime of the processor behind a device that can be lost.
struct Opened {
  greta_runtime* inner = nullptr;
  std::unique_ptr<greta_runtime> runtime;
  ~Opened() {
    runtime.reset();
    greta_runtime_close(inner);
  }
};

std::unique_ptr<Opened> open_one() {
  auto opened = std::make_unique<Opened>();
  greta_runtime_options options = {};
  options.struct_size = sizeof options;
  options.device = "cpu";
  options.threads = 2;
  options.exact = 1;
  if (greta_runtime_open(&options, &opened->inner) != GRETA_OK) throw std::runtime_error(greta_error_text());
  auto* counts = &all_submissions.emplace_back();
  counts->code = Code::Device;
  if (broken) counts->fail_after = 0;
  submissions = counts;
  opened->runtime = std::make_unique<greta_runtime>();
  opened->runtime->exact = true;
  RuntimeDevice& device = opened->runtime->devices.emplace_back();
  device.device = std::make_unique<test::FaultyDevice>(*opened->inner->first().device, false, *counts);
  device.kernels = std::make_unique<DeviceKernels>(*device.device);
  return opened;
}

}  // namespace

int main(int, char** words) {
  serve::Options options;
  options.host = words[2];
  options.say = [](const std::string& line) { std::fprintf(stderr, "%s\n", line.c_str()); };
  std::signal(SIGUSR1, lose);
  std::signal(SIGUSR2, break_all);
  std::unique_ptr<Opened> opened;
  try {
    return serve::serve(options, [&] {
      opened.reset();
      opened = open_one();
      serve::Loaded loaded;
      loaded.runtime = opened->runtime.get();
      loaded.path = words[1];
      loaded.engine.executor.struct_size = sizeof loaded.engine.executor;
      return loaded;
    });
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
}
