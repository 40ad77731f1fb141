// greta_file_audit: what a model made from a file would not use, with the verdict and the reason of each.
#include <algorithm>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <cstddef>
#include <stdexcept>

#include "support/api_objects.h"
#include "support/gguf_writer.h"
#include "support/model_file.h"

using namespace greta::test;
using Catch::Matchers::ContainsSubstring;

namespace {

constexpr uint32_t kF32 = 0;  // GGUF's number of the type

struct Unused {
  greta_unused_verdict verdict;
  bool tensor;
  std::string name, reason;
  bool operator==(const Unused&) const = default;
};

// A model's file behind the handle.
struct AuditedFile {
  std::string bytes;
  greta_file* file = nullptr;
  std::vector<Unused> unused;  // that the callback was told
  size_t stop_at = ~size_t(0);

  explicit AuditedFile(std::string content, uint32_t source_bytes = sizeof(greta_source))
      : bytes(std::move(content)) {
    const greta_source source = this->source(source_bytes);
    const greta_status status = greta_file_open(&source, &file);
    INFO(greta_error_text());
    REQUIRE(status == GRETA_OK);
  }
  ~AuditedFile() { greta_file_close(file); }
  AuditedFile(const AuditedFile&) = delete;

  greta_source source(uint32_t struct_size = sizeof(greta_source)) const {
    greta_source source{};
    source.struct_size = struct_size;
    source.memory = bytes.data();
    source.memory_bytes = bytes.size();
    return source;
  }
  greta_status audit() {
    unused.clear();
    return greta_file_audit(file, take, this);
  }
  static int take(void* user, const greta_unused* part) {
    AuditedFile& self = *static_cast<AuditedFile*>(user);
    CHECK(part->struct_size == sizeof *part);
    CHECK(part->is_tensor <= 1);
    CHECK(part->reserved == 0);
    self.unused.push_back({part->verdict, part->is_tensor == 1, part->name, part->reason});
    return self.unused.size() > self.stop_at;
  }
};

// A golden with a key and a tensor more of each kind that an audit tells apart.
ModelFile with_unused_parts() {
  ModelFile model = read_model("llama-plain");
  const std::string number = Bytes().u32(1).data, row(32, '\0');
  for (const char* key : {"llama.pooling_type", "llama.a_key_of_tomorrow", "llama.embedding_length_out",
                          "nobody.reads_this"})  // the last one is not under the architecture's prefix
    model.values.push_back({key, 4, number});
  for (const char* tensor : {"v.patch_embd.weight", "blk.0.a_tensor_of_tomorrow"})
    model.tensors.push_back({tensor, kF32, {8}, row});
  return model;
}

// What an audit says of them; `reason` is a word of the reason.
const std::vector<Unused> kUnused = {
    {GRETA_UNUSED_NEEDLESS, false, "llama.pooling_type", "embeddings"},
    {GRETA_UNUSED_UNKNOWN, false, "llama.a_key_of_tomorrow", "does not know"},
    {GRETA_UNUSED_REFUSED, false, "llama.embedding_length_out", "width"},
    {GRETA_UNUSED_NEEDLESS, true, "v.patch_embd.weight", "pictures"},
    {GRETA_UNUSED_REFUSED, true, "blk.0.a_tensor_of_tomorrow", "architecture"},
};

}  // namespace

TEST_CASE("audit: names, verdicts and reasons, keys before tensors", "[api][file]") {
  AuditedFile plain(write_model(read_model("llama-plain")));
  REQUIRE(plain.audit() == GRETA_OK);
  const std::vector<Unused> before = plain.unused;
  AuditedFile file(write_model(with_unused_parts()));
  REQUIRE(file.audit() == GRETA_OK);
  std::vector<Unused> added;
  for (const Unused& part : file.unused)
    if (std::find(before.begin(), before.end(), part) == before.end()) added.push_back(part);
  REQUIRE(added.size() == kUnused.size());
  CHECK(file.unused.size() == before.size() + kUnused.size());
  for (size_t i = 0; i < kUnused.size(); ++i) {
    INFO(kUnused[i].name);
    CHECK(added[i].verdict == kUnused[i].verdict);
    CHECK(added[i].tensor == kUnused[i].tensor);
    CHECK(added[i].name == kUnused[i].name);
    CHECK_THAT(added[i].reason, ContainsSubstring(kUnused[i].reason));
  }
  const std::vector<Unused> first = file.unused;
  REQUIRE(file.audit() == GRETA_OK);
  CHECK(file.unused == first);
}

TEST_CASE("audit: a callback that stops gets no further part", "[api][file]") {
  AuditedFile file(write_model(with_unused_parts()));
  REQUIRE(file.audit() == GRETA_OK);
  const std::vector<Unused> all = file.unused;
  for (file.stop_at = 0; file.stop_at < all.size(); ++file.stop_at) {
    CHECK(file.audit() == GRETA_ERROR_CANCELLED);
    CHECK(file.unused.size() == file.stop_at + 1);
    CHECK_THAT(greta_error_text(), ContainsSubstring(all[file.stop_at].name));
  }
}

TEST_CASE("audit: of an architecture nobody knows, how the file differs from the nearest known one",
          "[api][file]") {
  ModelFile model = with_unused_parts();
  set_text("general.architecture", "stranger")(model);
  for (ModelFile::Value& value : model.values)
    if (value.key.starts_with("llama.")) value.key = "stranger." + value.key.substr(6);
  model.drop_tensor("blk.1.ffn_norm.weight");
  AuditedFile file(write_model(model));
  REQUIRE(file.audit() == GRETA_ERROR_UNSUPPORTED);
  CHECK_THAT(greta_error_text(),
             ContainsSubstring("\"stranger\" is not one of those this build runs; nearest by its "));
  std::string told;
  for (const Unused& part : file.unused) {
    CHECK(part.verdict == GRETA_UNUSED_REFUSED);
    told += std::string(part.tensor ? "tensor " : "key ") + part.name + ": " + part.reason + "\n";
  }
  CHECK(told ==
        "key stranger.a_key_of_tomorrow: the nearest known architecture does not read it\n"
        "key stranger.embedding_length_out: the nearest known architecture does not read it\n"
        "tensor blk.*.a_tensor_of_tomorrow: the nearest known architecture has no use for it\n"
        "tensor blk.*.ffn_norm.weight: the nearest known architecture needs it, and the file lacks it\n");
  file.stop_at = 0;
  CHECK(file.audit() == GRETA_ERROR_CANCELLED);
}

TEST_CASE("audit: NULL, an older source, a callback that throws, a file that is no model",
          "[api][file][misuse]") {
  AuditedFile file(write_model(with_unused_parts()), offsetof(greta_source, map));
  CHECK(greta_file_audit(nullptr, AuditedFile::take, &file) == GRETA_ERROR_ARGUMENT);
  CHECK_THAT(greta_error_text(), ContainsSubstring("file is NULL"));
  CHECK(greta_file_audit(file.file, nullptr, nullptr) == GRETA_ERROR_ARGUMENT);
  CHECK_THAT(greta_error_text(), ContainsSubstring("on_unused is NULL"));
  CHECK(file.unused.empty());
  const auto throws = [](void*, const greta_unused*) -> int {
    throw std::runtime_error("a reason of its own");
  };
  CHECK(greta_file_audit(file.file, throws, nullptr) == GRETA_ERROR_ARGUMENT);
  CHECK_THAT(greta_error_text(), ContainsSubstring("on_unused") && ContainsSubstring("a reason of its own"));
  REQUIRE(file.audit() == GRETA_OK);
  CHECK(file.unused.size() >= kUnused.size());

  AuditedFile nobody(GgufWriter().value("general.architecture", "nobody").file());
  CHECK(nobody.audit() == GRETA_ERROR_UNSUPPORTED);
  CHECK_THAT(greta_error_text(), ContainsSubstring("nobody"));
  ModelFile cut = read_model("llama-plain");
  cut.drop_value("llama.block_count");
  AuditedFile sizes(write_model(cut));
  CHECK(sizes.audit() == GRETA_ERROR_FILE);
  CHECK(sizes.unused.empty());
}

TEST_CASE("audit: greta_model_open fails for what is refused, and warns of what is unknown", "[api][file]") {
  auto runtime_options = sized<greta_runtime_options>();
  std::string log;
  runtime_options.device = "cpu";
  runtime_options.log_user = &log;
  runtime_options.log = [](void* user, greta_log_level level, const char* text) {
    if (level == GRETA_LOG_WARNING) *static_cast<std::string*>(user) += std::string(text) + "\n";
  };
  greta_runtime* runtime = nullptr;
  REQUIRE(greta_runtime_open(&runtime_options, &runtime) == GRETA_OK);
  ModelFile model = with_unused_parts();
  const auto open = [&] {
    const AuditedFile file(write_model(model));
    const greta_source source = file.source();
    auto options = sized<greta_model_options>();
    options.source = &source;
    greta_model* opened = nullptr;
    const greta_status status = greta_model_open(runtime, &options, &opened);
    greta_model_close(opened);
    return status;
  };
  CHECK(open() == GRETA_ERROR_UNSUPPORTED);
  CHECK_THAT(greta_error_text(), ContainsSubstring("llama.embedding_length_out"));
  model.drop_value("llama.embedding_length_out");
  CHECK(open() == GRETA_ERROR_UNSUPPORTED);
  CHECK_THAT(greta_error_text(), ContainsSubstring("blk.0.a_tensor_of_tomorrow"));
  model.drop_tensor("blk.0.a_tensor_of_tomorrow");
  log.clear();
  CHECK(open() == GRETA_OK);
  CHECK_THAT(log, ContainsSubstring("llama.a_key_of_tomorrow") && !ContainsSubstring("llama.pooling_type"));
  greta_runtime_close(runtime);
}
