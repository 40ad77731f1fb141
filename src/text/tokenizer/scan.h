// A place in a text and the character there. The scanners of the pre-tokenizers are made of these.
#pragma once
#include <cstdint>
#include <string_view>
#include <vector>

#include "text/unicode/unicode.h"

namespace greta {

// The text is valid UTF-8. Nothing matches beyond its end.
struct Scan {
  std::string_view text;
  size_t at = 0;
  uint32_t code = 0, bytes = 0;
  CharClass kind = CharClass::Unassigned;

  Scan(std::string_view all, size_t from) : text(all) { go(from); }
  void go(size_t to) {
    at = to;
    if (at >= text.size()) {
      code = bytes = 0;
      kind = CharClass::Unassigned;
      return;
    }
    const CodePoint point = decode_utf8(text, at);
    code = point.code;
    bytes = point.bytes;
    kind = char_class(code);
  }
  void next() { go(at + bytes); }
  bool end() const { return bytes == 0; }
  bool letter() const { return is_letter(kind); }
  bool mark() const { return is_mark(kind); }
  bool number() const { return is_number(kind); }
  bool space() const { return kind == CharClass::Space; }
  bool newline() const { return bytes && (code == '\r' || code == '\n'); }
  bool other() const { return bytes && !letter() && !number() && !space(); }  // [^\s\p{L}\p{N}]
};

// The ends of the pieces that a text falls into, in order; the last is the text's end.
struct Pieces {
  std::vector<uint32_t>* ends;
  uint32_t base;  // where the text begins in the whole that is cut
  void end(size_t at) { ends->push_back(base + uint32_t(at)); }
};

// Cuts out each match of kMatch, from left to right. The text between two matches is a piece, too. kMatch
// returns the end of the match that begins at `from`, or `from` if there is none. To keep the time linear, it
// must look at most a constant distance beyond its match, except along a run that it matches next.
template <size_t (*kMatch)(std::string_view, size_t)>
void cut_matches(std::string_view text, Pieces out) {
  size_t done = 0;
  for (size_t at = 0; at < text.size();) {
    const size_t end = kMatch(text, at);
    if (end == at) {
      at += decode_utf8(text, at).bytes;
      continue;
    }
    if (at > done) out.end(at);
    out.end(end);
    done = at = end;
  }
  if (text.size() > done) out.end(text.size());
}

// [...]+ of the characters that kIn accepts.
template <bool (*kIn)(const Scan&)>
size_t run_of(std::string_view text, size_t from) {
  Scan scan(text, from);
  while (!scan.end() && kIn(scan)) scan.next();
  return scan.at;
}

// \s?[...]+
template <bool (*kIn)(const Scan&)>
size_t spaced_run_of(std::string_view text, size_t from) {
  Scan scan(text, from);
  if (scan.space()) {
    const size_t end = run_of<kIn>(text, from + scan.bytes);
    if (end > from + scan.bytes) return end;
  }
  return run_of<kIn>(text, from);
}

}  // namespace greta
