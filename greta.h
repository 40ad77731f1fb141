/* greta.h - run GGUF language models on AMD GPUs, on any Vulkan GPU, or on the CPU.
 *
 * This is the whole public interface: what is not declared here is not API. It is one file, however long, so
 * that there is one to copy and one to read.
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
  GRETA_ERROR_FILE = 2,        /* missing, truncated or malformed */
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
                              cannot be used is an error with the reason, never another device.
                              "vulkan": the best of them, as "auto" chooses */
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
  const char* cache_folder; /* where compiled kernels of a GPU are kept, a file for each device and driver;
                              NULL: nowhere, they are compiled at each start */
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
  uint64_t memory_bytes;
  uint64_t memory_free_bytes; /* 0: not known; that of a GPU is once a runtime has opened it */
  uint32_t unit_count;        /* compute units, or CPU workers */
  uint32_t unified_memory;    /* 1: device memory is host memory */
  uint32_t cpu_type;          /* 1: computes on the host's processor; "auto" takes of these only "cpu" */
  uint32_t reserved;
} greta_device_info;

/* Every device that was looked for, usable or not. `index` is below the count; fill .struct_size. */
GRETA_API greta_status greta_device_count(uint32_t* out_count);
GRETA_API greta_status greta_device_describe(uint32_t index, greta_device_info* out_info);

/* The device of this runtime. */
GRETA_API greta_status greta_runtime_describe(const greta_runtime* runtime, greta_device_info* out_info);

/* Reads memory for about a tenth of a second, the way kernels read weights: the bound of decoding. */
GRETA_API greta_status greta_runtime_measure_bandwidth(greta_runtime* runtime,
                                                       uint64_t* out_bytes_per_second);

/* Multiplies and adds in registers for at most half a second, the way kernels read prompts: their bound. A
 * multiplication and an addition are two operations. GPUs: float16 on matrix units with sums in float32, where there
 * are any, else float32; CPUs: int8 with vector instructions for it, else float32. */
GRETA_API greta_status greta_runtime_measure_arithmetic(greta_runtime* runtime,
                                                        uint64_t* out_flops_per_second);

/* ---- files: what is in a GGUF, without loading it ------------------------------------------------- */

typedef struct greta_file greta_file;

typedef struct greta_source {
  uint32_t struct_size;
  uint32_t reserved;
  /* A file; any part of a split set (-00001-of-00003.gguf) opens all of it. It is copied when a model is opened, and
   * may then be cut, written to or deleted, unless `map` is set. */
  const char* path;
  const void* memory;      /* or: the bytes of a file, which must outlive what is opened from it */
  uint64_t memory_bytes;
  /* or: reads exactly `bytes` bytes at `offset`, 0 on success. May be called from the calling thread only. */
  int (*read_at)(void* user, uint64_t offset, void* to, uint64_t bytes);
  void* user;
  uint64_t size_bytes;     /* of what read_at reads */
  /* 1: where the device can (the CPU, some GPUs that share its memory) and the file can be mapped, weights stay in the
   * mapped file: no time and no memory goes into copies, and programs share them. The file may be deleted while it is open,
   * but it must not be cut or written to: its size is looked at before each step, which then is GRETA_ERROR_FILE, but a
   * file that is cut during a step ends the process by a signal (SIGBUS), and one that is written to changes the weights. */
  uint32_t map;
  uint32_t reserved2;
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
  GRETA_CACHE_Q8_0 = 3, /* heads of a multiple of 32 values */
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
  /* Called some 20 times a second while a driver compiles kernels, with those done of those that it is about; last
   * with all, unless it is stopped. On a GPU those for a token and for a long prompt are compiled when the executor is
   * opened, others when a step first needs them. A non-zero answer stops that before the next kernel: opening or the call in
   * progress is cancelled, and may be tried again. May be NULL; kept until the executor is closed. */
  int (*progress)(void* user, uint64_t done_kernels, uint64_t total_kernels);
  void* progress_user;
} greta_executor_options;

/* What would be allocated, to the byte. Nothing is loaded. */
typedef struct greta_memory_plan {
  uint32_t struct_size;
  uint32_t fits;               /* 1: total_bytes is within free_bytes */
  uint32_t context;            /* that the default or the request comes to */
  uint32_t step_tokens;
  uint64_t weights_bytes;      /* device memory for weights */
  uint64_t mapped_bytes;       /* weights used in place, not allocated: in the mapped file (page cache) or the caller's memory */
  uint64_t cache_bytes;        /* pages of keys and values, and the token log */
  uint64_t arena_bytes;        /* activations of the largest step */
  uint64_t tables_bytes;       /* rope tables, step state, readback */
  uint64_t host_bytes;         /* the file's header, vocabulary and bookkeeping on the host, about */
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
  uint64_t identity;         /* of the loaded file: a hash of metadata, tensor list and some bytes of each tensor */
} greta_model_info;

GRETA_API greta_status greta_model_describe(const greta_model* model, greta_model_info* out_info);

/* ---- tokenizers ---------------------------------------------------------------------------------- */

typedef struct greta_tokenizer greta_tokenizer;

/* From any GGUF with a vocabulary, weights or not. The file must outlive it. `log` (may be NULL) is told
 * during the call what had to be assumed, such as how a text is cut where the file's way is not known. */
GRETA_API greta_status greta_tokenizer_open(const greta_file* file, greta_log_callback log, void* log_user,
                                            greta_tokenizer** out_tokenizer);
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
  const char* role;    /* "system", "user", "assistant", "tool" */
  const char* content;
  const char* json;    /* an object with what else there is: tool_calls, tool_call_id, name,
                        * reasoning_content, content as a list of parts. May be NULL; role and content may
                        * be NULL where it has them */
} greta_message;

/* Messages to a prompt by the model's chat template, a Jinja text out of its file, to be encoded with
 * GRETA_ENCODE_BOS | GRETA_ENCODE_SPECIAL (a BOS token that encoding adds is left out). Where the file
 * has none, or a broken one, a plain format stands in: ChatML, or the one whose control tokens are in the
 * vocabulary. What the template refuses is GRETA_ERROR_ARGUMENT with its words; a template stops at limits
 * of time, memory and output with GRETA_ERROR_FULL. Dates in prompts are those of UTC.
 *
 * add_answer  1: end with the start of the assistant's answer
 * text        as in greta_tokenizer_decode, but terminated when there is room */
GRETA_API greta_status greta_tokenizer_chat(const greta_tokenizer* tokenizer, const greta_message* messages,
                                            size_t count, int add_answer, char* text, size_t capacity,
                                            size_t* out_bytes);

/* The template in use, "" where a plain format stands in. */
GRETA_API const char* greta_tokenizer_template(const greta_tokenizer* tokenizer);

/* The same template, or the plain format, with a context of variables: messages, tools,
 * add_generation_prompt and what else it reads. bos_token, eos_token and the like are the model's where
 * the context has none; nothing is left out.
 *
 * context_json  [context_bytes] a JSON object; none at all is an empty one
 * now_s         seconds since 1970 in your local time, for templates that write the date
 * text          as in greta_tokenizer_decode, but terminated when there is room */
GRETA_API greta_status greta_tokenizer_render(const greta_tokenizer* tokenizer, const char* context_json,
                                              size_t context_bytes, int64_t now_s, char* text,
                                              size_t capacity, size_t* out_bytes);

/* The same with any Jinja text in place of the model's; no token is added to the context. */
GRETA_API greta_status greta_template_render(const char* template_text, size_t template_bytes,
                                             const char* context_json, size_t context_bytes, int64_t now_s,
                                             char* text, size_t capacity, size_t* out_bytes);

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

/* Feeds several sessions together, so that the weights are read once for all. All or nothing: only while kernels are
 * compiled it can be cancelled. */
GRETA_API greta_status greta_batch_eval(greta_batch_item* items, size_t count);

/* ---- saved sessions -------------------------------------------------------------------------------- */

/* The tokens so far, [greta_session_position], borrowed until the next call on this session. */
GRETA_API const int32_t* greta_session_tokens(const greta_session* session);

/* Gets the next bytes; non-zero stops with GRETA_ERROR_CANCELLED. */
typedef int (*greta_write_callback)(void* user, const void* bytes, size_t count);

/* Bytes that greta_session_save would write now. */
GRETA_API uint64_t greta_session_state_bytes(const greta_session* session);

/* Writes the session's tokens with their keys and values, front to back and in pieces, so that nothing large
 * is held beside them. Logits are not among it, nor a token that was drawn but not fed. The session is as
 * before, also on an error. */
GRETA_API greta_status greta_session_save(greta_session* session, greta_write_callback write, void* user);

/* Puts a saved session in place of what this one holds. It goes on as the saved one would have, on the same
 * device to the bit; it may also come from another device, another length of context, another executor.
 *
 * Sampling settings and the grammar are yours and stay as they are. Draws depend on seed and position, so they
 * go on as well; what mirostat has learnt is not saved, and a grammar begins anew. To draw what comes next
 * without feeding another token, truncate by one token and feed that one again.
 *
 * The source is untrusted, and checked to its last byte before anything is replaced. On any error the session
 * is as before:
 *   GRETA_ERROR_FILE         no saved session, truncated, damaged, or not to be read
 *   GRETA_ERROR_UNSUPPORTED  saved with another model or another file of it, other types of the cache, another
 *                            version of the format; or the model turns positions otherwise in long contexts,
 *                            and this one is long and that one was not
 *   GRETA_ERROR_FULL         more tokens than the context, or than the page pool has room for beside those that
 *                            the session holds until then: truncate it to 0 first
 *   GRETA_ERROR_CANCELLED    greta_session_cancel
 *
 * source  a file, memory or read_at as for models; valid during the call, read front to back */
GRETA_API greta_status greta_session_restore(greta_session* session, const greta_source* source);

/* ---- sampling: a chain built by calls; without any, the most likely token is taken ------------------ */

/* Each call sets one step; a step that was never set is off. The steps run in the order of
 * greta_session_sampler_order, then one token is drawn from what they leave. docs/sampling.md has the
 * formulas. A value out of its range is GRETA_ERROR_ARGUMENT, and changes nothing. */
GRETA_API greta_status greta_session_sampling_clear(greta_session* session); /* as a new session */
GRETA_API greta_status greta_session_temperature(greta_session* session, float temperature); /* 0: greedy */
/* The temperature moves within +-range as the choice is more or less open; range 0: off, exponent above 0. */
GRETA_API greta_status greta_session_dynamic_temperature(greta_session* session, float range, float exponent);
GRETA_API greta_status greta_session_top_k(greta_session* session, uint32_t k);              /* 0: all */
GRETA_API greta_status greta_session_top_p(greta_session* session, float p);                 /* 1: all */
GRETA_API greta_status greta_session_min_p(greta_session* session, float p);                 /* 0: all */
GRETA_API greta_status greta_session_typical_p(greta_session* session, float p);             /* 1: all */
GRETA_API greta_status greta_session_top_n_sigma(greta_session* session, float n);           /* 0: all */
/* Drops all but the least likely of the tokens at or above `threshold`, now and then; probability 0: off. */
GRETA_API greta_status greta_session_xtc(greta_session* session, float probability, float threshold);
/* Against tokens among the last_n: their logits are divided by `repeat` where positive, else multiplied
 * (1: off), then lowered by `frequency` for each time and by `presence` once (0: off). */
GRETA_API greta_status greta_session_penalties(greta_session* session, float repeat, float frequency,
                                               float presence, uint32_t last_n);
/* Adds biases[i] to the logit of tokens[i]; -INFINITY forbids it. Replaces the biases before; count 0: none. */
GRETA_API greta_status greta_session_logit_bias(greta_session* session, const int32_t* tokens,
                                                const float* biases, size_t count);

/* DRY: against tokens that would go on with a sequence that was there before. */
typedef struct greta_dry_options {
  uint32_t struct_size;
  uint32_t allowed_length;   /* longest repeat without a penalty; 0: 2 */
  float multiplier;          /* 0: off */
  float base;                /* penalty = multiplier * base^(length - allowed_length); 0: 1.75, else at least 1 */
  uint32_t last_n;           /* tokens that are looked at; 0: all */
  uint32_t breaker_count;
  const char* const* breakers; /* [breaker_count] texts that a repeat does not reach across; NULL: a line end,
                                  a colon, a double quote and an asterisk. To have none, a count of 0 and a
                                  pointer that is not NULL. */
} greta_dry_options;

GRETA_API greta_status greta_session_dry(greta_session* session, const greta_dry_options* options);
/* Mirostat 2: keeps the surprise of the text near tau bits; tau 0: off. While it is on, only biases, the
 * filter, the grammar and the temperature work beside it. */
GRETA_API greta_status greta_session_mirostat(greta_session* session, float tau, float eta);
/* The steps in order, ";" between them; one that is not named does not run. NULL:
 * "penalties;dry;top_n_sigma;top_k;typ_p;top_p;min_p;xtc;temperature". */
GRETA_API greta_status greta_session_sampler_order(greta_session* session, const char* order);
/* Draws depend on seed and position alone: the same on every device, after a fork and after a truncate. */
GRETA_API greta_status greta_session_seed(greta_session* session, uint64_t seed);

/* Draws the token that follows from `logits`, the row that greta_session_eval or greta_batch_eval gave for the
 * session's last token, with all that is set here. It is not fed: give it to the next call. -1: the grammar
 * is at its end, and the vocabulary has no token that ends an answer. */
GRETA_API greta_status greta_session_sample(greta_session* session, const float* logits, int32_t* out_token);

/* A step of your own, before all others: may change logits[vocab]. `tokens` are those of the session so far.
 * Non-zero stops the generation. NULL: none. */
typedef int (*greta_logit_filter)(void* user, float* logits, size_t vocab, const int32_t* tokens, size_t count);
GRETA_API greta_status greta_session_logit_filter(greta_session* session, greta_logit_filter filter, void* user);

/* What is generated is held to a grammar, in llama.cpp's GBNF, from the rule `root` on (NULL: "root"), or to
 * a JSON schema. NULL or "": no longer. Not touched by the prompt; a generation that goes on from the token
 * drawn last goes on in the grammar, another one begins it anew. A grammar that is wrong is
 * GRETA_ERROR_ARGUMENT with the place, a keyword of a schema that cannot be held GRETA_ERROR_UNSUPPORTED. */
GRETA_API greta_status greta_session_grammar(greta_session* session, const char* gbnf, const char* root);
GRETA_API greta_status greta_session_json_schema(greta_session* session, const char* schema);

typedef enum greta_sampling_field {
  GRETA_SAMPLING_TEMPERATURE = 1,
  GRETA_SAMPLING_TOP_K = 2,
  GRETA_SAMPLING_TOP_P = 4,
  GRETA_SAMPLING_MIN_P = 8,
  GRETA_SAMPLING_REPEAT_PENALTY = 16,
  GRETA_SAMPLING_REPEAT_LAST_N = 32,
  GRETA_SAMPLING_XTC_PROBABILITY = 64,
  GRETA_SAMPLING_XTC_THRESHOLD = 128,
  GRETA_SAMPLING_MIROSTAT = 256,
  GRETA_SAMPLING_MIROSTAT_TAU = 512,
  GRETA_SAMPLING_MIROSTAT_ETA = 1024,
  GRETA_SAMPLING_ORDER = 2048,
  GRETA_SAMPLING_FIELD_MAX = 0x7fffffff
} greta_sampling_field;

/* What a model's file recommends (general.sampling.*). Nothing of it is used unless you set it. */
typedef struct greta_sampling_defaults {
  uint32_t struct_size;
  uint32_t fields;           /* bits of greta_sampling_field: which of these the file has, within its range */
  float temperature, top_p, min_p, repeat_penalty;
  uint32_t top_k;
  int32_t repeat_last_n;     /* -1: the whole context */
  float xtc_probability, xtc_threshold;
  uint32_t mirostat;         /* 0, 1 or 2 */
  float mirostat_tau, mirostat_eta;
  const char* order;         /* of the model, NULL if there is none */
} greta_sampling_defaults;

GRETA_API greta_status greta_model_sampling(const greta_model* model, greta_sampling_defaults* out_defaults);

/* ---- generation ------------------------------------------------------------------------------------ */

typedef enum greta_stop_reason {
  GRETA_STOP_LENGTH = 0,    /* max_tokens */
  GRETA_STOP_END = 1,       /* the model ended its answer */
  GRETA_STOP_CONTEXT = 2,   /* no room left */
  GRETA_STOP_CANCELLED = 3, /* the callback or greta_session_cancel */
  GRETA_STOP_STRING = 4,    /* one of the stop strings */
  GRETA_STOP_REASON_MAX = 0x7fffffff
} greta_stop_reason;

typedef struct greta_generate_options {
  uint32_t struct_size;
  uint32_t max_tokens;    /* 0: until the context is full */
  uint32_t ignore_end;    /* 1: end-of-answer tokens are tokens like others */
  uint32_t reserved;
  /* Each token as it comes, its text always valid UTF-8: bytes of an unfinished character are held back
   * (then bytes is 0), and what never became one comes last as U+FFFD with token -1. text is terminated
   * too. Non-zero stops. The end token itself gives no call. Text that a stop string may begin with is
   * held back the same way until it is known to be none; the stop string itself is not given out. */
  int (*on_token)(void* user, int32_t token, const char* text, size_t bytes);
  void* user;
  /* Tokens of the prompt that are done; non-zero stops. May be NULL. */
  int (*on_prompt)(void* user, uint32_t done, uint32_t total);
  const char* const* stop_strings; /* [stop_count], at most 64: texts that end the generation, across tokens too */
  size_t stop_count;
} greta_generate_options;

typedef struct greta_generate_result {
  uint32_t struct_size;
  greta_stop_reason reason;
  uint32_t prompt_tokens, generated_tokens;
  uint64_t prompt_ns, generate_ns;
  int32_t stop_string;    /* index of the stop string that was met, else -1 */
  uint32_t reserved;
} greta_generate_result;

/* Feeds `tokens` (count >= 1), then draws tokens until something stops it. Stopping by request is
 * GRETA_OK with the reason; the session keeps what was fed and drawn, except that the last token drawn
 * has not been fed yet: give it as the first of the next call, or truncate.
 *
 * out_result  may be NULL; fill .struct_size */
GRETA_API greta_status greta_session_generate(greta_session* session, const int32_t* tokens, size_t count,
                                              const greta_generate_options* options,
                                              greta_generate_result* out_result);

/* From any thread or a signal handler: the call in progress stops at the next step, or before the next kernel that it
 * would compile. */
GRETA_API void greta_session_cancel(greta_session* session);

/* ---- chat: messages in, the parts of answers out ---------------------------------------------------- */

typedef struct greta_chat greta_chat;

typedef struct greta_chat_options {
  uint32_t struct_size;
  uint32_t raw;              /* 1: an answer is one text as it comes, with the marks that the model writes */
  const char* chat_template; /* Jinja in place of the model's, or one of "chatml", "llama3", "gemma", "phi3",
                                "mistral"; NULL: the model's, or where that does not work a plain form that
                                suits its vocabulary (a warning is logged) */
  const char* tools;         /* JSON array of {"type": "function", "function": {...}}; NULL: none */
  const char* arguments;     /* JSON object of further variables: {"enable_thinking": false}; NULL: none */
  int64_t now_s;             /* seconds since 1970 in local time, for templates that write the date */
} greta_chat_options;

/* A conversation on a session, which must outlive it; sampling is set on the session. What the session holds
 * is not computed again as far as the conversation begins with it. `options` may be NULL. */
GRETA_API greta_status greta_chat_open(greta_session* session, const greta_chat_options* options,
                                       greta_chat** out_chat);
GRETA_API void greta_chat_close(greta_chat* chat);

/* role and content may be NULL where json has them. */
GRETA_API greta_status greta_chat_add(greta_chat* chat, const greta_message* message);
GRETA_API uint32_t greta_chat_count(const greta_chat* chat);
/* json is the whole message, content "" where it is no text. The texts live until the next greta_chat_get. */
GRETA_API greta_status greta_chat_get(greta_chat* chat, uint32_t index, greta_message* out_message);
GRETA_API greta_status greta_chat_truncate(greta_chat* chat, uint32_t count); /* keeps the first `count` */

/* The conversation as the model would read it. add_answer and text as in greta_tokenizer_chat. */
GRETA_API greta_status greta_chat_render(greta_chat* chat, int add_answer, char* text, size_t capacity,
                                         size_t* out_bytes);

typedef enum greta_chat_part {
  GRETA_CHAT_TEXT = 0,       /* text, bytes: what is said, piece by piece */
  GRETA_CHAT_REASONING = 1,  /* text, bytes: what is thought */
  GRETA_CHAT_TOOL_CALL = 2,  /* id, name, arguments: a whole call */
  GRETA_CHAT_PROMPT = 3,     /* done, total: tokens of the prompt that are new */
  GRETA_CHAT_PART_MAX = 0x7fffffff
} greta_chat_part;

typedef struct greta_chat_event {
  uint32_t struct_size;
  greta_chat_part part;
  const char* text;          /* valid UTF-8, terminated; like all here it lives during the call */
  size_t bytes;
  const char *id, *name, *arguments; /* arguments: a JSON object */
  uint32_t done, total;
} greta_chat_event;

typedef enum greta_chat_end {
  GRETA_CHAT_END_STOP = 0,       /* the model ended its answer, or a stop string did */
  GRETA_CHAT_END_LENGTH = 1,     /* max_tokens */
  GRETA_CHAT_END_TOOL_CALLS = 2, /* it ended with calls: add a message of role "tool" for each, and answer again */
  GRETA_CHAT_END_CONTEXT = 3,    /* no room left */
  GRETA_CHAT_END_CANCELLED = 4,  /* the callback or greta_session_cancel */
  GRETA_CHAT_END_MAX = 0x7fffffff
} greta_chat_end;

typedef struct greta_chat_answer_options {
  uint32_t struct_size;
  uint32_t max_tokens;       /* 0: until the context is full */
  uint32_t ignore_end;       /* as in greta_generate_options */
  uint32_t limit_reasoning;  /* 1: reasoning is closed after reasoning_tokens, and the answer goes on */
  uint32_t reasoning_tokens;
  uint32_t stop_count;
  const char* const* stop_strings; /* [stop_count], as in greta_generate_options */
  int (*on_event)(void* user, const greta_chat_event* event); /* non-zero stops; may be NULL */
  void* user;
} greta_chat_answer_options;

typedef struct greta_chat_result {
  uint32_t struct_size;
  greta_chat_end end;
  uint32_t prompt_tokens;    /* of the conversation */
  uint32_t reused_tokens;    /* of them, those that the session held already */
  uint32_t generated_tokens;
  uint32_t reasoning_tokens; /* of them */
  uint32_t open_reasoning;   /* 1: the answer ended within its reasoning */
  uint32_t reserved;
  uint64_t prompt_ns, generate_ns;
} greta_chat_result;

/* Answers the last message, and adds the answer to the conversation, also one that was stopped, unless
 * nothing was said. On GRETA_ERROR_FULL (the conversation does not fit the context) and
 * GRETA_ERROR_ARGUMENT (no message to answer; the template refuses) the conversation is as before.
 *
 * options, out_result  may be NULL */
GRETA_API greta_status greta_chat_answer(greta_chat* chat, const greta_chat_answer_options* options,
                                         greta_chat_result* out_result);

/* ---- experimental: may change in any version ------------------------------------------------------- */

typedef struct greta_selftest_result {
  uint32_t struct_size;
  uint32_t passed;
  const char* op;            /* "matmul"; lives during the call, like `failure` */
  uint32_t kernels;          /* that this device has for the op and that were checked */
  uint32_t reserved;
  uint64_t launches;
  const char* failure;       /* "" or what was wrong, with the kernel's name and the error */
} greta_selftest_result;

typedef struct greta_selftest_progress {
  uint32_t struct_size;
  uint32_t kernels_run, kernels; /* of the op: how many have run of those that will */
  uint32_t reserved;
  const char* op;                /* lives during the call, like `kernel` */
  const char* kernel;            /* that was launched last, "" before the first */
  uint64_t launches;
} greta_selftest_progress;

typedef struct greta_selftest_options {
  uint32_t struct_size;
  uint32_t reserved;
  const char* op;  /* one op by the name that its result has, or kernels by theirs: "attention",
                      "matmul_rows_q4_k", "matmul_rows_*"; NULL or "": all */
  int (*on_result)(void* user, const greta_selftest_result* result);       /* after each op; may be NULL */
  int (*on_progress)(void* user, const greta_selftest_progress* progress); /* some 20 times a second; may be NULL */
  void* user;
  uint32_t quick;  /* 1: every kernel, but over the first shape that reaches it instead of all, with each type of
                      cache, and without the repeats that tell whether the same input gives the same bits */
  uint32_t reserved2;
} greta_selftest_options;

/* Runs every kernel of this device against float64, over odd shapes (`quick`: one) and all tensor types: some seconds,
 * minutes where a driver compiles slowly, and some 200 MB of device memory. A kernel that is wrong is a result,
 * not an error. Callbacks are called on this thread; non-zero stops with GRETA_ERROR_CANCELLED, once the launches
 * and the compilations under way are done. An op that was stopped has a result only if something was wrong.
 *
 * options     NULL: all ops
 * out_failed  ops that did not pass */
GRETA_API greta_status greta_runtime_selftest(greta_runtime* runtime, const greta_selftest_options* options,
                                              uint32_t* out_failed);

/* Where the time of a step goes: all launches of one kernel in one stage. */
typedef struct greta_profile_stage {
  uint32_t struct_size;
  uint32_t launches;
  const char* kernel;        /* lives during the call */
  uint64_t ns;               /* on the device, each launch alone with what comes before it done */
  uint64_t bytes, flops;     /* that must move and be computed */
  const char* stage;         /* "embed", "q k v", "attention", "o", "gate up", "down", "router", "experts gate up",
                                "experts down", "shared gate up", "shared down", "head", "sample": of all layers, each
                                with the norm before it and the sum after it */
} greta_profile_stage;

/* Feeds tokens as one step, timing each of its kernels. Launches that overlap in a step that is not profiled do
 * not do so here, and each is charged a barrier: the sum is more than a step takes.
 *
 * tokens    1 for decoding, at most as many as one step takes
 * on_stage  called for each kernel of each stage in order of its first launch, after the step */
GRETA_API greta_status greta_session_profile(greta_session* session, const int32_t* tokens, size_t count,
                                             void (*on_stage)(void* user, const greta_profile_stage* stage),
                                             void* user);

#ifdef __cplusplus
}
#endif
#endif
