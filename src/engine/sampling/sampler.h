// Chooses a token on the host from a row of logits: sampler steps narrow the candidates, then one is drawn.
//
// The steps, their order and their defaults are llama.cpp's; docs/sampling.md has formulas and sources. Draws
// are Philox(seed, position), as on the device. For settings that the device's kernel supports (on_device)
// both choose the same token.
#pragma once
#include <algorithm>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "gguf/gguf.h"

namespace greta {

enum class SamplerStep : uint8_t { Penalties, Dry, TopNSigma, TopK, TypicalP, TopP, MinP, Xtc, Temperature };
constexpr uint32_t kMaxSamplerSteps = 32;
constexpr uint32_t kMaxDryBreakers = 64;
constexpr uint32_t kMaxDryBreakerBytes = 64;

struct LogitBias {
  int32_t token;
  float bias;  // -infinity excludes the token
};

// The tokens at which a repetition that DRY looks for ends: `token`, followed by `tail`.
struct DryBreaker {
  int32_t token;
  std::vector<int32_t> tail;
};

struct DrySettings {
  float multiplier = 0, base = 1.75f;
  uint32_t allowed_length = 2;
  uint32_t last_n = 0;  // how many of the last tokens it looks at; 0: all
  std::vector<DryBreaker> breakers;
};

struct LogitFilter {
  int (*call)(void* user, float* logits, size_t vocab, const int32_t* tokens, size_t count) = nullptr;
  void* user = nullptr;
};

std::vector<SamplerStep> default_sampler_order();  // each step once, as the enum has them

// By these defaults every step is off and the most likely token is chosen.
struct SamplerSettings {
  float temperature = 0, dynamic_range = 0, dynamic_exponent = 1;
  uint32_t top_k = 0;
  float top_p = 1, min_p = 0, typical_p = 1, top_n_sigma = 0;
  float xtc_probability = 0, xtc_threshold = 0.1f;
  float repeat = 1, frequency = 0, presence = 0;
  uint32_t penalty_last_n = 0;
  float mirostat_tau = 0, mirostat_eta = 0.1f;
  uint64_t seed = 0;
  DrySettings dry;
  std::vector<LogitBias> bias;
  LogitFilter filter;
  std::vector<SamplerStep> order = default_sampler_order();
};

// Reads steps from names such as "penalties;dry;top_k". "" means no steps. Unknown names fail.
Status parse_sampler_order(std::string_view text, std::vector<SamplerStep>* out);

// Fails if a setting is out of its range, and names it.
Status check_sampling(const SamplerSettings& settings);

// Finds the tokens at which one of `texts` ends a repetition: every token that holds one of them, or that
// ends with the beginning of one, with the tokens that must follow.
class Tokenizer;
Status find_dry_breakers(const Tokenizer& tokenizer, std::span<const std::string_view> texts,
                         std::vector<DryBreaker>* out);
extern const std::string_view kDryBreakers[4];

// The settings that a file recommends by general.sampling.*. A value out of its range counts as absent.
struct SamplingDefaults {
  enum Field : uint32_t {
    kTemperature = 1,
    kTopK = 2,
    kTopP = 4,
    kMinP = 8,
    kRepeat = 16,
    kRepeatLastN = 32,
    kXtcProbability = 64,
    kXtcThreshold = 128,
    kMirostat = 256,
    kMirostatTau = 512,
    kMirostatEta = 1024,
    kOrder = 2048
  };
  uint32_t fields = 0;  // a bit for each setting that the file has
  float temperature = 0, top_p = 1, min_p = 0, repeat = 1;
  uint32_t top_k = 0;
  int32_t repeat_last_n = 0;
  float xtc_probability = 0, xtc_threshold = 0;
  uint32_t mirostat = 0;
  float mirostat_tau = 0, mirostat_eta = 0;
  std::string order;
};
SamplingDefaults sampling_defaults(const Gguf& gguf);

struct Candidate {
  double logit;
  int32_t id;
};

// The candidates that are left. The first `sorted` are the best ones in order: the larger logit first, then
// the lower id. The rest is in order of id until something sorts it.
struct Candidates {
  std::vector<Candidate> list;
  size_t sorted = 0;
  double max() const;
  void sort_to(size_t count);
  void keep(size_t count);  // keeps the first `count`, which must be sorted
};

class Sampler {
 public:
  const SamplerSettings& settings() const { return *settings_; }
  void set(SamplerSettings settings);

  // Returns true if the device's kernel does all that is asked for, in the same order.
  bool on_device() const { return on_device_; }

  // logits    [vocab]
  // allowed   [ceil(vocab / 64)] words with a bit for each token that a grammar allows, or null
  // history   the sequence's tokens so far; the new token follows the last of them
  // +infinity counts as the largest float; NaN and -infinity are never chosen. Fails with File if no logit is
  // finite, with Argument if no candidate is left, and with Cancelled if the filter says so.
  Status choose(std::span<const float> logits, const uint64_t* allowed, std::span<const int32_t> history,
                int32_t* out);

  // What the steps of the last choice have left, of which the token was drawn: each as likely as exp(logit).
  // The best `count` of them come first, in order.
  std::span<const Candidate> left(size_t count) {
    candidates_.sort_to(std::min(count, candidates_.list.size()));
    return candidates_.list;
  }

  // Tells the sampler that the sequence was truncated to `position` tokens.
  void truncate(size_t position);
  // Tells it that the last token of the sequence now stands `count` positions earlier.
  void move_back(uint32_t count);

 private:
  void fill(std::span<const float> logits, const uint64_t* allowed);
  void mirostat(uint32_t position);

  std::shared_ptr<const SamplerSettings> settings_ = std::make_shared<SamplerSettings>();  // shared by forks
  bool on_device_ = true;
  Candidates candidates_;
  std::vector<float> filtered_;  // logits after the filter and biases
  struct Surprise {
    uint32_t position;
    float mu;
  };
  std::vector<Surprise> mirostat_;  // mu before each draw, by ascending position
};

// The failure for logits of which none is finite. The device reports them by kNoDraw.
Status no_finite_logit();

// A uniform number in [0, 1) of 24 bits: draw number `draw` at a position.
float philox_draw(uint64_t seed, uint32_t position, uint32_t draw);

}  // namespace greta
