// A template shows how calls are written when it writes one.
#include "text/chat/calls.h"
#include "text/chat/text.h"

namespace greta {

using jinja::Value;

CallStyle find_call_style(const RenderConversation& render) {
  constexpr std::string_view kText = "how values are written";
  const auto json = [](const char* text) {
    Value value;
    (void)parse_json(text, &value);
    return value;
  };
  const Value tools =
      json(R"([{"type": "function", "function": {"name": "f", "description": "d", "parameters":
      {"type": "object", "properties": {"key": {"type": "string", "description": "d"}}}}}])");
  // Some templates write calls only beside a content that is null.
  for (const char* content : {R"("")", "null"}) {
    const Value messages = json((R"([{"role": "user", "content": "d"}, {"role": "assistant", "content": )" +
                                 std::string(content) + R"(, "tool_calls": [{"id": "abcdefghi",
        "type": "function", "function": {"name": "f", "arguments": {"key": ")" +
                                 std::string(kText) + R"("}}}]}])")
                                    .c_str());
    std::string written;
    if (!render(messages, tools, &written)) continue;
    const size_t at = written.find(kText);
    if (at == written.npos || at == 0) continue;
    const std::string_view after = std::string_view(written).substr(at + kText.size());
    return {.value_lines = written[at - 1] == '\n' && after.starts_with('\n'),
            .id_behind = after.find("abcdefghi") != after.npos};
  }
  return {};
}

}  // namespace greta
