// Writes small GGUF files for tests. Calls write good files; fields that are set directly make bad ones.
#pragma once
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

namespace greta::test {

// Bytes in file order, little-endian.
struct Bytes {
  std::string data;
  template <class T>
  Bytes& number(T value) {
    char raw[sizeof(T)];
    memcpy(raw, &value, sizeof(T));
    data.append(raw, sizeof(T));
    return *this;
  }
  Bytes& u32(uint32_t value) { return number(value); }
  Bytes& u64(uint64_t value) { return number(value); }
  Bytes& string(std::string_view text) {
    u64(text.size());
    data.append(text);
    return *this;
  }
};

class GgufWriter {
 public:
  // What the header claims, which a test may set to anything. Counts are those of the calls unless they are
  // set.
  uint32_t version = 3;
  uint64_t tensor_count = UINT64_MAX, value_count = UINT64_MAX;
  uint64_t alignment = 32;  // of the data; if it is not 32, the metadata must have it too

  GgufWriter& raw_value(std::string_view key, uint32_t type, std::string_view payload);
  GgufWriter& value(std::string_view key, uint32_t number) { return scalar(key, 4, number); }
  GgufWriter& value(std::string_view key, float number) { return scalar(key, 6, number); }
  GgufWriter& value(std::string_view key, bool truth) { return scalar(key, 7, uint8_t(truth)); }
  GgufWriter& value(std::string_view key, const char* text);
  GgufWriter& value(std::string_view key, const std::vector<std::string>& texts);
  GgufWriter& value(std::string_view key, const std::vector<float>& numbers) {
    return array(key, 6, numbers);
  }
  GgufWriter& value(std::string_view key, const std::vector<int32_t>& numbers) {
    return array(key, 5, numbers);
  }

  template <class T>
  GgufWriter& scalar(std::string_view key, uint32_t type, T number) {
    return raw_value(key, type, Bytes().number(number).data);
  }
  template <class T>
  GgufWriter& array(std::string_view key, uint32_t element, const std::vector<T>& numbers) {
    Bytes payload;
    payload.u32(element).u64(numbers.size());
    for (const T number : numbers) payload.number(number);
    return raw_value(key, 9, payload.data);
  }

  // Adds a tensor whose aligned data follows that of the last one.
  GgufWriter& tensor(std::string_view name, uint32_t type, const std::vector<uint64_t>& ne,
                     std::string_view data);
  // Adds only an entry of the tensor list, with this offset.
  GgufWriter& raw_tensor(std::string_view name, uint32_t dims, const std::vector<uint64_t>& ne, uint32_t type,
                         uint64_t offset);
  GgufWriter& data(std::string_view bytes);  // appended to the data, then padded

  std::string header() const;  // without the padding before the data
  std::string file() const;

 private:
  uint64_t values_ = 0, tensors_ = 0;
  std::string value_bytes_, tensor_bytes_, data_;
};

// A small complete vocabulary of SPM or BPE, enough for tests of text.
GgufWriter spm_vocabulary(const std::vector<std::string>& pieces, const std::vector<float>& scores);
GgufWriter bpe_vocabulary(const std::vector<std::string>& tokens, const std::vector<std::string>& merges,
                          const char* split);

// The alphabet of byte-level BPE, by byte.
std::vector<std::string> byte_alphabet();

// A file with this content in a fresh temporary folder, which is removed with the object.
class TemporaryFolder {
 public:
  TemporaryFolder();
  ~TemporaryFolder();
  TemporaryFolder(const TemporaryFolder&) = delete;
  std::string write(const std::string& name, std::string_view content) const;  // returns the path
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

}  // namespace greta::test
