#include "engine/model/spans.h"

#include "platform/platform.h"

namespace greta {

void Spans::operator()(const SpanEvent& event) const noexcept {
  if (!take) return;
  try {
    take(user, event);
  } catch (...) {
  }
}

Span::Span(const Spans& spans, SpanKind kind, const char* name) : spans_(spans.on() ? &spans : nullptr) {
  if (!spans_) return;
  event.kind = kind;
  event.name = name;
  event.begin_ns = now_ns();
}

Span::~Span() {
  if (!spans_) return;
  event.end_ns = now_ns();
  (*spans_)(event);
}

}  // namespace greta
