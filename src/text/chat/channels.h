// The headers of messages of gpt-oss and Muse Glimmer:
//   <|start|>ROLE to=RECIPIENT<|channel|>NAME <|constrain|>TYPE<|message|>TEXT<|end|>
//   <|start|>ROLE to=RECIPIENT<|message|>TEXT<|eom|>
// The recipient may stand behind the channel too. An answer begins within the first header.
#pragma once
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace greta {

inline constexpr std::string_view kStart = "<|start|>", kChannel = "<|channel|>", kMessage = "<|message|>",
                                  kConstrain = "<|constrain|>";
// What ends the text of a message; the last two begin the next header.
inline constexpr std::string_view kMessageEnds[] = {"<|end|>", "<|return|>", "<|call|>", "<|eom|>",
                                                    "<|eot|>", kStart,       kChannel};

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

bool is_channel_mark(std::string_view text);  // one of those above

}  // namespace greta
