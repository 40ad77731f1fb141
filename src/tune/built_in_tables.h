// Tuning tables that were compiled in, for devices that are known.
#pragma once
#include <span>
#include <string_view>

#include "tune/table.h"

namespace greta {

// The files of GRETA_TUNING_TABLES when this was built, as texts.
std::span<const std::string_view> built_in_tables();
// The table of this device, driver and kernels among some; false if there is none.
bool find_table(std::span<const std::string_view> texts, const TableOf& of, TuningTable* out);

}  // namespace greta
