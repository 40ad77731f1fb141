// The headers of messages of gpt-oss:
//   <|start|>ROLE to=RECIPIENT<|channel|>NAME <|constrain|>TYPE<|message|>TEXT<|end|>
// The recipient may stand behind the channel too. An answer begins within the first header.
#pragma once
#include <string_view>

namespace greta {

inline constexpr std::string_view kStart = "<|start|>", kChannel = "<|channel|>", kMessage = "<|message|>",
                                  kConstrain = "<|constrain|>";

struct ChannelHeader {
  std::string_view recipient;  // without "functions."; "" if there is none
  std::string_view channel;
  size_t bytes = 0;  // with the mark that ends it
};

enum class HeaderRead : uint8_t {
  None,        // it is something else
  Unfinished,  // it may be a header once more has come
  Header,
};

// Reads the header that `text` begins with. Only what a header consists of counts, since marks may be quoted.
HeaderRead read_header(std::string_view text, ChannelHeader* out);

bool is_header_mark(std::string_view text);  // one of those within a header

}  // namespace greta
