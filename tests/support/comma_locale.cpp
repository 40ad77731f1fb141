#include "support/comma_locale.h"

#include <stdlib.h>

#include <bit>
#include <clocale>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <string_view>

namespace fs = std::filesystem;

// The file that glibc's localedef makes for German numbers: a mark, then 6 fields with their places. They are
// the decimal point, the separator of thousands, its grouping, the first two as wide characters, and the
// encoding.
static constexpr std::string_view kNumbers(
    "\x14\x11\x03\x20\x06\0\0\0\x20\0\0\0\x22\0\0\0\x24\0\0\0\x28\0\0\0\x2C\0\0\0\x30\0\0\0"
    ",\0.\0\x03\x03\0\0,\0\0\0.\0\0\0UTF-8\0",
    54);

CommaLocale::CommaLocale() {
  char name[] = "/tmp/greta-locale-XXXXXX";
  if (std::endian::native != std::endian::little || !mkdtemp(name)) return;
  folder_ = name;
  fs::create_directory(folder_ + "/comma");
  std::ofstream(folder_ + "/comma/LC_NUMERIC", std::ios::binary) << kNumbers;
  setenv("LOCPATH", name, 1);
  set_ = std::setlocale(LC_NUMERIC, "comma") != nullptr;
  unsetenv("LOCPATH");
  char number[8];
  std::snprintf(number, sizeof number, "%.1f", 0.5);
  set_ = set_ && number == std::string_view("0,5");
}

CommaLocale::~CommaLocale() {
  std::setlocale(LC_NUMERIC, "C");
  std::error_code ignored;
  if (!folder_.empty()) fs::remove_all(folder_, ignored);
}
