// Reads any bytes as a tuning table, also with a checksum that is right, and writes what was read.
#include <algorithm>
#include <string>

#include "tune/table.h"

using namespace greta;

static void read(const std::string& text) {
  TuningTable table, again;
  if (!TuningTable::read(text, &table).ok()) return;
  const std::string written = table.text();
  if (!TuningTable::read(written, &again).ok() || again.text() != written) __builtin_trap();
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  std::string text(reinterpret_cast<const char*>(data), size);
  read(text);
  char sum[64];
  text.resize(std::min(text.size(), text.rfind("{\"checksum\"")));
  format_text(sum, sizeof sum, "{\"checksum\":\"%016llx\"}\n",
              (unsigned long long)checksum(text.data(), text.size()));
  read(text + sum);
  return 0;
}
