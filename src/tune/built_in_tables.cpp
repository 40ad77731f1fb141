#include "tune/built_in_tables.h"

#include <algorithm>

namespace greta {

// The last one keeps the list from being empty.
static constexpr std::string_view kTables[] = {
#include "built_in_tables.inc"
    {}};

std::span<const std::string_view> built_in_tables() { return {kTables, std::size(kTables) - 1}; }

bool find_table(std::span<const std::string_view> texts, const TableOf& of, TuningTable* out) {
  for (const std::string_view text : texts) {
    if (TuningTable::read(text, out).ok() && out->of == of) return true;
    clear_error_text();
  }
  *out = {};
  return false;
}

}  // namespace greta
