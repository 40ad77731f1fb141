// Wraps a device whose submissions fail on demand, and which may claim that it computes beside the host.
#pragma once
#include <functional>

#include "support/forwarding_device.h"
#include "support/gated_stream.h"

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
  bool of_gpu = false;  // its kernels are not functions of this process, it says, and it waits for the host
  uint64_t gates = 0, opened = 0, fail_open_at = 0;  // this opening of a gate fails, counted from 1
  bool shares = true;   // memory with the host, if the device can
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
  Status wait_for_host(uint64_t number) override {
    ++submissions_.gates;
    return inner_->wait_for_host(number);
  }
  Status let_go(uint64_t number) override {
    const bool fails = ++submissions_.opened == submissions_.fail_open_at;
    return fails ? fail(submissions_.code, "an opening fails") : inner_->let_go(number);
  }
  void set_patience(uint64_t ns) override { inner_->set_patience(ns); }
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
    info_.shares_host &= submissions.shares;
    if (submissions.of_gpu) info_.host_functions = false;
    info_.waits_for_host = submissions.of_gpu || inner.info().waits_for_host;
  }
  Status create_stream(Stream** out) override {
    Stream* inner = nullptr;
    GRETA_TRY(inner_.create_stream(&inner));
    std::unique_ptr<Stream> own(inner);
    if (submissions_.of_gpu && !inner_.info().waits_for_host)
      own = std::make_unique<GatedStream>(std::move(own));
    *out = new FaultyStream(std::move(own), submissions_);
    return {};
  }

 private:
  Submissions& submissions_;
};

}  // namespace greta::test
