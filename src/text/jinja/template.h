// A Jinja template. It is parsed once, and rendered as Python's jinja2 does in the sandbox that transformers
// sets up for chat templates. docs/chat-templates.md lists what is supported.
//
// Templates come from model files and may be hostile. Their work ends at a limit, with a status. They see
// only their context: no file, clock, environment or other memory.
#pragma once
#include <memory>
#include <string>
#include <string_view>

#include "text/jinja/value.h"

namespace greta::jinja {

constexpr uint64_t kMaxTemplateBytes = 4u << 20;

// Real templates over long conversations stay far below these.
struct Limits {
  uint64_t steps = 50'000'000;  // one for each node; work on texts and lists counts by its size
  uint64_t output_bytes = 64u << 20;
  uint64_t memory_bytes = 256u << 20;  // the most that all living values may take together
  uint32_t depth = 400;                // expressions, statements and calls within each other
};

struct Program;  // the parsed form

class Template {
 public:
  Template();
  ~Template();
  Template(Template&&) noexcept;
  Template& operator=(Template&&) noexcept;

  // Errors name the line. Missing parts of Jinja are Code::Unsupported, others Code::Argument.
  Status parse(std::string_view text);

  // Appends to `*out`. `context` is a dict of the variables. now_s: seconds since 1970 in local time, for
  // strftime_now. Errors name the line and leave `*out` unchanged. They are Code::Full at a limit, and
  // Code::Argument for all that goes wrong in the template, raise_exception included. Once parsed, a Template
  // does not change, so render may run on several threads.
  Status render(const Value& context, int64_t now_s, const Limits& limits, std::string* out) const;

 private:
  std::unique_ptr<Program> program_;
};

}  // namespace greta::jinja
