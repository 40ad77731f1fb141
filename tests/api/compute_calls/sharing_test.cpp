// What greta_compute.h adopts and shares: pages of the process, descriptors, handles of Vulkan.
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <catch2/matchers/catch_matchers_string.hpp>
#include <thread>

#include "support/compute_ops.h"

using namespace greta;
using namespace greta::test;
using Catch::Matchers::ContainsSubstring;

namespace {

constexpr uint64_t kBytes = 1 << 16;

struct Pages {
  void* at = mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ~Pages() { munmap(at, kBytes); }
  float* values() const { return static_cast<float*>(at); }
};

greta_adoption pages_of(const Pages& pages) {
  auto adoption = sized<greta_adoption>();
  adoption.origin = GRETA_ORIGIN_HOST;
  adoption.pages = pages.at, adoption.bytes = kBytes;
  return adoption;
}

bool shares(ComputeRig& rig, greta_buffer* shared) {
  auto options = sized<greta_buffer_options>();
  options.bytes = kBytes, options.shared = 1;
  const greta_status status = greta_buffer_open(rig.compute, &options, shared);
  INFO(greta_error_text());
  REQUIRE((status == GRETA_OK || status == GRETA_ERROR_UNSUPPORTED));
  return status == GRETA_OK;
}

greta_adoption descriptor_of(const greta_exported& exported, uint64_t bytes) {
  auto adoption = sized<greta_adoption>();
  adoption.origin = GRETA_ORIGIN_DESCRIPTOR;
  adoption.bytes = bytes;
  adoption.descriptor = exported.descriptor, adoption.memory_type = exported.memory_type;
  adoption.allocation_bytes = exported.allocation_bytes;
  return adoption;
}

int open_files() {
  int count = 0;
  for (int file = 0; file < 1024; ++file) count += fcntl(file, F_GETFD) >= 0;
  return count;
}

}  // namespace

TEST_CASE("compute sharing: pages of the process are computed on in place", "[compute]") {
  ComputeRig rig;
  Pages pages;
  auto adoption = pages_of(pages);
  greta_buffer buffer = {};
  for (size_t i = 0; i < kBytes / 4; ++i) pages.values()[i] = float(i % 100);
  if (!rig.compute->device().info().shares_host) {
    CHECK(greta_buffer_adopt(rig.compute, &adoption, &buffer) == GRETA_ERROR_UNSUPPORTED);
    SKIP("the device takes no pages");
  }
  const uint64_t allocated = rig.info().allocated_bytes;
  rig.ok(greta_buffer_adopt(rig.compute, &adoption, &buffer));
  CHECK(rig.info().allocated_bytes == allocated);
  CHECK(rig.info().buffer_bytes == kBytes);
  auto info = sized<greta_buffer_info>();
  rig.ok(greta_buffer_describe(rig.compute, buffer, &info));
  CHECK(info.mapped == pages.at);
  CHECK(info.bytes == kBytes);
  auto call = sized<greta_softcap_call>();
  call.scale = 2;
  call.x.rank = 2, call.x.shape[0] = 16, call.x.shape[1] = kBytes / 64, call.x.buffer = buffer;
  call.y = call.x;
  GRETA_RUN(rig, softcap, call);
  size_t wrong = 0;
  for (size_t i = 0; i < kBytes / 4; ++i) wrong += pages.values()[i] != 2 * float(i % 100);
  CHECK(wrong == 0);
  rig.ok(greta_buffer_write(rig.compute, buffer, 8, "abcd", 4));
  CHECK(!memcmp(static_cast<char*>(pages.at) + 8, "abcd", 4));
  rig.ok(greta_buffer_close(rig.compute, buffer));
  CHECK(rig.info().buffer_bytes == 0);
}

TEST_CASE("compute sharing: what cannot be adopted or exported is refused", "[compute]") {
  ComputeRig rig;
  Pages pages;
  const greta_adoption right = pages_of(pages);
  greta_buffer buffer = rig.buffer(256);
  greta_timeline timeline = {};
  const auto refused = [&](const greta_adoption& adoption, const char* words) {
    const greta_status status = greta_buffer_adopt(rig.compute, &adoption, &buffer);
    CHECK((status == GRETA_ERROR_ARGUMENT || status == GRETA_ERROR_UNSUPPORTED));
    CHECK_THAT(greta_error_text(), ContainsSubstring(words));
  };
  auto given = right;
  given.bytes = 0, refused(given, "a buffer of 0 bytes");
  given = right, given.bytes = ~uint64_t(0), refused(given, "a buffer of 18446744073709551615 bytes");
  given = right, given.bytes -= 4, refused(given, "no whole pages of");
  given = right, given.pages = static_cast<char*>(right.pages) + 256, refused(given, "no whole pages of");
  given = right, given.pages = nullptr, refused(given, "pages is NULL");
  given = right, given.origin = greta_origin(7), refused(given, "origin is 7");
  given = right, given.origin = GRETA_ORIGIN_HANDLE, refused(given, "");
  given = right, given.origin = GRETA_ORIGIN_DESCRIPTOR, given.descriptor = 999, refused(given, "");
  given = right, given.struct_size = 6, refused(given, "struct_size");
  CHECK(greta_buffer_adopt(rig.compute, nullptr, &buffer) == GRETA_ERROR_ARGUMENT);
  CHECK(greta_buffer_adopt(rig.compute, &right, nullptr) == GRETA_ERROR_ARGUMENT);
  CHECK(greta_timeline_adopt(rig.compute, &right, &timeline) == GRETA_ERROR_ARGUMENT);
  auto exported = sized<greta_exported>();
  CHECK(greta_buffer_export(rig.compute, buffer, &exported) == GRETA_ERROR_ARGUMENT);
  CHECK_THAT(greta_error_text(), ContainsSubstring("not opened with `shared`"));
  rig.ok(greta_timeline_open(rig.compute, nullptr, &timeline));
  CHECK(greta_timeline_export(rig.compute, timeline, &exported) == GRETA_ERROR_ARGUMENT);
  auto of_timeline = sized<greta_timeline_options>();
  of_timeline.timed = of_timeline.shared = 1;
  CHECK(greta_timeline_open(rig.compute, &of_timeline, &timeline) == GRETA_ERROR_ARGUMENT);
  auto options = sized<greta_buffer_options>();
  options.bytes = 256, options.shared = 1, options.memory = GRETA_MEMORY_UPLOAD;
  CHECK(greta_buffer_open(rig.compute, &options, &buffer) == GRETA_ERROR_ARGUMENT);
  options.shared = 2;
  CHECK(greta_buffer_open(rig.compute, &options, &buffer) == GRETA_ERROR_ARGUMENT);
  // A device that is none of Vulkan's.
  auto vulkan = sized<greta_host_device>();
  auto open = sized<greta_compute_options>();
  greta_compute* none = nullptr;
  open.host = &vulkan;
  CHECK(greta_compute_open(rig.runtime, &open, &none) == GRETA_ERROR_ARGUMENT);
  CHECK_THAT(greta_error_text(), ContainsSubstring("is NULL"));
  CHECK(!none);
}

TEST_CASE("compute sharing: a buffer that one device exports and another one imports", "[compute]") {
  ComputeRig here, there;
  greta_buffer shared = {}, imported = {};
  const int files = open_files();
  const uint64_t allocated = here.info().allocated_bytes;
  if (!shares(here, &shared)) SKIP("the device shares no memory: " << greta_error_text());
  CHECK(here.info().allocated_bytes == allocated + kBytes);
  auto exported = sized<greta_exported>();
  here.ok(greta_buffer_export(here.compute, shared, &exported));
  CHECK(exported.allocation_bytes >= kBytes);
  auto adoption = descriptor_of(exported, kBytes);
  // Descriptors of no memory, sizes and types that are not those of the memory.
  for (const char* path : {"/dev/null", "/proc/self/exe"}) {
    auto none = adoption;
    none.descriptor = open(path, O_RDONLY);
    INFO(path);
    CHECK(greta_buffer_adopt(there.compute, &none, &imported) != GRETA_OK);
    close(none.descriptor);
  }
  auto none = adoption;
  none.descriptor = -1;
  CHECK(greta_buffer_adopt(there.compute, &none, &imported) == GRETA_ERROR_ARGUMENT);
  none = adoption, none.memory_type = 77;
  CHECK(greta_buffer_adopt(there.compute, &none, &imported) == GRETA_ERROR_ARGUMENT);
  none = adoption, none.allocation_bytes = 64;
  CHECK(greta_buffer_adopt(there.compute, &none, &imported) == GRETA_ERROR_ARGUMENT);
  there.ok(greta_buffer_adopt(there.compute, &adoption, &imported));
  // What one computes the other one reads, and the other way.
  Random random(3);
  const std::vector<float> values = gaussians(kBytes / 4, random);
  there.ok(greta_buffer_write(there.compute, imported, 0, values.data(), kBytes));
  auto call = sized<greta_softcap_call>();
  call.scale = -3;
  call.x.rank = 2, call.x.shape[0] = 64, call.x.shape[1] = kBytes / 256, call.x.buffer = shared;
  call.y = call.x;
  GRETA_RUN(here, softcap, call);
  const std::vector<float> seen = there.get<float>(imported, kBytes / 4);
  size_t wrong = 0;
  for (size_t i = 0; i < seen.size(); ++i) wrong += seen[i] != -3 * values[i];
  CHECK(wrong == 0);
  // Memory stays as long as one has it, and each descriptor is taken once.
  here.ok(greta_buffer_close(here.compute, shared));
  here.wait();
  CHECK(here.info().allocated_bytes <= allocated + (1 << 20));
  CHECK(there.get<float>(imported, kBytes / 4) == seen);
  there.ok(greta_buffer_close(there.compute, imported));
  there.wait();
  CHECK(open_files() == files);
}

TEST_CASE("compute sharing: a timeline that two devices signal and wait for", "[compute]") {
  ComputeRig here, there;
  auto options = sized<greta_timeline_options>();
  options.shared = 1;
  greta_timeline mine = {}, theirs = {};
  const greta_status status = greta_timeline_open(here.compute, &options, &mine);
  if (status == GRETA_ERROR_UNSUPPORTED) SKIP("the device shares no timelines: " << greta_error_text());
  here.ok(status);
  auto exported = sized<greta_exported>();
  here.ok(greta_timeline_export(here.compute, mine, &exported));
  const auto adoption = descriptor_of(exported, 0);
  there.ok(greta_timeline_adopt(there.compute, &adoption, &theirs));
  uint64_t ns = 0;
  CHECK(greta_timeline_elapsed(here.compute, mine, 1, 1, &ns) == GRETA_ERROR_ARGUMENT);
  greta_buffer shared = {}, imported = {};
  if (!shares(here, &shared)) SKIP("the device shares no memory");
  here.ok(greta_buffer_export(here.compute, shared, &exported));
  const auto memory = descriptor_of(exported, kBytes);
  there.ok(greta_buffer_adopt(there.compute, &memory, &imported));
  // Each one in its turn, and each wait is recorded before its signal.
  for (uint32_t round = 0; round < 20; ++round) {
    const uint64_t first = 2 * round + 1;
    std::thread other([&] {
      REQUIRE(greta_stream_wait_for(there.compute, there.stream, theirs, first) == GRETA_OK);
      REQUIRE(greta_stream_copy(there.compute, there.stream, imported, 4, imported, 0, 4) == GRETA_OK);
      REQUIRE(greta_stream_signal(there.compute, there.stream, theirs, first + 1) == GRETA_OK);
    });
    here.ok(greta_stream_fill(here.compute, here.stream, shared, 0, 4, 100 + round));
    here.ok(greta_stream_signal(here.compute, here.stream, mine, first));
    CHECK(greta_stream_signal(here.compute, here.stream, mine, first) == GRETA_ERROR_ARGUMENT);
    here.ok(greta_timeline_wait(here.compute, mine, first + 1));
    other.join();
    CHECK(here.get<uint32_t>(shared, 2) == std::vector<uint32_t>(2, 100 + round));
  }
  there.wait();
}
