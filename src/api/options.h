// Reads structs of callers that were built with any version of greta.h, older or newer than ours.
#pragma once
#include <algorithm>
#include <cstring>

#include "platform/platform.h"

namespace greta {

// The most bytes that a struct of any version has. A size that nobody set is mostly a larger number.
constexpr uint32_t kMaxStructBytes = 4096;

// In every version sizeof is a multiple of the alignment, so a size that is none would cut a pointer in two.
template <class Struct>
Status check_struct_size(const Struct& given, const char* of) {
  const uint32_t size = given.struct_size;
  if (size >= sizeof(uint32_t) && size <= kMaxStructBytes && size % alignof(Struct) == 0) return {};
  return fail(Code::Argument, "%s struct_size is %u: set it to sizeof the struct", of, size);
}

// Fields that the caller's struct does not have become 0, their default. Fields that this library does not
// know must be 0, so that no caller is ignored in silence. A null pointer means all defaults.
template <class Options>
Status read_options(const Options* given, Options* out) {
  *out = {};
  if (!given) return {};
  GRETA_TRY(check_struct_size(*given, "the options'"));
  const size_t known = std::min<size_t>(given->struct_size, sizeof(Options));
  const auto* bytes = reinterpret_cast<const unsigned char*>(given);
  if (std::any_of(bytes + known, bytes + given->struct_size, [](unsigned char b) { return b != 0; }))
    return fail(Code::Unsupported,
                "the options have %u bytes and ask for something that this library (%zu bytes) does not know",
                given->struct_size, sizeof(Options));
  std::memcpy(out, given, known);
  return {};
}

// Refuses a value in a field whose meaning only a later version may know.
inline Status check_reserved(uint32_t value) {
  return value ? fail(Code::Unsupported,
                      "a reserved field is %u, and so asks for something that this library does not know",
                      value)
               : Status{};
}

inline Status read_flag(uint32_t value, const char* field, bool* out) {
  if (value > 1) return fail(Code::Argument, "%s is %u, expected 0 or 1", field, value);
  *out = value != 0;
  return {};
}

// The number that a caller's enum holds. C allows any number there; C++ only those of the enum.
template <class Enum>
int enum_number(const Enum& value) {
  static_assert(sizeof(Enum) == sizeof(int));
  int number;
  std::memcpy(&number, &value, sizeof number);
  return number;
}

// Checks the struct for a result before the work is done.
template <class Result>
Status check_result(const Result* out) {
  if (!out) return fail(Code::Argument, "the result struct is NULL");
  return check_struct_size(*out, "the result's");
}

// Writes as much of `from` as the caller's struct has room for. The caller's struct_size stays as it is.
template <class Result>
Status write_result(const Result& from, Result* out) {
  GRETA_TRY(check_result(out));
  const uint32_t size = out->struct_size;
  std::memcpy(out, &from, std::min<size_t>(size, sizeof(Result)));
  out->struct_size = size;
  return {};
}

}  // namespace greta
