// Spans of what an executor does: the device gets the same commands whether anyone listens or not, and
// launches that are listened to are those of the captured plan.
#include <algorithm>
#include <catch2/catch_test_macros.hpp>

#include "support/forwarding_device.h"
#include "support/tiny_model.h"

using namespace greta;
using namespace greta::test;

namespace {

using Commands = std::vector<std::string>;

std::string text_of(const Slice& slice) {
  return std::to_string(slice.address()) + "+" + std::to_string(slice.bytes) + " ";
}

// Writes down, byte for byte, what a stream is given. What is captured stands in a list of its own.
class WritingStream final : public Stream {
 public:
  WritingStream(std::unique_ptr<Stream> inner, Commands& given, Commands& captured)
      : inner_(std::move(inner)), given_(given), captured_(captured) {}
  Status dispatch(const Kernel& kernel, const uint32_t (&groups)[3], std::span<const uint8_t> block,
                  std::span<const Access> accesses) override {
    std::string text = std::string(kernel.name) + " ";
    for (const uint32_t count : groups) text += std::to_string(count) + " ";
    text.append(reinterpret_cast<const char*>(block.data()), block.size());
    for (const Access& access : accesses) text += text_of(access.slice) + std::to_string(access.mode);
    note(text);
    return inner_->dispatch(kernel, groups, block, accesses);
  }
  Status copy(const Slice& to, const Slice& from) override {
    return note("copy " + text_of(to) + text_of(from)), inner_->copy(to, from);
  }
  Status fill(const Slice& to, uint32_t word) override {
    return note("fill " + text_of(to)), inner_->fill(to, word);
  }
  Status barrier() override { return note("barrier"), inner_->barrier(); }
  Status signal(Event& event) override { return note("signal"), inner_->signal(event); }
  Status wait_for(const Event& event) override { return note("wait for"), inner_->wait_for(event); }
  Status begin_capture() override { return capturing_ = true, inner_->begin_capture(); }
  Status split() override { return note("split"), inner_->split(); }
  Status end_capture(Graph* out) override { return capturing_ = false, inner_->end_capture(out); }
  Status replay(const Graph& graph) override { return note("replay"), inner_->replay(graph); }
  Status submit() override { return note("submit"), inner_->submit(); }
  Status wait() override { return note("wait"), inner_->wait(); }
  Status wait(const Event& event) override { return note("wait for an event"), inner_->wait(event); }
  void abandon() noexcept override { inner_->abandon(); }

 private:
  void note(const std::string& text) { (capturing_ ? captured_ : given_).push_back(text); }
  std::unique_ptr<Stream> inner_;
  Commands &given_, &captured_;
  bool capturing_ = false;
};

class WritingDevice final : public ForwardingDevice {
 public:
  WritingDevice(Device& inner, Commands& given, Commands& captured)
      : ForwardingDevice(inner), given_(given), captured_(captured) {}
  Status create_stream(Stream** out) override {
    Stream* inner = nullptr;
    GRETA_TRY(inner_.create_stream(&inner));
    *out = new WritingStream(std::unique_ptr<Stream>(inner), given_, captured_);
    return {};
  }

 private:
  Commands &given_, &captured_;
};

void require(Status status) {
  INFO(error_text());
  REQUIRE(status.ok());
}

struct Rig {
  Commands given, captured;
  std::vector<SpanEvent> heard;
  TinyModel tiny = make_tiny({});
  Engine engine;
  uint32_t sequence = 0;

  Rig() {
    EngineOptions options;
    options.split = "";
    options.wrap = [this](Device& inner) { return std::make_unique<WritingDevice>(inner, given, captured); };
    open_engine(tiny.file, options, &engine);
    require(engine.executor->acquire_sequence(&sequence));
    engine.executor->set_sampling(sequence, {});
    write();
  }
  // Two tokens of the sequence, which is then as it was. Gives what the device was told, and the tokens.
  Commands write(std::vector<uint32_t>* tokens = nullptr) {
    given.clear();
    for (uint32_t position = 0; position < 2; ++position) {
      const Executor::Row row{5 + position, position, sequence, Executor::Output::Draw};
      require(engine.executor->step({&row, 1}));
      if (tokens) tokens->push_back(engine.executor->drawn(sequence, position));
    }
    engine.executor->truncate(sequence, 0);
    return given;
  }
  void listen(bool launches) {
    const auto take = [](void* self, const SpanEvent& event) {
      static_cast<Rig*>(self)->heard.push_back(event);
    };
    engine.model->spans = {take, this, launches};
  }
  size_t heard_of(SpanKind kind) const { return size_t(std::ranges::count(heard, kind, &SpanEvent::kind)); }
};

Commands without(Commands commands, const std::string& left_out) {
  std::erase(commands, left_out);
  return commands;
}

}  // namespace

TEST_CASE("spans: a device gets the same commands, byte for byte, with a listener and without",
          "[spans][one-device]") {
  Rig rig;
  std::vector<uint32_t> silent, told;
  const Commands before = rig.write(&silent);
  rig.listen(false);
  const Commands listened = rig.write(&told);
  CHECK(listened == before);
  CHECK(told == silent);
  CHECK(rig.heard_of(SpanKind::Step) == 2);
  CHECK(rig.heard_of(SpanKind::Record) == 2);
  CHECK(rig.heard_of(SpanKind::Launch) == 0);
  rig.engine.model->spans = {};
  CHECK(rig.write() == before);
  CHECK(rig.heard_of(SpanKind::Step) == 2);
}

TEST_CASE("spans: launches that are listened to are those of the captured plan, and no barrier is added",
          "[spans][one-device]") {
  Rig rig;
  std::vector<uint32_t> silent, told;
  const Commands before = rig.write(&silent);
  rig.listen(true);
  const Commands listened = rig.write(&told);
  CHECK(told == silent);
  Commands expected;
  for (const std::string& command : before) {
    if (command != "replay")
      expected.push_back(command);
    else
      expected.insert(expected.end(), rig.captured.begin(), rig.captured.end());
  }
  CHECK(listened != before);
  CHECK(without(listened, "signal") == without(expected, "signal"));
  const auto stages = size_t(std::ranges::count(rig.captured, "barrier"));
  CHECK(rig.heard_of(SpanKind::Launch) == 2 * stages);
  uint64_t end = 0;
  for (const SpanEvent& event : rig.heard) {
    if (event.kind != SpanKind::Launch) continue;
    CHECK(event.begin_ns >= end);
    end = event.end_ns;
  }
}
