// How often a header is read, and how much memory it takes.
#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>

#include "gguf/gguf.h"
#include "support/failing_memory.h"
#include "support/gguf_writer.h"

using namespace greta;
using test::GgufWriter;

namespace {

struct Reads {
  std::string file;
  uint64_t calls = 0, bytes = 0;
  static int read(void* user, uint64_t offset, void* to, uint64_t bytes) {
    auto& self = *static_cast<Reads*>(user);
    ++self.calls;
    self.bytes += bytes;
    memcpy(to, self.file.data() + offset, bytes);
    return 0;
  }
};

}  // namespace

// llama.cpp#19919.
TEST_CASE("a header of 150,000 tokens is read in pieces that grow, each byte once", "[engine][gguf]") {
  std::vector<std::string> tokens(150'000);
  for (size_t i = 0; i < tokens.size(); ++i) tokens[i] = "token" + std::to_string(i);
  Reads reads{GgufWriter().value("tokenizer.ggml.tokens", tokens).file()};
  const test::FailingMemory memory(0);
  Source source;
  REQUIRE(source.open_callback(Reads::read, &reads, reads.file.size()).ok());
  Gguf gguf;
  REQUIRE(gguf.open(std::move(source)).ok());
  CHECK(gguf.held_bytes() <= reads.file.size());
  CHECK(gguf.source().calls_back());
  INFO(reads.calls << " reads of " << reads.bytes << " bytes, " << memory.peak_bytes() << " held");
  CHECK(reads.calls < 40);
  CHECK(reads.bytes <= reads.file.size());
  CHECK(memory.peak_bytes() < 4 * reads.file.size());
}

TEST_CASE("a header for which there is no memory is a status or an exception", "[engine][gguf]") {
  std::vector<std::string> tokens(20'000, "token");
  Reads reads{GgufWriter().value("tokenizer.ggml.tokens", tokens).tensor("a", 0, {1}, "0123").file()};
  uint64_t said = 0, thrown = 0;
  for (uint64_t n = 1;; ++n) {
    const uint64_t before = test::live_allocations();
    {
      Source source;
      REQUIRE(source.open_callback(Reads::read, &reads, reads.file.size()).ok());
      const test::FailingMemory failing(n);
      Status status;
      try {
        status = Gguf().open(std::move(source));
      } catch (const std::bad_alloc&) {
        ++thrown;
      }
      if (!failing.failed()) break;
      if (status.code == Code::Memory) ++said;
    }
    CHECK(test::live_allocations() == before);
  }
  CHECK(std::string(error_text()).find("a header of") != std::string::npos);
  CHECK(said >= 3);  // the buffer is enlarged twice and cut to size once
  CHECK(thrown > 0);
}

// Refuses a file with a sentence that has `words`, in at most the memory that a refusal may take.
static void refuse(std::string file, uint64_t header, const char* words) {
  Reads reads{std::move(file)};
  const test::FailingMemory memory(0);
  Source source;
  REQUIRE(source.open_callback(Reads::read, &reads, reads.file.size()).ok());
  CHECK(Gguf().open(std::move(source)).code == Code::File);
  CHECK(std::string(error_text()).find(words) != std::string::npos);
  INFO(memory.peak_bytes() << " bytes for a header of " << header);
  CHECK(memory.peak_bytes() > header);
  CHECK(memory.peak_bytes() < test::kMostOfRefusal);
}

// The sizes that take the most memory: a vector that grows by doubling has just doubled, or is the largest.
TEST_CASE("refusing a header of as many tensors as may be takes little memory", "[engine][gguf]") {
  const uint64_t count = GENERATE(kMaxTensors / 2 + 1, kMaxTensors);
  GgufWriter writer;
  for (uint64_t i = 0; i < count; ++i)
    writer.raw_tensor(std::to_string(i % (count - 1)) + std::string(kMaxTensorNameBytes - 5, 'x'), 4,
                      {1, 1, 1, 1}, 24, i * 32);
  writer.data(std::string(count * 32, 0));
  refuse(writer.file(), writer.header().size(), "there are two of this name");
}

TEST_CASE("refusing a header of 25 MB and as many keys as may be takes little memory", "[engine][gguf]") {
  constexpr uint64_t kBytes = 25'000'000, kKeyBytes = kBytes / kMaxPairs - 16;
  GgufWriter writer;
  for (uint64_t i = 0; i < kMaxPairs; ++i) {
    const std::string key = std::to_string(i % (kMaxPairs - 1));
    writer.value(key + std::string(kKeyBytes - key.size(), 'x'), uint32_t(i));
  }
  REQUIRE(writer.header().size() > kBytes - 100'000);
  refuse(writer.file(), writer.header().size(), "there are two entries of this name");
}
