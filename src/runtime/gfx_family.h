// Which AMD GPUs run a code object. A code object is for one exact target (gfx942) or for a family of them
// (gfx9-4-generic).
#pragma once
#include <string_view>

namespace greta {

// The family that `arch`, an exact target, belongs to; "" if it has none.
constexpr std::string_view gfx_family(std::string_view arch) {
  constexpr std::string_view kFamilies[][2] = {
#define GFX_FAMILY(target, members) {#target, " " #members " "},
#include "runtime/gfx_families.def"
#undef GFX_FAMILY
  };
  for (const auto& [family, members] : kFamilies) {
    const size_t at = members.find(arch);
    if (at != members.npos && at > 0 && members[at - 1] == ' ' && members[at + arch.size()] == ' ')
      return family;
  }
  return "";
}

// Whether a device of the exact target `arch` runs code for `target`.
constexpr bool runs_on(std::string_view target, std::string_view arch) {
  return target == arch || (!target.empty() && target == gfx_family(arch));
}

// Whether the HIP kernels are known to compile for the exact target. Of older GPUs only some have products
// of bytes that the kernels use.
constexpr bool compiles_for(std::string_view arch) {
  return !gfx_family(arch).empty() || arch == "gfx1250" || arch == "gfx90a" || arch == "gfx908" ||
         arch == "gfx906";
}

// Whether it is one of AMD's accelerators for data centres, which "auto" runs through HIP.
constexpr bool is_instinct(std::string_view arch) {
  return arch == "gfx90a" || arch == "gfx942" || arch == "gfx950" || arch == "gfx1250";
}

// Whether it is of RDNA: Radeon cards and APUs, whose compute units are paired. gfx1250 is of CDNA.
constexpr bool is_rdna(std::string_view arch) {
  return (arch.starts_with("gfx10") || arch.starts_with("gfx11") || arch.starts_with("gfx12")) &&
         !arch.starts_with("gfx125");
}

}  // namespace greta
