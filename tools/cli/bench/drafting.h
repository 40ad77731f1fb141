// Measures texts whose tokens are guessed, beside the same texts without guesses.
#pragma once
#include "bench/report.h"
#include "model.h"

namespace greta::cli {

struct DraftTest {
  std::string kind;     // "known": who knows what is written without guesses; else as --spec-type has it
  uint32_t tokens = 3;  // the most that are guessed for a step
  int right = -1;       // percent of the guesses; -1: as they come
  uint32_t generate = 0, depth = 0;
};

struct DraftBenchOptions {
  std::string kind, second, tokens, right;  // "": as the others say; none; 3; as they come
  bool any() const {
    return (!kind.empty() && kind != "none") || !second.empty() || !tokens.empty() || !right.empty();
  }
};
void add_options(CLI::App& app, DraftBenchOptions& options);
// Each length of a text, behind each number of tokens, with each depth of guesses and share of right ones.
std::vector<DraftTest> make_draft_tests(const DraftBenchOptions& options, const std::string& lengths,
                                        const std::string& depths);

std::string test_name(const DraftTest& test);  // "tg128 draft-mtp 3, 100 % right"

// What is written behind the same tokens each time.
struct DraftedText {
  std::vector<int32_t> tokens;
  std::vector<uint64_t> samples_ns;
};

// Writes the text of a test without guesses.
DraftedText write_plain(greta_model* model, const greta_model_info& info, const ContextOptions& context,
                        const DraftTest& test, uint32_t repetitions);
// Writes it with guesses, those of `second` for "draft-simple", and sets row->samples_ns. What makes guesses
// right is the text that such steps themselves have written before, since steps of other sizes round
// otherwise.
DraftNumbers measure(greta_model* model, const ContextOptions& context, const DraftTest& test,
                     uint32_t repetitions, greta_executor* second, const DraftedText& plain, BenchRow* row);

}  // namespace greta::cli
