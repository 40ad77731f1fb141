// greta-cli ppl: perplexity as llama-perplexity measures it, so that the numbers can be compared. The
// text is cut into windows of -c tokens; in each, the second half is predicted. What was predicted can be
// saved, and what another model predicts be compared with it.
#include <algorithm>
#include <chrono>
#include <memory>

#include "commands.h"
#include "console.h"
#include "divergence.h"
#include "json.h"
#include "logits_file.h"
#include "model.h"

namespace greta::cli {
namespace {

constexpr uint32_t kRows = 512;  // logits held at a time

struct PplOptions {
  EngineOptions engine;
  std::string file, base;
  int64_t chunks = -1;
  bool compare = false, json = false;
  const CLI::Option* context_option = nullptr;
};

// What is made of each prediction. At most one of writer and reader is there.
struct Measurement {
  Mean surprise;  // -log(probability) of the tokens that came
  std::unique_ptr<LogitsWriter> writer;
  std::unique_ptr<LogitsReader> reader;
  Divergence divergence;

  void add(const float* logits, size_t vocab_size, int32_t token) {
    const double total = log_total(logits, vocab_size);
    surprise.add(total - logits[token]);
    if (writer) writer->write(logits, total);
    if (reader) divergence.add(logits, total, reader->next(), token);
  }
};

// One window: tokens [size]; those from size / 2 + 1 on are predicted.
void measure_window(greta_session* session, const int32_t* tokens, uint32_t size, size_t vocab_size,
                    Measurement& measurement) {
  const uint32_t first = size / 2;
  check(greta_session_truncate(session, 0));
  check(greta_session_eval(session, tokens, first, GRETA_ROWS_NONE, nullptr));
  for (uint32_t done = first; done < size - 1;) {
    const uint32_t count = std::min(kRows, size - 1 - done);
    const float* rows = nullptr;
    check(greta_session_eval(session, tokens + done, count, GRETA_ROWS_ALL, &rows));
    for (uint32_t t = 0; t < count; ++t) {
      measurement.add(rows + t * vocab_size, vocab_size, tokens[done + t + 1]);
    }
    done += count;
  }
}

std::string read_whole_text(const std::string& file) {
  std::string text = read_file(file);
  if (!text.empty() && text.back() == '\n') text.pop_back();  // as llama-perplexity does
  return text;
}

// Whether a saved run is one of this vocabulary, this window and, where one is given, this text.
void check_base(const LogitsReader& base, const greta_tokenizer* tokenizer, uint32_t vocab_size,
                uint32_t size, const std::vector<int32_t>* text_tokens) {
  const LogitsHeader& header = base.header();
  const std::vector<int32_t>& tokens = base.tokens();
  const auto fail = [&](const std::string& what) { throw Failed(base.path() + ": " + what); };
  if (static_cast<uint32_t>(header.vocab_size) != vocab_size) {
    fail(format("from a model with %d tokens, this one has %u", header.vocab_size, vocab_size));
  }
  if (header.context != size) fail(format("made with -c %u, not %u", header.context, size));
  if (adds_bos(tokenizer) && tokens[0] != greta_tokenizer_bos(tokenizer)) {
    fail(format("begins with token %d, and this model's texts with %d: from a model with another vocabulary",
                tokens[0], greta_tokenizer_bos(tokenizer)));
  }
  if (!text_tokens) return;
  const auto [in_base, in_text] =
      std::mismatch(tokens.begin(), tokens.end(), text_tokens->begin(), text_tokens->end());
  if (in_base != tokens.end()) {
    fail(format("from another text or another vocabulary: token %td differs", in_base - tokens.begin()));
  }
}

// Where chunks print nothing by themselves, progress shows them.
void show_chunk(const PplOptions& options, const Measurement& measurement, uint64_t done, uint64_t chunks,
                Progress& progress) {
  const auto number = [](uint64_t n) { return static_cast<unsigned long long>(n); };
  if (options.json) return progress.show(format("%llu of %llu", number(done), number(chunks)));
  if (measurement.reader) return put(measurement.divergence.chunk_text(done));
  put(format("[%llu]%.4f,", number(done), perplexity(measurement.surprise.estimate()).value));
}

int ppl(const PplOptions& options) {
  options.engine.verbosity.apply();
  if (options.chunks == 0) throw Misused("--chunks: at least 1, or -1 for all");
  if (options.file.empty() && !options.compare) throw Misused("-f FILE: the text is needed");
  const std::string text = options.file.empty() ? "" : read_whole_text(options.file);
  Measurement measurement;
  ContextOptions context = options.engine.context;
  if (options.compare) {
    measurement.reader = std::make_unique<LogitsReader>(options.base);
    if (options.context_option->count() == 0) context.context = measurement.reader->header().context;
  }
  const std::string path = model_path(options.engine.model);
  const Runtime runtime = open_runtime(options.engine.device);
  const Model model = open_model(runtime.get(), path, !options.engine.model.copy);
  const greta_model_info info = describe(model.get());
  const greta_tokenizer* tokenizer = greta_model_tokenizer(model.get());
  const greta_executor_options executor = executor_options(context, info.context, kRows);
  const uint32_t size = executor.context;
  if (size < 4) throw Misused("-c: at least 4 tokens");

  std::vector<int32_t> tokens;
  if (!options.file.empty()) tokens = encode(tokenizer, text, GRETA_ENCODE_BOS);
  if (measurement.reader) {
    check_base(*measurement.reader, tokenizer, info.vocab_size, size,
               options.file.empty() ? nullptr : &tokens);
    tokens = measurement.reader->tokens();
  } else if (tokens.size() < 2 * static_cast<size_t>(size)) {
    throw Failed(format("%s: %zu tokens, and a context of %u needs at least %zu", options.file.c_str(),
                        tokens.size(), size, 2 * static_cast<size_t>(size)));
  }
  uint64_t chunks = tokens.size() / size;
  if (options.chunks >= 0) chunks = std::min(chunks, static_cast<uint64_t>(options.chunks));
  const Session session = open_session(model.get(), executor);
  const bool bos = adds_bos(tokenizer);
  if (!options.base.empty() && !options.compare) {
    const LogitsHeader header{size, static_cast<int32_t>(info.vocab_size), static_cast<int32_t>(chunks)};
    measurement.writer = std::make_unique<LogitsWriter>(options.base, header, tokens.data());
  }

  Progress progress("chunk");
  if (measurement.reader && !options.json) put(Divergence::chunk_heading());
  const auto start = std::chrono::steady_clock::now();
  for (uint64_t i = 0; i < chunks; ++i) {
    int32_t* const window = tokens.data() + i * size;
    if (bos) window[0] = greta_tokenizer_bos(tokenizer);
    measure_window(session.get(), window, size, info.vocab_size, measurement);
    show_chunk(options, measurement, i + 1, chunks, progress);
  }
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
  progress.clear();
  if (measurement.writer) measurement.writer->finish();

  const Estimate result = perplexity(measurement.surprise.estimate());
  if (options.json) {
    Json json = {{"model", path},
                 {"ppl", result.value},
                 {"error", result.error},
                 {"n_ctx", size},
                 {"chunks", chunks},
                 {"tokens", measurement.surprise.count()},
                 {"seconds", seconds.count()}};
    if (!options.base.empty()) json["base"] = options.base;
    if (measurement.reader) json.update(measurement.divergence.json());
    put(json_text(json));
  } else if (measurement.reader) {
    put(measurement.divergence.text());
  } else {
    put(format("\nFinal estimate: PPL = %.4f +/- %.5f\n", result.value, result.error));
  }
  if (!options.json) {
    detail(format("%.1f s, %.2f t/s", seconds.count(), static_cast<double>(chunks * size) / seconds.count()));
  }
  return kExitOk;
}

}  // namespace

Action ppl_command(CLI::App& app) {
  auto options = std::make_shared<PplOptions>();
  options->engine.context.context = 512;
  app.add_option("-f,--file", options->file, "the text; with --kl-divergence it is known without")
      ->type_name("TEXT");
  app.add_option("--chunks", options->chunks, "measure only the first N; -1: all")
      ->type_name("N")
      ->check(CLI::Range(int64_t{-1}, int64_t{INT32_MAX}))
      ->capture_default_str();
  CLI::Option* const base =
      app.add_option("--kl-divergence-base,--save-all-logits", options->base, "save what is predicted")
          ->type_name("FILE");
  app.add_flag("--kl-divergence", options->compare, "compare with what was saved in --kl-divergence-base")
      ->needs(base);
  app.add_flag("--json", options->json, "the result as JSON");
  add_options(app, options->engine);
  options->context_option = app.get_option("--ctx-size")
                                ->description("tokens of a chunk; 0: the model's context")
                                ->capture_default_str();
  return [options] { return ppl(*options); };
}

}  // namespace greta::cli
