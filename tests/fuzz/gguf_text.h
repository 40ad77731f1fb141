// The metadata of a GGUF file without tensors, written by calls, for fuzzers.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

struct GgufText {
  std::string values;
  uint64_t count = 0;
  template <class T>
  static void put(std::string* to, T number) {
    to->append(reinterpret_cast<const char*>(&number), sizeof number);
  }
  static void put_text(std::string* to, std::string_view text) {
    put<uint64_t>(to, text.size());
    to->append(text);
  }
  void key(std::string_view name, uint32_t type) {
    put_text(&values, name);
    put(&values, type);
    ++count;
  }
  void text(std::string_view name, std::string_view value) {
    key(name, 8);
    put_text(&values, value);
  }
  void texts(std::string_view name, const std::vector<std::string>& list) {
    key(name, 9);
    put<uint32_t>(&values, 8);
    put<uint64_t>(&values, list.size());
    for (const std::string& each : list) put_text(&values, each);
  }
  void flag(std::string_view name, bool value) {
    key(name, 7);
    put<uint8_t>(&values, value);
  }
  template <class T>
  void numbers(std::string_view name, uint32_t element, const std::vector<T>& list) {
    key(name, 9);
    put(&values, element);
    put<uint64_t>(&values, list.size());
    for (const T each : list) put(&values, each);
  }
  std::string bytes() const {
    std::string out = "GGUF";
    put<uint32_t>(&out, 3);
    put<uint64_t>(&out, 0);
    put<uint64_t>(&out, count);
    return out + values;
  }
};
