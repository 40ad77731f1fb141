// Looks up code points in the tables of Unicode: sorted lists of boundaries or codes, 45 kB in all.
#include "text/unicode/unicode.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <iterator>

#include "platform/platform.h"

namespace greta {
namespace {

#include "text/unicode/unicode_tables.inc"

// First code << 4 | class, ascending.
constexpr auto kClassStarts = [] {
  std::array<uint32_t, std::size(kClassSteps)> starts{};
  uint32_t code = 0;
  for (size_t i = 0; i < starts.size(); ++i)
    starts[i] = (code += kClassSteps[i] >> 4) << 4 | (kClassSteps[i] & 15);
  return starts;
}();

constexpr auto kDecomposedCodes = [] {
  std::array<uint32_t, std::size(kDecomposedForms)> codes{};
  size_t place = 0;
  for (const uint32_t run : kDecomposedRuns)
    for (uint32_t i = 0; i < (run & 0xFFF); ++i) codes[place++] = (run >> 12) + i;
  return codes;
}();

// For each 256 code points, the place in kClassStarts of the entry that their first one lies in.
constexpr uint32_t kPages = 0x110000 >> 8;
constexpr auto kClassPages = [] {
  std::array<uint16_t, kPages + 1> pages{};
  uint32_t entry = 0;
  for (uint32_t page = 0; page < kPages; ++page) {
    while (entry + 1 < std::size(kClassStarts) && kClassStarts[entry + 1] >> 4 <= page << 8) ++entry;
    pages[page] = uint16_t(entry);
  }
  pages[kPages] = uint16_t(std::size(kClassStarts) - 1);
  return pages;
}();

constexpr CharClass look_up(uint32_t code) {
  // The last entry at or below the code; entries of lower codes compare below (code + 1) << 4.
  const uint32_t* first = kClassStarts.data() + kClassPages[code >> 8];
  const uint32_t* last = kClassStarts.data() + kClassPages[(code >> 8) + 1] + 1;
  return CharClass(std::lower_bound(first, last, (code + 1) << 4)[-1] & 15);
}

}  // namespace

#define EIGHT(c)                                                                              \
  look_up(c), look_up(c + 1), look_up(c + 2), look_up(c + 3), look_up(c + 4), look_up(c + 5), \
      look_up(c + 6), look_up(c + 7)
constexpr CharClass ascii_classes[128] = {EIGHT(0),  EIGHT(8),   EIGHT(16),  EIGHT(24), EIGHT(32), EIGHT(40),
                                          EIGHT(48), EIGHT(56),  EIGHT(64),  EIGHT(72), EIGHT(80), EIGHT(88),
                                          EIGHT(96), EIGHT(104), EIGHT(112), EIGHT(120)};
#undef EIGHT

CharClass char_class_beyond_ascii(uint32_t code) {
  return code > kLastCode ? CharClass::Unassigned : look_up(code);
}

bool is_han(uint32_t code) {
  return (std::upper_bound(std::begin(kHanEdges), std::end(kHanEdges), code) - kHanEdges) % 2 == 1;
}

uint32_t lower_case(uint32_t code) {
  if (code < 128) return code >= 'A' && code <= 'Z' ? code + 32 : code;
  change_case(kLowerRuns, code, &code);
  return code;
}

bool change_case(std::span<const CaseRun> runs, uint32_t code, uint32_t* to) {
  const auto after = std::upper_bound(runs.begin(), runs.end(), code,
                                      [](uint32_t c, const CaseRun& run) { return c < run.first; });
  if (after == runs.begin()) return false;
  const CaseRun& run = after[-1];
  if (code > run.last || (code - run.first) % run.stride) return false;
  *to = uint32_t(int64_t(code) + run.delta);
  return true;
}

uint32_t decompose(uint32_t code, uint32_t* to) {
  if (code < 0xC0) return to[0] = code, 1;
  // Hangul syllables are computed (the standard's section 3.12): leading consonant, vowel, trailing one.
  if (code >= 0xAC00 && code < 0xD7A4) {
    const uint32_t syllable = code - 0xAC00;
    to[0] = 0x1100 + syllable / (21 * 28);
    to[1] = 0x1161 + syllable / 28 % 21;
    to[2] = 0x11A7 + syllable % 28;
    return to[2] == 0x11A7 ? 2 : 3;
  }
  const auto* at = std::lower_bound(kDecomposedCodes.begin(), kDecomposedCodes.end(), code);
  uint32_t count = 0;
  for (; at != kDecomposedCodes.end() && *at == code && count < kMaxDecomposed; ++at)
    to[count++] = kDecomposedForms[at - kDecomposedCodes.begin()];
  if (count == 0 && char_class(code) != CharClass::NonspacingMark) to[count++] = code;
  return count;
}

}  // namespace greta
