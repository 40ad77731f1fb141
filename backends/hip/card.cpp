#include "backends/hip/card.h"

#include <algorithm>

#include "runtime/device.h"

namespace greta {

// A number in a file of one line, or 0.
static uint64_t number_in(const std::string& path) {
  SystemText text;
  const uint64_t number = text.read(path.c_str()) ? text.number_after("") : SystemText::kNone;
  return number == SystemText::kNone ? 0 : number;
}

static uint64_t known(const SystemText& text, const char* key) {
  const uint64_t number = text.number_after(key);
  return number == SystemText::kNone ? 0 : number;
}

// The banks of a node that belong to the GPU. An APU's node may also have one of the host.
static uint64_t bank_bytes(const std::string& node) {
  constexpr uint64_t kHostHeap = 0, kMostBanks = 16;
  uint64_t bytes = 0;
  SystemText text;
  for (uint64_t i = 0; i < kMostBanks; ++i)
    if (text.read((node + "/mem_banks/" + std::to_string(i) + "/properties").c_str()) &&
        known(text, "heap_type ") != kHostHeap)
      bytes += known(text, "size_in_bytes ");
  return bytes;
}

static void read_node(const std::string& node, const SystemText& properties, HipCard* card) {
  const uint64_t simds = known(properties, "simd_count "), of_unit = known(properties, "simd_per_cu ");
  if (of_unit) card->units = uint32_t(simds / of_unit);
  card->dies = uint32_t(known(properties, "num_xcc "));
  card->memory_bytes = bank_bytes(node);
  card->has_cores = known(properties, "cpu_cores_count ") > 0;
}

HipCard read_hip_card(const SystemView& system, const char* pci) {
  constexpr uint32_t kMostNodes = 256;
  const std::string root = system.root, nodes = root + "/sys/class/kfd/kfd/topology/nodes/";
  HipCard card;
  SystemText text;
  for (uint32_t i = 0; i < kMostNodes; ++i) {
    const std::string node = nodes + std::to_string(i);
    if (!text.read((node + "/properties").c_str())) break;
    const uint64_t place = known(text, "location_id ");
    char here[32];
    format_text(here, sizeof here, "%04x:%02x:%02x.0", unsigned(known(text, "domain ")) & 0xffff,
                unsigned(place >> 8 & 0xff), unsigned(place >> 3 & 0x1f));
    if (!known(text, "simd_count ") || std::string(pci) != here) continue;
    read_node(node, text, &card);
    const uint64_t minor = known(text, "drm_render_minor ");
    if (minor) card.folder = "/sys/class/drm/renderD" + std::to_string(minor) + "/device/";
    card.own_bytes = number_in(root + card.folder + "mem_info_vram_total");
    break;
  }
  return card;
}

uint32_t hip_units(const HipProperties& properties, const HipCard& card) {
  const uint32_t counted = uint32_t(std::max(properties.units, 1));
  if (!is_rdna(properties.arch)) return counted;
  return card.units == counted ? counted : 2 * counted;
}

uint32_t hip_dies(std::string_view arch, uint32_t units, const HipCard& card) {
  if (card.dies) return card.dies;
  const uint32_t of_die = arch == "gfx942" ? 38 : arch == "gfx950" ? 32 : 0;  // an MI300, an MI350
  return of_die && units % of_die == 0 ? units / of_die : 1;
}

uint64_t hip_memory_bytes(const HipProperties& properties, const HipCard& card) {
  return properties.integrated && card.memory_bytes ? card.memory_bytes : properties.memory_bytes;
}

uint64_t hip_memory_free(const HipProperties& properties, const HipCard& card, const char* root,
                         uint64_t driver_free, uint64_t driver_total) {
  const uint64_t total = hip_memory_bytes(properties, card);
  const uint64_t used_here = driver_total - std::min(driver_total, driver_free);
  uint64_t free = total - std::min(total, used_here);
  // An APU that is lent the host's memory has what the host has available. Its own use of lent memory
  // (mem_info_gtt_used) leaves HIP's allocations out.
  const bool lent = properties.integrated && total > card.own_bytes;
  if (lent) return std::min(free, memory_available_bytes());
  const uint64_t used = number_in(root + card.folder + "mem_info_vram_used");
  if (card.own_bytes && used) free = std::min(free, card.own_bytes - std::min(card.own_bytes, used));
  return free;
}

}  // namespace greta
