// Packed machine code: what kernels are embedded as. cmake/pack makes it, unpack() gives the code back.
//
//   bytes 0-3   bytes of the code, little-endian as all numbers here
//   bytes 4-7   the low half of its checksum
//   then bits, the highest of each byte first: the lengths of the codes of five alphabets, then tokens
//
// A token is a byte, or the length and the distance of a match: bytes that stood so far before. Bytes and
// lengths share an alphabet; there is one for each position in a word of four bytes, since both SPIR-V and
// AMD's instructions are words. The fifth alphabet is for distances. Codes are Huffman's in canonical order.
#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "platform/failure/status.h"

namespace greta {

namespace packed {

constexpr uint32_t kHeaderBytes = 8;
constexpr uint32_t kMaxBytes = 1 << 24;  // of code; no larger distance has a symbol

constexpr uint32_t kLongestCode = 11;  // in bits

// Lengths and distances are symbols of two for each power of two, with extra bits behind the code.
constexpr uint32_t kShortest = 2, kLongest = kShortest + 0xffff;
constexpr uint32_t kLengths = 256;                    // symbols of lengths; those below are bytes
constexpr uint32_t kTokens = kLengths + 32;           // symbols in the alphabet of a position
constexpr uint32_t kRepeats = 3;                      // distances: one of the last three, the latest first,
constexpr uint32_t kWordDistances = kRepeats;         // a multiple of four,
constexpr uint32_t kDistances = kWordDistances + 44;  // or any other
constexpr uint32_t kDistanceSymbols = kDistances + 48;
constexpr uint32_t kAlphabets = 5;
constexpr uint32_t kSymbols[kAlphabets] = {kTokens, kTokens, kTokens, kTokens, kDistanceSymbols};

// The length of a code is written in four bits, and runs of symbols without a code as one of two words.
constexpr uint32_t kFewUnused = 12, kFewBits = 4, kFewLeast = 2;      // 2 to 17
constexpr uint32_t kManyUnused = 13, kManyBits = 8, kManyLeast = 18;  // 18 to 273

}  // namespace packed

// `out` gets the code. Fails if the bytes are not what cmake/pack has written.
Status unpack(std::span<const uint8_t> block, std::vector<uint8_t>* out);

}  // namespace greta
