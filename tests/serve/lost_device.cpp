// A server whose device is the processor, which is lost when SIGUSR1 comes: nothing is submitted to it any
// more. SIGUSR2: devices that are opened from then on are lost, too. A line tells when a signal counts.
//
// lost_device MODEL PATH.sock
#include <csignal>
#include <cstdio>
#include <deque>
#include <memory>
#include <thread>

#include "api/handles.h"
#include "serve.h"
#include "support/faulty_device.h"

using namespace greta;

namespace {

std::deque<test::Submissions> all_submissions;  // to each device that was opened
// How many were opened, and how many of these are lost; those that are opened later may be, too.
std::atomic<size_t> opened_devices{0}, lost_devices{0};
std::atomic<bool> broken{false};

// No other thread takes these signals.
sigset_t block_signals() {
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGUSR1);
  sigaddset(&signals, SIGUSR2);
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  return signals;
}

void take_signals(sigset_t signals) {
  for (int number = 0; sigwait(&signals, &number) == 0;) {
    if (number == SIGUSR1) {
      lost_devices = opened_devices.load();
      std::fprintf(stderr, "devices lost: %zu\n", lost_devices.load());
    } else {
      broken = true;
      std::fprintf(stderr, "later devices lost\n");
    }
  }
}

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
  counts->on_submit = [counts, number = ++opened_devices, lost = broken.load()] {
    if (lost || number <= lost_devices) counts->fail_after = 0;
  };
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
  std::thread(take_signals, block_signals()).detach();
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
