// A model's file may change while it is loaded and after that, whether it is copied or mapped.
#include <catch2/catch_test_macros.hpp>
#include <sys/stat.h>
#include <unistd.h>

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <map>
#include <thread>
#include <utility>

#include "greta.h"
#include "support/gguf_writer.h"
#include "support/read_faults.h"
#include "support/test_device.h"
#include "support/tiny_model.h"

using namespace greta::test;
using Catch::Matchers::ContainsSubstring;

namespace {

constexpr uint32_t kVocab = 3000;  // about 1 MB of embeddings

// A model from a file, in a runtime of its own.
struct FileModel {
  TemporaryFolder folder;
  std::string file = make_tiny({.vocab = kVocab}).file;
  std::string path = folder.write("model.gguf", file);
  greta_source source{};
  greta_runtime* runtime = nullptr;
  greta_file* opened = nullptr;
  greta_model* model = nullptr;
  greta_session* session = nullptr;
  int (*progress)(void* user, uint64_t done, uint64_t total) = nullptr;
  void* user = nullptr;

  explicit FileModel(bool map, greta_runtime_options options = {}) {
    options.struct_size = sizeof options;
    if (!options.device) options.device = "cpu";
    source.struct_size = sizeof source;
    source.path = path.c_str();
    source.map = map;
    REQUIRE(greta_runtime_open(&options, &runtime) == GRETA_OK);
  }
  ~FileModel() {
    greta_session_close(session);
    greta_model_close(model);
    greta_file_close(opened);
    greta_runtime_close(runtime);
  }
  greta_status load() {
    greta_model_options options{};
    options.struct_size = sizeof options;
    options.source = &source;
    options.progress = progress;
    options.progress_user = user ? user : this;
    const greta_status status = greta_model_open(runtime, &options, &model);
    return status ? status : greta_session_open(model, nullptr, &session);
  }
  greta_memory_plan plan() {
    greta_memory_plan plan{};
    plan.struct_size = sizeof plan;
    if (!opened) REQUIRE(greta_file_open(&source, &opened) == GRETA_OK);
    REQUIRE(greta_memory_plan_make(runtime, opened, nullptr, &plan) == GRETA_OK);
    return plan;
  }
  greta_status eval(std::vector<float>* out) {
    const int32_t tokens[] = {1, 4, 2, 8};
    const float* logits = nullptr;
    REQUIRE(greta_session_truncate(session, 0) == GRETA_OK);
    const greta_status status = greta_session_eval(session, tokens, 4, GRETA_ROWS_LAST, &logits);
    if (!status) out->assign(logits, logits + kVocab);
    return status;
  }
  void cut(uint64_t bytes) const { REQUIRE(truncate(path.c_str(), off_t(bytes)) == 0); }
  void write_back() const { folder.write("model.gguf", file); }
};

// Counts the blocks of 64 KiB and more that the CPU device allocates.
struct Blocks {
  std::map<void*, uint64_t> live;
  uint64_t now = 0, most = 0;
  greta_runtime_options options() {
    greta_runtime_options o{};
    o.allocator_user = this;
    o.allocate = [](void* user, uint64_t bytes, uint64_t alignment) -> void* {
      auto& self = *static_cast<Blocks*>(user);
      void* pointer = std::aligned_alloc(alignment, bytes);
      self.live[pointer] = bytes;
      self.most = std::max(self.most, self.now += bytes);
      return pointer;
    };
    o.release = [](void* user, void* pointer, uint64_t bytes) {
      auto& self = *static_cast<Blocks*>(user);
      CHECK(self.live[pointer] == bytes);
      self.live.erase(pointer);
      self.now -= bytes;
      std::free(pointer);
    };
    return o;
  }
};

}  // namespace

TEST_CASE("api: a copied model needs its file no more", "[api][file]") {
  greta_runtime_options options{};
  options.device = test_device();
  FileModel m(false, options);
  REQUIRE(m.load() == GRETA_OK);
  std::vector<float> whole, cut;
  REQUIRE(m.eval(&whole) == GRETA_OK);
  for (const uint64_t bytes :
       {uint64_t(0), uint64_t(m.file.size())}) {  // the file becomes empty, then has only zeros
    m.cut(bytes);
    REQUIRE(m.eval(&cut) == GRETA_OK);
    CHECK(cut == whole);
    greta_model_info info{};
    info.struct_size = sizeof info;
    REQUIRE(greta_model_describe(m.model, &info) == GRETA_OK);
    CHECK(std::string(info.name) == "tiny");
    const int32_t token = 77;
    char text[8] = {};
    size_t count = 0;
    CHECK(greta_tokenizer_decode(greta_model_tokenizer(m.model), &token, 1, text, 7, &count) == GRETA_OK);
    CHECK(std::string(text) == "77t");
  }
}

TEST_CASE("api: what is known of a file outlives it, mapped or not", "[api][file]") {
  for (const bool map : {false, true}) {
    FileModel m(map);
    m.plan();
    m.cut(0);
    const char *key = nullptr, *type = nullptr;
    char value[64];
    REQUIRE(greta_file_metadata(m.opened, 0, &key, &type, value, sizeof value) == GRETA_OK);
    CHECK(std::string(value) == "\"llama\"");
    greta_tokenizer* tokenizer = nullptr;
    REQUIRE(greta_tokenizer_open(m.opened, nullptr, nullptr, &tokenizer) == GRETA_OK);
    CHECK(greta_tokenizer_size(tokenizer) == kVocab);
    greta_tokenizer_close(tokenizer);
    CHECK(m.load() == GRETA_ERROR_FILE);
  }
}

TEST_CASE("api: a mapped file that was cut ends the next step with a status", "[api][file]") {
  FileModel m(true);
  REQUIRE(m.load() == GRETA_OK);
  CHECK(m.plan().mapped_bytes > 0);
  std::vector<float> whole, again;
  REQUIRE(m.eval(&whole) == GRETA_OK);
  const uint64_t size = m.file.size(), page = 4096;
  for (const uint64_t bytes :
       {size - 1, size / page * page, size / 2 / page * page, size / 2, page, uint64_t(1), uint64_t(0)}) {
    INFO("cut to " << bytes << " of " << size);
    m.cut(bytes);
    CHECK(m.eval(&again) == GRETA_ERROR_FILE);
    CHECK_THAT(greta_error_text(), ContainsSubstring("model.gguf") && ContainsSubstring("must not be cut"));
    CHECK(greta_session_position(m.session) == 0);
    const int32_t token = 1;
    CHECK(greta_session_generate(m.session, &token, 1, nullptr, nullptr) == GRETA_ERROR_FILE);
    CHECK(greta_session_position(m.session) == 0);
    m.write_back();  // then the session goes on
    REQUIRE(m.eval(&again) == GRETA_OK);
    CHECK(again == whole);
  }
  CHECK(unlink(m.path.c_str()) == 0);
  REQUIRE(m.eval(&again) == GRETA_OK);
  CHECK(again == whole);
}

TEST_CASE("api: a file that is cut while it is loaded is a status", "[api][file]") {
  for (const bool map : {false, true}) {
    FileModel m(map);
    m.progress = [](void* user, uint64_t done, uint64_t total) {
      if (done < total) static_cast<FileModel*>(user)->cut(4096);
      return 0;
    };
    CHECK(m.load() == GRETA_ERROR_FILE);
    CHECK_THAT(greta_error_text(),
               ContainsSubstring("model.gguf") && ContainsSubstring(map ? "must not be cut" : "ends before"));
    m.write_back();
    m.progress = nullptr;
    CHECK(m.load() == GRETA_OK);
  }
}

TEST_CASE("api: mapping is asked for by a field that older programs do not have", "[api][file]") {
  FileModel whole(true), older(true), unset(false);
  older.source.struct_size = offsetof(greta_source, map);
  const greta_memory_plan mapped = whole.plan(), copied = unset.plan();
  CHECK(mapped.mapped_bytes > 0);
  CHECK(copied.mapped_bytes == 0);
  CHECK(copied.weights_bytes >= mapped.weights_bytes + mapped.mapped_bytes);
  CHECK(older.plan().mapped_bytes == 0);
  CHECK(older.plan().weights_bytes == copied.weights_bytes);
}

TEST_CASE("api: a plan says what mapped and copied weights allocate", "[api][file]") {
  for (const bool map : {false, true}) {
    Blocks blocks;
    {
      FileModel m(map, blocks.options());
      const greta_memory_plan plan = m.plan();
      REQUIRE(m.load() == GRETA_OK);
      greta_session_close(std::exchange(m.session, nullptr));
      // Blocks of 64 KiB and more are whole pages.
      CHECK(blocks.now == (plan.weights_bytes < 65536 ? 0 : (plan.weights_bytes + 4095) / 4096 * 4096));
      CHECK((blocks.now > m.file.size() / 2) == !map);
    }
    CHECK(blocks.live.empty());
  }
}

TEST_CASE("api: weights that do not fit are refused, with mapping as the way out where it is one",
          "[api][file]") {
  FileModel planned(false), mapped(true);
  const uint64_t needed = planned.plan().weights_bytes;
  greta_runtime_options options{};
  options.memory_limit_bytes = needed - 1;
  FileModel copied(false, options);
  CHECK(copied.load() == GRETA_ERROR_MEMORY);
  CHECK_THAT(greta_error_text(), ContainsSubstring("greta_source.map"));
  copied.source.map = 1;
  CHECK(copied.plan().fits == 0);  // the weights alone would fit, but not with the default session
  greta_model_options open{};
  open.struct_size = sizeof open;
  open.source = &copied.source;
  CHECK(greta_model_open(copied.runtime, &open, &copied.model) == GRETA_OK);

  options.memory_limit_bytes = 1;  // packed or misaligned tensors may need memory all the same
  FileModel none(false, options);
  CHECK(none.load() == GRETA_ERROR_MEMORY);
  none.source.path = nullptr;
  none.source.memory = none.file.data();
  none.source.memory_bytes = none.file.size();
  if (none.load() == GRETA_ERROR_MEMORY)
    CHECK_THAT(greta_error_text(), !ContainsSubstring("greta_source.map"));
}

TEST_CASE("api: copying tells how far it is, and may be cancelled", "[api][file]") {
  FileModel m(false);
  struct Calls {
    uint64_t count = 0, last = 0, total = 0, stop_at = 0;
  } calls;
  m.user = &calls;
  m.progress = [](void* user, uint64_t done, uint64_t total) {
    Calls& c = *static_cast<Calls*>(user);
    CHECK(done >= c.last);
    c.last = done;
    c.total = total;
    return ++c.count == c.stop_at ? 1 : 0;
  };
  REQUIRE(m.load() == GRETA_OK);
  CHECK(calls.last == calls.total);
  CHECK(calls.total > m.file.size() / 2);
  const uint64_t count = calls.count;
  for (calls = {.stop_at = 1}; calls.stop_at < count; calls = {.stop_at = calls.stop_at + 1}) {
    FileModel stopped(false);
    stopped.user = &calls;
    stopped.progress = m.progress;
    CHECK(stopped.load() == GRETA_ERROR_CANCELLED);
    CHECK(calls.count == calls.stop_at);
  }
}

TEST_CASE("api: a file that cannot be read, or in small pieces, is a status or a model", "[api][file]") {
  std::vector<float> want, got;
  FileModel plain(false);
  REQUIRE(plain.load() == GRETA_OK);
  REQUIRE(plain.eval(&want) == GRETA_OK);

  read_faults.most = 5000;
  read_faults.interrupts = 100;
  FileModel slow(false);
  REQUIRE(slow.load() == GRETA_OK);
  read_faults.clear();
  REQUIRE(slow.eval(&got) == GRETA_OK);
  CHECK(got == want);

  for (const uint64_t at : {uint64_t(10), plain.file.size() / 2, plain.file.size() - 1}) {
    read_faults.error_at = at;
    read_faults.error = EIO;
    FileModel broken(false);
    CHECK(broken.load() == GRETA_ERROR_FILE);
    CHECK_THAT(greta_error_text(), ContainsSubstring("model.gguf") && ContainsSubstring("error"));
    read_faults.clear();
  }
}

TEST_CASE("api: a source's callback is called from the thread that loads, and gives the same model",
          "[api][file]") {
  FileModel m(false), c(false);
  REQUIRE(m.load() == GRETA_OK);
  struct Reader {
    const std::string& file;
    std::thread::id thread;
    uint64_t strangers;
  } reader{m.file, std::this_thread::get_id(), 0};
  c.source.path = nullptr;
  c.source.user = &reader;
  c.source.size_bytes = m.file.size();
  c.source.read_at = [](void* user, uint64_t offset, void* to, uint64_t bytes) {
    Reader& r = *static_cast<Reader*>(user);
    if (std::this_thread::get_id() != r.thread) __atomic_fetch_add(&r.strangers, 1, __ATOMIC_RELAXED);
    memcpy(to, r.file.data() + offset, bytes);
    return 0;
  };
  REQUIRE(c.load() == GRETA_OK);
  CHECK(reader.strangers == 0);
  std::vector<float> want, got;
  REQUIRE(m.eval(&want) == GRETA_OK);
  REQUIRE(c.eval(&got) == GRETA_OK);
  CHECK(got == want);
}
