// Arguments of calls, taken from any bytes: numbers at which arithmetic turns, texts that are right and texts
// that are not, and structs that are sensible but for a few fields.
#pragma once
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <initializer_list>
#include <iterator>

#include "pointers.h"

namespace greta::fuzz {

struct Tape {
  const uint8_t* at;
  size_t left;

  uint8_t byte() { return left ? (--left, *at++) : 0; }
  uint32_t below(uint32_t count) { return byte() % count; }

  uint64_t number() {
    static constexpr uint64_t kTurns[] = {
        0,         1,        2,          3,          63,         64,         65,        127,       128,
        129,       255,      256,        257,        1000,       4096,       65535,     1u << 20,  1u << 24,
        INT32_MAX, 1u << 31, UINT32_MAX, 1ull << 32, 1ull << 42, 1ull << 60, INT64_MAX, UINT64_MAX};
    const uint8_t kind = byte();
    return kind < std::size(kTurns) ? kTurns[kind] : kind - std::size(kTurns);
  }
  float real() {
    static const float kTurns[] = {0,       -0.0f,  1,      -1,       0.5f,     0.95f,
                                   2,       1e-6f,  0.001f, 1000,     1e6f,     1.00001e6f,
                                   3.4e38f, 1e-40f, NAN,    INFINITY, -INFINITY};
    const uint8_t kind = byte();
    return kind < std::size(kTurns) ? kTurns[kind] : float(kind) / 200;
  }
  const char* text() {
    static const char* const kTexts[] = {nullptr,
                                         "",
                                         "a",
                                         "root ::= [0-9]+",
                                         "root ::= root",
                                         "root ::= missing",
                                         "root ::= (",
                                         "expr",
                                         "{\"type\": \"integer\"}",
                                         "{\"type\": \"array\", \"items\": {\"enum\": [1, \"a\"]}}",
                                         "{\"type\": 7}",
                                         "{",
                                         "[]",
                                         "[{\"type\": \"function\", \"function\": {\"name\": \"f\"}}]",
                                         "{\"x\": 1e999}",
                                         "chatml",
                                         "{{ messages[0].content }}",
                                         "{{ 1 // 0 }}",
                                         "{% for m in messages %}{{ m.role }}{% endfor %}",
                                         "{% if",
                                         "user",
                                         "assistant",
                                         "system",
                                         "tool",
                                         "\xff\xfe\x80",
                                         "top_k;temperature",
                                         "top_k;;",
                                         "cpu",
                                         "null",
                                         "cpu1",
                                         "vulkan0",
                                         "{\"tool_calls\": [{\"function\": {\"name\": 1}}]}",
                                         "{\"content\": [1]}"};
    return kTexts[below(std::size(kTexts))];
  }
};

// A struct with room for what a later version may append. Pointers stay as they were set.
template <class Struct>
struct Odd {
  union {
    Struct value;
    unsigned char bytes[4096 + 8];
  };
  Odd() { memset(bytes, 0, sizeof bytes), value.struct_size = sizeof value; }
  Struct* operator->() { return &value; }
  // Changes some 32-bit fields, but no pointer, and none of the fields that lie at `kept`.
  Struct* change(Tape& tape, std::initializer_list<size_t> kept = {}) {
    for (uint32_t changes = tape.below(4); changes; --changes) {
      const size_t place = tape.byte() % (sizeof(Struct) / 4 + 2) * 4;
      const auto lies_in = [place](size_t at) { return place >= at && place < at + sizeof(void*); };
      const uint32_t number = uint32_t(tape.number());
      if (std::ranges::none_of(kept, lies_in) && std::ranges::none_of(kPointers<Struct>, lies_in))
        memcpy(bytes + place, &number, sizeof number);
    }
    return &value;
  }
};

}  // namespace greta::fuzz
