// How often a header is read, and how much memory it takes.
#include <catch2/catch_test_macros.hpp>

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
  INFO(reads.calls << " reads of " << reads.bytes << " bytes, " << memory.peak_bytes() << " held");
  CHECK(reads.calls < 40);
  CHECK(reads.bytes <= reads.file.size());
  CHECK(memory.peak_bytes() < 4 * reads.file.size());
}
