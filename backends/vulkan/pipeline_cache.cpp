#include "backends/vulkan/pipeline_cache.h"

#include <unistd.h>

#include <cstring>

namespace greta {

namespace {

constexpr uint64_t kMaxCacheBytes = 256 << 20;

struct CacheHeader {
  char magic[8] = {'G', 'R', 'E', 'T', 'A', 'V', 'P', '2'};
  uint8_t driver_uuid[VK_UUID_SIZE], cache_uuid[VK_UUID_SIZE];
  uint32_t vendor, device, driver_version, reserved = 0;
  uint64_t bytes, checksum;  // of the data after the header
};
static_assert(sizeof(CacheHeader) == 72);

CacheHeader header_for(const VulkanPhysical& physical, std::span<const uint8_t> data) {
  CacheHeader header;
  memcpy(header.driver_uuid, physical.driver_uuid, sizeof header.driver_uuid);
  memcpy(header.cache_uuid, physical.cache_uuid, sizeof header.cache_uuid);
  header.vendor = physical.vendor_id;
  header.device = physical.device_id;
  header.driver_version = physical.driver_version;
  header.bytes = data.size();
  header.checksum = checksum(data.data(), data.size());
  return header;
}

}  // namespace

std::string pipeline_cache_path(const char* folder, const VulkanPhysical& physical) {
  const CacheHeader header = header_for(physical, {});
  char name[64];
  format_text(name, sizeof name, "/greta-vulkan-%016llx.cache",
              (unsigned long long)checksum(&header, sizeof header));
  return folder + std::string(name);
}

Status read_pipeline_cache(const std::string& path, const VulkanPhysical& physical,
                           std::vector<uint8_t>* out) {
  File file;
  CacheHeader header;
  if (access(path.c_str(), F_OK) != 0) return {};
  GRETA_TRY(file.open(path.c_str()));
  if (file.size() < sizeof header || file.size() > kMaxCacheBytes)
    return fail(Code::File, "'%s' is damaged: it has %llu bytes", path.c_str(),
                (unsigned long long)file.size());
  std::vector<uint8_t> data(file.size() - sizeof header);
  GRETA_TRY(within(file.read_at(0, &header, sizeof header), "'%s'", path.c_str()));
  GRETA_TRY(within(file.read_at(sizeof header, data.data(), data.size()), "'%s'", path.c_str()));
  const CacheHeader expected = header_for(physical, data);
  if (memcmp(&header, &expected, sizeof header))
    return fail(Code::File, "'%s' is damaged, or another driver's", path.c_str());
  *out = std::move(data);
  return {};
}

Status write_pipeline_cache(const std::string& path, const VulkanPhysical& physical,
                            std::span<const uint8_t> data) {
  if (data.size() > kMaxCacheBytes - sizeof(CacheHeader)) return {};
  const CacheHeader header = header_for(physical, data);
  return replace_file(path, {{reinterpret_cast<const uint8_t*>(&header), sizeof header}, data});
}

}  // namespace greta
