// Choosing a token on the host from a row of logits: a chain of steps over candidates, then one draw.
//
// The steps, their order and their defaults are llama.cpp's; docs/sampling.md has formulas and sources.
// Draws are Philox(seed, position), as on the device, and for settings that the device's kernel can do as
// well (on_device) both choose the same token.
#pragma once
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
  float bias;  // -infinity: never
};

// Where a repeat that DRY looks for ends: a token, followed by `tail`.
struct DryBreaker {
  int32_t token;
  std::vector<int32_t> tail;
};

struct DrySettings {
  float multiplier = 0, base = 1.75f;
  uint32_t allowed_length = 2;
  uint32_t last_n = 0;  // 0: all
  std::vector<DryBreaker> breakers;
};

struct LogitFilter {
  int (*call)(void* user, float* logits, size_t vocab, const int32_t* tokens, size_t count) = nullptr;
  void* user = nullptr;
};

std::vector<SamplerStep> default_sampler_order();  // each step once, as the enum has them

// Every step is off as it stands here, and the chain is greedy.
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

// "penalties;dry;top_k" to steps; "" is no step at all: a draw from all. Unknown names fail.
Status parse_sampler_order(std::string_view text, std::vector<SamplerStep>* out);

// Each setting within its range; names the one that is not.
Status check_sampling(const SamplerSettings& settings);

// Tokens and their tails at which the texts end a repeat: every token that holds one of them, or that
// ends in the beginning of one, with what must follow.
class Tokenizer;
Status find_dry_breakers(const Tokenizer& tokenizer, std::span<const std::string_view> texts,
                         std::vector<DryBreaker>* out);
extern const std::string_view kDryBreakers[4];

// What a file recommends: general.sampling.*. A value out of its range counts as absent.
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
  uint32_t fields = 0;  // those that the file has
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

// The tokens that are left. The first `sorted` are the best ones in order (larger logit, then lower id);
// the rest is in order of id until something sorts.
struct Candidates {
  std::vector<Candidate> list;
  size_t sorted = 0;
  double max() const;
  void sort_to(size_t count);
  void keep(size_t count);  // the best, which are sorted
};

class Sampler {
 public:
  const SamplerSettings& settings() const { return *settings_; }
  void set(SamplerSettings settings);

  // Whether the device's kernel does all that is asked for, in the order that it has.
  bool on_device() const { return on_device_; }

  // logits    [vocab]
  // allowed   [ceil(vocab / 64)] bits of the tokens that a grammar allows, or null
  // history   the sequence's tokens so far; the new one follows the last of them
  // +infinity counts as the largest float; NaN and -infinity are never chosen. Fails if no logit is finite
  // (File), or if nothing is left to choose from (Argument); Cancelled if the filter says so.
  Status choose(std::span<const float> logits, const uint64_t* allowed, std::span<const int32_t> history,
                int32_t* out);

  // After a truncate to `position` tokens.
  void truncate(size_t position);

 private:
  void fill(std::span<const float> logits, const uint64_t* allowed);
  void mirostat(uint32_t position);

  std::shared_ptr<const SamplerSettings> settings_ = std::make_shared<SamplerSettings>();  // shared by forks
  bool on_device_ = true;
  Candidates candidates_;
  std::vector<float> filtered_;  // logits that the filter or biases changed
  struct Surprise {
    uint32_t position;
    float mu;
  };
  std::vector<Surprise> mirostat_;  // mu before each draw, ascending in position
};

// The failure to choose from logits of which none is finite, as kNoDraw has it.
Status no_finite_logit();

// Uniform in [0, 1) of 24 bits: draw number `draw` at a position.
float philox_draw(uint64_t seed, uint32_t position, uint32_t draw);

}  // namespace greta
