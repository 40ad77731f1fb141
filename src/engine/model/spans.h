// Tells a listener what was done from when to when. Without a listener nothing is measured and no clock is
// read.
#pragma once
#include <cstdint>

namespace greta {

enum class SpanKind : uint32_t {  // greta_span_kind
  Load = 1,
  Plan,
  Compile,
  Record,
  Submit,
  Wait,
  Step,
  Launch,
  Copy,
  Sample,
  Grammar,
  Callback,
  Request
};

constexpr uint32_t kHostSpan = ~0u;

// Times are of now_ns(). Names live as long as the call that hands them out.
struct SpanEvent {
  SpanKind kind = SpanKind::Step;
  const char* name = "";
  const char* stage = "";  // of a launch
  uint64_t begin_ns = 0, end_ns = 0;
  uint64_t number = 0;          // of the step or request
  uint32_t device = kHostSpan;  // of the runtime
  uint32_t tokens = 0;
  uint32_t launches = 0;
  uint64_t bytes = 0, flops = 0;
  uint64_t error_ns = 0;  // how far a device's clock may stand beside the host's
};

struct Spans {
  void (*take)(void* user, const SpanEvent& event) = nullptr;  // from any thread
  void* user = nullptr;
  bool launches = false;  // those of the device are wanted, too
  bool on() const { return take != nullptr; }
  // An exception of the listener is ignored.
  void operator()(const SpanEvent& event) const noexcept;
};

// A span of the host, which lasts as long as this object. Fields of `event` but the times may be set until
// then.
class Span {
 public:
  Span(const Spans& spans, SpanKind kind, const char* name);
  ~Span();
  Span(const Span&) = delete;
  Span& operator=(const Span&) = delete;
  SpanEvent event;

 private:
  const Spans* spans_;  // null: nobody listens
};

}  // namespace greta
