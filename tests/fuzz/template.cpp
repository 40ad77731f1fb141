// Renders a template with a context, both made of any bytes. It must not crash, limits must hold, and the
// output must be valid UTF-8, the same twice, and untouched after a failure.
//
// Input: the template, a zero byte, the context as JSON (left out or broken: a small one of ours).
#include <cstdlib>

#include "text/jinja/jinja.h"
#include "text/unicode/unicode.h"

using namespace greta;
using namespace greta::jinja;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view input(reinterpret_cast<const char*>(data), size);
  const size_t zero = std::min(input.find('\0'), size);
  Template form;
  if (!form.parse(input.substr(0, zero)).ok()) return 0;
  Value context;
  const bool given = zero < size && parse_json(input.substr(zero + 1), &context).ok() && context.is_dict();
  if (!given && !parse_json(R"({"messages": [{"role": "user", "content": "Hi \u00e9"}, {"role": "assistant",
                               "tool_calls": [{"function": {"name": "f", "arguments": {"a": [1, 2.5,
    null]}}}]}],
                               "x": [3, 1, 2], "s": "text", "d": {"k": "v"}})",
                            &context)
                     .ok())
    __builtin_trap();
  Limits limits;
  limits.steps = 100000;
  limits.output_bytes = 1 << 20;
  limits.memory_bytes = 4 << 20;
  std::string first, second;
  const bool done = form.render(context, 1721952000, limits, &first).ok();
  if (done != form.render(context, 1721952000, limits, &second).ok() || first != second) __builtin_trap();
  if ((!done && !first.empty()) || first.size() > limits.output_bytes || !is_valid_utf8(first))
    __builtin_trap();
  return 0;
}
