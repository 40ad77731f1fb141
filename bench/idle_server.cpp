// greta-bench-idle-server: the server over a device that computes nothing. Each of its steps takes the time
// that it is told, beside the host as on a GPU, and draws made-up tokens. So what a step costs the host, HTTP
// included, is measured without a GPU; its driver's share is not there. bench/host_time.py reads it.
//
// greta-bench-idle-server MODEL PATH.sock STEP_US STREAMS
#include <time.h>

#include <cstdio>
#include <cstdlib>
#include <deque>
#include <stdexcept>

#include "api/handles.h"
#include "serve.h"
#include "support/forwarding_device.h"

using namespace greta;

namespace {

constexpr uint32_t kFirstToken = 300, kTokens = 3700;  // of the bundled model, which all have a text

void sleep_until(uint64_t ns) {
  const timespec at = {time_t(ns / 1'000'000'000), long(ns % 1'000'000'000)};
  while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &at, nullptr) != 0) continue;
}

// When the device has done what was submitted, and what its steps draw.
class Steps {
 public:
  explicit Steps(uint64_t step_ns) : step_ns_(step_ns) {}
  void note(const Buffer& buffer) {
    if (buffer.bytes <= 64 << 10) readback_.push_back(buffer);
  }
  void submit() { end_ns_ = std::max(end_ns_, now_ns()) + step_ns_; }
  uint64_t end_ns() const { return end_ns_; }
  // Any of these buffers may be the one from which the host reads tokens.
  void draw() {
    for (const Buffer& buffer : readback_)
      for (uint64_t at = 0; at < buffer.bytes / sizeof(uint32_t); ++at)
        static_cast<uint32_t*>(buffer.mapped)[at] = kFirstToken + (number_ += 7919) % kTokens;
  }

 private:
  const uint64_t step_ns_;
  uint64_t end_ns_ = 0;
  uint32_t number_ = 0;
  std::vector<Buffer> readback_;
};

class IdleStream final : public Stream {
 public:
  IdleStream(std::unique_ptr<Stream> inner, Steps& steps) : inner_(std::move(inner)), steps_(steps) {}
  Status dispatch(const Kernel&, const uint32_t (&)[3], std::span<const uint8_t>,
                  std::span<const Access>) override {
    return {};
  }
  Status copy(const Slice& to, const Slice& from) override { return inner_->copy(to, from); }
  Status fill(const Slice& to, uint32_t word) override { return inner_->fill(to, word); }
  Status barrier() override { return {}; }
  Status signal(Event& event) override {
    signalled_.push_back(event.handle);
    return inner_->signal(event);
  }
  Status wait_for(const Event& event) override { return inner_->wait_for(event); }
  void set_patience(uint64_t ns) override { inner_->set_patience(ns); }
  Status begin_capture() override { return inner_->begin_capture(); }
  Status split() override { return inner_->split(); }
  Status end_capture(Graph* out) override { return inner_->end_capture(out); }
  Status replay(const Graph&) override {
    computes_ = true;
    return {};
  }
  Status submit() override {
    if (computes_) steps_.submit();
    computes_ = false;
    for (void* event : signalled_) ends_.push_back({event, steps_.end_ns()});
    signalled_.clear();
    return inner_->submit();
  }
  Status wait() override { return inner_->wait(); }
  Status wait(const Event& event) override {
    while (!ends_.empty()) {
      const End end = ends_.front();
      ends_.pop_front();
      sleep_until(end.ns);
      if (end.event == event.handle) break;
    }
    steps_.draw();
    return inner_->wait(event);
  }
  void abandon() noexcept override { inner_->abandon(); }

 private:
  struct End {
    void* event;
    uint64_t ns;
  };
  std::unique_ptr<Stream> inner_;
  Steps& steps_;
  std::vector<void*> signalled_;
  std::deque<End> ends_;
  bool computes_ = false;
};

class IdleDevice final : public test::ForwardingDevice {
 public:
  IdleDevice(Device& inner, uint64_t step_ns) : ForwardingDevice(inner), steps_(step_ns) {
    info_.runs_ahead = true;
  }
  Status allocate(uint64_t bytes, Memory memory, Buffer* out) override {
    GRETA_TRY(inner_.allocate(bytes, memory, out));
    if (memory == Memory::Readback) steps_.note(*out);
    return {};
  }
  Status create_stream(Stream** out) override {
    Stream* inner = nullptr;
    GRETA_TRY(inner_.create_stream(&inner));
    *out = new IdleStream(std::unique_ptr<Stream>(inner), steps_);
    return {};
  }

 private:
  Steps steps_;
};

// A runtime of the processor behind a device that is idle.
struct Opened {
  greta_runtime* inner = nullptr;
  std::unique_ptr<greta_runtime> runtime;
  ~Opened() {
    runtime.reset();
    greta_runtime_close(inner);
  }
};

void open(uint64_t step_ns, Opened* out) {
  greta_runtime_options options = {};
  options.struct_size = sizeof options;
  options.device = "cpu";
  options.threads = 1;
  if (greta_runtime_open(&options, &out->inner) != GRETA_OK) throw std::runtime_error(greta_error_text());
  out->runtime = std::make_unique<greta_runtime>();
  RuntimeDevice& device = out->runtime->devices.emplace_back();
  device.device = std::make_unique<IdleDevice>(*out->inner->first().device, step_ns);
  device.kernels = std::make_unique<DeviceKernels>(*device.device);
}

}  // namespace

int main(int count, char** words) {
  if (count != 5) return std::fprintf(stderr, "usage: %s MODEL PATH.sock STEP_US STREAMS\n", words[0]), 2;
  const auto streams = uint32_t(std::atoi(words[4]));
  serve::Options options;
  options.host = words[2];
  options.parallel = streams;
  options.metrics = true;
  options.say = [](const std::string& line) { std::fprintf(stderr, "%s\n", line.c_str()); };
  Opened opened;
  try {
    return serve::serve(options, [&] {
      open(uint64_t(std::atoi(words[3])) * 1000, &opened);
      serve::Loaded loaded;
      loaded.runtime = opened.runtime.get();
      loaded.path = words[1];
      loaded.engine.executor.struct_size = sizeof loaded.engine.executor;
      loaded.engine.executor.context = 512;
      return loaded;
    });
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
}
