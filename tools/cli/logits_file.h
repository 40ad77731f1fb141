// What --kl-divergence-base saves of a run, in the format of llama-perplexity
// (tools/perplexity/perplexity.cpp in llama.cpp), little-endian:
//   "_logits_", uint32 context, int32 vocab_size, int32 chunks, int32 tokens [chunks][context]
//   and for each predicted token of each chunk, those from context / 2 + 1 on, what was predicted for it:
//   float scale, float lowest, uint16 codes [vocab_size, one more if it is odd]
// with log(probability of token i) = lowest + scale * codes[i]. What is less likely than the likeliest token
// by more than exp(16) has code 0.
#pragma once
#include <cstdint>
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "output_file.h"

namespace greta::cli {

struct LogitsHeader {
  uint32_t context;
  int32_t vocab_size, chunks;
  uint32_t predicted() const { return context - 1 - context / 2; }  // in a chunk
};

// log(sum of exp(logits)). Throws Failed where that is no number.
double log_total(const float* logits, size_t vocab_size);

class LogitsWriter {  // throws Failed
 public:
  LogitsWriter(std::string path, const LogitsHeader& header, const int32_t* tokens);
  void write(const float* logits, double total);  // [vocab_size], and its log_total
  void finish() { file_.finish(); }

 private:
  std::vector<uint16_t> row_;
  size_t vocab_size_;
  OutputFile file_;
};

// Probabilities of all tokens. Those up to exp(-16) count as 0 in `p`.
struct Prediction {
  std::vector<float> log_p, p;  // [vocab_size]
};

// Nothing in the file is trusted; throws Failed.
class LogitsReader {
 public:
  explicit LogitsReader(const std::string& path);
  const std::string& path() const { return path_; }
  const LogitsHeader& header() const { return header_; }
  const std::vector<int32_t>& tokens() const { return tokens_; }  // [chunks][context], each in the vocabulary
  const Prediction& next();

 private:
  struct Close {
    void operator()(std::FILE* file) const { std::fclose(file); }
  };
  void read(void* data, size_t bytes);
  void check_size(uint64_t bytes) const;
  [[noreturn]] void fail(const std::string& what) const;

  std::string path_;
  std::unique_ptr<std::FILE, Close> file_;
  LogitsHeader header_{};
  std::vector<int32_t> tokens_;
  std::vector<uint16_t> row_;
  Prediction prediction_;
  uint64_t read_rows_ = 0;
};

}  // namespace greta::cli
