#include "metrics.h"

#include <algorithm>
#include <cstdio>

namespace greta::serve {
namespace {

double seconds_of(uint64_t ns) { return static_cast<double>(ns) / 1e9; }

std::string plain_number(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.15g", value);
  return text;
}

// Lengths of prompts in tokens, of which histograms are told apart.
struct Length {
  uint32_t most;
  const char* label;
};
constexpr Length kLengths[] = {
    {127, "0-127"}, {1023, "128-1023"}, {8191, "1024-8191"}, {UINT32_MAX, "8192-"}};

size_t length_of(uint32_t tokens) {
  size_t i = 0;
  while (kLengths[i].most < tokens) ++i;
  return i;
}

std::string about(const std::string& name, const char* type, const char* help) {
  return "# HELP " + name + " " + help + "\n# TYPE " + name + " " + type + "\n";
}

}  // namespace

void Histogram::add(double seconds) {
  const auto place = std::lower_bound(kBounds.begin(), kBounds.end(), seconds);
  ++counts_[static_cast<size_t>(place - kBounds.begin())];
  sum_ += seconds;
}

std::string Histogram::text(const std::string& name, const std::string& labels) const {
  std::string out;
  uint64_t below = 0;
  for (size_t i = 0; i < counts_.size(); ++i) {
    below += counts_[i];
    const std::string bound = i < kBounds.size() ? plain_number(kBounds[i]) : "+Inf";
    out += name + "_bucket{" + labels + ",le=\"" + bound + "\"} " + std::to_string(below) + "\n";
  }
  out += name + "_sum{" + labels + "} " + plain_number(sum_) + "\n";
  return out + name + "_count{" + labels + "} " + std::to_string(below) + "\n";
}

void Metrics::gap(uint64_t ns) {
  const std::lock_guard lock(mutex_);
  gap_.add(seconds_of(ns));
}

void Metrics::ended(const Ended& ended) {
  const greta_request_result& result = ended.result;
  const std::lock_guard lock(mutex_);
  prompt_tokens_ += result.prompt_tokens;
  cached_tokens_ += result.cached_tokens;
  generated_tokens_ += result.generated_tokens;
  prompt_ns_ += result.prompt_ns;
  generate_ns_ += result.generate_ns;
  const size_t reason = static_cast<size_t>(result.reason);
  ++reasons_[ended.status == GRETA_OK && reason < reasons_.size() - 1 ? reason : reasons_.size() - 1];
  const size_t length = length_of(static_cast<uint32_t>(result.prompt_tokens));
  if (ended.first_token_ns > 0) {
    first_token_.add(seconds_of(ended.first_token_ns));
    first_by_length_[length].add(seconds_of(ended.first_token_ns));
  }
  whole_by_length_[length].add(seconds_of(ended.whole_ns));
  queue_.add(seconds_of(result.queued_ns));
  whole_.add(seconds_of(ended.whole_ns));
}

std::string Metrics::histograms(const std::string& labels) const {
  std::string out;
  const auto histogram = [&](const char* name, const char* help, const Histogram& what) {
    out += about(name, "histogram", help) + what.text(name, labels);
  };
  const auto by_length = [&](const char* name, const char* help, const auto& each) {
    out += about(name, "histogram", help);
    for (size_t i = 0; i < each.size(); ++i)
      out += each[i].text(name, labels + ",prompt_tokens=\"" + kLengths[i].label + "\"");
  };
  histogram("vllm:time_to_first_token_seconds", "From the call to its first token.", first_token_);
  histogram("vllm:inter_token_latency_seconds", "Between two tokens of an answer.", gap_);
  histogram("vllm:request_queue_time_seconds", "From the call to its first step.", queue_);
  histogram("vllm:e2e_request_latency_seconds", "Of a whole request.", whole_);
  by_length("greta:time_to_first_token_seconds", "The same, by the length of the prompt.", first_by_length_);
  by_length("greta:e2e_request_latency_seconds", "The same, by the length of the prompt.", whole_by_length_);
  return out;
}

std::string Metrics::text(greta_service* service, const std::string& model) const {
  auto info = sized<greta_service_info>();
  if (!service || greta_service_describe(service, &info)) info = {};
  const std::lock_guard lock(mutex_);
  const std::string labels = "model_name=" + json_string(model);
  std::string out;
  const auto add = [&](const std::string& name, const char* type, const char* help, double value,
                       const std::string& with) {
    out += about(name, type, help) + name;
    out += (with.empty() ? "" : "{" + with + "}") + " " + plain_number(value) + "\n";
  };
  const auto computed = static_cast<double>(prompt_tokens_ - std::min(prompt_tokens_, cached_tokens_));
  const double prompt_s = seconds_of(prompt_ns_), generate_s = seconds_of(generate_ns_);
  const auto generated = static_cast<double>(generated_tokens_);
  const double used = info.pages > 0 ? static_cast<double>(info.pages - info.free_pages - info.cached_pages) /
                                           static_cast<double>(info.pages)
                                     : 0;
  add("llamacpp:prompt_tokens_total", "counter", "Tokens of prompts that were computed.", computed, "");
  add("llamacpp:prompt_seconds_total", "counter", "Time of reading prompts.", prompt_s, "");
  add("llamacpp:tokens_predicted_total", "counter", "Tokens that were generated.", generated, "");
  add("llamacpp:tokens_predicted_seconds_total", "counter", "Time of generating.", generate_s, "");
  add("llamacpp:n_decode_total", "counter", "Steps of the model.", static_cast<double>(info.steps), "");
  add("llamacpp:prompt_tokens_seconds", "gauge", "Tokens of prompts in a second of reading.",
      prompt_s > 0 ? computed / prompt_s : 0, "");
  add("llamacpp:predicted_tokens_seconds", "gauge", "Tokens in a second of one answer.",
      generate_s > 0 ? generated / generate_s : 0, "");
  add("llamacpp:requests_processing", "gauge", "Requests that run.", info.running, "");
  add("llamacpp:requests_deferred", "gauge", "Requests that wait.", info.waiting, "");
  add("llamacpp:kv_cache_usage_ratio", "gauge", "The part of the cache that requests use.", used, "");
  add("vllm:num_requests_running", "gauge", "Requests that run.", info.running, labels);
  add("vllm:num_requests_waiting", "gauge", "Requests that wait.", info.waiting, labels);
  add("vllm:kv_cache_usage_perc", "gauge", "The part of the cache that requests use.", used, labels);
  add("vllm:prefix_cache_queries_total", "counter", "Tokens of prompts.", static_cast<double>(prompt_tokens_),
      labels);
  add("vllm:prefix_cache_hits_total", "counter", "Tokens of prompts that came from the cache.",
      static_cast<double>(cached_tokens_), labels);
  add("vllm:prompt_tokens_total", "counter", "Tokens of prompts.", static_cast<double>(prompt_tokens_),
      labels);
  add("vllm:generation_tokens_total", "counter", "Tokens that were generated.", generated, labels);
  add("greta:step_seconds_total", "counter", "Time of steps of the model.", seconds_of(info.step_ns), labels);
  add("greta:host_seconds_total", "counter",
      "Time in which the host worked for steps and did not wait for the device.", seconds_of(info.host_ns),
      labels);
  add("greta:reread_tokens_total", "counter", "Tokens that were computed again.",
      static_cast<double>(info.reread_tokens), labels);
  constexpr const char* kReasons[] = {"length",      "stop",   "context", "abort",
                                      "stop_string", "unread", "",        "error"};
  out += about("vllm:request_success_total", "counter", "Requests that ended.");
  for (size_t i = 0; i < reasons_.size(); ++i)
    if (*kReasons[i])
      out += "vllm:request_success_total{" + labels + ",finished_reason=\"" + kReasons[i] + "\"} " +
             std::to_string(reasons_[i]) + "\n";
  return out + histograms(labels);
}

}  // namespace greta::serve
