#include "bench/drafting.h"

#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <algorithm>
#include <chrono>

#include "bench/tokens.h"
#include "bench/warm_up.h"
#include "console.h"
#include "slips.h"

namespace greta::cli {
namespace {

constexpr uint32_t kMostWarmUps = 24;  // that are not counted

// A session that writes the same text again and again.
class Writer {
 public:
  Writer(greta_model* model, const greta_model_info& info, const ContextOptions& given, const DraftTest& test)
      : test_(test), before_(some_tokens(info.vocab_size, test.depth + 1)) {
    ContextOptions context = given;
    context.context = int64_t{test.depth} + 1 + test.generate;
    session_ = open_session(model, executor_options(context, info.context, 1));
    say_later_notes();
    // The likeliest tokens are nearly always those of a step of another size. Of a drawn text with random
    // weights hardly one is, since its draws fall on 150,000 tokens of nearly equal weight. But a text of
    // likeliest tokens repeats itself, from which guesses of the text itself would gain more than they
    // should.
    const bool draws = test.kind == "ngram" || test.kind == "ngram-simple";
    check(greta_session_temperature(session_.get(), draws ? 1 : 0));
    if (test.depth > 0) {
      const float* row = nullptr;
      check(greta_session_eval(session_.get(), before_.data(), test.depth, GRETA_ROWS_LAST, &row));
    }
  }

  uint64_t write() {
    text_ = before_;
    check(greta_session_truncate(session_.get(), test_.depth));
    check(greta_session_seed(session_.get(), 1));
    auto options = sized<greta_generate_options>();
    options.max_tokens = test_.generate;
    options.ignore_end = 1;
    options.user = this;
    options.on_token = [](void* user, int32_t token, const char*, size_t) {
      if (token >= 0) static_cast<Writer*>(user)->text_.push_back(token);
      return 0;
    };
    result_ = sized<greta_generate_result>();
    const auto start = std::chrono::steady_clock::now();
    check(greta_session_generate(session_.get(), &before_.back(), 1, &options, &result_));
    const auto time = std::chrono::steady_clock::now() - start;
    if (result_.generated_tokens != test_.generate) throw Failed("the context is too small for this test");
    return static_cast<uint64_t>(std::chrono::duration_cast<std::chrono::nanoseconds>(time).count());
  }

  greta_session* session() const { return session_.get(); }
  const std::vector<int32_t>& text() const { return text_; }
  const greta_generate_result& result() const { return result_; }

 private:
  const DraftTest test_;
  const std::vector<int32_t> before_;
  Session session_;
  std::vector<int32_t> text_;
  greta_generate_result result_{};
};

// Guesses what a text is known to have, and something else for as many tokens as shall be wrong.
struct Known {
  std::vector<int32_t> text;
  uint32_t right = 100;  // percent

  static size_t guess(void* user, const int32_t*, size_t count, int32_t* out, size_t most) {
    const auto* known = static_cast<const Known*>(user);
    const size_t there = known->text.size() - std::min(count, known->text.size());
    for (size_t i = 0; i < std::min(most, there); ++i) {
      const size_t at = count + i;
      const auto hash = static_cast<uint32_t>((at + 1) * 0x9e3779b97f4a7c15U >> 32);
      const bool right = hash % 100 < known->right;
      out[i] = right ? known->text[at] : known->text[at] == 0;
    }
    return std::min(most, there);
  }
};

double per_second(uint32_t tokens, std::vector<uint64_t> samples_ns) {
  std::sort(samples_ns.begin(), samples_ns.end());
  const double ns = static_cast<double>(samples_ns.at(samples_ns.size() / 2));
  return 1e9 * tokens / std::max(ns, 1.0);
}

}  // namespace

void add_options(CLI::App& app, DraftBenchOptions& options) {
  app.add_option("--spec,--spec-type", options.kind,
                 "measure texts whose tokens are guessed by: draft-mtp, draft-simple, ngram; known: who "
                 "knows the text")
      ->type_name("KIND")
      ->check(one_of({"none", "known", "ngram", "ngram-simple", "draft-mtp", "draft-simple"}));
  app.add_option("--model-draft,--spec-draft-model", options.second, "the model that guesses")
      ->type_name("FILE");
  app.add_option("--draft-max,--draft,--draft-n,--spec-draft-n-max", options.tokens,
                 "with --spec-type: the most tokens that are guessed for a step, 1 to 7 [3]")
      ->type_name("X[,X]")
      ->multi_option_policy(CLI::MultiOptionPolicy::Join);
  app.add_option("--draft-right", options.right,
                 "with --spec-type: make so many percent of the guesses right, at the cost of who makes them")
      ->type_name("X[,X]")
      ->multi_option_policy(CLI::MultiOptionPolicy::Join);
}

std::vector<DraftTest> make_draft_tests(const DraftBenchOptions& options, const std::string& lengths,
                                        const std::string& depths) {
  std::vector<DraftTest> tests;
  if (!options.any() || options.kind == "none") return tests;
  const std::string kind = !options.kind.empty()     ? options.kind
                           : !options.second.empty() ? "draft-simple"
                                                     : "known";
  if ((kind == "draft-simple") == options.second.empty())
    throw Misused("--spec-type draft-simple and -md FILE go with each other (see greta-cli bench -h)");
  const bool free = kind == "ngram" || kind == "ngram-simple";
  if (free && !options.right.empty())
    throw Misused("--draft-right does not go with --spec-type " + kind + " (see greta-cli bench -h)");
  std::vector<uint32_t> shares;
  if (!options.right.empty()) shares = parse_list("--draft-right", options.right, 0);
  if (kind == "known" && shares.empty()) shares = {100};
  const std::string tokens = options.tokens.empty() ? "3" : options.tokens;
  for (uint32_t depth : parse_list("-d", depths, 0))
    for (uint32_t length : parse_list("-n", lengths, 2))
      for (uint32_t most : parse_list("--draft", tokens, 1)) {
        DraftTest test{kind, std::min(most, 7U), -1, length, depth};
        if (shares.empty()) tests.push_back(test);
        for (uint32_t share : shares) {
          test.right = static_cast<int>(std::min(share, 100U));
          tests.push_back(test);
        }
      }
  return tests;
}

std::string test_name(const DraftTest& test) {
  const std::string name =
      test_name(0, test.generate, test.depth) + " " + test.kind + format(" %u", test.tokens);
  return test.right < 0 ? name : name + format(", %d %% right", test.right);
}

DraftedText write_plain(greta_model* model, const greta_model_info& info, const ContextOptions& context,
                        const DraftTest& test, uint32_t repetitions) {
  Writer writer(model, info, context, test);
  DraftedText text;
  WarmUp warm_up;
  while (warm_up.goes_on()) warm_up.add(writer.write());
  for (uint32_t r = 0; r < repetitions; ++r) text.samples_ns.push_back(writer.write());
  text.tokens = writer.text();
  return text;
}

DraftNumbers measure(greta_model* model, const ContextOptions& context, const DraftTest& test,
                     uint32_t repetitions, greta_executor* second, const DraftedText& plain, BenchRow* row) {
  Writer writer(model, row->model, context, test);
  Known known{plain.tokens, static_cast<uint32_t>(std::max(test.right, 0))};
  const bool is_known = test.kind == "known";
  DraftOptions options;
  options.kind = is_known ? "ngram" : test.kind;
  options.tokens = test.tokens;
  options.executor = second;
  if (second) options.model = "-";
  greta_draft_options draft = draft_options(options);
  if (is_known) draft.kind = GRETA_DRAFT_CALLBACK;
  if (test.right >= 0) draft.guess = Known::guess, draft.user = &known;
  check(greta_session_draft(writer.session(), &draft));

  WarmUp warm_up;
  bool same = false;
  for (uint32_t run = 0; run < kMostWarmUps && (warm_up.goes_on() || !same); ++run) {
    warm_up.add(writer.write());
    same = test.right < 0 || known.text == writer.text();
    known.text = writer.text();
  }
  warm_up.tell(test_name(test), row);
  if (!same) note(test_name(test) + ": each run wrote another text, so that fewer guesses were right");
  DraftNumbers numbers;
  row->samples_ns.clear();
  for (uint32_t r = 0; r < repetitions; ++r) {
    row->samples_ns.push_back(writer.write());
    numbers.drafted += writer.result().drafted_tokens;
    numbers.right += writer.result().accepted_tokens;
    numbers.steps += writer.result().draw_steps;
  }
  numbers.tokens = uint64_t{test.generate} * repetitions;
  numbers.plain_ts = per_second(test.generate, plain.samples_ns);
  numbers.drafted_ts = per_second(test.generate, row->samples_ns);
  return numbers;
}

}  // namespace greta::cli
