// What is known to go wrong with versions of firmware and drivers (known_faults.def).
#pragma once
#include <cstdint>
#include <string>
#include <string_view>

namespace greta {

const char* firmware_fault(std::string_view target,
                           uint64_t mes);  // of this version of MES; null: none is known
// The first number in `driver` is its version: "HIP 7.2.53211". Null: no fault is known.
const char* driver_fault(std::string_view backend, std::string_view driver);

}  // namespace greta
