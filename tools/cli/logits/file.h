// The file that --kl-divergence-base saves, in the format of llama-perplexity
// (tools/perplexity/perplexity.cpp in llama.cpp), little-endian:
//   "_logits_", uint32 context, int32 vocab_size, int32 chunks, int32 tokens [chunks][context]
//   then, for each predicted token of each chunk (those from context / 2 + 1 on):
//   float scale, float lowest, uint16 codes [vocab_size, one more if it is odd]
// where log(probability of token i) = lowest + scale * codes[i]. A token that is less likely than the
// likeliest one by more than a factor of exp(16) has the code 0.
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
  uint32_t predicted() const { return context - 1 - context / 2; }  // predicted tokens of a chunk
};

// log(sum of exp(logits)). Throws Failed where that is not finite.
double log_total(const float* logits, size_t vocab_size);

class LogitsWriter {  // throws Failed
 public:
  LogitsWriter(std::string path, const LogitsHeader& header, const int32_t* tokens);
  void write(const float* logits, double total);  // logits [vocab_size], and their log_total
  void finish() { file_.finish(); }

 private:
  std::vector<uint16_t> row_;
  size_t vocab_size_;
  OutputFile file_;
};

// The predicted probabilities of all tokens. Those up to exp(-16) count as 0 in `p`.
struct Prediction {
  std::vector<float> log_p, p;  // [vocab_size]
};

// Reads such a file and trusts nothing in it. Throws Failed.
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
