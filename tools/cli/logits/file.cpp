#include "logits/file.h"

#include <sys/stat.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cmath>
#include <cstring>

#include "console.h"

namespace greta::cli {
namespace {

static_assert(std::endian::native == std::endian::little && sizeof(LogitsHeader) == 12,
              "the header and the rows are written as they lie in memory");

constexpr char kMagic[8] = {'_', 'l', 'o', 'g', 'i', 't', 's', '_'};
constexpr size_t kRowHead = 4;  // scale and lowest, in units of uint16
constexpr double kRange = 16;   // nats below the likeliest token that the codes reach
constexpr double kMostCode = 65535;

size_t row_size(size_t vocab_size) { return kRowHead + (vocab_size + 1) / 2 * 2; }  // in units of uint16

}  // namespace

double log_total(const float* logits, size_t vocab_size) {
  const double highest = *std::max_element(logits, logits + vocab_size);
  double sum = 0;
  for (size_t i = 0; i < vocab_size; ++i) sum += std::exp(logits[i] - highest);
  const double total = highest + std::log(sum);
  if (!std::isfinite(total)) throw Failed("the logits of the model are not finite numbers");
  return total;
}

LogitsWriter::LogitsWriter(std::string path, const LogitsHeader& header, const int32_t* tokens)
    : row_(row_size(static_cast<size_t>(header.vocab_size))),
      vocab_size_(static_cast<size_t>(header.vocab_size)),
      file_(std::move(path)) {
  file_.write(kMagic, sizeof kMagic);
  file_.write(&header, sizeof header);
  file_.write(tokens, static_cast<size_t>(header.chunks) * header.context * sizeof *tokens);
}

void LogitsWriter::write(const float* logits, double total) {
  const auto [low, high] = std::minmax_element(logits, logits + vocab_size_);
  const double floor = std::max<double>(*low, *high - kRange);
  const double step = (*high - floor) / kMostCode;
  const float head[2] = {static_cast<float>(step), static_cast<float>(floor - total)};
  std::memcpy(row_.data(), head, sizeof head);
  for (size_t i = 0; i < vocab_size_; ++i) {
    const double code = logits[i] > floor ? std::min(std::round((logits[i] - floor) / step), kMostCode) : 0;
    row_[kRowHead + i] = static_cast<uint16_t>(code);
  }
  file_.write(row_.data(), row_.size() * sizeof row_[0]);
}

LogitsReader::LogitsReader(const std::string& path) : path_(path), file_(std::fopen(path.c_str(), "rb")) {
  struct stat about;
  if (!file_ || fstat(fileno(file_.get()), &about) != 0) fail(std::strerror(errno));
  if (!S_ISREG(about.st_mode)) fail("it is not a regular file");
  char magic[sizeof kMagic];
  if (static_cast<uint64_t>(about.st_size) < sizeof magic + sizeof header_) fail("no file of logits");
  read(magic, sizeof magic);
  if (std::memcmp(magic, kMagic, sizeof magic) != 0) fail("no file of logits");
  read(&header_, sizeof header_);
  check_size(static_cast<uint64_t>(about.st_size) - sizeof magic - sizeof header_);

  const auto vocab_size = static_cast<size_t>(header_.vocab_size);
  tokens_.resize(static_cast<size_t>(header_.chunks) * header_.context);
  read(tokens_.data(), tokens_.size() * sizeof tokens_[0]);
  for (const int32_t token : tokens_) {
    if (token < 0 || token >= header_.vocab_size)
      fail(format("it has the token %d in a vocabulary of %zu", token, vocab_size));
  }
  row_.resize(row_size(vocab_size));
  prediction_.log_p.resize(vocab_size);
  prediction_.p.resize(vocab_size);
}

void LogitsReader::fail(const std::string& what) const { throw Failed(path_ + ": " + what); }

void LogitsReader::read(void* data, size_t bytes) {
  if (std::fread(data, 1, bytes, file_.get()) != bytes) {
    fail(std::ferror(file_.get()) ? std::strerror(errno) : "the file ends too early");
  }
}

// `bytes` is what stands behind the header. None of the products can overflow, and afterwards all sizes are
// bounded by the size of the file.
void LogitsReader::check_size(uint64_t bytes) const {
  const auto [context, vocab_size, chunks] = header_;
  if (context < 4 || context > INT32_MAX || vocab_size < 1 || chunks < 1) {
    fail(format("no run has a context of %u, a vocabulary of %d and %d chunks", context, vocab_size, chunks));
  }
  const uint64_t row_bytes = row_size(static_cast<size_t>(vocab_size)) * sizeof(uint16_t);
  const uint64_t chunk_bytes = context * sizeof(int32_t) + header_.predicted() * row_bytes;
  if (bytes % chunk_bytes != 0 || bytes / chunk_bytes != static_cast<uint64_t>(chunks)) {
    fail(format("its %d chunks of %s do not fill its %s: it was cut, or was not written to its end", chunks,
                size_text(chunk_bytes).c_str(), size_text(bytes).c_str()));
  }
}

const Prediction& LogitsReader::next() {
  read(row_.data(), row_.size() * sizeof row_[0]);
  ++read_rows_;
  float head[2];
  std::memcpy(head, row_.data(), sizeof head);
  const auto [scale, lowest] = head;
  double sum = 0;
  for (size_t i = 0; i < prediction_.p.size(); ++i) {
    const float log_p = lowest + scale * row_[kRowHead + i];
    prediction_.log_p[i] = log_p;
    sum += prediction_.p[i] = log_p > -kRange ? std::exp(log_p) : 0;
  }
  // Codes are rounded, and a code of 0 may stand for a smaller probability than it says.
  const double slack = 0.01 + static_cast<double>(prediction_.p.size()) * std::exp(-kRange);
  if (!std::isfinite(scale) || !std::isfinite(lowest) || scale < 0 || !(std::abs(sum - 1) <= slack)) {
    fail(format("it is damaged: prediction %llu has the scale %g, the lowest value %g, and the sum %g",
                static_cast<unsigned long long>(read_rows_), scale, lowest, sum));
  }
  return prediction_;
}

}  // namespace greta::cli
