#include "text/chat/channels.h"

#include "text/chat/text.h"

namespace greta {
namespace {

constexpr size_t kLongestHeader = 512;  // in bytes, with the mark that ends it

// Takes a word off the front: a role, a recipient, a channel or a type.
std::string_view take_word(std::string_view* text) {
  const auto is_part = [](char c) {
    return uint8_t(c) >= 0x80 || is_ascii_alnum(c) || std::string_view("_-.:/").find(c) != kBlanks.npos;
  };
  size_t end = 0;
  while (end < text->size() && is_part((*text)[end])) ++end;
  const std::string_view word = text->substr(0, end);
  text->remove_prefix(end);
  return word;
}

}  // namespace

bool is_channel_mark(std::string_view text) {
  return text == kMessage || text == kConstrain ||
         std::find(std::begin(kMessageEnds), std::end(kMessageEnds), text) != std::end(kMessageEnds);
}

HeaderRead read_header(std::string_view text, ChannelHeader* out) {
  *out = {};
  std::string_view rest = text.substr(0, kLongestHeader);
  const HeaderRead ended = text.size() < kLongestHeader ? HeaderRead::Unfinished : HeaderRead::None;
  bool first = true, to = false, type = false;
  for (;; first = false) {
    skip_blanks(&rest);
    const std::string_view begin = rest;
    std::string_view* word = nullptr;
    std::string_view role, kind;
    if (take(&rest, kMessage)) {
      out->bytes = size_t(rest.data() - text.data());
      return HeaderRead::Header;
    }
    if (first && take(&rest, kStart)) {
      word = &role;
    } else if (out->channel.empty() && take(&rest, kChannel)) {
      word = &out->channel;
    } else if (!to && take(&rest, "to=")) {
      to = true;
      word = &out->recipient;
    } else if (!type && take(&rest, kConstrain)) {
      type = true;
      word = &kind;
    }
    if (!word) {
      for (const std::string_view mark : {kStart, kChannel, kMessage, kConstrain, std::string_view("to=")})
        if (mark.starts_with(begin) && begin.size() < mark.size() && (mark != kStart || first)) return ended;
      if (type || out->channel.empty()) return HeaderRead::None;
      type = true;  // a type without its mark
      word = &kind;
    }
    *word = take_word(&rest);
    if (rest.empty()) return ended;
    if (word->empty()) return HeaderRead::None;
    if (word == &out->recipient) take(&out->recipient, "functions.");
  }
}

}  // namespace greta
