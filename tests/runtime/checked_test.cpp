// Plants each fault that the checked device looks for.
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <catch2/generators/catch_generators.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <csignal>
#include <cstring>

#include "support/device_kernels.h"

using namespace greta;
using Catch::Matchers::ContainsSubstring;

namespace {

constexpr uint32_t kCount = 4096;  // words, which fill four pages

struct Rig {
  OpenDevice device = open_checked(open_named("cpu", 2));
  TestKernels kernels{*device};
  std::unique_ptr<Stream> stream = new_stream(*device);
  Words a{*device, kCount}, b{*device, kCount}, c{*device, kCount};

  Rig() {
    for (const Words* words : {&a, &b, &c}) REQUIRE(stream->fill(words->all(), 1).ok());
    REQUIRE(stream->barrier().ok());
  }
  // Launches `index`, which writes y, with other declared accesses.
  Status index_with(const Slice& y, std::span<const Access> accesses) {
    const IndexTestBlock block{y.address(), uint32_t(y.bytes / 4), 1, 0};
    return stream->dispatch(kernels.index, {uint32_t(y.bytes / 4 / kGroupWords), 1, 1},
                            {reinterpret_cast<const uint8_t*>(&block), sizeof block}, accesses);
  }
};

}  // namespace

TEST_CASE("checked: a range outside its buffer", "[runtime]") {
  Rig rig;
  const Access past_end[] = {{rig.a.slice(kCount - 10, 11), Access::kWrite}};
  CHECK(rig.index_with(rig.a.all(), past_end).code == Code::Device);
  CHECK_THAT(error_text(),
             ContainsSubstring("index") && ContainsSubstring("out of bounds") && ContainsSubstring("16384"));
  const Access wraps[] = {{{&rig.a.memory.buffer(), ~uint64_t(0) - 3, 8}, Access::kRead}};
  CHECK(rig.index_with(rig.a.all(), wraps).code == Code::Device);
}

TEST_CASE("checked: a released buffer", "[runtime]") {
  Rig rig;
  Buffer buffer;
  REQUIRE(rig.device->allocate(64, Memory::Device, &buffer).ok());
  const Buffer copy = buffer;
  const Slice slice{&copy, 0, 64};
  OwnedGraph plan{*rig.device, {}};
  REQUIRE(rig.stream->begin_capture().ok());
  REQUIRE(rig.stream->barrier().ok());
  REQUIRE(rig.kernels.write_index(*rig.stream, slice, 1).ok());
  REQUIRE(rig.stream->end_capture(&plan.graph).ok());
  REQUIRE(rig.stream->replay(plan.graph).ok());
  rig.device->release(buffer);

  CHECK(rig.kernels.write_index(*rig.stream, slice, 1).code == Code::Device);
  CHECK_THAT(error_text(), ContainsSubstring("index") && ContainsSubstring("released"));
  CHECK(rig.stream->fill(slice, 1).code == Code::Device);
  CHECK(rig.stream->copy(rig.a.memory.slice(0, 64), slice).code == Code::Device);
  CHECK(rig.stream->replay(plan.graph).code == Code::Device);
  CHECK_THAT(error_text(), ContainsSubstring("captured plan") && ContainsSubstring("released"));
  const Access access[] = {{{&buffer, 0, 64}, Access::kRead}};
  CHECK(rig.index_with(rig.a.all(), access).code == Code::Device);
  REQUIRE(rig.stream->begin_capture().ok());
  CHECK(rig.kernels.write_index(*rig.stream, slice, 1).code == Code::Device);
}

TEST_CASE("checked: a read of what was never written", "[runtime]") {
  Rig rig;
  Words fresh(*rig.device, kCount);
  CHECK(rig.kernels.add_words(*rig.stream, rig.a.all(), fresh.all(), rig.b.all()).code == Code::Device);
  CHECK_THAT(error_text(), ContainsSubstring("add") && ContainsSubstring("byte 0 was never written"));
  CHECK(rig.stream->copy(rig.b.all(), fresh.all()).code == Code::Device);

  // One word between two written halves was never written.
  REQUIRE(rig.stream->fill(fresh.slice(0, 100), 1).ok());
  REQUIRE(rig.stream->fill(fresh.slice(101, kCount - 101), 1).ok());
  REQUIRE(rig.stream->barrier().ok());
  CHECK(rig.kernels.add_words(*rig.stream, rig.a.all(), fresh.all(), rig.b.all()).code == Code::Device);
  CHECK_THAT(error_text(), ContainsSubstring("byte 400 was never written"));
  const Access sparse[] = {{fresh.all(), Access::kRead, true}, {rig.b.all(), Access::kWrite}};
  CHECK(rig.index_with(rig.b.all(), sparse).ok());
  REQUIRE(rig.stream->barrier().ok());
  REQUIRE(rig.stream->fill(fresh.slice(100, 1), 1).ok());
  REQUIRE(rig.stream->barrier().ok());
  CHECK(rig.kernels.add_words(*rig.stream, rig.a.all(), fresh.all(), rig.b.all()).ok());

  // The host writes upload memory. A readback buffer holds nothing that is known.
  Words upload(*rig.device, 10, Memory::Upload), readback(*rig.device, 10, Memory::Readback);
  CHECK(rig.stream->copy(rig.c.slice(0, 10), upload.all()).ok());
  CHECK(rig.stream->copy(rig.c.slice(10, 10), readback.all()).code == Code::Device);
}

TEST_CASE("checked: a missing barrier, each of the three ways", "[runtime]") {
  Rig rig;
  const auto missing = ContainsSubstring("missing barrier");
  SECTION("read after write") {
    REQUIRE(rig.kernels.write_index(*rig.stream, rig.a.all(), 1).ok());
    const Slice part = rig.a.slice(100, 64), other = rig.b.slice(0, 64), y = rig.c.slice(0, 64);
    CHECK(rig.kernels.add_words(*rig.stream, part, other, y).code == Code::Device);
    CHECK_THAT(error_text(), missing && ContainsSubstring("add") && ContainsSubstring("index") &&
                                 ContainsSubstring("[400, 656)"));
  }
  SECTION("write after read") {
    REQUIRE(rig.kernels.add_words(*rig.stream, rig.a.all(), rig.b.all(), rig.c.all()).ok());
    CHECK(rig.stream->fill(rig.b.slice(kCount - 1, 1), 0).code == Code::Device);
    CHECK_THAT(error_text(), missing && ContainsSubstring("fill") && ContainsSubstring("add"));
  }
  SECTION("write after write") {
    REQUIRE(rig.stream->copy(rig.a.slice(0, 8), rig.b.slice(0, 8)).ok());
    CHECK(rig.kernels.write_index(*rig.stream, rig.a.all(), 1).code == Code::Device);
    CHECK_THAT(error_text(), missing && ContainsSubstring("copy") && ContainsSubstring("index"));
  }
  SECTION("of ranges whose contents are unknown") {
    const Access sparse[] = {{rig.a.all(), Access::kReadWrite, true}};
    REQUIRE(rig.index_with(rig.a.all(), sparse).ok());
    CHECK(rig.index_with(rig.a.all(), sparse).code == Code::Device);
    CHECK_THAT(error_text(), missing);
  }
  SECTION("none is needed for neighbours, common reads, or a launch that updates in place") {
    CHECK(rig.kernels.add_words(*rig.stream, rig.a.all(), rig.b.slice(0, 64), rig.b.slice(0, 64)).ok());
    CHECK(rig.kernels.add_words(*rig.stream, rig.a.all(), rig.b.slice(64, 64), rig.b.slice(64, 64)).ok());
    CHECK(rig.stream->copy(rig.c.slice(0, 10), rig.a.slice(0, 10)).ok());
  }
  SECTION("the host's wait orders direct work") {
    REQUIRE(rig.kernels.write_index(*rig.stream, rig.a.all(), 1).ok());
    REQUIRE(rig.stream->wait().ok());
    CHECK(rig.kernels.add_words(*rig.stream, rig.a.all(), rig.b.all(), rig.c.all()).ok());
  }
}

TEST_CASE("checked: a missing barrier inside a captured plan is found when it ends", "[runtime]") {
  Rig rig;
  OwnedGraph plan{*rig.device, {}};
  REQUIRE(rig.stream->begin_capture().ok());
  REQUIRE(rig.stream->barrier().ok());
  REQUIRE(rig.kernels.write_index(*rig.stream, rig.a.all(), 1).ok());
  REQUIRE(rig.kernels.add_words(*rig.stream, rig.a.all(), rig.b.all(), rig.c.all()).ok());
  CHECK(rig.stream->end_capture(&plan.graph).code == Code::Device);
  CHECK_THAT(error_text(), ContainsSubstring("missing barrier: add (launch of a captured plan, number 3)"));
  CHECK(!plan.graph.handle);
  CHECK(rig.stream->wait().ok());  // the capture is over
}

TEST_CASE("checked: a plan that does not open with a barrier is found when it follows another", "[runtime]") {
  Rig rig;
  const bool waits = GENERATE(false, true);
  OwnedGraph plan{*rig.device, {}};
  REQUIRE(rig.stream->begin_capture().ok());
  REQUIRE(rig.kernels.add_words(*rig.stream, rig.a.all(), rig.b.all(), rig.c.all()).ok());
  REQUIRE(rig.stream->barrier().ok());
  REQUIRE(rig.stream->fill(rig.a.all(), 5).ok());
  REQUIRE(rig.stream->end_capture(&plan.graph).ok());
  REQUIRE(rig.stream->replay(plan.graph).ok());
  if (waits) REQUIRE(rig.stream->wait().ok());
  CHECK(rig.stream->replay(plan.graph).code == Code::Device);
  CHECK_THAT(error_text(), ContainsSubstring("missing barrier") && ContainsSubstring("captured plan"));
}

TEST_CASE("checked: results are those of the device inside", "[runtime]") {
  Rig rig;
  REQUIRE(rig.kernels.write_index(*rig.stream, rig.a.all(), 3).ok());
  REQUIRE(rig.stream->barrier().ok());
  REQUIRE(rig.kernels.add_words(*rig.stream, rig.a.all(), rig.b.all(), rig.c.all()).ok());
  REQUIRE(rig.stream->wait().ok());
  CHECK(read_words(*rig.device, rig.c.all())[1000] == 3001);
}

#if defined(__SANITIZE_THREAD__)
#define FORKS false  // under this sanitizer a child of a threaded process may not start threads
#else
#define FORKS true
#endif

// Runs `plant` in a child process. Returns the signal that ended it, or its negative exit status.
static int in_child(void (*plant)(Rig&)) {
  fflush(nullptr);
  const pid_t child = fork();
  if (child == 0) {
    const rlimit no_core{0, 0};
    setrlimit(RLIMIT_CORE, &no_core);
    signal(SIGSEGV, SIG_DFL);
    Rig rig;
    plant(rig);
    _exit(3);
  }
  int status = 0;
  REQUIRE(waitpid(child, &status, 0) == child);
  return WIFSIGNALED(status) ? WTERMSIG(status) : -WEXITSTATUS(status);
}

TEST_CASE("checked: an access that was not declared faults", "[runtime]") {
  if (!FORKS) SKIP("cannot start threads in a child under this sanitizer");
  SECTION("declared, it does not") {
    CHECK(in_child([](Rig& rig) {
            const Access access[] = {{rig.a.all(), Access::kWrite}};
            if (!rig.index_with(rig.a.all(), access).ok()) _exit(4);
          }) == -3);
  }
  SECTION("a buffer that is missing") {
    CHECK(in_child([](Rig& rig) {
            const Access access[] = {{rig.b.all(), Access::kWrite}};
            (void)rig.index_with(rig.a.all(), access).ok();
          }) == SIGSEGV);
  }
  SECTION("a write that was declared as a read") {
    CHECK(in_child([](Rig& rig) {
            const Access access[] = {{rig.a.all(), Access::kRead}};
            (void)rig.index_with(rig.a.all(), access).ok();
          }) == SIGSEGV);
  }
  SECTION("a range that is a page too short") {
    CHECK(in_child([](Rig& rig) {
            const Access access[] = {{rig.a.slice(0, kCount - 1024), Access::kWrite}};
            (void)rig.index_with(rig.a.all(), access).ok();
          }) == SIGSEGV);
  }
  SECTION("what the launch before was allowed to touch") {
    CHECK(in_child([](Rig& rig) {
            const Access write[] = {{rig.a.all(), Access::kWrite}}, read[] = {{rig.a.all(), Access::kRead}};
            if (!rig.index_with(rig.a.all(), write).ok() || !rig.stream->wait().ok()) _exit(4);
            (void)rig.index_with(rig.a.all(), read).ok();
          }) == SIGSEGV);
    CHECK(in_child([](Rig& rig) {
            const Access own[] = {{rig.a.all(), Access::kWrite}}, other[] = {{rig.b.all(), Access::kWrite}};
            if (!rig.index_with(rig.a.all(), own).ok() || !rig.stream->wait().ok()) _exit(4);
            (void)rig.index_with(rig.a.all(), other).ok();
          }) == SIGSEGV);
  }
  SECTION("in a captured plan") {
    CHECK(in_child([](Rig& rig) {
            const Access access[] = {{rig.a.slice(0, 64), Access::kWrite}};
            Graph graph;
            (void)rig.stream->begin_capture().ok();
            (void)rig.stream->barrier().ok();
            if (!rig.index_with(rig.a.all(), access).ok()) _exit(4);
            if (!rig.stream->end_capture(&graph).ok()) _exit(5);
            (void)rig.stream->replay(graph).ok();
          }) == SIGSEGV);
  }
}

TEST_CASE("written bytes are kept as ranges", "[runtime]") {
  Rig rig;
  Words fresh(*rig.device, 64);
  const auto reads = [&](uint32_t first, uint32_t count) {
    const Access access[] = {{fresh.slice(first, count), Access::kRead}, {rig.a.all(), Access::kWrite}};
    const bool ok = rig.index_with(rig.a.all(), access).ok();
    REQUIRE(rig.stream->barrier().ok());
    return ok;
  };
  const auto write = [&](uint32_t first, uint32_t count) {
    REQUIRE(rig.stream->fill(fresh.slice(first, count), 1).ok());
    REQUIRE(rig.stream->barrier().ok());
  };
  write(10, 5);
  write(20, 5);
  write(30, 5);
  CHECK(reads(10, 5));
  CHECK(!reads(9, 2));
  CHECK(!reads(14, 2));
  CHECK(!reads(12, 10));
  write(15, 5);  // joins two ranges
  CHECK(reads(10, 15));
  CHECK(!reads(10, 16));
  write(0, 64);  // covers all ranges
  CHECK(reads(0, 64));
}
