/* greta.h - run GGUF language models on AMD GPUs, on any Vulkan GPU, or on the CPU.
 *
 * This is the whole public interface: what is not declared here is not API.
 *
 * The short way: greta_runtime_open, greta_model_open, greta_session_open, greta_session_generate.
 * Everything else is there when you need it. tests/api/ holds two complete programs.
 *
 * Rules that hold for every function:
 *   errors     A greta_status is returned. Results go to the trailing out_ pointers, which are written
 *              only on GRETA_OK (and GRETA_ERROR_CANCELLED where said). greta_error_text() says in words
 *              what went wrong. The library never aborts, exits, prints, or throws into the caller.
 *   ownership  X_open gives you an object, X_close takes it back; X_close(NULL) does nothing. Close
 *              children first: sessions, executors, models and files, then the runtime.
 *   borrowing  A const pointer you receive belongs to the object it came from and lives as long,
 *              unless the function says less.
 *   threads    Runtimes, models, files and tokenizers may be shared by threads. An executor and its
 *              sessions belong to one thread at a time; only greta_session_cancel may come from another.
 *   callbacks  run on the calling thread, with no lock held. They must not close the object in use.
 *   options    Set .struct_size = sizeof(the struct) and leave the rest zero for the defaults.
 *              Fields are only ever appended.
 *   text       UTF-8, NUL-terminated unless a length goes with it.
 *   units      _bytes are bytes, _ns nanoseconds; positions, lengths and counts are tokens.
 *   environment  The library reads no environment variable.
 */
#ifndef GRETA_H
#define GRETA_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#ifndef GRETA_API
#define GRETA_API __attribute__((visibility("default")))
#endif

/* ---- version ------------------------------------------------------------------------------------- */

#define GRETA_VERSION 100 /* major * 10000 + minor * 100 + patch */

/* Version of the linked library. Its major equals that of GRETA_VERSION, its minor is not below. */
GRETA_API uint32_t greta_version(void);

/* ---- errors -------------------------------------------------------------------------------------- */

typedef enum greta_status {
  GRETA_OK = 0,
  GRETA_ERROR_ARGUMENT = 1,    /* the caller broke a rule of this header */
  GRETA_ERROR_FILE = 2,        /* missing, truncated or malformed GGUF */
  GRETA_ERROR_UNSUPPORTED = 3, /* a valid file or request that this build or device cannot run */
  GRETA_ERROR_MEMORY = 4,      /* host or device memory ran out; the objects remain usable */
  GRETA_ERROR_DEVICE = 5,      /* the driver failed; close the runtime and open it again */
  GRETA_ERROR_FULL = 6,        /* the context window or the page pool has no room left */
  GRETA_ERROR_CANCELLED = 7,   /* a callback or greta_session_cancel asked to stop */
  GRETA_STATUS_MAX = 0x7fffffff
} greta_status;

/* The last failure on this thread in words, "" if there was none. Valid until the next call here. */
GRETA_API const char* greta_error_text(void);

/* ---- runtime: a device and its memory ------------------------------------------------------------ */

typedef struct greta_runtime greta_runtime;

typedef enum greta_log_level {
  GRETA_LOG_DEBUG = 0,
  GRETA_LOG_INFO = 1,
  GRETA_LOG_WARNING = 2,
  GRETA_LOG_ERROR = 3,
  GRETA_LOG_LEVEL_MAX = 0x7fffffff
} greta_log_level;

/* Gets one line without a line end. */
typedef void (*greta_log_callback)(void* user, greta_log_level level, const char* text);

typedef struct greta_runtime_options {
  uint32_t struct_size;
  uint32_t threads;        /* workers of the CPU device; 0: one for each processor that may be used */
  const char* device;      /* "auto" (also NULL), "cpu", "vulkan0", "hip1": a device that is named and
                              cannot be used is an error with the reason, never another device */
  uint64_t memory_limit_bytes; /* what this runtime may allocate on the device; 0: what is free */
  greta_log_callback log;  /* may be NULL */
  void* log_user;
  /* Device memory of the CPU backend in blocks of 64 KiB and more; both or none. allocate returns NULL
   * when there is no memory. May be called from any thread that uses the runtime. */
  void* (*allocate)(void* user, uint64_t bytes, uint64_t alignment);
  void (*release)(void* user, void* pointer, uint64_t bytes);
  void* allocator_user;
  uint32_t exact;          /* 1: only the plain kernels, whose bits do not depend on how a prompt is cut */
  uint32_t reserved;
} greta_runtime_options;

GRETA_API greta_status greta_runtime_open(const greta_runtime_options* options, greta_runtime** out_runtime);
GRETA_API void greta_runtime_close(greta_runtime* runtime);

typedef struct greta_device_info {
  uint32_t struct_size;
  uint32_t usable;            /* 0: `reason` says why not */
  char id[16];                /* "cpu", "vulkan0": what greta_runtime_options.device takes */
  char name[128];
  char driver[128];
  char arch[32];              /* "cpu:avx512vnni", "gfx1100" */
  char reason[256];
  uint64_t memory_bytes, memory_free_bytes;
  uint32_t unit_count;        /* compute units, or CPU workers */
  uint32_t unified_memory;    /* 1: device memory is host memory */
} greta_device_info;

/* Every device that was looked for, usable or not. `index` is below the count; fill .struct_size. */
GRETA_API greta_status greta_device_count(uint32_t* out_count);
GRETA_API greta_status greta_device_describe(uint32_t index, greta_device_info* out_info);

/* The device of this runtime. */
GRETA_API greta_status greta_runtime_describe(const greta_runtime* runtime, greta_device_info* out_info);

/* Reads memory for about a tenth of a second, the way kernels read weights: the bound of decoding. */
GRETA_API greta_status greta_runtime_measure_bandwidth(greta_runtime* runtime,
                                                       uint64_t* out_bytes_per_second);

/* ---- files: what is in a GGUF, without loading it ------------------------------------------------- */

typedef struct greta_file greta_file;

typedef struct greta_source {
  uint32_t struct_size;
  uint32_t reserved;
  const char* path;        /* a file; any part of a split set (-00001-of-00003.gguf) opens all of it */
  const void* memory;      /* or: the bytes of a file, which must outlive what is opened from it */
  uint64_t memory_bytes;
  /* or: reads exactly `bytes` bytes at `offset`, 0 on success. May be called from the calling thread only. */
  int (*read_at)(void* user, uint64_t offset, void* to, uint64_t bytes);
  void* user;
  uint64_t size_bytes;     /* of what read_at reads */
} greta_source;

/* Reads and checks header, metadata and tensor list; weights are not touched. */
GRETA_API greta_status greta_file_open(const greta_source* source, greta_file** out_file);
GRETA_API void greta_file_close(greta_file* file);

typedef struct greta_tensor_info {
  uint32_t struct_size;
  uint32_t dimensions;      /* 1 to 4 */
  const char* name;
  const char* type;         /* "q4_k" */
  uint64_t shape[4];        /* as in the file: shape[0] is the innermost; 1 past `dimensions` */
  uint64_t offset_bytes;    /* in its part of the file */
  uint64_t size_bytes;
  uint32_t part;            /* of a split set, from 0 */
  uint32_t reserved;
} greta_tensor_info;

GRETA_API uint32_t greta_file_version(const greta_file* file);
GRETA_API uint64_t greta_file_size_bytes(const greta_file* file); /* of all parts */
GRETA_API uint64_t greta_file_tensor_count(const greta_file* file);
GRETA_API greta_status greta_file_tensor(const greta_file* file, uint64_t index,
                                         greta_tensor_info* out_tensor);
GRETA_API uint64_t greta_file_metadata_count(const greta_file* file);
/* Key, type ("u32", "string", "array of f32") and value as text. Arrays are shortened to their first
 * elements and their length. The text is written to value[0 .. capacity), cut and NUL-terminated. */
GRETA_API greta_status greta_file_metadata(const greta_file* file, uint64_t index, const char** out_key,
                                           const char** out_type, char* value, size_t capacity);

/* ---- models -------------------------------------------------------------------------------------- */

typedef struct greta_model greta_model;

typedef struct greta_model_options {
  uint32_t struct_size;
  uint32_t reserved;
  const greta_source* source;  /* required; must stay valid during the call, memory and read_at as said there */
  /* Called now and then with bytes done of bytes in all; a non-zero answer cancels the load. May be NULL. */
  int (*progress)(void* user, uint64_t done_bytes, uint64_t total_bytes);
  void* progress_user;
} greta_model_options;

typedef enum greta_cache_type {
  GRETA_CACHE_DEFAULT = 0, /* f16 */
  GRETA_CACHE_F32 = 1,
  GRETA_CACHE_F16 = 2,
  GRETA_CACHE_TYPE_MAX = 0x7fffffff
} greta_cache_type;

typedef struct greta_executor_options {
  uint32_t struct_size;
  uint32_t context;         /* most tokens of one sequence; 0: the smaller of the model's and 8192 that fits */
  uint32_t sequences;       /* most sessions alive at once, 1 to 64; 0: 4 */
  greta_cache_type key_type, value_type;
  uint32_t cache_tokens;    /* tokens that the page pool holds for all sequences together; 0: context */
  uint32_t output_rows;     /* most rows of logits of one step, 1, 8 or 512; 0: 8. Larger reads GRETA_ROWS_ALL faster */
  uint32_t step_tokens;     /* most tokens of one step, at most 512; 0: as many as run in about a second */
} greta_executor_options;

/* What would be allocated, to the byte. Nothing is loaded. */
typedef struct greta_memory_plan {
  uint32_t struct_size;
  uint32_t fits;               /* 1: total_bytes is within free_bytes */
  uint32_t context;            /* that the default or the request comes to */
  uint32_t step_tokens;
  uint64_t weights_bytes;      /* device memory for weights */
  uint64_t mapped_bytes;       /* weights used in place from the mapped file: page cache, not allocated */
  uint64_t cache_bytes;        /* pages of keys and values, and the token log */
  uint64_t arena_bytes;        /* activations of the largest step */
  uint64_t tables_bytes;       /* rope tables, step state, readback */
  uint64_t host_bytes;         /* vocabulary and bookkeeping on the host, about */
  uint64_t total_bytes;        /* sum of all but mapped_bytes and host_bytes */
  uint64_t free_bytes;         /* on the device now, within the runtime's limit */
  char device[16];
} greta_memory_plan;

/* `executor` may be NULL for the defaults. A plan that does not fit is GRETA_OK with .fits = 0. */
GRETA_API greta_status greta_memory_plan_make(greta_runtime* runtime, const greta_file* file,
                                              const greta_executor_options* executor,
                                              greta_memory_plan* out_plan);

/* Loads weights. A model is immutable and may be shared by executors and threads. */
GRETA_API greta_status greta_model_open(greta_runtime* runtime, const greta_model_options* options,
                                        greta_model** out_model);
GRETA_API void greta_model_close(greta_model* model);

typedef struct greta_model_info {
  uint32_t struct_size;
  uint32_t vocab_size;
  const char* architecture;  /* "llama" */
  const char* name;          /* general.name, "" if absent */
  char type[32];             /* of most weights, as in the file's name: "Q4_K_M", "F16" */
  uint32_t context;          /* that the model was trained for */
  uint32_t layers, width, heads, kv_heads;
  uint64_t parameters;
  uint64_t weights_bytes;    /* of all tensors in the file */
  uint64_t token_bytes;      /* of weights that one decoded token reads */
} greta_model_info;

GRETA_API greta_status greta_model_describe(const greta_model* model, greta_model_info* out_info);

/* ---- tokenizers ---------------------------------------------------------------------------------- */

typedef struct greta_tokenizer greta_tokenizer;

/* From any GGUF with a vocabulary, weights or not. The file must outlive it. */
GRETA_API greta_status greta_tokenizer_open(const greta_file* file, greta_tokenizer** out_tokenizer);
GRETA_API void greta_tokenizer_close(greta_tokenizer* tokenizer);
/* The model's own; not to be closed. */
GRETA_API const greta_tokenizer* greta_model_tokenizer(const greta_model* model);

typedef enum greta_encode_flags {
  GRETA_ENCODE_BOS = 1,     /* begin with the BOS token if the model wants one */
  GRETA_ENCODE_SPECIAL = 2, /* control tokens written out in the text become those tokens */
  GRETA_ENCODE_FLAGS_MAX = 0x7fffffff
} greta_encode_flags;

/* Text to ids. Invalid UTF-8 is read as U+FFFD.
 *
 * text        [bytes], need not be terminated
 * tokens      [capacity], may be NULL when capacity is 0
 * out_count   how many ids there are; more than capacity: only the first were written */
GRETA_API greta_status greta_tokenizer_encode(const greta_tokenizer* tokenizer, const char* text, size_t bytes,
                                              uint32_t flags, int32_t* tokens, size_t capacity,
                                              size_t* out_count);

/* Ids to text: bytes as the model means them, which may be incomplete UTF-8 at the end. Control tokens
 * give no text.
 *
 * text        [capacity], not terminated; may be NULL when capacity is 0
 * out_bytes   length of the text; more than capacity: only the first bytes were written */
GRETA_API greta_status greta_tokenizer_decode(const greta_tokenizer* tokenizer, const int32_t* tokens,
                                              size_t count, char* text, size_t capacity, size_t* out_bytes);

GRETA_API uint32_t greta_tokenizer_size(const greta_tokenizer* tokenizer);
GRETA_API int32_t greta_tokenizer_bos(const greta_tokenizer* tokenizer); /* -1 if there is none */
GRETA_API int32_t greta_tokenizer_eos(const greta_tokenizer* tokenizer);
GRETA_API int greta_tokenizer_is_end(const greta_tokenizer* tokenizer, int32_t token); /* ends an answer */

typedef struct greta_message {
  const char* role;    /* "system", "user", "assistant" */
  const char* content;
} greta_message;

/* Messages to a prompt in the form that the model's chat template has, to be encoded with
 * GRETA_ENCODE_BOS | GRETA_ENCODE_SPECIAL. Recognised forms: ChatML, Llama 3, Phi 3; another template,
 * or none, is GRETA_ERROR_UNSUPPORTED.
 *
 * add_answer  1: end with the start of the assistant's answer
 * text        as in greta_tokenizer_decode, but terminated when there is room */
GRETA_API greta_status greta_tokenizer_chat(const greta_tokenizer* tokenizer, const greta_message* messages,
                                            size_t count, int add_answer, char* text, size_t capacity,
                                            size_t* out_bytes);

/* ---- executors: sessions that are batched together ------------------------------------------------ */

typedef struct greta_executor greta_executor;

/* An executor owns the page pool and the working memory. A session opens a private one unless it is
 * given one; sessions of one executor may be stepped together with greta_batch_eval. */
GRETA_API greta_status greta_executor_open(greta_model* model, const greta_executor_options* options,
                                           greta_executor** out_executor);
GRETA_API void greta_executor_close(greta_executor* executor);

/* ---- sessions: one conversation ------------------------------------------------------------------- */

typedef struct greta_session greta_session;

typedef struct greta_session_options {
  uint32_t struct_size;
  uint32_t reserved;
  greta_executor* executor;                /* NULL: a private one, made from `private_executor` */
  const greta_executor_options* private_executor; /* may be NULL */
} greta_session_options;

/* `options` may be NULL. */
GRETA_API greta_status greta_session_open(greta_model* model, const greta_session_options* options,
                                          greta_session** out_session);
GRETA_API void greta_session_close(greta_session* session);

/* A second session with the same past, on the same executor; pages are shared until one of them writes.
 * Sampling settings are copied. A private executor lives until its last session is closed. */
GRETA_API greta_status greta_session_fork(greta_session* session, greta_session** out_session);

GRETA_API uint32_t greta_session_position(const greta_session* session); /* tokens so far */
GRETA_API uint32_t greta_session_context(const greta_session* session);  /* most that there may be */

/* Forgets the tokens from `position` on; 0 forgets all. */
GRETA_API greta_status greta_session_truncate(greta_session* session, uint32_t position);

typedef enum greta_rows {
  GRETA_ROWS_NONE = 0, /* compute no logits */
  GRETA_ROWS_LAST = 1, /* those that follow the last token */
  GRETA_ROWS_ALL = 2,  /* one row for each token */
  GRETA_ROWS_MAX = 0x7fffffff
} greta_rows;

/* Feeds tokens.
 *
 * tokens      [count] ids below the vocabulary's size; count >= 1
 * rows        which logits to compute
 * out_logits  [0, 1 or count][vocab_size] float32, borrowed until the next call on this executor; may be
 *             NULL for GRETA_ROWS_NONE
 *
 * On GRETA_ERROR_FULL and GRETA_ERROR_ARGUMENT the session is as before; on GRETA_ERROR_CANCELLED it has
 * taken the tokens up to greta_session_position(). */
GRETA_API greta_status greta_session_eval(greta_session* session, const int32_t* tokens, size_t count,
                                          greta_rows rows, const float** out_logits);

typedef struct greta_batch_item {
  greta_session* session;     /* of one executor, each at most once */
  const int32_t* tokens;      /* [count] */
  size_t count;
  const float* logits;        /* out: [vocab_size] after its last token, borrowed like out_logits */
} greta_batch_item;

/* Feeds several sessions together, so that the weights are read once for all. All or nothing. */
GRETA_API greta_status greta_batch_eval(greta_batch_item* items, size_t count);

/* ---- sampling: a chain built by calls; without any, the most likely token is taken ------------------ */

GRETA_API greta_status greta_session_sampling_clear(greta_session* session);
GRETA_API greta_status greta_session_temperature(greta_session* session, float temperature); /* 0: greedy */
GRETA_API greta_status greta_session_top_k(greta_session* session, uint32_t k);              /* 0: all */
GRETA_API greta_status greta_session_top_p(greta_session* session, float p);                 /* 1: all */
GRETA_API greta_status greta_session_min_p(greta_session* session, float p);                 /* 0: all */
/* Divides the logits of the last_n tokens (at most 256) by `penalty` where positive, else multiplies; 1: off. */
GRETA_API greta_status greta_session_repeat_penalty(greta_session* session, float penalty, uint32_t last_n);
/* Draws depend on seed and position alone: the same on every device, after a fork and after a truncate. */
GRETA_API greta_status greta_session_seed(greta_session* session, uint64_t seed);

/* ---- generation ------------------------------------------------------------------------------------ */

typedef enum greta_stop_reason {
  GRETA_STOP_LENGTH = 0,    /* max_tokens */
  GRETA_STOP_END = 1,       /* the model ended its answer */
  GRETA_STOP_CONTEXT = 2,   /* no room left */
  GRETA_STOP_CANCELLED = 3, /* the callback or greta_session_cancel */
  GRETA_STOP_REASON_MAX = 0x7fffffff
} greta_stop_reason;

typedef struct greta_generate_options {
  uint32_t struct_size;
  uint32_t max_tokens;    /* 0: until the context is full */
  uint32_t ignore_end;    /* 1: end-of-answer tokens are tokens like others */
  uint32_t reserved;
  /* Each token as it comes, its text always valid UTF-8: bytes of an unfinished character are held back
   * (then bytes is 0), and what never became one comes last as U+FFFD with token -1. text is terminated
   * too. Non-zero stops. The end token itself gives no call. */
  int (*on_token)(void* user, int32_t token, const char* text, size_t bytes);
  void* user;
  /* Tokens of the prompt that are done; non-zero stops. May be NULL. */
  int (*on_prompt)(void* user, uint32_t done, uint32_t total);
} greta_generate_options;

typedef struct greta_generate_result {
  uint32_t struct_size;
  greta_stop_reason reason;
  uint32_t prompt_tokens, generated_tokens;
  uint64_t prompt_ns, generate_ns;
} greta_generate_result;

/* Feeds `tokens` (count >= 1), then draws tokens until something stops it. Stopping by request is
 * GRETA_OK with the reason; the session keeps what was fed and drawn, except that the last token drawn
 * has not been fed yet: give it as the first of the next call, or truncate.
 *
 * out_result  may be NULL; fill .struct_size */
GRETA_API greta_status greta_session_generate(greta_session* session, const int32_t* tokens, size_t count,
                                              const greta_generate_options* options,
                                              greta_generate_result* out_result);

/* From any thread or a signal handler: the call in progress stops at the next step. */
GRETA_API void greta_session_cancel(greta_session* session);

#ifdef __cplusplus
}
#endif
#endif
