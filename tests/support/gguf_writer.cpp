// GgufWriter, two tiny vocabularies, and files in a temporary folder.
#include "support/gguf_writer.h"

#include <filesystem>
#include <fstream>
#include <random>

#include "text/unicode/unicode.h"

namespace greta::test {

GgufWriter& GgufWriter::raw_value(std::string_view key, uint32_t type, std::string_view payload) {
  Bytes bytes;
  bytes.string(key).u32(type);
  value_bytes_ += bytes.data;
  value_bytes_ += payload;
  ++values_;
  return *this;
}

GgufWriter& GgufWriter::value(std::string_view key, const char* text) {
  return raw_value(key, 8, Bytes().string(text).data);
}

GgufWriter& GgufWriter::value(std::string_view key, const std::vector<std::string>& texts) {
  Bytes payload;
  payload.u32(8).u64(texts.size());
  for (const std::string& text : texts) payload.string(text);
  return raw_value(key, 9, payload.data);
}

GgufWriter& GgufWriter::raw_tensor(std::string_view name, uint32_t dims, const std::vector<uint64_t>& ne,
                                   uint32_t type, uint64_t offset) {
  Bytes bytes;
  bytes.string(name).u32(dims);
  for (const uint64_t n : ne) bytes.u64(n);
  bytes.u32(type).u64(offset);
  tensor_bytes_ += bytes.data;
  ++tensors_;
  return *this;
}

GgufWriter& GgufWriter::tensor(std::string_view name, uint32_t type, const std::vector<uint64_t>& ne,
                               std::string_view content) {
  raw_tensor(name, uint32_t(ne.size()), ne, type, data_.size());
  return data(content);
}

GgufWriter& GgufWriter::data(std::string_view bytes) {
  data_ += bytes;
  data_.resize((data_.size() + alignment - 1) / alignment * alignment);
  return *this;
}

std::string GgufWriter::header() const {
  Bytes bytes;
  bytes.data = "GGUF";
  bytes.u32(version);
  bytes.u64(tensor_count == UINT64_MAX ? tensors_ : tensor_count);
  bytes.u64(value_count == UINT64_MAX ? values_ : value_count);
  return bytes.data + value_bytes_ + tensor_bytes_;
}

std::string GgufWriter::file() const {
  std::string out = header();
  if (!data_.empty()) out.resize((out.size() + alignment - 1) / alignment * alignment);
  return out + data_;
}

// ids: 0 <unk>, 1 <s>, 2 </s>, 3 to 258 the byte pieces, then `pieces`.
GgufWriter spm_vocabulary(const std::vector<std::string>& pieces, const std::vector<float>& scores) {
  std::vector<std::string> tokens = {"<unk>", "<s>", "</s>"};
  std::vector<int32_t> kinds = {2, 3, 3};
  std::vector<float> all_scores(259, 0.0f);
  for (int byte = 0; byte < 256; ++byte) {
    char text[8];
    snprintf(text, sizeof text, "<0x%02X>", byte);
    tokens.push_back(text);
    kinds.push_back(6);
  }
  tokens.insert(tokens.end(), pieces.begin(), pieces.end());
  kinds.resize(tokens.size(), 1);
  all_scores.insert(all_scores.end(), scores.begin(), scores.end());
  GgufWriter out;
  return out.value("general.architecture", "llama")
      .value("tokenizer.ggml.model", "llama")
      .value("tokenizer.ggml.tokens", tokens)
      .value("tokenizer.ggml.scores", all_scores)
      .value("tokenizer.ggml.token_type", kinds);
}

// ids: 0 to 255 the alphabet, then `tokens`; those written <|...|> are control tokens, <...> user-defined.
GgufWriter bpe_vocabulary(const std::vector<std::string>& tokens, const std::vector<std::string>& merges,
                          const char* split) {
  std::vector<std::string> all = byte_alphabet();
  std::vector<int32_t> kinds(256, 1);
  for (const std::string& token : tokens) {
    all.push_back(token);
    kinds.push_back(token.size() > 2 && token[0] == '<' && token.back() == '>' ? (token[1] == '|' ? 3 : 4)
                                                                               : 1);
  }
  GgufWriter out;
  return out.value("general.architecture", "llama")
      .value("tokenizer.ggml.model", "gpt2")
      .value("tokenizer.ggml.pre", split)
      .value("tokenizer.ggml.tokens", all)
      .value("tokenizer.ggml.token_type", kinds)
      .value("tokenizer.ggml.merges", merges);
}

std::vector<std::string> byte_alphabet() {
  std::vector<std::string> out;
  uint32_t next = 256;
  for (uint32_t byte = 0; byte < 256; ++byte) {
    const bool visible = (byte > 32 && byte < 127) || (byte > 160 && byte != 173);
    out.emplace_back();
    append_utf8(visible ? byte : next++, &out.back());
  }
  return out;
}

TemporaryFolder::TemporaryFolder() {
  std::random_device random;
  path_ = (std::filesystem::temp_directory_path() /
           ("greta-test-" + std::to_string(random()) + std::to_string(random())))
              .string();
  std::filesystem::create_directories(path_);
}

TemporaryFolder::~TemporaryFolder() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

std::string TemporaryFolder::write(const std::string& name, std::string_view content) const {
  const std::string path = path_ + "/" + name;
  std::ofstream(path, std::ios::binary).write(content.data(), std::streamsize(content.size()));
  return path;
}

}  // namespace greta::test
