#include "engine/write/pooling.h"

#include <algorithm>
#include <cmath>

namespace greta {

Status model_pooling(const Model& model, Pooling* out) {
  const std::string key = std::string(model.arch->name) + ".pooling_type";
  uint32_t number = 0;  // as of a file whose tokens have a vector each
  GRETA_TRY(model.gguf.get_u32(key, &number));
  if (number > uint32_t(Pooling::Last))
    return fail(Code::Unsupported, "%s is %u, by which this version makes no vector of a text", key.c_str(),
                number);
  *out = number ? Pooling(number) : Pooling::Mean;
  return {};
}

PooledText::PooledText(const EmbedOptions& options, uint32_t width, uint32_t begin, uint32_t count)
    : raw_(options.raw),
      apart_(options.pooling == Pooling::None),
      first_(options.pooling == Pooling::Last ? begin + count - 1 : begin),
      last_(options.pooling == Pooling::First ? begin + 1 : begin + count),
      next_(first_),
      sum_(width) {
  if (apart_) states_.reserve(size_t(count) * width);
}

uint32_t PooledText::wanted(uint32_t begin, uint32_t count) const {
  const uint32_t from = std::max(begin, first_), to = std::min(begin + count, last_);
  return to > from ? to - from : 0;
}

void PooledText::add(uint32_t position, const float* state) {
  if (position != next_ || complete()) return;
  ++next_;
  if (apart_)
    states_.insert(states_.end(), state, state + sum_.size());
  else
    for (size_t i = 0; i < sum_.size(); ++i) sum_[i] += double(state[i]);
}

// Appends the mean of `count` vectors whose sum is given.
template <class Number>
static Status append_vector(std::span<const Number> sums, uint32_t count, bool raw, std::vector<float>* out) {
  double squares = 0;
  for (const double sum : sums) squares += sum / count * (sum / count);
  if (!std::isfinite(squares))
    return fail(Code::File, "the model gave hidden states that are not finite: its weights are damaged, or "
                            "its numbers overflow");
  const double scale = raw || squares == 0 ? 1.0 / count : 1.0 / count / std::sqrt(squares);
  std::ranges::transform(sums, std::back_inserter(*out), [&](double sum) { return float(sum * scale); });
  return {};
}

Status PooledText::finish(std::vector<float>* out) const {
  const size_t width = sum_.size();
  out->clear();
  out->reserve(apart_ ? states_.size() : width);
  if (!apart_) return append_vector(std::span(sum_), last_ - first_, raw_, out);
  for (size_t at = 0; at < states_.size(); at += width)
    GRETA_TRY(append_vector(std::span(states_).subspan(at, width), 1, raw_, out));
  return {};
}

}  // namespace greta
