#include "backends/vulkan/pipeline_cache.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <memory>

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

static bool write_all(int file, const void* from, size_t bytes) {
  for (size_t done = 0; done < bytes;) {
    const ssize_t wrote = write(file, static_cast<const uint8_t*>(from) + done, bytes - done);
    if (wrote < 0 && errno != EINTR) return false;
    if (wrote > 0) done += size_t(wrote);
  }
  return true;
}

// Errors are ignored here, since opening the file in the folder reports them.
static void make_folders(const std::string& path) {
  for (size_t end = path.find('/', 1); end != std::string::npos; end = path.find('/', end + 1))
    mkdir(path.substr(0, end).c_str(), 0700);
}

Status write_pipeline_cache(const std::string& path, const VulkanPhysical& physical,
                            std::span<const uint8_t> data) {
  if (data.size() > kMaxCacheBytes - sizeof(CacheHeader)) return {};
  make_folders(path);
  const std::string next = path + "." + std::to_string(getpid());  // two processes may write at once
  const CacheHeader header = header_for(physical, data);
  const int file = ::open(next.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  bool written =
      file >= 0 && write_all(file, &header, sizeof header) && write_all(file, data.data(), data.size());
  const int error = errno;
  if (file >= 0) written = close(file) == 0 && written;
  if (written && rename(next.c_str(), path.c_str()) == 0) return {};
  const int last = written ? errno : error;
  if (file >= 0) unlink(next.c_str());
  return fail(Code::File, "cannot write '%s': %s", path.c_str(), errno_text(last));
}

}  // namespace greta
