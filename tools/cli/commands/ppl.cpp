// greta-cli ppl: measures perplexity as llama-perplexity does, so that the numbers can be compared. The text
// is cut into windows of -c tokens, and in each the second half is predicted. Predictions can be saved, and
// the predictions of another model can be compared with saved ones.
#include <algorithm>
#include <chrono>
#include <memory>

#include "adapters.h"
#include "commands/commands.h"
#include "console.h"
#include "json.h"
#include "logits/divergence.h"
#include "logits/file.h"
#include "model.h"
#include "slips.h"

namespace greta::cli {
namespace {

constexpr uint32_t kRowsHeld = 512;  // rows of logits that are held at a time

struct PplOptions {
  EngineOptions engine;
  std::string file, base;
  int64_t chunks = -1;
  bool compare = false, json = false;
  const CLI::Option* context_option = nullptr;
};

// What is made of each prediction. At most one of writer and reader exists.
struct Measurement {
  Mean surprise;  // -log(probability) of the tokens that really followed
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

// Measures one window. tokens: [size], of which those from size / 2 + 1 on are predicted.
void measure_window(greta_session* session, const int32_t* tokens, uint32_t size, size_t vocab_size,
                    Measurement& measurement) {
  const uint32_t first = size / 2;
  check(greta_session_truncate(session, 0));
  check(greta_session_eval(session, tokens, first, GRETA_ROWS_NONE, nullptr));
  for (uint32_t done = first; done < size - 1;) {
    const uint32_t count = std::min(kRowsHeld, size - 1 - done);
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

// Checks that a saved run has this vocabulary, this window and, where one is given, this text.
void check_base(const LogitsReader& base, const greta_tokenizer* tokenizer, uint32_t vocab_size,
                uint32_t size, const std::vector<int32_t>* text_tokens) {
  const LogitsHeader& header = base.header();
  const std::vector<int32_t>& tokens = base.tokens();
  const auto fail = [&](const std::string& what) { throw Failed(base.path() + ": " + what); };
  if (static_cast<uint32_t>(header.vocab_size) != vocab_size) {
    fail(format("it is from a model with %d tokens, and this model has %u", header.vocab_size, vocab_size));
  }
  if (header.context != size) fail(format("it was made with -c %u, not %u", header.context, size));
  if (adds_bos(tokenizer) && tokens[0] != greta_tokenizer_bos(tokenizer)) {
    fail(format(
        "it begins with token %d, and texts of this model begin with %d: it is from another vocabulary",
        tokens[0], greta_tokenizer_bos(tokenizer)));
  }
  if (!text_tokens) return;
  const auto [in_base, in_text] =
      std::mismatch(tokens.begin(), tokens.end(), text_tokens->begin(), text_tokens->end());
  if (in_base != tokens.end()) {
    fail(
        format("it is from another text or another vocabulary: token %td differs", in_base - tokens.begin()));
  }
}

// Prints the figures after a chunk, or shows progress where JSON is printed at the end.
void show_chunk(const PplOptions& options, const Measurement& measurement, uint64_t done, uint64_t chunks,
                Progress& progress) {
  const auto number = [](uint64_t n) { return static_cast<unsigned long long>(n); };
  if (options.json) return progress.show(format("%llu of %llu", number(done), number(chunks)));
  if (measurement.reader) return put(measurement.divergence.chunk_text(done));
  put(format("[%llu]%.4f,", number(done), perplexity(measurement.surprise.estimate()).value));
}

// Takes the tokens to predict from the saved run, or else from the text.
std::vector<int32_t> choose_tokens(const PplOptions& options, const std::string& text,
                                   const Measurement& measurement, const greta_tokenizer* tokenizer,
                                   uint32_t vocab_size, uint32_t size) {
  std::vector<int32_t> tokens;
  if (!options.file.empty()) tokens = encode(tokenizer, text, GRETA_ENCODE_BOS);
  if (measurement.reader) {
    check_base(*measurement.reader, tokenizer, vocab_size, size, options.file.empty() ? nullptr : &tokens);
    return measurement.reader->tokens();
  }
  const size_t least = 2 * static_cast<size_t>(size);
  if (tokens.size() < least) {
    throw Failed(format("%s has %zu tokens, and a context of %u needs at least %zu", options.file.c_str(),
                        tokens.size(), size, least));
  }
  return tokens;
}

// Prints what was measured over so many chunks of `size` tokens.
void print_result(const PplOptions& options, const Measurement& measurement, const std::string& model_file,
                  uint32_t size, uint64_t chunks, double seconds) {
  const Estimate result = perplexity(measurement.surprise.estimate());
  if (options.json) {
    Json json = {{"model", model_file}, {"ppl", result.value}, {"error", result.error},
                 {"n_ctx", size},       {"chunks", chunks},    {"tokens", measurement.surprise.count()},
                 {"seconds", seconds}};
    if (!options.base.empty()) json["base"] = options.base;
    if (measurement.reader) json.update(measurement.divergence.json());
    put(json_text(json));
    return;
  }
  put(measurement.reader ? measurement.divergence.text()
                         : format("\nFinal estimate: PPL = %.4f +/- %.5f\n", result.value, result.error));
  detail(format("%.1f s, %.2f t/s", seconds, static_cast<double>(chunks * size) / seconds));
}

int ppl(const PplOptions& options) {
  options.engine.verbosity.apply();
  if (options.chunks == 0) throw Misused("--chunks takes at least 1, or -1 for all");
  if (options.file.empty() && !options.compare) throw Misused("there is no text: give -f FILE");
  const std::string text = options.file.empty() ? "" : read_whole_text(options.file);
  Measurement measurement;
  ContextOptions context = options.engine.context;
  if (options.compare) {
    measurement.reader = std::make_unique<LogitsReader>(options.base);
    if (options.context_option->count() == 0) context.context = measurement.reader->header().context;
  }
  const std::string path = model_path(options.engine.model);
  const greta_executor_options wanted = wanted_executor(options.engine.context, path);
  const Runtime runtime = open_runtime(options.engine.device, path, wanted);
  const Model model =
      open_model(runtime.get(), path, !options.engine.model.copy, options.engine.device, wanted);
  const greta_model_info info = describe(model.get());
  const greta_tokenizer* tokenizer = greta_model_tokenizer(model.get());
  const greta_executor_options executor = executor_options(context, info.context, kRowsHeld);
  const uint32_t size = executor.context;
  if (size < 4) throw Misused("-c takes at least 4 tokens");
  std::vector<int32_t> tokens = choose_tokens(options, text, measurement, tokenizer, info.vocab_size, size);
  uint64_t chunks = tokens.size() / size;
  if (options.chunks >= 0) chunks = std::min(chunks, static_cast<uint64_t>(options.chunks));
  const Adapters adapters = open_adapters(model.get(), options.engine.adapters);
  const Session session = open_session(model.get(), executor);
  use_adapters(session.get(), adapters);
  say_later_notes();
  if (!options.base.empty() && !options.compare) {
    const LogitsHeader header{size, static_cast<int32_t>(info.vocab_size), static_cast<int32_t>(chunks)};
    measurement.writer = std::make_unique<LogitsWriter>(options.base, header, tokens.data());
  }

  Progress progress("chunk");
  if (measurement.reader && !options.json) put(Divergence::chunk_heading());
  const bool bos = adds_bos(tokenizer);
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
  print_result(options, measurement, path, size, chunks, seconds.count());
  return kExitOk;
}

}  // namespace

Action ppl_command(CLI::App& app) {
  auto options = std::make_shared<PplOptions>();
  options->engine.context.context = 512;
  app.add_option("-f,--file", options->file,
                 "read the text from this file; with --kl-divergence, the base has the text")
      ->type_name("TEXT");
  app.add_option("--chunks", options->chunks, "measure only the first N chunks; -1: all")
      ->type_name("N")
      ->check(in_range(int64_t{-1}, INT32_MAX))
      ->capture_default_str();
  CLI::Option* const base = app.add_option("--kl-divergence-base,--save-all-logits", options->base,
                                           "save the predictions in this file")
                                ->type_name("FILE");
  app.add_flag("--kl-divergence", options->compare, "compare with the predictions in --kl-divergence-base")
      ->needs(base);
  app.add_flag("--json", options->json, "print the result as JSON");
  add_options(app, options->engine);
  add_options(app, options->engine.adapters);
  options->context_option = app.get_option("--ctx-size")
                                ->description("tokens of a chunk; 0: the context of the model")
                                ->capture_default_str();
  return [options] { return ppl(*options); };
}

}  // namespace greta::cli
