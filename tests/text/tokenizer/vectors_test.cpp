// Tokenizers are compared with published vectors and goldens, which lie in the test data (GRETA_TEST_DATA).
#include <catch2/catch_test_macros.hpp>
#include <cmath>
#include <cstring>
#include <fstream>
#include <sstream>

#include "support/test_data.h"
#include "text/tokenizer/tokenizer.h"

using namespace greta;

namespace {

constexpr const char* kVocabularies[] = {"vocab-llama-spm", "vocab-phi-3", "vocab-llama3",
                                         "vocab-qwen2",     "vocab-gpt-2", "vocab-deepseek-llm"};

std::string read_file(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  REQUIRE(in);
  std::ostringstream out;
  out << in.rdbuf();
  return out.str();
}

struct Loaded {
  Gguf gguf;
  Tokenizer tokenizer;
  explicit Loaded(const std::string& path) {
    Source source;
    Status status = source.open_file(path.c_str());
    if (status.ok()) status = gguf.open(std::move(source));
    if (status.ok()) status = tokenizer.open(gguf, Log{});
    INFO(error_text());
    REQUIRE(status.ok());
  }
  std::vector<int32_t> encode(std::string_view text, bool add_special, bool parse_special = false) const {
    std::vector<int32_t> ids;
    const Status status = tokenizer.encode(text, {add_special, parse_special}, &ids);
    INFO(error_text());
    REQUIRE(status.ok());
    return ids;
  }
};

std::vector<std::string> cases(const std::string& text) {
  const std::string mark = "\n__ggml_vocab_test__\n";
  std::vector<std::string> out;
  for (size_t at = 0; at != text.npos + mark.size();) {
    const size_t end = text.find(mark, at);
    out.push_back(text.substr(at, end == text.npos ? end : end - at));
    if (end == text.npos) break;
    at = end + mark.size();
  }
  return out;
}

std::vector<int32_t> numbers(const std::string& text) {
  std::vector<int32_t> out;
  std::istringstream in(text);
  for (int32_t id; in >> id;) out.push_back(id);
  return out;
}

// The list that follows "key": in a JSON text, from `at` on.
std::vector<int32_t> json_list(const std::string& json, const std::string& key, size_t at = 0) {
  const size_t name = json.find("\"" + key + "\":", at);
  REQUIRE(name != json.npos);
  const size_t open = json.find('[', name), close = json.find(']', open);
  std::string list = json.substr(open + 1, close - open - 1);
  for (char& c : list)
    if (c == ',') c = ' ';
  return numbers(list);
}

std::string json_string(const std::string& json, const std::string& key, size_t at) {
  const size_t open = json.find('"', json.find("\"" + key + "\":", at) + key.size() + 3) + 1;
  std::string out;
  for (size_t i = open; json[i] != '"'; ++i) {
    if (json[i] != '\\')
      out += json[i];
    else if (json[++i] == 'n')
      out += '\n';
    else if (json[i] == 'u')
      append_utf8(uint32_t(std::stoul(json.substr(i + 1, 4), nullptr, 16)), &out), i += 4;
    else
      out += json[i];
  }
  return out;
}

// SHA-256 of the ids as little-endian 32-bit numbers, in hexadecimal. The standard's constants are
// the fractions of the roots of the first primes.
std::string sha256(const std::vector<int32_t>& ids) {
  uint32_t k[64], h[8];
  for (uint32_t prime = 2, n = 0; n < 64; ++prime) {
    bool divides = false;
    for (uint32_t d = 2; d * d <= prime; ++d) divides |= prime % d == 0;
    if (divides) continue;
    const auto fraction = [](long double root) { return uint32_t((root - uint32_t(root)) * 4294967296.0L); };
    if (n < 8) h[n] = fraction(sqrtl(prime));
    k[n++] = fraction(cbrtl(prime));
  }
  std::string message(reinterpret_cast<const char*>(ids.data()), ids.size() * 4);
  const uint64_t bits = message.size() * 8;
  message += char(0x80);
  while (message.size() % 64 != 56) message += char(0);
  for (int shift = 56; shift >= 0; shift -= 8) message += char(bits >> shift);
  for (size_t block = 0; block < message.size(); block += 64) {
    uint32_t w[64], v[8];
    for (int i = 0; i < 16; ++i) {
      uint32_t word;
      memcpy(&word, message.data() + block + 4 * i, 4);
      w[i] = __builtin_bswap32(word);
    }
    const auto turn = [](uint32_t x, int by) { return x >> by | x << (32 - by); };
    for (int i = 16; i < 64; ++i)
      w[i] = w[i - 16] + w[i - 7] + (turn(w[i - 15], 7) ^ turn(w[i - 15], 18) ^ w[i - 15] >> 3) +
             (turn(w[i - 2], 17) ^ turn(w[i - 2], 19) ^ w[i - 2] >> 10);
    memcpy(v, h, sizeof v);
    for (int i = 0; i < 64; ++i) {
      const uint32_t one = v[7] + (turn(v[4], 6) ^ turn(v[4], 11) ^ turn(v[4], 25)) +
                           ((v[4] & v[5]) ^ (~v[4] & v[6])) + k[i] + w[i];
      const uint32_t two =
          (turn(v[0], 2) ^ turn(v[0], 13) ^ turn(v[0], 22)) + ((v[0] & v[1]) ^ (v[0] & v[2]) ^ (v[1] & v[2]));
      for (int j = 7; j > 0; --j) v[j] = v[j - 1];
      v[4] += one;
      v[0] = one + two;
    }
    for (int i = 0; i < 8; ++i) h[i] += v[i];
  }
  char text[65];
  for (int i = 0; i < 8; ++i) snprintf(text + 8 * i, 9, "%08x", h[i]);
  return text;
}

}  // namespace

TEST_CASE("published vectors of each vocabulary", "[engine][tokenizer][data]") {
  const std::string folder = test::test_data().string() + "/vocab/";
  for (const char* name : kVocabularies) {
    const Loaded model(folder + name + ".gguf");
    const std::vector<std::string> texts = cases(read_file(folder + name + ".inp"));
    std::istringstream expected(read_file(folder + name + ".out"));
    REQUIRE(texts.size() > 40);
    for (const std::string& text : texts) {
      std::string line;
      std::getline(expected, line);
      INFO(name << ": " << text);
      const std::vector<int32_t> ids = model.encode(text, false);
      CHECK(ids == numbers(line));
      CHECK(model.tokenizer.decode(ids.data(), ids.size()) == text);
    }
  }
}

TEST_CASE("a book of text in each vocabulary", "[engine][tokenizer][data]") {
  const std::string folder = test::test_data().string();
  const std::string text = read_file(folder + "/text/wiki.test.raw");
  const std::string golden = read_file(folder + "/golden/tokenizer/wiki_test_raw.json");
  for (const char* name : kVocabularies) {
    INFO(name);
    const Loaded model(folder + "/vocab/" + name + ".gguf");
    const std::vector<int32_t> ids = model.encode(text, false);
    const size_t at = golden.find(name);
    REQUIRE(at != golden.npos);
    CHECK(ids.size() == size_t(std::stoul(golden.substr(golden.find("n_tokens", at) + 10, 12))));
    CHECK(std::vector<int32_t>(ids.begin(), ids.begin() + 64) == json_list(golden, "first", at));
    CHECK(std::vector<int32_t>(ids.end() - 16, ids.end()) == json_list(golden, "last", at));
    CHECK(sha256(ids) == json_string(golden, "sha256_i32le", at));
    CHECK(model.tokenizer.decode(ids.data(), ids.size()) == text);
  }
}

TEST_CASE("prompts and texts of the goldens", "[engine][tokenizer][data]") {
  const std::string folder = test::test_data().string();
  for (const char* name : {"stories260K-f32", "babyllama-tok361-f16", "llama-2-tiny-random",
                           "tales-llama-7m-f16", "tales-llama-7m-q4_k_m", "tales-qwen3-6m-f16"}) {
    INFO(name);
    const Loaded model(folder + "/models/" + name + ".gguf");
    const std::string golden = read_file(folder + "/golden/" + name + ".json");
    size_t prompts = 0;
    for (size_t at = golden.find("\"prompt\":"); at != golden.npos;
         at = golden.find("\"prompt\":", at + 1), ++prompts) {
      const std::string prompt = json_string(golden, "prompt", at);
      INFO(prompt);
      CHECK(model.encode(prompt, true, true) == json_list(golden, "prompt_ids", at));
    }
    CHECK(prompts >= 2);
    const size_t nll = golden.find("\"nll\":");
    if (nll == golden.npos) continue;
    const std::string file = json_string(golden, "text", nll);
    const std::string text =
        read_file(folder + "/text/" + (file == "story.txt" ? "story.txt" : "tales-valid.txt"));
    const std::vector<int32_t> expected = json_list(golden, "ids", nll);
    std::vector<int32_t> ids = model.encode(text, true);
    REQUIRE(ids.size() >= expected.size());
    ids.resize(expected.size());
    CHECK(ids == expected);
  }
}
