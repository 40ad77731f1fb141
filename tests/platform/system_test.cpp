#include <fcntl.h>
#include <sys/resource.h>

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <cstdio>
#include <cstring>
#include <string>

#include "platform/machine/cgroup.h"
#include "platform/platform.h"
#include "support/fake_root.h"

using namespace greta;
using Catch::Matchers::ContainsSubstring;

namespace {

constexpr uint64_t kNone = ~uint64_t(0);

}  // namespace

TEST_CASE("time goes forward", "[platform]") {
  const uint64_t before = now_ns();
  CHECK(now_ns() >= before);
}

TEST_CASE("the processor names itself, AVX-512 comes with AVX2 and AMX with AVX-512", "[platform]") {
  CHECK(strlen(cpu_name()) > 0);
  CHECK(cpu_count() >= 1);
  if (cpu_features() & kCpuAvx512Vnni) CHECK(cpu_features() & kCpuAvx2);
  if (cpu_features() & kCpuAmx) CHECK(cpu_features() & kCpuAvx512Vnni);
  CHECK(memory_total_bytes() > 0);
  CHECK(memory_available_bytes() > 0);
  CHECK(memory_available_bytes() <= memory_total_bytes());
}

TEST_CASE("memory is known without a descriptor to read files by", "[platform]") {
  rlimit before, none;
  REQUIRE(getrlimit(RLIMIT_NOFILE, &before) == 0);
  none = before;
  none.rlim_cur = 0;
  REQUIRE(setrlimit(RLIMIT_NOFILE, &none) == 0);
  const int refused = open("/proc/meminfo", O_RDONLY);
  const uint64_t total = memory_total_bytes(), available = memory_available_bytes();
  const uint32_t processors = cpu_count();
  REQUIRE(setrlimit(RLIMIT_NOFILE, &before) == 0);
  CHECK(refused < 0);
  CHECK(total > 0);
  CHECK(available > 0);
  CHECK(available <= total);
  CHECK(processors >= 1);
}

TEST_CASE("a library that is not there gives the loader's reason", "[platform]") {
  DynamicLibrary library;
  CHECK(library.find("anything") == nullptr);
  CHECK(library.open("libgreta-no-such-driver.so.1").code == Code::Unsupported);
  CHECK_THAT(error_text(), ContainsSubstring("libgreta-no-such-driver.so.1"));
  REQUIRE(library.open("libm.so.6").ok());
  CHECK(library.find("cos") != nullptr);
  CHECK(library.find("greta_no_such_function") == nullptr);
}

TEST_CASE("a library that is kept stays when it is closed", "[platform]") {
  const char* name = "libBrokenLocale.so.1";  // the C library brings it, and no program uses it
  keep_loaded(loaded_library(name));          // nothing: it is not there
  {
    DynamicLibrary library;
    if (!library.open(name).ok()) SKIP("this C library has no " << name);
    CHECK(!loaded_library(name).empty());
  }
  CHECK(loaded_library(name).empty());
  {
    DynamicLibrary library;
    REQUIRE(library.open(name).ok());
    keep_loaded(loaded_library(name));
  }
  CHECK(!loaded_library(name).empty());
}

TEST_CASE("pages are zero and can be protected", "[platform]") {
  const uint64_t bytes = 3 * page_bytes() + 5;
  auto* pages = static_cast<uint8_t*>(map_pages(bytes));
  REQUIRE(pages);
  CHECK(reinterpret_cast<uint64_t>(pages) % page_bytes() == 0);
  CHECK(pages[bytes - 1] == 0);
  CHECK(protect_pages(pages, bytes, Protection::Read));
  CHECK(pages[0] == 0);
  CHECK(protect_pages(pages + 7, 1, Protection::ReadWrite));
  pages[page_bytes() - 1] = 9;
  unmap_pages(pages, bytes);
  CHECK(map_pages(0) == nullptr);
  CHECK(map_pages(kNone) == nullptr);
}

TEST_CASE("no cgroup files means no limits", "[platform]") {
  FakeRoot root;
  const CgroupLimits limits = read_cgroup_limits(root.path.c_str());
  CHECK(limits.memory_bytes == kNone);
  CHECK(limits.memory_available_bytes == kNone);
  CHECK(limits.cpu_count == ~0u);
}

TEST_CASE("cgroup v2: the tightest level counts, the quota rounds up, file pages are free", "[platform]") {
  FakeRoot root;
  root.write("/proc/self/cgroup", "0::/a/b\n");
  root.write("/sys/fs/cgroup/a/b/memory.max", "max\n");
  root.write("/sys/fs/cgroup/a/b/cpu.max", "max 100000\n");
  root.write("/sys/fs/cgroup/a/memory.max", "1000000\n");
  root.write("/sys/fs/cgroup/a/memory.current", "700000\n");
  root.write("/sys/fs/cgroup/a/memory.stat", "anon 5\ninactive_file 200000\nactive_file 50000\n");
  root.write("/sys/fs/cgroup/a/cpu.max", "250000 100000\n");
  const CgroupLimits limits = read_cgroup_limits(root.path.c_str());
  CHECK(limits.memory_bytes == 1000000);
  CHECK(limits.memory_available_bytes == 550000);
  CHECK(limits.cpu_count == 3);
}

TEST_CASE("cgroup v2 in a container: the own group is seen as the root", "[platform]") {
  FakeRoot root;
  root.write("/proc/self/cgroup", "0::/docker/0123\n");
  root.write("/sys/fs/cgroup/memory.max", "5000\n");
  root.write("/sys/fs/cgroup/memory.current", "6000\n");
  root.write("/sys/fs/cgroup/cpu.max", "50000 100000\n");
  const CgroupLimits limits = read_cgroup_limits(root.path.c_str());
  CHECK(limits.memory_bytes == 5000);
  CHECK(limits.memory_available_bytes == 0);
  CHECK(limits.cpu_count == 1);
}

TEST_CASE("cgroup v1: limits of the named controllers", "[platform]") {
  FakeRoot root;
  root.write("/proc/self/cgroup", "5:cpuset:/x\n4:memory:/jobs/7\n2:cpu,cpuacct:/\n0::/\n");
  root.write("/sys/fs/cgroup/memory/jobs/7/memory.limit_in_bytes", "8000\n");
  root.write("/sys/fs/cgroup/memory/jobs/7/memory.usage_in_bytes", "3000\n");
  root.write("/sys/fs/cgroup/memory/jobs/7/memory.stat", "cache 9\ntotal_inactive_file 1000\n");
  root.write("/sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n");
  root.write("/sys/fs/cgroup/cpu,cpuacct/cpu.cfs_quota_us", "400000\n");
  root.write("/sys/fs/cgroup/cpu,cpuacct/cpu.cfs_period_us", "100000\n");
  const CgroupLimits limits = read_cgroup_limits(root.path.c_str());
  CHECK(limits.memory_bytes == 8000);
  CHECK(limits.memory_available_bytes == 6000);
  CHECK(limits.cpu_count == 4);
}

TEST_CASE("an unlimited v1 quota and broken files are no limits", "[platform]") {
  FakeRoot root;
  root.write("/proc/self/cgroup", "garbage\n3:cpu:/\n:\n4:memory:\n");
  root.write("/sys/fs/cgroup/cpu/cpu.cfs_quota_us", "-1\n");
  root.write("/sys/fs/cgroup/cpu/cpu.cfs_period_us", "100000\n");
  root.write("/sys/fs/cgroup/memory/memory.limit_in_bytes", "lots\n");
  const CgroupLimits limits = read_cgroup_limits(root.path.c_str());
  CHECK(limits.memory_bytes == kNone);
  CHECK(limits.cpu_count == ~0u);
}

TEST_CASE("meminfo gives bytes", "[platform]") {
  FakeRoot root;
  root.write("/proc/meminfo", "MemTotal:   100 kB\nMemAvailable:      40 kB\n");
  CHECK(read_meminfo(root.path.c_str(), "MemTotal:") == 102400);
  CHECK(read_meminfo(root.path.c_str(), "MemAvailable:") == 40960);
  CHECK(read_meminfo(root.path.c_str(), "SwapTotal:") == 0);
}
