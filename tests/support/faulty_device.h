// Wraps a device whose submissions fail on demand, and which may claim that it computes beside the host.
#pragma once
#include <functional>

#include "support/forwarding_device.h"

namespace greta::test {

struct Submissions {
  uint64_t count = 0;
  uint64_t fail_at = 0;         // this one fails, counted from 1; 0: none does
  uint64_t fail_after = ~0ull;  // and all after this many
  Code code = Code::Memory;
  std::function<void()> on_submit = {}, on_wait = {};
  uint64_t waits = 0;                                // for everything, as copies of a sequence's cache do
  uint64_t fail_wait_at = 0;                         // this one fails, counted from 1; 0: none does
  uint64_t event_waits = 0, fail_event_wait_at = 0;  // likewise for an event
  std::function<void()> on_event_wait = {};
  bool of_gpu = false;  // the device says that its kernels are not functions of this process
  bool idle = false;    // launches outside of plans take no time, since nothing is launched
  Status next() {
    ++count;
    if (on_submit) on_submit();
    return count == fail_at || count > fail_after
               ? fail(code, "submission %llu fails", (unsigned long long)count)
               : Status{};
  }
};

class FaultyStream final : public Stream {
 public:
  FaultyStream(std::unique_ptr<Stream> inner, Submissions& submissions)
      : inner_(std::move(inner)), submissions_(submissions) {}
  Status dispatch(const Kernel& kernel, const uint32_t (&groups)[3], std::span<const uint8_t> block,
                  std::span<const Access> accesses) override {
    return submissions_.idle ? Status{} : inner_->dispatch(kernel, groups, block, accesses);
  }
  Status copy(const Slice& to, const Slice& from) override { return inner_->copy(to, from); }
  Status fill(const Slice& to, uint32_t word) override { return inner_->fill(to, word); }
  Status barrier() override { return inner_->barrier(); }
  Status signal(Event& event) override { return inner_->signal(event); }
  Status wait_for(const Event& event) override { return inner_->wait_for(event); }
  Status begin_capture() override { return inner_->begin_capture(); }
  Status split() override { return inner_->split(); }
  Status end_capture(Graph* out) override { return inner_->end_capture(out); }
  Status replay(const Graph& graph) override { return inner_->replay(graph); }
  Status submit() override {
    GRETA_TRY(submissions_.next());
    return inner_->submit();
  }
  Status wait() override {
    if (submissions_.on_wait) submissions_.on_wait();
    if (++submissions_.waits == submissions_.fail_wait_at) return fail(submissions_.code, "a wait fails");
    return inner_->wait();
  }
  Status wait(const Event& event) override {
    if (submissions_.on_event_wait) submissions_.on_event_wait();
    if (++submissions_.event_waits == submissions_.fail_event_wait_at)
      return fail(submissions_.code, "a wait for an event fails");
    return inner_->wait(event);
  }
  void abandon() noexcept override { inner_->abandon(); }

 private:
  std::unique_ptr<Stream> inner_;
  Submissions& submissions_;
};

class FaultyDevice final : public ForwardingDevice {
 public:
  FaultyDevice(Device& inner, bool runs_ahead, Submissions& submissions)
      : ForwardingDevice(inner), submissions_(submissions) {
    info_.runs_ahead = runs_ahead;
    if (submissions.of_gpu) info_.host_functions = false;
  }
  Status create_stream(Stream** out) override {
    Stream* inner = nullptr;
    GRETA_TRY(inner_.create_stream(&inner));
    *out = new FaultyStream(std::unique_ptr<Stream>(inner), submissions_);
    return {};
  }

 private:
  Submissions& submissions_;
};

}  // namespace greta::test
