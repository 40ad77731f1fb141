// A stream whose work waits for the host, on a device that cannot do that itself: what comes behind a closed
// gate is kept, and given to the device when the gate is opened.
#pragma once
#include <functional>
#include <memory>
#include <vector>

#include "runtime/runtime.h"

namespace greta::test {

class GatedStream final : public Stream {
 public:
  explicit GatedStream(std::unique_ptr<Stream> inner) : inner_(std::move(inner)) {}
  Status dispatch(const Kernel& kernel, const uint32_t (&groups)[3], std::span<const uint8_t> block,
                  std::span<const Access> accesses) override {
    if (!closed()) return inner_->dispatch(kernel, groups, block, accesses);
    return fail(Code::Unsupported, "the test's stream keeps plans, and no launches");
  }
  Status copy(const Slice& to, const Slice& from) override {
    return act([this, to, from] { return inner_->copy(to, from); });
  }
  Status fill(const Slice& to, uint32_t word) override {
    return act([this, to, word] { return inner_->fill(to, word); });
  }
  Status barrier() override {
    return act([this] { return inner_->barrier(); });
  }
  Status signal(Event& event) override {
    return act([this, &event] { return inner_->signal(event); });
  }
  Status wait_for(const Event& event) override {
    return act([this, &event] { return inner_->wait_for(event); });
  }
  Status wait_for_host(uint64_t number) override {
    if (number <= gate_) return fail(Code::Argument, "gate %llu again", (unsigned long long)number);
    kept_.push_back({number, {}});
    return gate_ = number, Status{};
  }
  Status let_go(uint64_t number) override {
    if (number <= open_) return {};
    open_ = number;
    size_t run = 0;
    for (; run < submitted_ && kept_[run].gate <= open_; ++run) {
      for (const auto& act : kept_[run].acts) GRETA_TRY(act());
      GRETA_TRY(inner_->submit());
    }
    kept_.erase(kept_.begin(), kept_.begin() + ptrdiff_t(run));
    submitted_ -= run;
    return {};
  }
  Status begin_capture() override { return inner_->begin_capture(); }
  Status split() override { return inner_->split(); }
  Status end_capture(Graph* out) override { return inner_->end_capture(out); }
  Status replay(const Graph& graph) override {
    return act([this, graph] { return inner_->replay(graph); });
  }
  Status submit() override {
    submitted_ = kept_.size();
    return closed() ? Status{} : inner_->submit();
  }
  // A real device would wait for ever.
  Status wait() override {
    return closed() ? fail(Code::Argument, "a wait behind a closed gate") : inner_->wait();
  }
  Status wait(const Event& event) override { return inner_->wait(event); }
  void abandon() noexcept override {
    kept_.resize(submitted_);
    inner_->abandon();
  }

 private:
  struct Kept {
    uint64_t gate;
    std::vector<std::function<Status()>> acts;
  };
  bool closed() const { return !kept_.empty(); }
  template <class Act>
  Status act(Act&& act) {
    if (!closed()) return act();
    kept_.back().acts.push_back(std::forward<Act>(act));
    return {};
  }

  std::unique_ptr<Stream> inner_;
  std::vector<Kept> kept_;
  size_t submitted_ = 0;  // of what is kept
  uint64_t gate_ = 0, open_ = 0;
};

}  // namespace greta::test
