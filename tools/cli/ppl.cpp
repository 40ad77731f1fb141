// greta-cli ppl: perplexity as llama-perplexity measures it, so that the numbers can be compared. The
// text is cut into windows of -c tokens; in each, the second half is predicted.
#include <algorithm>
#include <chrono>
#include <cmath>
#include <memory>

#include "commands.h"
#include "console.h"
#include "json.h"
#include "model.h"

namespace greta::cli {
namespace {

constexpr uint32_t kRows = 512;  // logits held at a time

struct PplOptions {
  EngineOptions engine;
  std::string file;
  int64_t chunks = -1;
  bool json = false;
};

// Sums over predicted tokens of -log(probability), and of its square.
struct Surprise {
  double sum = 0, squares = 0;
  uint64_t count = 0;

  void add(const float* logits, size_t vocab_size, int32_t token) {
    const double highest = *std::max_element(logits, logits + vocab_size);
    double total = 0;
    for (size_t i = 0; i < vocab_size; ++i) total += std::exp(logits[i] - highest);
    const double value = highest + std::log(total) - logits[token];
    sum += value;
    squares += value * value;
    ++count;
  }
  double perplexity() const { return std::exp(sum / static_cast<double>(count)); }
  // Standard error of the mean, carried over to the perplexity.
  double error() const {
    const double n = static_cast<double>(count);
    const double variance = squares / n - (sum / n) * (sum / n);
    return variance > 0 && count > 1 ? std::sqrt(variance / (n - 1)) * perplexity() : 0;
  }
};

// One window: tokens [size]; those from size / 2 + 1 on are predicted.
void measure_window(greta_session* session, const int32_t* tokens, uint32_t size, size_t vocab_size,
                    Surprise& surprise) {
  const uint32_t first = size / 2;
  check(greta_session_truncate(session, 0));
  check(greta_session_eval(session, tokens, first, GRETA_ROWS_NONE, nullptr));
  for (uint32_t done = first; done < size - 1;) {
    const uint32_t count = std::min(kRows, size - 1 - done);
    const float* rows = nullptr;
    check(greta_session_eval(session, tokens + done, count, GRETA_ROWS_ALL, &rows));
    for (uint32_t t = 0; t < count; ++t) {
      surprise.add(rows + t * vocab_size, vocab_size, tokens[done + t + 1]);
    }
    done += count;
  }
}

int ppl(const PplOptions& options) {
  options.engine.verbosity.apply();
  if (options.chunks == 0) throw Misused("--chunks: at least 1, or -1 for all");
  std::string text = read_file(options.file);
  if (!text.empty() && text.back() == '\n') text.pop_back();  // as llama-perplexity does
  const std::string path = model_path(options.engine.model);
  const Runtime runtime = open_runtime(options.engine.device);
  const Model model = open_model(runtime.get(), path);
  const greta_model_info info = describe(model.get());
  const greta_tokenizer* tokenizer = greta_model_tokenizer(model.get());
  const greta_executor_options executor = executor_options(options.engine.context, info.context, kRows);
  const uint32_t size = executor.context;
  if (size < 4) throw Misused("-c: at least 4 tokens");

  std::vector<int32_t> tokens = encode(tokenizer, text, GRETA_ENCODE_BOS);
  if (tokens.size() < 2 * static_cast<size_t>(size)) {
    throw Failed(format("%s: %zu tokens, and a context of %u needs at least %zu", options.file.c_str(),
                        tokens.size(), size, 2 * static_cast<size_t>(size)));
  }
  uint64_t chunks = tokens.size() / size;
  if (options.chunks >= 0) chunks = std::min(chunks, static_cast<uint64_t>(options.chunks));
  const Session session = open_session(model.get(), executor);
  const bool bos = adds_bos(tokenizer);

  Progress progress("chunk");
  Surprise surprise;
  const auto start = std::chrono::steady_clock::now();
  for (uint64_t i = 0; i < chunks; ++i) {
    int32_t* const window = tokens.data() + i * size;
    if (bos) window[0] = greta_tokenizer_bos(tokenizer);
    measure_window(session.get(), window, size, info.vocab_size, surprise);
    if (options.json) {
      progress.show(format("%llu of %llu", static_cast<unsigned long long>(i + 1),
                           static_cast<unsigned long long>(chunks)));
    } else {
      put(format("[%llu]%.4f,", static_cast<unsigned long long>(i + 1), surprise.perplexity()));
    }
  }
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
  progress.clear();
  if (options.json) {
    put(json_text({{"model", path},
                   {"ppl", surprise.perplexity()},
                   {"error", surprise.error()},
                   {"n_ctx", size},
                   {"chunks", chunks},
                   {"tokens", surprise.count},
                   {"seconds", seconds.count()}}));
  } else {
    put(format("\nFinal estimate: PPL = %.4f +/- %.5f\n", surprise.perplexity(), surprise.error()));
    detail(format("%.1f s, %.2f t/s", seconds.count(), static_cast<double>(chunks * size) / seconds.count()));
  }
  return kExitOk;
}

}  // namespace

Action ppl_command(CLI::App& app) {
  auto options = std::make_shared<PplOptions>();
  options->engine.context.context = 512;
  app.add_option("-f,--file", options->file, "the text")->type_name("TEXT")->required();
  app.add_option("--chunks", options->chunks, "measure only the first N; -1: all")
      ->type_name("N")
      ->check(CLI::Range(int64_t{-1}, int64_t{INT32_MAX}))
      ->capture_default_str();
  app.add_flag("--json", options->json, "the result as JSON");
  add_options(app, options->engine);
  app.get_option("--ctx-size")
      ->description("tokens of a chunk; 0: the model's context")
      ->capture_default_str();
  return [options] { return ppl(*options); };
}

}  // namespace greta::cli
