// Measures a tokenizer on one thread: megabytes of text for each second of processor time.
//
//   greta-bench-tokenizer FILE.gguf TEXT [REPEATS]
#include "text/tokenizer/tokenizer.h"

#include <sys/resource.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <sstream>

using namespace greta;

namespace {

double user_seconds() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return double(usage.ru_utime.tv_sec) + double(usage.ru_utime.tv_usec) * 1e-6;
}

int complain() {
  std::fprintf(stderr, "%s\n", error_text());
  return 1;
}

}  // namespace

int main(int count, char** words) {
  if (count < 3) {
    std::fprintf(stderr, "greta-bench-tokenizer FILE.gguf TEXT [REPEATS]\n");
    return 2;
  }
  std::ifstream in(words[2], std::ios::binary);
  std::ostringstream all;
  all << in.rdbuf();
  const std::string text = all.str();
  const int repeats = count > 3 ? std::max(1, std::atoi(words[3])) : 7;

  const double before_open = user_seconds();
  Source source;
  Gguf gguf;
  Tokenizer tokenizer;
  if (!source.open_file(words[1]).ok() || !gguf.open(std::move(source)).ok() ||
      !tokenizer.open(gguf, Log{}).ok())
    return complain();
  const double open_seconds = user_seconds() - before_open;

  std::vector<double> encode, decode;  // seconds of each repeat
  std::vector<int32_t> ids;
  for (int i = 0; i < repeats; ++i) {
    ids.clear();
    const double start = user_seconds();
    if (!tokenizer.encode(text, {false, false}, &ids).ok()) return complain();
    const double middle = user_seconds();
    tokenizer.decode(ids.data(), ids.size());
    encode.push_back(middle - start);
    decode.push_back(user_seconds() - middle);
  }
  std::sort(encode.begin(), encode.end());
  std::sort(decode.begin(), decode.end());
  const auto rate = [&](double seconds) { return double(text.size()) * 1e-6 / std::max(seconds, 1e-9); };
  std::printf("%zu bytes, %zu tokens, opened in %.0f ms\n", text.size(), ids.size(), open_seconds * 1e3);
  std::printf("encode: median %.1f MB/s, best %.1f\n", rate(encode[encode.size() / 2]), rate(encode[0]));
  std::printf("decode: median %.1f MB/s, best %.1f\n", rate(decode[decode.size() / 2]), rate(decode[0]));
}
