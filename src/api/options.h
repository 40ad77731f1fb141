// Reads an options struct written against any version of greta.h, older or newer than ours.
#pragma once
#include <algorithm>
#include <cstring>

#include "platform/platform.h"

namespace greta {

// Missing fields become 0, their default. Unknown fields must be 0: a caller who asks for something
// this library does not know is told so rather than ignored. A null pointer is all defaults.
template <class Options>
Status read_options(const Options* given, Options* out) {
  *out = {};
  if (!given) return {};
  if (given->struct_size < sizeof(uint32_t))
    return fail(Code::Argument, "options.struct_size is %u: set it to sizeof the struct", given->struct_size);
  const size_t known = std::min<size_t>(given->struct_size, sizeof(Options));
  const auto* bytes = reinterpret_cast<const unsigned char*>(given);
  if (std::any_of(bytes + known, bytes + given->struct_size, [](unsigned char b) { return b != 0; }))
    return fail(Code::Unsupported, "options of %u bytes ask for something that this library (%zu bytes) does not know",
                given->struct_size, sizeof(Options));
  std::memcpy(out, given, known);
  return {};
}

// Writes as much of `from` as the caller's struct has room for; its struct_size stays.
template <class Result>
Status write_result(const Result& from, Result* out) {
  if (!out) return fail(Code::Argument, "the result struct is NULL");
  if (out->struct_size < sizeof(uint32_t))
    return fail(Code::Argument, "the result's struct_size is %u: set it to sizeof the struct", out->struct_size);
  const uint32_t size = out->struct_size;
  std::memcpy(out, &from, std::min<size_t>(size, sizeof(Result)));
  out->struct_size = size;
  return {};
}

}  // namespace greta
