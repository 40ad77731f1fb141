/* greta.h - run GGUF language models on AMD GPUs, on any Vulkan GPU, or on the CPU.
 *
 * This file is the whole public interface: what is not declared here is not part of it. It stays one file,
 * however long, so that there is one to copy and one to read.
 *
 * OBJECTS
 *   runtime    A device, a GPU or the CPU, with a limit on the memory that may be used there; or several
 *              devices, over which a model may be placed.
 *   file       What a GGUF file contains: metadata and a list of tensors. No weights are loaded for it.
 *   model      The weights of a file, loaded on the devices of a runtime. It never changes after that.
 *   tokenizer  Turns text into token ids and back. A model has one; a file alone can give one, too.
 *   executor   The working memory and the cache for a number of sessions that may run together. A session
 *              makes a private one unless you give it one, so most programs never name it.
 *   session    One sequence of tokens that a model has read or written, with its cached keys and values.
 *   sampler    The settings by which a session chooses its next token: temperature, top-k, grammar and so on.
 *              It is a part of the session and not an object; a new session takes the most likely token.
 *   chat       A conversation on a session: messages go in, answers come out in parts.
 *   service    Answers many requests at once, from any number of threads. A request is a prompt or a
 *              conversation and its answer.
 *
 * THE SHORT WAY
 *   This is a complete program. Everything else in this file is there when you need it.
 *
 *     #include <greta.h>
 *     #include <stdio.h>
 *     static int print(void* user, int32_t token, const char* text, size_t bytes) {
 *       return fwrite(text, 1, bytes, stdout) != bytes;
 *     }
 *     int main(void) {
 *       greta_source source = {.struct_size = sizeof source, .path = "model.gguf"};
 *       greta_model_options load = {.struct_size = sizeof load, .source = &source};
 *       greta_generate_options write = {.struct_size = sizeof write, .max_tokens = 100, .on_token = print};
 *       greta_runtime* runtime = NULL; greta_model* model = NULL; greta_session* session = NULL;
 *       int32_t tokens[64]; size_t count = 0;
 *       if (greta_runtime_open(NULL, &runtime) || greta_model_open(runtime, &load, &model) ||
 *           greta_session_open(model, NULL, &session) ||
 *           greta_tokenizer_encode(greta_model_tokenizer(model), "Once upon a time", 16, GRETA_ENCODE_BOS,
 *                                  tokens, 64, &count) ||
 *           greta_session_generate(session, tokens, count, &write, NULL)) puts(greta_error_text());
 *       greta_session_close(session), greta_model_close(model), greta_runtime_close(runtime);
 *     }
 *
 *   examples/ has more complete programs: a story, a conversation, an answer that fits a schema, several
 *   texts at once, a service for many threads or for one, and vectors of texts.
 *
 * RULES THAT HOLD FOR EVERY FUNCTION
 *   errors       A function that can fail returns a greta_status. Its results go to the out_ parameters at
 *                the end, which are written only with GRETA_OK, and with GRETA_ERROR_CANCELLED where that is
 *                said. greta_error_text() says in words what went wrong. The library never aborts, exits,
 *                prints, or throws into its caller. A call that fails leaves its objects as they were before
 *                it, and they remain usable, unless the function or the status says otherwise.
 *   NULL         A required pointer that is NULL gives GRETA_ERROR_ARGUMENT. X_close(NULL) does nothing. A
 *                function that returns a value instead of a status returns 0, -1, "" or NULL for a NULL
 *                object.
 *   ownership    X_open gives you an object and X_close takes it back. Close children first: chats, sessions,
 *                executors and services, tokenizers, models and files, then the runtime. A request may also
 *                be closed after its service.
 *   borrowing    A const pointer that you receive belongs to the object it came from and lives as long as
 *                that object, unless the function names a shorter time.
 *   threads      Threads may share runtimes, models, files, tokenizers and services. An executor, its
 *                sessions and their chats belong to one thread at a time; only greta_session_cancel may come
 *                from another one.
 *   cancelling   A thread that is cancelled (pthread_cancel) while it is in the library ends in the waits of
 *                greta_request_next and greta_service_run, else when the call returns; callbacks are part of
 *                the call. Its objects remain usable. A callback must not end its thread (pthread_exit).
 *   signals      The library's own threads block all signals but those of faults. Where files are written, in
 *                cache_folder and page_folder, the thread blocks SIGXFSZ until they are, so that a limit on
 *                the size of files costs these files and nothing else.
 *   callbacks    A callback runs on the calling thread, and no lock is held. It must not close the object in
 *                use. It should not throw: a C++ exception out of a callback ends the call with
 *                GRETA_ERROR_ARGUMENT, the error text names the callback, and the objects are left as after
 *                any failure. An exception out of greta_runtime_options.release or
 *                greta_service_options.on_ready is ignored.
 *   stack        256 KiB of stack are enough for every function but greta_runtime_selftest, however deeply a
 *                file, template, schema or text is nested. Callbacks add what they use. Builds without
 *                optimisation or with sanitizers need more.
 *   structs      Set .struct_size = sizeof(the struct) in every struct that has the field; at most 4096 is
 *                accepted. Structs that you fill in: zero in all other fields means the defaults. Structs
 *                that the library fills in: it writes the fields that fit into struct_size. Structs that a
 *                callback receives have struct_size set. New fields are only ever appended. "1:" in a comment
 *                marks a field that is 0 or 1. Another number there, a flag or an enum's value that is not in
 *                this file gives GRETA_ERROR_ARGUMENT; a reserved field that is not 0, or a field unknown to
 *                this library that is not 0, gives GRETA_ERROR_UNSUPPORTED.
 *   arrays       A count that is not 0 needs a pointer that is not NULL; the pointer may be NULL for a count
 *                of 0. In a comment, [n] is the number of elements. A count that cannot fit is refused before
 *                anything is read.
 *   text         Text is UTF-8. It ends with a NUL unless its length is passed along.
 *   units        Names that end in _bytes are bytes, in _ns nanoseconds, in _s seconds. Positions, lengths of
 *                contexts and counts of tokens are tokens.
 *   fork         A child process has none of its parent's threads and devices, so every call that needs them
 *                gives GRETA_ERROR_DEVICE in the child. There, close the inherited objects or leave them;
 *                closing returns and leaves the parent's objects as they are. Then open a new runtime.
 *   environment  The library reads no environment variable.
 */
#ifndef GRETA_H
#define GRETA_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* What is linked into a shared library is seen through it, unless the linker is told otherwise. CMake's
 * target greta::embedded and the words of `pkg-config --variable=embed greta` do so. */
#ifndef GRETA_API
#define GRETA_API __attribute__((visibility("default")))
#endif

/* ---- version ------------------------------------------------------------------------------------- */

#define GRETA_VERSION 100 /* major * 10000 + minor * 100 + patch */

/* Gives the version of the library that is linked. It fits this header if its major number is equal to that
 * of GRETA_VERSION and its minor number is not smaller. */
GRETA_API uint32_t greta_version(void);

/* ---- errors -------------------------------------------------------------------------------------- */

typedef enum greta_status {
  GRETA_OK = 0,
  GRETA_ERROR_ARGUMENT = 1,    /* The caller broke a rule of this header. */
  GRETA_ERROR_FILE = 2,        /* A file is missing, truncated or malformed, or gives no finite logit. */
  GRETA_ERROR_UNSUPPORTED = 3, /* The file or request is valid, but this build or device cannot run it. */
  GRETA_ERROR_MEMORY = 4,      /* Host or device memory ran out. The objects remain usable. */
  GRETA_ERROR_DEVICE = 5,      /* The driver failed, or the process was forked. Close the runtime and open it
                                * again. */
  GRETA_ERROR_FULL = 6,        /* There is no room for this, as in the context or in the page pool. */
  GRETA_ERROR_CANCELLED = 7,   /* A callback or greta_session_cancel asked to stop. */
  GRETA_ERROR_BUSY = 8,        /* A service takes no more requests for now. Try again when some have ended. */
  GRETA_STATUS_MAX = 0x7fffffff
} greta_status;

/* Describes the last failure on this thread in words. The text is "" if there was none, and has at most 1023
 * bytes. It is valid until the next call of a function of this header on this thread. */
GRETA_API const char* greta_error_text(void);

/* Gives the numbers of that failure, where something is too long or too many: the tokens of a prompt and the
 * room for them (GRETA_ERROR_FULL), or the requests that wait or run and their limit (GRETA_ERROR_BUSY). Both
 * are 0 for every other failure. The call leaves the text as it is.
 *
 * out_length, out_limit  may be NULL */
GRETA_API void greta_error_numbers(uint64_t* out_length, uint64_t* out_limit);

/* ---- runtime: a device and its memory ------------------------------------------------------------ */

typedef struct greta_runtime greta_runtime;

typedef enum greta_log_level {
  GRETA_LOG_DEBUG = 0,
  GRETA_LOG_INFO = 1,
  GRETA_LOG_WARNING = 2,
  GRETA_LOG_ERROR = 3,
  GRETA_LOG_LEVEL_MAX = 0x7fffffff
} greta_log_level;

/* Receives one line without a line end. `text` is valid during the call. */
typedef void (*greta_log_callback)(void* user, greta_log_level level, const char* text);

/* Whether HIP devices make graphs of the runtime from the launches of a step, which saves time of the host.
 * Without them every launch is given by itself, and the results are the same. */
typedef enum greta_graphs {
  GRETA_GRAPHS_DEFAULT = 0,    /* Graphs from HIP 7.2.1 on. In older versions some of a graph's launches may
                                * be lost. */
  GRETA_GRAPHS_OFF = 1,
  GRETA_GRAPHS_ON = 2,
  GRETA_GRAPHS_MAX = 0x7fffffff
} greta_graphs;

typedef enum greta_span_kind {
  GRETA_SPAN_LOAD = 1,         /* A model is read: `bytes` of weights. */
  GRETA_SPAN_PLAN = 2,         /* The plan of a kind of step is made. */
  GRETA_SPAN_COMPILE = 3,      /* Its kernels are compiled, or found compiled. It lies in a plan. */
  GRETA_SPAN_RECORD = 4,       /* A step is prepared and given to the device. Plans and submits lie in it. */
  GRETA_SPAN_SUBMIT = 5,       /* Of a compute: so many launches, bytes and flops. */
  GRETA_SPAN_WAIT = 6,         /* The host waits for a step. The CPU device works in it. */
  GRETA_SPAN_STEP = 7,         /* From the begin of RECORD to the end of WAIT: `tokens` rows. The next step
                                * may be recorded while this one runs. */
  GRETA_SPAN_LAUNCH = 8,       /* Launches on a device between two barriers, which may overlap. */
  GRETA_SPAN_COPY = 9,         /* A page of a cache is copied to the host's memory or back: it is recorded.
                                * Of a compute: `bytes` are copied to memory of the device or back. */
  GRETA_SPAN_SAMPLE = 10,      /* The host chooses a token. */
  GRETA_SPAN_GRAMMAR = 11,     /* A grammar says which tokens fit. It lies in a sample. */
  GRETA_SPAN_CALLBACK = 12,    /* The caller's on_token. */
  GRETA_SPAN_REQUEST = 13,     /* A service's request, from its adding to its end: `tokens` were read and
                                * written. */
  GRETA_SPAN_MAX = 0x7fffffff
} greta_span_kind;

/* Something that the library did, when it has ended. Times are of the clock CLOCK_MONOTONIC, which is the
 * steady_clock of C++. Other fields are 0 or "" where the kind does not say anything of them. */
typedef struct greta_span {
  uint32_t struct_size;
  greta_span_kind kind;
  const char* name;            /* "step"; of a launch the first kernel. Valid during the callback, like
                                * `stage`. */
  const char* stage;           /* Of a launch, as in greta_profile_stage. */
  uint64_t begin_ns, end_ns;
  uint64_t number;             /* Of the step, from 1 for each executor. RECORD, WAIT, STEP and LAUNCH have
                                * it. Of a compute: that of the stream's, timeline's or buffer's handle. */
  uint32_t device;             /* Of a launch, from 0 in the order of the runtime; else UINT32_MAX, for the
                                * host. */
  uint32_t tokens;
  uint32_t launches;           /* How many a LAUNCH stands for. */
  uint32_t reserved;
  uint64_t bytes, flops;       /* What launches must move and compute. */
  uint64_t error_ns;           /* Of a launch: the device's clock may stand so far beside the host's. */
} greta_span;

typedef struct greta_runtime_options {
  uint32_t struct_size;
  uint32_t threads;            /* Worker threads of the CPU device; 0: one for each processor it may use. */
  const char* device;          /* The device to open. "auto" or NULL takes the best GPU that works, else the
                                * CPU; an AMD Instinct through HIP, another GPU through Vulkan, or through HIP
                                * where Vulkan has no driver for it. "vulkan" takes the best device of that
                                * kind. "cpu", "vulkan0" or "hip1" takes exactly that device: if it cannot be
                                * used, the call fails with the reason and takes no other. Several names
                                * with ',' between them open several devices: "vulkan0,cpu". Read during the
                                * call. */
  uint64_t memory_limit_bytes; /* The most that this runtime may allocate on the device, or on the first of
                                * several; 0: what is free. */
  greta_log_callback log;      /* Receives the log until the runtime is closed; NULL: there is no log. */
  void* log_user;              /* Passed to `log`. */

  /* An allocator for large blocks of the CPU device, of 64 KiB and more. Set both functions or none. They may
   * be called from any thread that uses the runtime, until it is closed. `alignment` is in bytes. `allocate`
   * returns NULL when there is no memory. `release` receives the `bytes` that `allocate` was asked for. */
  void* (*allocate)(void* user, uint64_t bytes, uint64_t alignment);
  void (*release)(void* user, void* pointer, uint64_t bytes);
  void* allocator_user;        /* Passed to both. */

  uint32_t exact;              /* 1: use only the plain kernels. They are slow, and their results do not
                                * depend on how a prompt is cut into steps. */
  uint32_t persistent;         /* 1: a decode step on an AMD Instinct is one launch that stays on the GPU,
                                * where its kernels allow that. Results are the same. Another device is
                                * refused. */
  const char* cache_folder;    /* A folder for compiled GPU kernels, with one file for each device and driver;
                                * NULL: nothing is kept, and kernels are compiled at each start. */
  uint32_t graphs;             /* A greta_graphs. Other devices than those of HIP ignore it. */
  uint32_t import_files;       /* 1: a HIP device that shares the host's memory reads weights in place from a
                                * file that may be mapped (greta_source.map). Some kernels and runtimes stall
                                * or hang on that, so without it HIP copies weights. */
  const char* rocm_folders;    /* Folders of ROCm with ':' between them, such as "/opt/rocm-7.2". A runtime
                                * of HIP in them (in lib, lib64, or the folder itself) comes before those of
                                * the system. A runtime that the process has loaded comes first of all. Read
                                * until the process has opened a HIP runtime; NULL: none. */
  const char* virtual_environment; /* The folder of a Python virtual environment. The HIP runtime of its
                                * ROCm packages is taken where there is no other; NULL: none. */
  const char* without;         /* Kinds of device with ',' between them, such as "hip,vulkan", whose drivers
                                * are left alone where `device` does not name one; NULL: none. */
  const char* hiding;          /* Environment variables that are set and hide GPUs, such as
                                * "HIP_VISIBLE_DEVICES=1", for the text of errors; NULL: it is not told. */
  const uint64_t* device_limits; /* [device_limit_count] The same as memory_limit_bytes for each of several
                                  * devices, in their order. */
  uint32_t device_limit_count; /* At most the number of devices. */
  uint32_t reserved;           /* 0. */

  /* Telemetry: receives what models and computes of this runtime do, for a tracer of your own. Of computes
   * that is plans, compiling, submits, waits, and copies that wait. NULL: nothing is measured, and devices
   * are given the same commands as ever. Results are the same with it. It is called from every thread that
   * works for the runtime, several at a time. It must not call the library; an exception is ignored. */
  void (*on_span)(void* user, const greta_span* span);
  void* span_user;             /* Passed to on_span. */
  uint32_t span_launches;      /* 1: also GRETA_SPAN_LAUNCH, for models on one device. Launches are then given
                                * one by one with a clock where their barriers stand, and no barrier is added,
                                * but a captured graph is not replayed. */
  uint32_t reserved2;          /* 0. */
  const char* tuning_folder;   /* A folder of tuning tables, which greta_runtime_tune makes, with one file for
                                * each device, driver and version of the kernels. A table of this device
                                * chooses among kernels that fit; one that is damaged or of another driver is
                                * ignored, and the log says so. With `exact` none is read. NULL: none. */
} greta_runtime_options;

#define GRETA_MAX_DEVICES 16   /* The most devices of a runtime. */

/* Opens a device, or several. A device that is named twice, or by two drivers, is refused.
 *
 * options      may be NULL for the defaults
 * out_runtime  the new runtime, to be closed with greta_runtime_close */
GRETA_API greta_status greta_runtime_open(const greta_runtime_options* options, greta_runtime** out_runtime);
GRETA_API void greta_runtime_close(greta_runtime* runtime);

typedef struct greta_device_info {
  uint32_t struct_size;
  uint32_t usable;            /* 1: the device can be used. 0: `reason` says why not. */
  char id[16];                /* The name that greta_runtime_options.device takes: "cpu", "vulkan0". */
  char name[128];
  char driver[128];           /* The driver and its version. */
  char arch[32];              /* The kind of processor: "cpu:avx512vnni", "gfx1100". */
  char reason[256];           /* "" for a device that can be used. */
  uint64_t memory_bytes;      /* All memory of the device. */
  uint64_t memory_free_bytes; /* The memory that is free, for a runtime within its limit. 0: not known. For a
                               * GPU it is known only once a runtime has opened it. If the process can open no
                               * more files, the host's number leaves out memory that caches files. */
  uint32_t unit_count;        /* Compute units of a GPU, or worker threads of the CPU device. */
  uint32_t unified_memory;    /* 1: device memory is host memory. */
  uint32_t cpu_type;          /* 1: the device computes on the host's processor, as software GPUs do. Of these
                               * devices "auto" takes only "cpu". */
  uint32_t reserved;
  char pci[16];               /* The PCI address: "0000:03:00.0"; "" if it is not known. Two devices with the
                               * same address are one GPU behind two drivers. */
} greta_device_info;

/* Gives the number of devices that were looked for, including those that cannot be used. A kind of device
 * that is not present counts as one entry, whose `reason` says why. */
GRETA_API greta_status greta_device_count(uint32_t* out_count);

/* Describes one of these devices, without opening it.
 *
 * index     below the count of greta_device_count
 * out_info  set struct_size before the call */
GRETA_API greta_status greta_device_describe(uint32_t index, greta_device_info* out_info);

/* Names the kinds of device that this build looks for, in the order of greta_device_count: "hip", "vulkan",
 * "cpu". No driver is asked.
 *
 * index         from 0
 * out_expected  may be NULL; 1: "auto" asks the driver of this kind. 0: the kernel shows no device for it
 * returns       the name, which stays valid; NULL behind the last one */
GRETA_API const char* greta_device_kind(uint32_t index, uint32_t* out_expected);

/* Describes all devices that were looked for, as greta_device_describe does. Of the options `rocm_folders`,
 * `virtual_environment`, `without`, `hiding` and the log count: "opening FILE", of level GRETA_LOG_DEBUG,
 * comes before a driver's library is opened. Kinds in `without` are not listed.
 *
 * options    may be NULL for the defaults
 * on_device  receives each device; a non-zero return value stops the call with GRETA_ERROR_CANCELLED
 * user       passed to on_device */
GRETA_API greta_status greta_device_list(const greta_runtime_options* options,
                                         int (*on_device)(void* user, const greta_device_info* device),
                                         void* user);

/* Something that is known of this machine's GPUs, their drivers, and who may open them. The texts are valid
 * during the callback. */
typedef struct greta_finding {
  uint32_t struct_size;
  uint32_t reserved;
  const char* subject;        /* "system", "/dev/kfd", "gpu 0000:03:00.0", or a device's id: "hip0". */
  const char* key;            /* "target" */
  const char* value;          /* "gfx942" */
  const char* advice;         /* What to do, where this keeps a GPU from being used; else "". */
} greta_finding;

/* Examines what keeps GPUs from being used. Devices are described and none is opened. Subjects come one after
 * the other. Later versions may word findings in other ways.
 *
 * on_finding  receives each finding; a non-zero return value stops the call with GRETA_ERROR_CANCELLED
 * user        passed to on_finding */
GRETA_API greta_status greta_machine_examine(int (*on_finding)(void* user, const greta_finding* finding),
                                             void* user);

/* The same with options, of which those count that greta_device_list names. */
GRETA_API greta_status greta_machine_examine_with(
    const greta_runtime_options* options, int (*on_finding)(void* user, const greta_finding* finding),
    void* user);

/* Describes the device of a runtime, or the first of several. Set struct_size of out_info before the call. */
GRETA_API greta_status greta_runtime_describe(const greta_runtime* runtime, greta_device_info* out_info);

/* Counts the devices of a runtime, and describes one of them: `index` is below the count, in the order of
 * greta_runtime_options.device; set struct_size of out_info before the call. */
GRETA_API uint32_t greta_runtime_device_count(const greta_runtime* runtime);
GRETA_API greta_status greta_runtime_device(const greta_runtime* runtime, uint32_t index,
                                            greta_device_info* out_info);

/* Measures how fast the device reads memory in the way that its kernels read weights. This bounds the speed
 * of generating tokens. It takes about a tenth of a second. */
GRETA_API greta_status greta_runtime_measure_bandwidth(greta_runtime* runtime,
                                                       uint64_t* out_bytes_per_second);

/* Measures how fast the device multiplies and adds in the way that its kernels read prompts, with operands in
 * registers. This bounds the speed of reading prompts. It takes at most half a second. A multiplication and
 * an addition count as two operations. A GPU is measured with float16 products on matrix units and sums in
 * float32, or with float32 where it has no matrix units; a CPU with int8 products, or with float32 where it
 * has no vector instructions for int8. */
GRETA_API greta_status greta_runtime_measure_arithmetic(greta_runtime* runtime,
                                                        uint64_t* out_flops_per_second);

/* ---- files: what is in a GGUF, without loading it ------------------------------------------------ */

typedef struct greta_file greta_file;

/* Where the bytes of a file come from. Set exactly one of `path`, `memory` and `read_at`. */
typedef struct greta_source {
  uint32_t struct_size;
  uint32_t reserved;      /* 0. */

  /* The path of a file. Any part of a split set (-00001-of-00003.gguf) stands for the whole set. A model
   * copies what it needs while it is opened; after that the file may be cut, written to or deleted, unless
   * `map` is set. */
  const char* path;

  /* The bytes of a whole file in your memory, [memory_bytes]. They must outlive what is opened from them. */
  const void* memory;
  uint64_t memory_bytes;

  /* Copies exactly `bytes` bytes at `offset` to `to`, and returns 0; another number is a failure. It is
   * called only by the thread that calls the library, and never for bytes past `size_bytes`. It must stay
   * callable while a file that was opened from it is open, since greta_memory_plan_make reads that again. */
  int (*read_at)(void* user, uint64_t offset, void* to, uint64_t bytes);
  void* user;             /* Passed to read_at. */
  uint64_t size_bytes;    /* The length of what read_at reads. */

  /* 1: the weights stay in the mapped file if it can be mapped and the device can read it in place (the CPU,
   * and some GPUs that share its memory). Then nothing is copied, and programs share the memory. The file may
   * be deleted while it is in use, but nobody may cut it or write to it. Its size is checked before each
   * step: if it has become smaller, the call gives GRETA_ERROR_FILE. If the file is cut during a step, a
   * signal (SIGBUS) ends the process. If it is written to, the weights change. */
  uint32_t map;
  uint32_t reserved2;     /* 0. */
} greta_source;

/* Reads and checks a file's header, metadata and list of tensors. It does not read weights.
 *
 * source    required; read during the call. greta_source says how long its memory and callback must live.
 * out_file  the new file, to be closed with greta_file_close */
GRETA_API greta_status greta_file_open(const greta_source* source, greta_file** out_file);
GRETA_API void greta_file_close(greta_file* file);

typedef struct greta_tensor_info {
  uint32_t struct_size;
  uint32_t dimensions;      /* 1 to 4. */
  const char* name;         /* Valid as long as the file, like `type`. */
  const char* type;         /* Of the elements: "q4_k". */
  uint64_t shape[4];        /* As in the file: shape[0] is the innermost dimension. 1 past `dimensions`. */
  uint64_t offset_bytes;    /* From the beginning of the part of the file that holds the tensor. */
  uint64_t size_bytes;
  uint32_t part;            /* The part of a split set, from 0. */
  uint32_t reserved;
} greta_tensor_info;

GRETA_API uint32_t greta_file_version(const greta_file* file);    /* The version of GGUF. */
GRETA_API uint64_t greta_file_size_bytes(const greta_file* file); /* The size of all parts together. */
GRETA_API uint64_t greta_file_tensor_count(const greta_file* file);

/* Describes a tensor. `index` is below the count; set struct_size of out_tensor before the call. */
GRETA_API greta_status greta_file_tensor(const greta_file* file, uint64_t index,
                                         greta_tensor_info* out_tensor);
GRETA_API uint64_t greta_file_metadata_count(const greta_file* file);

/* Gives a key of the metadata with its type and its value as text. Strings stand in quotes; arrays are
 * shortened to their first elements and their length.
 *
 * index     below the count
 * out_key   the key, valid as long as the file; may be NULL
 * out_type  "u32", "string", "array of f32"; valid as long as the file; may be NULL
 * value     [capacity] bytes for the text of the value, which is cut to fit, and at 1 MiB, and always ends
 *           with a NUL; may be NULL when capacity is 0 */
GRETA_API greta_status greta_file_metadata(const greta_file* file, uint64_t index, const char** out_key,
                                           const char** out_type, char* value, size_t capacity);

typedef enum greta_unused_verdict {
  GRETA_UNUSED_NEEDLESS = 0, /* The part is known, and the model is the same without it. */
  GRETA_UNUSED_UNKNOWN = 1,  /* This version does not know the key. greta_model_open logs a warning. */
  GRETA_UNUSED_REFUSED = 2,  /* The part changes, or may change, what is computed. greta_model_open fails. */
  GRETA_UNUSED_VERDICT_MAX = 0x7fffffff
} greta_unused_verdict;

typedef struct greta_unused {
  uint32_t struct_size;
  greta_unused_verdict verdict;
  uint32_t is_tensor;       /* 1: a tensor. 0: a key of the metadata. */
  uint32_t reserved;
  const char* name;         /* Valid during the callback, like `reason`. */
  const char* reason;
} greta_unused;

/* Lists what a model made from this file would not use, with the reason: tensors, keys under the prefix of
 * the architecture, and other keys that would change what is computed. Everything else is used, or says
 * nothing about the computation. No weight is read. GRETA_ERROR_FILE: sizes are missing or wrong.
 * GRETA_ERROR_UNSUPPORTED: the architecture is not known. Then it lists, with "*" for the layer, what the
 * nearest known one, which the error names, has no use for, and which tensors the file lacks for that one.
 *
 * on_unused  receives each such key, then each such tensor, in the order of the file; a non-zero return value
 *            stops the call with GRETA_ERROR_CANCELLED
 * user       passed to on_unused */
GRETA_API greta_status greta_file_audit(const greta_file* file,
                                        int (*on_unused)(void* user, const greta_unused* unused), void* user);

typedef struct greta_weights_check {
  uint32_t struct_size;
  uint32_t block_weights;   /* The weights of a block of the tensor's type. */
  uint64_t blocks;          /* How many blocks the tensor has. */
  uint64_t bad_blocks;      /* Blocks with a weight that is NaN or infinite. */
  uint64_t first_bad_block; /* The index of the first one. */
  uint64_t zero_blocks;     /* Blocks of which every byte is 0, as a download leaves them that did not end. */
  uint64_t zero_run_blocks; /* The most of these in a row. */
  double largest;           /* The largest magnitude of a finite weight; 0 for integers. */
} greta_weights_check;

/* Reads all of a tensor's weights and looks for those that are no numbers, about 70 million in a second.
 * greta_model_open does not look at them. `index` is below greta_file_tensor_count; set struct_size of
 * out_check before the call. */
GRETA_API greta_status greta_file_check_weights(const greta_file* file, uint64_t index,
                                                greta_weights_check* out_check);

/* greta_file_check_weights for a large tensor: `should_stop` is called with `user` after each MiB of it, by
 * this thread. If it returns anything but 0, the call ends with GRETA_ERROR_CANCELLED, and *out_check stays
 * as it was. It may be NULL. */
GRETA_API greta_status greta_file_check_weights_until(const greta_file* file, uint64_t index,
                                                      greta_weights_check* out_check,
                                                      int (*should_stop)(void* user), void* user);

/* ---- models -------------------------------------------------------------------------------------- */

typedef struct greta_model greta_model;

typedef enum greta_cache_type {
  GRETA_CACHE_DEFAULT = 0, /* f16 */
  GRETA_CACHE_F32 = 1,
  GRETA_CACHE_F16 = 2,
  GRETA_CACHE_Q8_0 = 3,    /* For models whose heads have a multiple of 32 values. */
  GRETA_CACHE_TYPE_MAX = 0x7fffffff
} greta_cache_type;

/* Sizes of an executor. A step is one run of the model over one or more tokens. The cache holds the keys and
 * values of tokens that were read, in pages of 64 tokens each that come from one pool. */
typedef struct greta_executor_options {
  uint32_t struct_size;
  uint32_t context;         /* The most tokens of one sequence. 0: 8192, or what the model was trained for if
                             * that is less, halved until it fits into free memory. */
  uint32_t sequences;       /* The most sessions that may be open at once, 1 to 256. 0: 4. */
  greta_cache_type key_type, value_type; /* Types of the cached keys and values. */
  uint32_t cache_tokens;    /* The tokens that the page pool holds for all sequences; 0: `context`. */
  uint32_t output_rows;     /* The most rows of logits of one step, at most 512, rounded up to 1 or to a power
                             * of two from 8 on. 0: `sequences`, rounded so. A larger number makes
                             * GRETA_ROWS_ALL faster. */
  uint32_t step_tokens;     /* The most tokens of one step, at most 512, rounded down to a power of two. 0: as
                             * many as run in about a second. */

  /* Called some 20 times a second while a driver compiles kernels, with the number of kernels that are
   * done and the number of kernels in all. The two are equal in the last call, unless it was stopped. On a
   * GPU, opening the executor compiles the kernels for one token and for a long prompt; others are compiled
   * when a step first needs them, unless compile_ahead says otherwise. A non-zero return value stops before
   * the next kernel: the call gives GRETA_ERROR_CANCELLED and may be tried again. Kept until the executor is
   * closed. May be NULL. */
  int (*progress)(void* user, uint64_t done_kernels, uint64_t total_kernels);
  void* progress_user;      /* Passed to progress. */
  uint64_t checkpoint_bytes; /* Of the cache, for checkpoints: places to which a text of a model with windows
                              * or states can go back after these have left them behind. The checkpoint that
                              * was not used for longest goes first; going back further reads tokens again.
                              * 0: a 32nd of what the other layers' cache takes, and one checkpoint at
                              * least. */
  uint32_t compile_ahead;   /* 1: on a GPU, opening the executor compiles the kernels for steps of every
                             * size, so that no request waits for the driver. That takes a fraction of a
                             * second where the cache folder has them, and many seconds the first time. */
  uint32_t draft_head;      /* 1: of a model that is opened with greta_model_options.draft_head. Plans then
                             * count the layer that drafts tokens. 0 in a plan: they leave it out. */
} greta_executor_options;

/* How the pieces of a model are placed on the devices of a runtime: its embedding, each of its layers with
 * their part of the cache, and its output. A step runs them in this order. Where the next piece is on
 * another device, a few kilobytes for each token cross through the host's memory. The results are those of
 * one device, as far as the devices compute alike. */
typedef enum greta_placement_kind {
  GRETA_PLACEMENT_AUTO = 0,    /* All on the first device if it has the memory for it. Else the first pieces,
                                * as many as fit, then those that fit on the next device, and the rest on the
                                * last one. */
  GRETA_PLACEMENT_OFFLOAD = 1, /* By `offloaded` and `shares`. */
  GRETA_PLACEMENT_LIST = 2,    /* By `devices`. */
  GRETA_PLACEMENT_KIND_MAX = 0x7fffffff
} greta_placement_kind;

typedef struct greta_placement {
  uint32_t struct_size;
  greta_placement_kind kind;
  uint32_t offloaded;          /* How many of the layers and the output, the last ones, are on other devices
                                * than "cpu", where the rest is. More than there are means all. The embedding
                                * is where the first layer is. */
  uint32_t share_count;        /* At most the number of devices beside "cpu". */
  const double* shares;        /* [share_count] The shares of these devices in what is offloaded, in their
                                * order; devices without one get nothing. NULL: by the memory that is free. */
  const uint32_t* devices;     /* [device_count] The device, from 0 in the order of the runtime, of the
                                * embedding, of each layer, and of the output. */
  uint32_t device_count;       /* The model's layers and 2. */
  uint32_t reserved;           /* 0. */

  /* What moves after that. With any of it, GRETA_PLACEMENT_AUTO means that the rest is offloaded. */
  uint32_t host_experts;       /* The experts of the first so many layers, or of all, are on "cpu". The rest
                                * of a layer stays, and so do shared experts. */
  uint32_t bring_experts_from; /* A step of so many tokens, or more, computes experts that are on another
                                * device than their layer with weights that are brought to the layer's device
                                * for the step, one layer after the other. 0: measured when an executor is
                                * opened, if the layer is on a GPU, and never with `exact`. UINT32_MAX:
                                * never. */

  /* Called with the name of each tensor of the model, it returns its device, from 0 in the order of the
   * runtime, or -1: it stays. This counts before host_experts. Whole pieces must move, or all experts of a
   * layer, or all of it but these; vectors go where the matrices are. May be NULL. */
  int (*device_of)(void* user, const char* tensor);
  void* device_of_user;        /* Passed to device_of. */
} greta_placement;

typedef struct greta_model_options {
  uint32_t struct_size;
  uint32_t reserved;           /* 0. */
  const greta_source* source;  /* Required. Read during the call; greta_source says how long its memory must
                                * live. */

  /* Called now and then while weights are loaded, with the bytes that are done and the bytes in all. A
   * non-zero return value cancels the load. May be NULL. */
  int (*progress)(void* user, uint64_t done_bytes, uint64_t total_bytes);
  void* progress_user;         /* Passed to progress. */
  const greta_placement* placement; /* Read during the call; NULL: GRETA_PLACEMENT_AUTO. */
  const greta_executor_options* executor; /* With several devices: the executor for which AUTO leaves room;
                                           * NULL: one with the defaults. Read during the call. */
  uint32_t draft_head;         /* 1: the layer of the file that drafts tokens is loaded, for GRETA_DRAFT_HEAD.
                                * Executors of the model then keep its cache, and every step gives it rows.
                                * It lies on the device of the output, with a copy of the embedding if that is
                                * on another one.
                                * GRETA_ERROR_UNSUPPORTED where the file has none that can be used. */
  uint32_t reserved2;          /* 0. */
} greta_model_options;

/* The memory that a model and an executor would allocate, to the byte. For several devices each number is the
 * sum of theirs, placed by GRETA_PLACEMENT_AUTO, and `fits` says that each has room. */
typedef struct greta_memory_plan {
  uint32_t struct_size;
  uint32_t fits;               /* 1: total_bytes is not above free_bytes; with several devices, on each. */
  uint32_t context;            /* The context that the options or the default come to. */
  uint32_t step_tokens;        /* The most tokens of one step, likewise. */
  uint64_t weights_bytes;      /* Device memory for weights. */
  uint64_t mapped_bytes;       /* Weights that are used in place and not allocated: in the mapped file (that
                                * is, in the page cache) or in your memory. */
  uint64_t cache_bytes;        /* Pages of keys and values, states, and a log of tokens. */
  uint64_t arena_bytes;        /* The intermediate values of the largest step. */
  uint64_t tables_bytes;       /* Tables of rotations, the state of a step, and what is read back. */
  uint64_t host_bytes;         /* About what the host keeps: bookkeeping, and embeddings for each layer. */
  uint64_t total_bytes;        /* The sum of all but mapped_bytes and host_bytes. */
  uint64_t free_bytes;         /* What is free now on the devices in use, within the runtime's limits. */
  char device[16];             /* The id of the first device in use: "vulkan0". */
  uint64_t states_bytes;       /* Of cache_bytes: the states of layers that keep one in place of keys and
                                * values, for all sequences and for checkpoints. */
  uint64_t checkpoints_bytes;  /* Of states_bytes: those of checkpoints and of a service's prefix cache. */
  uint64_t draft_head_bytes;   /* Of weights_bytes, cache_bytes and tables_bytes: those of the layer that
                                * drafts tokens, if the executor's draft_head is 1, with a copy of the
                                * embedding where that is on another device. */
} greta_memory_plan;

/* Computes what opening a model of this file and an executor would allocate. No weights are loaded. A plan
 * that does not fit is GRETA_OK with fits = 0.
 *
 * file      its source is read again, so it must still be there
 * executor  may be NULL for the defaults
 * out_plan  set struct_size before the call */
GRETA_API greta_status greta_memory_plan_make(greta_runtime* runtime, const greta_file* file,
                                              const greta_executor_options* executor,
                                              greta_memory_plan* out_plan);

/* What a model and an executor would allocate on one of several devices, to the byte. */
typedef struct greta_device_plan {
  uint32_t struct_size;
  uint32_t device;         /* The device, from 0 in the order of the runtime. */
  char id[16];             /* "vulkan0" */
  char pieces[128];        /* What is there: "embedding, layers 0-11". Cut to fit. */
  uint32_t fits;           /* 1: total_bytes is not above free_bytes. */
  uint32_t context;        /* Of all devices. The rest is as in greta_memory_plan. */
  uint64_t weights_bytes, mapped_bytes, cache_bytes, arena_bytes, tables_bytes, total_bytes, free_bytes;

  /* What each part takes there of weights, with those that are used in place, and of cache; 0 if it is not
   * there. Valid during the call of on_device. */
  const uint64_t* piece_bytes;  /* [layers + 2] Embedding, each layer without its experts, output (with the
                                 * layer that drafts tokens). */
  const uint64_t* expert_bytes; /* [layers] The experts of each layer. */
  uint32_t layers;
  uint32_t reserved;            /* 0. */
} greta_device_plan;

/* Computes what opening a model with this placement and an executor would allocate on each device that has a
 * piece of the model. No weights are loaded.
 *
 * file       its source is read again, so it must still be there
 * executor   may be NULL for the defaults
 * placement  may be NULL for GRETA_PLACEMENT_AUTO
 * on_device  receives the plan of each such device, in the order of the runtime; a non-zero return value
 *            stops the call with GRETA_ERROR_CANCELLED
 * user       passed to on_device */
GRETA_API greta_status greta_placement_plan(greta_runtime* runtime, const greta_file* file,
                                            const greta_executor_options* executor,
                                            const greta_placement* placement,
                                            int (*on_device)(void* user, const greta_device_plan* plan),
                                            void* user);

/* Loads a model. It never changes after that, so executors and threads may share it. It must be closed before
 * its runtime. A file that holds something the model needs but this version cannot run is refused
 * (greta_file_audit says beforehand), and so are weights that need more memory than is free.
 *
 * options    required
 * out_model  the new model, to be closed with greta_model_close */
GRETA_API greta_status greta_model_open(greta_runtime* runtime, const greta_model_options* options,
                                        greta_model** out_model);
GRETA_API void greta_model_close(greta_model* model);

typedef struct greta_model_info {
  uint32_t struct_size;
  uint32_t vocab_size;       /* Tokens in the vocabulary, and values in a row of logits. */
  const char* architecture;  /* "llama" */
  const char* name;          /* general.name of the file, "" if there is none. Valid as long as the model. */
  char type[32];             /* The type of the weights, as the file calls it: "Q4_K_M", "F16". Else the type
                              * of most weights. */
  uint32_t context;          /* The most tokens of a sequence that the model was trained for. */
  uint32_t layers, width, heads, kv_heads;
  uint64_t parameters;
  uint64_t weights_bytes;    /* All tensors in the file. */
  uint64_t token_bytes;      /* The weights that are read for one generated token. */
  uint64_t identity;         /* A hash of the metadata, the tensor list and some bytes of each tensor of the
                              * file that was loaded. */
  uint32_t recurrent_layers; /* Layers that keep a state in place of keys and values. */
  uint32_t reserved;
} greta_model_info;

/* Describes a model. Set struct_size of out_info before the call. */
GRETA_API greta_status greta_model_describe(const greta_model* model, greta_model_info* out_info);

/* ---- adapters: what changes a model without changing its weights --------------------------------- */

typedef struct greta_adapter greta_adapter;

typedef enum greta_adapter_kind {
  GRETA_ADAPTER_LORA = 1,    /* Matrices of low rank beside those of the model. */
  GRETA_ADAPTER_CONTROL = 2, /* A control vector: it is added to the outputs of layers. */
  GRETA_ADAPTER_KIND_MAX = 0x7fffffff
} greta_adapter_kind;

typedef struct greta_adapter_options {
  uint32_t struct_size;
  uint32_t first_layer;      /* Of a control vector: the first layer that it acts on; 0: layer 1. */
  uint32_t last_layer;       /* And the last one, which belongs to them; 0: the last layer of the model. */
  uint32_t reserved;         /* 0. */
} greta_adapter_options;

typedef struct greta_adapter_info {
  uint32_t struct_size;
  greta_adapter_kind kind;
  char name[128];            /* general.name of the file, cut to fit; "" if there is none. */
  char architecture[64];     /* Of the models that it is for; "" where the file does not say. */
  uint32_t matrices;         /* Of the model, for which a LoRA has two of its own each. */
  uint32_t directions;       /* Layers for which a control vector has a direction. */
  uint32_t least_rank, most_rank; /* Of the LoRA's matrices. */
  float alpha;               /* adapter.lora.alpha; the products are multiplied by alpha / rank. 0: by 1. */
  uint32_t users;            /* Sessions and requests that have it now. */
  uint64_t tensor_bytes;     /* All tensors in the file. */
  uint64_t device_bytes;     /* What it takes in the memory of the model's devices; 0 for a file. */
  uint64_t identity;         /* A hash of the metadata and all tensors, and of the range of layers. */
} greta_adapter_info;

/* Describes the adapter in a file, after it was read whole and checked by itself, without a model. A file
 * that is no adapter, or has something wrong, gives GRETA_ERROR_FILE with the tensor's name. Set struct_size
 * of out_info before the call. */
GRETA_API greta_status greta_file_adapter(const greta_file* file, greta_adapter_info* out_info);

/* Opens an adapter beside a model: a LoRA (general.type is "adapter"), or a control vector
 * (general.architecture is "controlvector"). Its matrices are copied to the model's devices. The weights stay
 * as they are, and nothing changes until a session or a request asks for the adapter.
 *
 * Errors, with the tensor's name:
 *   GRETA_ERROR_FILE         One matrix of a pair is missing, the ranks of a pair differ, a number is not
 *                            finite, the model lacks a tensor, or has one of another shape.
 *   GRETA_ERROR_ARGUMENT     It is for models of another architecture, or the range of layers is wrong.
 *   GRETA_ERROR_UNSUPPORTED  The kind of adapter or of tensor is not supported.
 *   GRETA_ERROR_FULL         The model has 1024 adapters.
 *   GRETA_ERROR_MEMORY       The device has no room for it.
 * After any of them the model is as it was.
 *
 * model        must outlive the adapter
 * source       required; read during the call. Its memory must outlive the adapter.
 * options      may be NULL for the defaults
 * out_adapter  the new adapter, to be closed with greta_adapter_close */
GRETA_API greta_status greta_adapter_open(greta_model* model, const greta_source* source,
                                          const greta_adapter_options* options, greta_adapter** out_adapter);

/* Closes an adapter. While sessions or requests have it, the call gives GRETA_ERROR_ARGUMENT with their
 * number and changes nothing; a request has its adapters until it is closed. Executors that have run steps
 * with the adapter give its memory back when they next look for adapters, or are closed. NULL is ignored. */
GRETA_API greta_status greta_adapter_close(greta_adapter* adapter);

/* Describes an open adapter. Set struct_size of out_info before the call. */
GRETA_API greta_status greta_adapter_describe(const greta_adapter* adapter, greta_adapter_info* out_info);

/* ---- tokenizers ---------------------------------------------------------------------------------- */

typedef struct greta_tokenizer greta_tokenizer;

/* Opens the tokenizer of a file, which needs a vocabulary and no weights. The file must outlive it.
 *
 * log            receives what had to be assumed, for instance how text is cut if the file does not say it.
 *                It is used until the tokenizer is closed: the thread that calls greta_tokenizer_encode
 *                may log once that something was left out of a text. NULL: there is no log.
 * log_user       passed to log
 * out_tokenizer  the new tokenizer, to be closed with greta_tokenizer_close */
GRETA_API greta_status greta_tokenizer_open(const greta_file* file, greta_log_callback log, void* log_user,
                                            greta_tokenizer** out_tokenizer);
GRETA_API void greta_tokenizer_close(greta_tokenizer* tokenizer);

/* Gives the tokenizer of a model, which belongs to the model and must not be closed. It writes to the log of
 * the model's runtime. */
GRETA_API const greta_tokenizer* greta_model_tokenizer(const greta_model* model);

typedef enum greta_encode_flags {
  GRETA_ENCODE_BOS = 1,     /* Add the tokens that the model wants around a text: BOS before it, EOS after. */
  GRETA_ENCODE_SPECIAL = 2, /* Control tokens that are written out in the text become those tokens. */
  GRETA_ENCODE_FLAGS_MAX = 0x7fffffff
} greta_encode_flags;

/* Turns text into token ids. Invalid UTF-8 is read as U+FFFD. Text without a token becomes the tokens of its
 * bytes, or the unknown token. If the vocabulary has neither, the text is left out, and the log says so once.
 * So no text fails for its bytes. A text may have at most 1 GiB.
 *
 * text       [bytes], without a NUL at the end
 * flags      bits of greta_encode_flags
 * tokens     [capacity] room for ids; may be NULL when capacity is 0
 * out_count  how many ids the text has. If there are more than capacity, only the first ones were written. */
GRETA_API greta_status greta_tokenizer_encode(const greta_tokenizer* tokenizer, const char* text,
                                              size_t bytes, uint32_t flags, int32_t* tokens, size_t capacity,
                                              size_t* out_count);

/* greta_tokenizer_encode for a text that may be long: `should_stop` is called now and then by this thread,
 * with `user`. If it returns anything but 0, the call ends with GRETA_ERROR_CANCELLED, and nothing is
 * written. It may be NULL. A text without control tokens is cut into words in one go, during which it is not
 * called. */
GRETA_API greta_status greta_tokenizer_encode_until(const greta_tokenizer* tokenizer, const char* text,
                                                    size_t bytes, uint32_t flags, int32_t* tokens,
                                                    size_t capacity, size_t* out_count,
                                                    int (*should_stop)(void* user), void* user);

/* Turns ids into text. The text is the bytes that the model means, which may end within a UTF-8 character.
 * Control tokens give no text.
 *
 * tokens     [count] ids from 0 to the size of the vocabulary - 1
 * text       [capacity] room for the text, without a NUL at the end; may be NULL when capacity is 0
 * out_bytes  the length of the text. If it is above capacity, only the first bytes were written. */
GRETA_API greta_status greta_tokenizer_decode(const greta_tokenizer* tokenizer, const int32_t* tokens,
                                              size_t count, char* text, size_t capacity, size_t* out_bytes);

GRETA_API uint32_t greta_tokenizer_size(const greta_tokenizer* tokenizer); /* Tokens in the vocabulary. */
GRETA_API int32_t greta_tokenizer_bos(const greta_tokenizer* tokenizer);   /* -1: there is no BOS token. */
GRETA_API int32_t greta_tokenizer_eos(const greta_tokenizer* tokenizer);   /* -1: there is no EOS token. */

typedef enum greta_token_kind { /* As the file has them. */
  GRETA_TOKEN_UNDEFINED = 0,
  GRETA_TOKEN_NORMAL = 1,
  GRETA_TOKEN_UNKNOWN = 2,
  GRETA_TOKEN_CONTROL = 3,
  GRETA_TOKEN_USER_DEFINED = 4,
  GRETA_TOKEN_UNUSED = 5,
  GRETA_TOKEN_BYTE = 6,
  GRETA_TOKEN_KIND_MAX = 0x7fffffff
} greta_token_kind;

/* Gives the bytes of one token, and those of a control token, too. They may be a part of a UTF-8 character.
 *
 * token      from 0 to the size of the vocabulary - 1
 * text       [capacity] as in greta_tokenizer_decode, but with a NUL at the end if there is room
 * out_bytes  the length of the text
 * out_kind   may be NULL */
GRETA_API greta_status greta_tokenizer_token(const greta_tokenizer* tokenizer, int32_t token, char* text,
                                             size_t capacity, size_t* out_bytes, greta_token_kind* out_kind);

/* Tokens around the parts of a text that has a gap, for models that fill gaps. */
typedef enum greta_fill_token {
  GRETA_FILL_PREFIX = 0,     /* Before what comes before the gap. */
  GRETA_FILL_SUFFIX = 1,     /* Before what comes behind the gap. */
  GRETA_FILL_MIDDLE = 2,     /* Before what the model writes. */
  GRETA_FILL_PAD = 3,
  GRETA_FILL_REPOSITORY = 4, /* Before the name of a repository. */
  GRETA_FILL_FILE = 5,       /* Between files. */
  GRETA_FILL_TOKEN_MAX = 0x7fffffff
} greta_fill_token;

/* Gives such a token: the one that the file names, else one that has a known text. -1: there is none. */
GRETA_API int32_t greta_tokenizer_fill_token(const greta_tokenizer* tokenizer, greta_fill_token which);

/* Tells whether the model ends its answer with this token: 1 or 0. */
GRETA_API int greta_tokenizer_is_end(const greta_tokenizer* tokenizer, int32_t token);

/* A message of a conversation. The strings are read during the call. */
typedef struct greta_message {
  const char* role;    /* "system", "user", "assistant" or "tool". */
  const char* content; /* The text of the message. */
  const char* json;    /* An object with all else: tool_calls, tool_call_id, name, reasoning_content, or
                        * content as a list of parts. May be NULL. `role` and `content` may be NULL where it
                        * has them; say each of them in one place only. */
} greta_message;

/* Turns messages into a prompt by the model's chat template, a Jinja text out of its file. Encode the prompt
 * with GRETA_ENCODE_BOS | GRETA_ENCODE_SPECIAL; a BOS token that encoding adds is not in the prompt. Where
 * the file has no template, or a broken one, a plain format stands in: the one whose control tokens are in
 * the vocabulary, else ChatML. Dates in prompts are those of UTC. What the template refuses gives
 * GRETA_ERROR_ARGUMENT with the words of the template; a template that reaches a limit of work, memory or
 * output gives GRETA_ERROR_FULL.
 *
 * messages    [count]
 * add_answer  1: end the prompt with the beginning of the assistant's answer
 * text        [capacity] room for the prompt, with a NUL at the end if there is room; may be NULL when
 *             capacity is 0
 * out_bytes   the length of the prompt. If it is above capacity, only the first bytes were written. */
GRETA_API greta_status greta_tokenizer_chat(const greta_tokenizer* tokenizer, const greta_message* messages,
                                            size_t count, int add_answer, char* text, size_t capacity,
                                            size_t* out_bytes);

/* Gives the template in use, "" where a plain format stands in. */
GRETA_API const char* greta_tokenizer_template(const greta_tokenizer* tokenizer);

/* Renders the same template, or the plain format, with variables of your own: messages, tools,
 * add_generation_prompt and whatever else it reads. bos_token, eos_token and the like are the model's where
 * the context has none. A BOS token at the beginning stays. Errors are those of greta_tokenizer_chat.
 *
 * context_json  [context_bytes] a JSON object; no bytes at all are an empty object
 * now_s         seconds since 1970 on a clock that shows local time, for templates that write the date
 * text          as in greta_tokenizer_chat */
GRETA_API greta_status greta_tokenizer_render(const greta_tokenizer* tokenizer, const char* context_json,
                                              size_t context_bytes, int64_t now_s, char* text,
                                              size_t capacity, size_t* out_bytes);

/* Renders any Jinja text in the same way. No token is added to the context. A text that is no valid template
 * gives GRETA_ERROR_ARGUMENT, and a part of Jinja that is not known here gives GRETA_ERROR_UNSUPPORTED.
 *
 * template_text  [template_bytes] */
GRETA_API greta_status greta_template_render(const char* template_text, size_t template_bytes,
                                             const char* context_json, size_t context_bytes, int64_t now_s,
                                             char* text, size_t capacity, size_t* out_bytes);

/* ---- executors: sessions that run together ------------------------------------------------------- */

typedef struct greta_executor greta_executor;

/* Opens an executor, which owns the page pool and the working memory. A session opens a private one unless it
 * is given one; only sessions of one executor can run together (greta_batch_generate, greta_batch_eval). It
 * is refused with GRETA_ERROR_MEMORY where it needs more than is free (greta_memory_plan_make says
 * beforehand).
 *
 * model         must outlive the executor
 * options       may be NULL for the defaults
 * out_executor  the new executor, to be closed with greta_executor_close */
GRETA_API greta_status greta_executor_open(greta_model* model, const greta_executor_options* options,
                                           greta_executor** out_executor);
GRETA_API void greta_executor_close(greta_executor* executor);

/* ---- sessions: one sequence of tokens ------------------------------------------------------------ */

typedef struct greta_session greta_session;

/* Set at most one of the two. */
typedef struct greta_session_options {
  uint32_t struct_size;
  uint32_t reserved;                              /* 0. */
  greta_executor* executor;                       /* Of the same model. NULL: a private one is made. */
  const greta_executor_options* private_executor; /* Options of the private executor; NULL: the defaults. */
} greta_session_options;

/* Opens an empty session. An executor that has all the sessions it may have gives GRETA_ERROR_FULL.
 *
 * model        must outlive the session
 * options      may be NULL for a private executor with the defaults
 * out_session  the new session, to be closed with greta_session_close */
GRETA_API greta_status greta_session_open(greta_model* model, const greta_session_options* options,
                                          greta_session** out_session);
GRETA_API void greta_session_close(greta_session* session);

/* Opens a second session with the same past on the same executor. The two share pages of the cache until one
 * of them writes to a page. Sampling settings are copied. The fork is a session of the executor as any other,
 * so there may be no room for it (GRETA_ERROR_FULL). A private executor lives until its last session is
 * closed. */
GRETA_API greta_status greta_session_fork(greta_session* session, greta_session** out_session);

/* Sets the adapters of the tokens that are fed from now on, in place of those that were set before. What was
 * fed stays as it was computed. Sessions of one executor may have different adapters in one step. An adapter
 * of scale 0 is left out, so that the session computes as without it, bit for bit. A state that is saved
 * belongs to its adapters and their scales: a session with others refuses it, and where not all tokens were
 * fed with the same ones, saving is refused (GRETA_ERROR_UNSUPPORTED). A fork has the same adapters.
 *
 * The executor allocates the memory for its largest step with these adapters now. Where there is none
 * (GRETA_ERROR_MEMORY), or an argument is wrong, the session keeps the adapters that it has.
 *
 * adapters  [count] open adapters of the session's model, each at most once
 * scales    [count] finite factors; NULL: 1 for all
 * count     at most 16; 0: none */
GRETA_API greta_status greta_session_set_adapters(greta_session* session,
                                                  const greta_adapter* const* adapters, const float* scales,
                                                  size_t count);

GRETA_API uint32_t greta_session_position(const greta_session* session); /* How many tokens it holds. */
GRETA_API uint32_t greta_session_context(const greta_session* session);  /* The most that it may hold. */

/* Forgets the tokens from `position` on; 0 forgets all. A position past the last token gives
 * GRETA_ERROR_ARGUMENT. */
GRETA_API greta_status greta_session_truncate(greta_session* session, uint32_t position);

/* Which logits to compute. A row of logits has a number for each token of the vocabulary: the larger it is,
 * the likelier that token comes next. */
typedef enum greta_rows {
  GRETA_ROWS_NONE = 0, /* No row. */
  GRETA_ROWS_LAST = 1, /* One row, for what follows the last token. */
  GRETA_ROWS_ALL = 2,  /* A row for what follows each of the tokens. */
  GRETA_ROWS_MAX = 0x7fffffff
} greta_rows;

/* Feeds tokens to the model. More tokens than the context or the page pool has room for give
 * GRETA_ERROR_FULL. On GRETA_ERROR_CANCELLED the session has taken the tokens up to greta_session_position().
 *
 * tokens      [count] ids below the size of the vocabulary; count is at least 1
 * rows        which logits to compute
 * out_logits  [0, 1 or count][vocab_size] float32, borrowed until the next call on this executor; may be NULL
 *             with GRETA_ROWS_NONE */
GRETA_API greta_status greta_session_eval(greta_session* session, const int32_t* tokens, size_t count,
                                          greta_rows rows, const float** out_logits);

typedef struct greta_batch_item {
  greta_session* session;     /* Of the same executor as the others. A session may stand in one item only. */
  const int32_t* tokens;      /* [count] */
  size_t count;               /* At least 1. */
  const float* logits;        /* Out: [vocab_size], what follows the last token; borrowed as out_logits is. */
} greta_batch_item;

/* Feeds tokens to several sessions together, so that the weights are read once for all of them. On a failure
 * no session has taken any token. It can be cancelled only while kernels are compiled.
 *
 * items  [count]; count is 1 to 256 */
GRETA_API greta_status greta_batch_eval(greta_batch_item* items, size_t count);

/* How the hidden states of a text's tokens become one vector. A hidden state is what the model's last norm
 * gives for a token, from which its logits are made. It has greta_model_info.width values. */
typedef enum greta_pooling {
  GRETA_POOLING_DEFAULT = 0, /* What the file says (its key pooling_type), else the mean. */
  GRETA_POOLING_MEAN = 1,    /* The mean of all tokens. */
  GRETA_POOLING_FIRST = 2,   /* That of the first token ("cls"). It knows nothing of those behind it. */
  GRETA_POOLING_LAST = 3,    /* That of the last token, which embedding models want to be the end token. */
  GRETA_POOLING_NONE = 4,    /* All of them, one behind the other: a vector for each token. */
  GRETA_POOLING_MAX = 0x7fffffff
} greta_pooling;

typedef struct greta_embed_options {
  uint32_t struct_size;
  greta_pooling pooling;
  uint32_t raw;           /* 0: each vector is divided by its length. 1: it is as it was pooled. */
  uint32_t reserved;      /* 0. */
} greta_embed_options;

/* Feeds tokens as greta_session_eval does, and gives a vector for them. What the session held before is their
 * past, so truncate it to 0 for a new text. Numbers that are not finite give GRETA_ERROR_FILE, and pooling
 * that the file asks for and this version does not have gives GRETA_ERROR_UNSUPPORTED. With
 * GRETA_POOLING_NONE and `raw` it gives the hidden states themselves.
 *
 * tokens         [count] count is at least 1
 * options        may be NULL for the defaults
 * out_embedding  [greta_model_info.width], with GRETA_POOLING_NONE [count][width], float32, borrowed until
 *                the next call on this session */
GRETA_API greta_status greta_session_embed(greta_session* session, const int32_t* tokens, size_t count,
                                           const greta_embed_options* options, const float** out_embedding);

/* ---- saved sessions ------------------------------------------------------------------------------ */

/* Gives the tokens that the session holds, [greta_session_position], borrowed until the next call on it. */
GRETA_API const int32_t* greta_session_tokens(const greta_session* session);

/* Receives the next `count` bytes, which are valid during the call. A non-zero return value stops the writing
 * with GRETA_ERROR_CANCELLED. */
typedef int (*greta_write_callback)(void* user, const void* bytes, size_t count);

/* Gives the number of bytes that greta_session_save would write now. */
GRETA_API uint64_t greta_session_state_bytes(const greta_session* session);

/* Writes the session's tokens with their keys and values, from front to back and in pieces, so that nothing
 * large is held in memory beside them. Logits are not written, nor is a token that was drawn and not fed. The
 * session does not change, also on an error.
 *
 * write  receives the bytes
 * user   passed to write */
GRETA_API greta_status greta_session_save(greta_session* session, greta_write_callback write, void* user);

/* Replaces what this session holds with a saved session. It goes on as the saved one would have, with the
 * same bits on the same device. The saved session may come from another device, another length of context or
 * another executor.
 *
 * Sampling settings and the grammar are not saved: those of this session stay. Draws depend on seed and
 * position, so they go on as well; but what mirostat has learnt is lost, and a grammar begins anew. To draw
 * what comes next without feeding another token, truncate by one token and feed that token again.
 *
 * The source may come from a stranger: it is checked to its last byte before anything is replaced. On any
 * error the session is as before:
 *   GRETA_ERROR_FILE         The source is no saved session, or it is truncated, damaged or unreadable.
 *   GRETA_ERROR_UNSUPPORTED  It was saved with another model, another file of the model, other types of the
 *                            cache or another version of the format. Or the model rotates positions
 *                            differently in long contexts, and only one of the two contexts is long.
 *   GRETA_ERROR_FULL         It has more tokens than the context, or than the page pool has room for beside
 *                            those that the session holds until then. In the second case truncate it to 0
 *                            first.
 *   GRETA_ERROR_CANCELLED    greta_session_cancel was called.
 *
 * source  a file, memory or read_at as for models. It is read from front to back, during the call only. */
GRETA_API greta_status greta_session_restore(greta_session* session, const greta_source* source);

/* ---- sampling: how a session chooses the next token ---------------------------------------------- */

/* Each of these calls sets one step of a chain; a step that was never set is off. For each token the steps
 * run in the order of greta_session_sampler_order, and one token is drawn from those that they leave. As
 * long as no temperature is set, that is the most likely one. docs/sampling.md has the formulas. A value
 * outside its range, which stands in parentheses, or one that is not a number gives GRETA_ERROR_ARGUMENT and
 * changes nothing. */

/* Makes the settings those of a new session: no steps, no biases, no filter, no grammar, and the seed 0. */
GRETA_API greta_status greta_session_sampling_clear(greta_session* session);

/* Divides the logits by `temperature` (0 to 1e6); 0 takes the most likely token. */
GRETA_API greta_status greta_session_temperature(greta_session* session, float temperature);

/* Moves the temperature by at most `range` (0 to 1e6) up or down: up where many tokens are likely, down where
 * few are. `exponent` (0.001 to 1000) shapes the way between. A range of 0 turns this off. */
GRETA_API greta_status greta_session_dynamic_temperature(greta_session* session, float range, float exponent);

/* Keeps the k most likely tokens; 0 keeps all. */
GRETA_API greta_status greta_session_top_k(greta_session* session, uint32_t k);

/* Keeps the most likely tokens whose probabilities add up to p (1e-6 to 1); 1 keeps all. */
GRETA_API greta_status greta_session_top_p(greta_session* session, float p);

/* Keeps tokens with at least p (0 to 1) times the probability of the most likely one; 0 keeps all. */
GRETA_API greta_status greta_session_min_p(greta_session* session, float p);

/* Keeps the tokens whose surprise is nearest to the expected one, until their probabilities add up to p
 * (1e-6 to 1); 1 keeps all. */
GRETA_API greta_status greta_session_typical_p(greta_session* session, float p);

/* Keeps tokens whose logit is at most n (0 to 1e6) standard deviations below the best one; 0 keeps all. */
GRETA_API greta_status greta_session_top_n_sigma(greta_session* session, float n);

/* XTC: with `probability` (0 to 1), drops all but the least likely of the tokens that have at least the
 * probability `threshold` (0 to 1). A probability of 0 turns it off. */
GRETA_API greta_status greta_session_xtc(greta_session* session, float probability, float threshold);

/* Penalises the tokens that are among the last `last_n` tokens of the session. Their logits are divided by
 * `repeat` (0.001 to 1000) where they are positive, else multiplied by it (1: no change). Then they are
 * lowered by `frequency` for each time that the token is there, and by `presence` once (both -1e6 to 1e6;
 * 0: no change). A last_n of 0 turns the step off. */
GRETA_API greta_status greta_session_penalties(greta_session* session, float repeat, float frequency,
                                               float presence, uint32_t last_n);

/* Adds biases[i] (-1e6 to 1e6) to the logit of tokens[i]; -INFINITY forbids the token. This replaces all
 * biases that were set before; a count of 0 removes them. There are at most as many as the model has tokens.
 *
 * tokens, biases  [count], copied during the call */
GRETA_API greta_status greta_session_logit_bias(greta_session* session, const int32_t* tokens,
                                                const float* biases, size_t count);

/* DRY: penalises a token that would go on with a sequence that was in the text before. */
typedef struct greta_dry_options {
  uint32_t struct_size;
  uint32_t allowed_length;   /* The longest repeat, in tokens, that is not penalised; 0: 2. */
  float multiplier;          /* (0 to 1e6); 0 turns the step off. */
  float base;                /* (1 to 1e6); 0: 1.75. A repeat of `length` tokens costs
                              * multiplier * base^(length - allowed_length). */
  uint32_t last_n;           /* How many tokens back repeats are looked for; 0: all. */
  uint32_t breaker_count;    /* At most 64. */
  const char* const* breakers; /* [breaker_count] texts of 1 to 64 bytes across which no repeat reaches. NULL:
                                * a line end, a colon, a double quote and an asterisk. To have none, set a
                                * count of 0 and a pointer that is not NULL. Copied during the call. */
} greta_dry_options;

/* Sets DRY. `options` is required. */
GRETA_API greta_status greta_session_dry(greta_session* session, const greta_dry_options* options);

/* Mirostat 2: keeps the surprise of the text near `tau` bits (0 to 1000) and learns at the rate `eta`
 * (0 to 1000). A tau of 0 turns it off. While it is on, only the logit filter, biases, the grammar and the
 * temperature work beside it. */
GRETA_API greta_status greta_session_mirostat(greta_session* session, float tau, float eta);

/* Sets which steps run, and in which order: their names with ";" between them, at most 32. A step that is not
 * named does not run. With "" no step runs, and one of all tokens is drawn. NULL is the default:
 * "penalties;dry;top_n_sigma;top_k;typ_p;top_p;min_p;xtc;temperature". */
GRETA_API greta_status greta_session_sampler_order(greta_session* session, const char* order);

/* Sets the seed of the draws. A draw depends on seed and position alone, so that it is the same on every
 * device, after a fork and after a truncate. */
GRETA_API greta_status greta_session_seed(greta_session* session, uint64_t seed);

/* Draws the token that follows from `logits`, with all that is set here. It is not fed: give it to the next
 * call.
 *
 * logits     [vocab_size] the row that greta_session_eval or greta_batch_eval gave for the session's last
 *            token
 * out_token  the token; -1: the grammar is at its end, and the vocabulary has no token that ends an answer
 *
 * Here and in a generation, on the host and on every device, +infinity counts as the largest float, and NaN
 * and -infinity are never drawn. If no logit is finite (the largest float counts as infinite), the call gives
 * GRETA_ERROR_FILE: the weights are damaged, or their numbers overflow. If biases, the filter and the grammar
 * leave no token, the call gives GRETA_ERROR_ARGUMENT. */
GRETA_API greta_status greta_session_sample(greta_session* session, const float* logits, int32_t* out_token);

/* A step of your own, which runs before all others. It may change the logits; -INFINITY or NaN forbids a
 * token. A non-zero return value stops the generation.
 *
 * logits  [vocab] valid during the call
 * tokens  [count] the tokens of the session so far */
typedef int (*greta_logit_filter)(void* user, float* logits, size_t vocab, const int32_t* tokens,
                                  size_t count);

/* Sets the filter; NULL removes it. `user` is passed to it. */
GRETA_API greta_status greta_session_logit_filter(greta_session* session, greta_logit_filter filter,
                                                  void* user);

/* Sets a grammar, in llama.cpp's GBNF, that every generated text must fit. It does not apply to the prompt. A
 * generation that goes on from the token drawn last goes on in the grammar as well; any other generation
 * begins the grammar anew. In an answer of a chat the reasoning is free, and the grammar begins behind it. A
 * wrong grammar gives GRETA_ERROR_ARGUMENT with the place of the mistake.
 *
 * gbnf  NULL or "" removes the grammar
 * root  the rule to begin with; NULL: "root" */
GRETA_API greta_status greta_session_grammar(greta_session* session, const char* gbnf, const char* root);

/* Sets a JSON schema, in place of a grammar, that every generated text must fit. What cannot be held of it is
 * left out, and one warning to the log names it; words that say nothing about a text are named in the log at
 * GRETA_LOG_INFO. docs/sampling.md lists what is held. NULL or "" removes the schema. */
GRETA_API greta_status greta_session_json_schema(greta_session* session, const char* schema);

/* Does the same, but gives GRETA_ERROR_UNSUPPORTED for a schema of which something cannot be held. */
GRETA_API greta_status greta_session_strict_schema(greta_session* session, const char* schema);

/* Sets how many tokens a generation may guess from the session's tokens and verify in one step: 0 to 7. The
 * first value is 0. The text is the same with any number: a guess counts only if it is the token that is
 * drawn (without `exact` logits differ by rounding, as in a batch). A text that repeats earlier parts, as
 * code and quotations do, comes sooner. greta_generate_result counts guesses. */
GRETA_API greta_status greta_session_draft_tokens(greta_session* session, uint32_t most);

/* Who guesses the tokens that come next. */
typedef enum greta_draft_kind {
  GRETA_DRAFT_NONE = 0,
  GRETA_DRAFT_TEXT = 1,     /* The text itself: what followed the same tokens earlier in it. */
  GRETA_DRAFT_HEAD = 2,     /* The layer of the file that drafts tokens (greta_model_options.draft_head). */
  GRETA_DRAFT_MODEL = 3,    /* A second model with the same vocabulary (greta_draft_options.executor). */
  GRETA_DRAFT_CALLBACK = 4, /* greta_draft_options.guess. A request of a service has no `guess`. */
  GRETA_DRAFT_KIND_MAX = 0x7fffffff
} greta_draft_kind;

/* Guesses of the next tokens, of which several are verified in one step. No token depends on them: a guess
 * counts only if it is the token that is drawn (without `exact` logits differ by rounding, as in a batch).
 * How many are verified follows how many were right, for each sequence; where guesses do not pay there are
 * none for a while. Layers that keep a state take one further state of each sequence that guesses. If there
 * is no room for it, the sequence has no guesses in that step. */
typedef struct greta_draft_options {
  uint32_t struct_size;
  uint32_t kind;  /* A greta_draft_kind. */
  uint32_t depth; /* The most tokens that are guessed and verified in one step, 1 to 7. GRETA_DRAFT_NONE does
                   * not read it. */
  /* Writes up to `most` tokens, at most 7, that may follow those of the text, and gives their number. The
   * first that is not of the vocabulary ends them. It is called on the thread that generates. With
   * GRETA_DRAFT_HEAD and _MODEL it may be NULL; else `most` tokens that these have guessed lie in
   * `out_tokens`, and it may change them, so that a measurement has as many right ones as it wants. */
  size_t (*guess)(void* user, const int32_t* tokens, size_t count, int32_t* out_tokens, size_t most);
  void* user;     /* Passed to guess. */
  /* Of the second model, for GRETA_DRAFT_MODEL. Its context is at most that of the text, which has no guesses
   * beyond it. Each session, and each request that runs, takes one of its sequences; where none is left, the
   * text goes on without guesses. Nothing else may use it at the same time: sessions that guess by it
   * belong to one thread, or one service has it to itself. It lives as long as it is used, and its model must
   * not be closed before. A model with other tokens gives GRETA_ERROR_UNSUPPORTED. */
  greta_executor* executor;
} greta_draft_options;

/* Sets who guesses tokens when the session generates, in place of what was set before. greta_generate_result
 * counts guesses, right ones and steps. An error leaves the session as it was.
 *
 * options  NULL: nobody guesses */
GRETA_API greta_status greta_session_draft(greta_session* session, const greta_draft_options* options);

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

/* What the file of a model recommends (its keys general.sampling.*). None of it is used unless you set it. */
typedef struct greta_sampling_defaults {
  uint32_t struct_size;
  uint32_t fields;           /* Bits of greta_sampling_field: what the file has, with a value in its range. */
  float temperature, top_p, min_p, repeat_penalty;
  uint32_t top_k;
  int32_t repeat_last_n;     /* -1: the whole context. */
  float xtc_probability, xtc_threshold;
  uint32_t mirostat;         /* 0, 1 or 2. */
  float mirostat_tau, mirostat_eta;
  const char* order;         /* For greta_session_sampler_order, valid as long as the model; NULL: none. */
} greta_sampling_defaults;

/* Gives these recommendations. Set struct_size of out_defaults before the call. */
GRETA_API greta_status greta_model_sampling(const greta_model* model, greta_sampling_defaults* out_defaults);

/* ---- generation ---------------------------------------------------------------------------------- */

typedef enum greta_stop_reason {
  GRETA_STOP_LENGTH = 0,    /* max_tokens were generated. */
  GRETA_STOP_END = 1,       /* The model ended its answer. */
  GRETA_STOP_CONTEXT = 2,   /* The context or the page pool has no room left. */
  GRETA_STOP_CANCELLED = 3, /* A callback or greta_session_cancel asked to stop. */
  GRETA_STOP_STRING = 4,    /* One of the stop strings was generated. */
  GRETA_STOP_UNREAD = 5,    /* Nobody read the events of the request, and another one needed its place. */
  GRETA_STOP_REASON_MAX = 0x7fffffff
} greta_stop_reason;

typedef struct greta_generate_options {
  uint32_t struct_size;
  uint32_t max_tokens;    /* The most tokens to generate. 0: until the context is full. */
  uint32_t ignore_end;    /* 1: tokens that end an answer are tokens like others. */
  uint32_t shift;         /* 1: a full context does not end the generation. Of the tokens behind the first
                           * keep_tokens the older half is forgotten, and the others are read again. After
                           * that an error leaves the session with what it has kept of its beginning. */

  /* Receives each token as it comes, with its text: `bytes` bytes of valid UTF-8 and a NUL, valid during the
   * call. Bytes of a character that is not complete yet are held back, and so is text with which a stop
   * string may begin; `bytes` may then be 0. What is still held back at the end comes in a last call with
   * token -1, where an incomplete character is U+FFFD. The token that ends the answer gives no call, and a
   * stop string is not given out. A non-zero return value stops the generation. May be NULL. */
  int (*on_token)(void* user, int32_t token, const char* text, size_t bytes);
  void* user;             /* Passed to both callbacks. */

  /* Receives how many tokens of the prompt are done, or of those that are read again after a shift. A
   * non-zero return value stops the generation. May be NULL. */
  int (*on_prompt)(void* user, uint32_t done, uint32_t total);
  const char* const* stop_strings; /* [stop_count] texts that end the generation, however tokens cut them:
                                    * valid UTF-8 of 1 to 4096 bytes each. The text of a control token ends
                                    * it, too. Read during the call. */
  size_t stop_count;               /* At most 64. */
  uint32_t keep_tokens;            /* The first tokens of the session that `shift` never forgets. */
  uint32_t reserved;               /* 0. */
} greta_generate_options;

typedef struct greta_generate_result {
  uint32_t struct_size;
  greta_stop_reason reason;
  uint32_t prompt_tokens, generated_tokens; /* A token that ends the answer is not counted. */
  uint64_t prompt_ns, generate_ns;          /* The time for the prompt, and for all that came after it. */
  int32_t stop_string;    /* The index of the stop string that was generated, else -1. */
  uint32_t forgotten_tokens; /* How many tokens of the session were forgotten by shifts. */
  uint32_t drafted_tokens;  /* Guesses that were verified (greta_session_draft_tokens). */
  uint32_t accepted_tokens; /* Those that were right. */
  uint32_t reread_tokens;   /* Tokens before the prompt that were read again, since windows had left behind
                             * where the session was truncated (greta_executor_options.checkpoint_bytes). */
  uint32_t draw_steps;      /* The steps that made the generated tokens: fewer where guesses were right. */
  uint32_t draft_stopped;   /* 1: memory lacked for guesses, so that the text went on without. */
} greta_generate_result;

/* Feeds a prompt, then draws and feeds tokens until something stops it. If a callback or greta_session_cancel
 * stops it, the call gives GRETA_OK with that reason. The session keeps the tokens that were fed. The token
 * that was drawn last has not been fed: to go on, give it as the first token of the next call, or truncate
 * the session. On an error the session is as it was before the call, even if callbacks have received tokens,
 * unless it was shifted.
 *
 * tokens      [count] the prompt; count is at least 1
 * options     may be NULL for the defaults
 * out_result  set struct_size before the call; may be NULL */
GRETA_API greta_status greta_session_generate(greta_session* session, const int32_t* tokens, size_t count,
                                              const greta_generate_options* options,
                                              greta_generate_result* out_result);

/* What greta_batch_generate does for one of its sessions. */
typedef struct greta_generate_item {
  greta_session* session;     /* Of the same executor as the others. A session may stand in one item only. */
  const int32_t* tokens;      /* [count] the prompt. */
  size_t count;               /* At least 1. */
  const greta_generate_options* options; /* May be NULL for the defaults. */
  greta_generate_result* result;         /* Set struct_size before the call. May be NULL. */
  greta_status status;        /* Out: what greta_session_generate would have returned. */
  char error[256];            /* Out: what went wrong, in words, "" with GRETA_OK. It may be cut. */
} greta_generate_item;

/* Generates with several sessions together: what greta_session_generate does for each, in shared steps, so
 * that the weights are read once for all of them. Pieces of prompts run in the same steps as the next tokens
 * of others. Each item has callbacks, limits and stop strings of its own; callbacks come one at a time on the
 * calling thread. greta_session_cancel, from a callback too, stops the item of that session alone.
 *
 * The call gives GRETA_OK when every item has a status; an item that fails leaves its session as it was and
 * changes nothing for the others. Any other status means that no session has changed: for instance
 * GRETA_ERROR_ARGUMENT for items with wrong options or without different sessions of one executor, or
 * GRETA_ERROR_MEMORY where the host's memory ran out.
 *
 * In a runtime with `exact` set each answer is what its session would have written alone; else its logits
 * differ by rounding. The sessions share the room of a page pool: where that ends, so does the text that
 * needs it, with GRETA_STOP_CONTEXT. If the sampling of one session needs the host (docs/sampling.md), steps
 * of all wait for that.
 *
 * items  [count]; count is 1 to 256 */
GRETA_API greta_status greta_batch_generate(greta_generate_item* items, size_t count);

/* Asks the call that is running on the session to stop at its next step, or before the next kernel that it
 * would compile. It may be called from any thread and from a signal handler. Where no call is running, it
 * does nothing: a call that begins later is not stopped. */
GRETA_API void greta_session_cancel(greta_session* session);

/* ---- chat: messages in, the parts of answers out ------------------------------------------------- */

typedef struct greta_chat greta_chat;

typedef struct greta_chat_options {
  uint32_t struct_size;
  uint32_t raw;              /* 1: an answer is one text as it comes, with the marks that the model writes. */
  const char* chat_template; /* A Jinja text to use in place of the model's, or one of "chatml", "llama3",
                              * "gemma", "phi3", "mistral". NULL: the model's template. Where the model
                              * has none that works, a plain form that suits the vocabulary stands in, and
                              * the log says so. */
  const char* tools;         /* The tools that the model may call: a JSON array of
                              * {"type": "function", "function": {...}}; NULL: none. */
  const char* arguments;     /* A JSON object of further variables for the template, such as
                              * {"enable_thinking": false}; NULL: none. */
  int64_t now_s;             /* Seconds since 1970 on a clock that shows local time, for templates that write
                              * the date. */
  uint32_t forget_oldest;    /* 1: where the context is full, also within an answer, the oldest turns leave,
                              * and what stands behind them is read again. System messages at the beginning
                              * stay, and so does the last turn: the answer ends if that fills the context. */
  uint32_t parse_content;    /* 1: control tokens that are written out in messages, or in what tools say of
                              * themselves, are control tokens. 0: they are text. */
  uint32_t join_system;      /* 1: messages of the roles "system" and "developer" become one at the beginning,
                              * with the role of the first and the texts of all in their order, an empty line
                              * between them. Many templates refuse a second one. */
  uint32_t continue_answer;  /* 1: the last message, of the role "assistant", is the beginning of the answer,
                              * which goes on behind its text. The answer comes without that text. Only for
                              * requests. */

  /* Whether the model calls tools, held by a grammar in the form that the template writes. "none": no call.
   * "auto": text, or calls, which are held from their mark on. "required": a call at least. Else the name of
   * the tool that is called. NULL: nothing is held, and calls are read where they come. The reasoning before
   * it is free. A grammar or schema of the request holds what is said where nothing is called. Arguments are
   * held as JSON schemas are; docs/chat.md says what is not. A name that no tool has gives
   * GRETA_ERROR_ARGUMENT, and a template that shows no form of calls GRETA_ERROR_UNSUPPORTED with "required"
   * or a name. Only for requests, like the next two. */
  const char* tool_choice;
  uint32_t one_call;         /* 1: an answer has one call at most. Where tool_choice is NULL, it is "auto". */
  uint32_t strict_tools;     /* 1: a tool's schema that cannot be held gives GRETA_ERROR_UNSUPPORTED, as that
                              * of a tool with "strict": true does. 0: any arguments stand in for it, and the
                              * log says so. Where tool_choice is NULL, it is "auto". */
} greta_chat_options;

/* Opens an empty conversation on a session, which must outlive it. Sampling is set on the session. Tokens
 * that the session holds are not computed again as far as the conversation begins with them. A template,
 * tools or arguments that are wrong give GRETA_ERROR_ARGUMENT, and a part of Jinja that is not known here
 * gives GRETA_ERROR_UNSUPPORTED.
 *
 * options   may be NULL for the defaults; its strings are copied
 * out_chat  the new conversation, to be closed with greta_chat_close */
GRETA_API greta_status greta_chat_open(greta_session* session, const greta_chat_options* options,
                                       greta_chat** out_chat);
GRETA_API void greta_chat_close(greta_chat* chat);

/* Adds a message to the end of the conversation. It is copied. A message without a role, or with neither
 * content nor calls nor reasoning, gives GRETA_ERROR_ARGUMENT. */
GRETA_API greta_status greta_chat_add(greta_chat* chat, const greta_message* message);

GRETA_API uint32_t greta_chat_count(const greta_chat* chat); /* How many messages there are. */

/* Gives a message: its role, its content ("" where that is no text), and all of it as JSON. The texts are
 * valid until the next greta_chat_get on this chat. `index` is below the count. */
GRETA_API greta_status greta_chat_get(greta_chat* chat, uint32_t index, greta_message* out_message);

/* Keeps the first `count` messages and forgets the others. A count above theirs gives
 * GRETA_ERROR_ARGUMENT. */
GRETA_API greta_status greta_chat_truncate(greta_chat* chat, uint32_t count);

/* Gives the conversation as the model would read it, without the turns that have left. add_answer, text,
 * capacity and out_bytes are as in greta_tokenizer_chat, and so are the errors. */
GRETA_API greta_status greta_chat_render(greta_chat* chat, int add_answer, char* text, size_t capacity,
                                         size_t* out_bytes);

typedef enum greta_chat_part {
  GRETA_CHAT_TEXT = 0,       /* text and bytes hold a piece of what the model says. */
  GRETA_CHAT_REASONING = 1,  /* text and bytes hold a piece of what the model thinks. */
  GRETA_CHAT_TOOL_CALL = 2,  /* id, name and arguments hold a whole call of a tool. */
  GRETA_CHAT_PROMPT = 3,     /* done and total count the tokens of the prompt that are new. */
  GRETA_CHAT_PART_MAX = 0x7fffffff
} greta_chat_part;

/* A part of an answer. All pointers are valid during the callback; fields of other parts are 0 or NULL. */
typedef struct greta_chat_event {
  uint32_t struct_size;
  greta_chat_part part;
  const char* text;          /* [bytes] valid UTF-8, with a NUL behind it. */
  size_t bytes;
  const char *id, *name, *arguments; /* arguments is a JSON object. */
  uint32_t done, total;
} greta_chat_event;

typedef enum greta_chat_end {
  GRETA_CHAT_END_STOP = 0,       /* The model ended its answer, or a stop string did. */
  GRETA_CHAT_END_LENGTH = 1,     /* max_tokens were generated. */
  GRETA_CHAT_END_TOOL_CALLS = 2, /* The answer ended with calls. Add a message of role "tool" for each, and
                                  * answer again. */
  GRETA_CHAT_END_CONTEXT = 3,    /* The context or the page pool has no room left. */
  GRETA_CHAT_END_CANCELLED = 4,  /* The callback or greta_session_cancel asked to stop. */
  GRETA_CHAT_END_MAX = 0x7fffffff
} greta_chat_end;

typedef struct greta_chat_answer_options {
  uint32_t struct_size;
  uint32_t max_tokens;       /* The most tokens to generate. 0: until the context is full. */
  uint32_t ignore_end;       /* 1: tokens that end an answer are tokens like others. */
  uint32_t limit_reasoning;  /* 1: reasoning is closed after reasoning_tokens, and the answer goes on. */
  uint32_t reasoning_tokens;
  uint32_t stop_count;
  const char* const* stop_strings; /* [stop_count], as in greta_generate_options. */

  /* Receives each part of the answer as it comes. A non-zero return value stops the answer. May be NULL. */
  int (*on_event)(void* user, const greta_chat_event* event);
  void* user;                /* Passed to on_event. */
} greta_chat_answer_options;

typedef struct greta_chat_result {
  uint32_t struct_size;
  greta_chat_end end;
  uint32_t prompt_tokens;    /* Tokens of the whole conversation before the answer. */
  uint32_t reused_tokens;    /* How many of them the session held already. */
  uint32_t generated_tokens;
  uint32_t reasoning_tokens; /* How many of the generated tokens are reasoning. */
  uint32_t open_reasoning;   /* 1: the answer ended within its reasoning. */
  uint32_t forgotten_messages; /* How many messages, behind those of the system, the model no longer reads.
                              * greta_chat_get still gives them. */
  uint64_t prompt_ns, generate_ns;
} greta_chat_result;

/* Answers the last message and adds the answer to the conversation, even if it was stopped, unless it is
 * empty. A conversation that does not fit the context gives GRETA_ERROR_FULL, with forget_oldest only where
 * its last turn alone does not fit. If there is no message to
 * answer, or the template refuses the conversation, the call gives GRETA_ERROR_ARGUMENT. On any error the
 * conversation is as before, but the session may hold less of it.
 *
 * options     may be NULL for the defaults
 * out_result  set struct_size before the call; may be NULL */
GRETA_API greta_status greta_chat_answer(greta_chat* chat, const greta_chat_answer_options* options,
                                         greta_chat_result* out_result);

/* ---- services: many requests at once ------------------------------------------------------------- */

/* A service answers many requests on one executor of its own. In each step of the model it computes a token
 * for every answer that is being written, and beside them as much of new prompts as the time of a step
 * allows. docs/serving.md says in which order requests are served and what happens when memory is short.
 *
 * These functions may be called from any thread at any time, with two exceptions: a service is closed when no
 * other call on it runs, and a request is closed when no other call on it runs. One thread runs the steps. */
typedef struct greta_service greta_service;
typedef struct greta_request greta_request;

typedef struct greta_service_options {
  uint32_t struct_size;
  uint32_t own_thread;      /* 1: the library makes the thread that runs the steps. 0: greta_service_run does
                             * it on yours. */
  const greta_executor_options* executor; /* Sizes. `sequences` is how many requests run at once, the others
                                           * wait; its default is 16 here. Set cache_tokens to what all of
                                           * them need together. NULL: the defaults. */
  uint32_t max_requests;    /* The most that wait or run; more are refused with GRETA_ERROR_BUSY. One that has
                             * ended, was cancelled or closed does not count. 0: 1024. */
  uint32_t event_capacity;  /* Events that a request may have unread. Then it pauses, and only it. 0: 64. */
  uint32_t step_ms;         /* How long a step should take while answers are written. Prompts are cut by the
                             * measured times of steps to fit into it. 0: 50. */
  uint32_t chunk_tokens;    /* Tokens of prompts in such a step, in place of step_ms; 0: by step_ms. */
  uint32_t no_prefix_cache; /* 1: nothing is kept of requests that have ended. */
  uint32_t reserved;        /* 0. */
  uint64_t host_cache_bytes; /* Host memory for pages that the prefix cache gives up when the pool is full.
                              * A request whose text begins with such a page gets it back by a copy. It is
                              * allocated page by page, when it is needed. At most 131,072 pages of 64 tokens
                              * are kept. 0: they are lost. */
  const char* page_folder;    /* A folder for pages that have no place in memory any more, and for all pages
                               * when the service is closed, so that they outlive the program. It is made if
                               * it is not there. Who can write to it can change answers. NULL: none. */
  uint64_t page_folder_bytes; /* The most that its files take together; those that were not used for longest
                               * go. 0: 4 GiB. */
  uint32_t unread_ms;         /* A request has a deadline for unread events: where one is to be added and all
                               * places are taken, one ends with GRETA_STOP_UNREAD of whose event_capacity
                               * more than half was not read, and nothing for this long. It is the one that
                               * was left alone for longest. 0: 60,000. UINT32_MAX: none ends so. */
  uint32_t salt_requests;     /* The most requests of one salt that wait or run, so that no tenant takes all
                               * places; more are refused with GRETA_ERROR_BUSY. The salt 0 has no limit of
                               * its own. At most max_requests. 0: half of that. */

  /* Called when a request whose events were all read has something to read again: an event, or its end. So
   * one thread can serve many requests: it reads a request with a timeout of 0 until that gives
   * GRETA_EVENT_NONE or GRETA_EVENT_END, and then not before the next call for it. A call may come when the
   * thread has just read what it tells of. May be NULL.
   *
   * The callback runs on the thread that runs the steps or closes the service, and on one that adds a request
   * while nothing runs the service. Calls for different requests may overlap, also before greta_service_add
   * has returned. It holds up all requests, so it should only note request_user and wake a thread. Of this
   * library it may call the functions of requests, with a timeout of 0. greta_request_close waits for a call
   * that is under way on another thread, and after it there are no more calls for that request; so hold no
   * lock while closing that the callback takes. */
  void (*on_ready)(void* user, void* request_user);
  void* on_ready_user;        /* Passed to on_ready, before the `user` of the request. */
} greta_service_options;

/* Opens a service, which opens an executor.
 *
 * model        must outlive the service
 * options      may be NULL for the defaults
 * out_service  the new service, to be closed with greta_service_close */
GRETA_API greta_status greta_service_open(greta_model* model, const greta_service_options* options,
                                          greta_service** out_service);

/* Stops the service. Requests that have not ended end as cancelled, and can still be read and closed. */
GRETA_API void greta_service_close(greta_service* service);

/* Runs steps on the calling thread until greta_service_stop is called, also while there are no requests. If
 * another thread runs the service, it gives GRETA_ERROR_ARGUMENT. */
GRETA_API greta_status greta_service_run(greta_service* service);

/* Makes greta_service_run, or the library's own thread, return after the step under way. Requests stay as
 * they are, and greta_service_run goes on with them on the thread that calls it, also where the library had a
 * thread of its own; it waits for one that was stopped and still runs. Where nothing runs the service, the
 * next greta_service_run returns at once. */
GRETA_API void greta_service_stop(greta_service* service);

typedef struct greta_service_info {
  uint32_t struct_size;
  uint32_t waiting, running;      /* Requests. */
  uint32_t pages, free_pages;     /* Pages of 64 tokens in the cache, and those that hold nothing. */
  uint32_t cached_pages;          /* Pages of the prefix cache that no running request uses. */
  uint64_t steps, rows;           /* Steps so far, and tokens that they fed. */
  uint64_t cached_tokens;         /* Tokens of prompts that came from the prefix cache. */
  uint64_t set_back;              /* How often a request lost its pages to an older one. */
  uint64_t brought_back;          /* Pages that came back from the host's memory or from the folder. */
  uint32_t host_pages;            /* Pages that the host's memory holds. */
  uint32_t reserved;
  uint64_t step_ns;               /* The time of all steps. */
  uint64_t prompt_tokens;         /* Tokens of the prompts of requests that have ended, and */
  uint64_t generated_tokens;      /* tokens that these have generated, as in greta_request_result. */
  uint64_t failed;                /* Requests that have ended with a failure. */
  uint64_t ended[8];              /* The others that have ended, by greta_stop_reason. */
  uint64_t host_ns;               /* The time that the thread of the service has worked for steps and not
                                   * waited for the device: it plans them, chooses tokens, and hands events
                                   * out. On a device that computes beside the host, part of it passes during
                                   * a step. Steps of a second model, which guesses, count as the host's. */
  uint64_t reread_tokens;         /* The sum of reread_tokens of the requests that have ended. */
} greta_service_info;

/* Says what the service does, as of its last step. Set struct_size of out_info before the call. */
GRETA_API greta_status greta_service_describe(greta_service* service, greta_service_info* out_info);

/* How a request chooses its tokens: the steps of greta_session_temperature and the functions after it, with
 * the same ranges. A field that is 0 leaves its step out, or takes the default of its function. */
typedef struct greta_sampling_options {
  uint32_t struct_size;
  float temperature;
  float dynamic_range, dynamic_exponent;  /* An exponent of 0 is 1. */
  uint32_t top_k;
  float top_p, min_p, typical_p, top_n_sigma;
  float xtc_probability, xtc_threshold;
  float repeat_penalty, frequency_penalty, presence_penalty;  /* A repeat_penalty of 0 is 1. */
  uint32_t penalty_last_n;
  float mirostat_tau, mirostat_eta;       /* An eta of 0 is 0.1. */
  uint32_t strict_schema;                 /* 1: as greta_session_strict_schema reads json_schema. */
  uint64_t seed;
  const greta_dry_options* dry;           /* NULL: off. */
  const int32_t* bias_tokens;             /* [bias_count] */
  const float* biases;                    /* [bias_count] */
  size_t bias_count;
  const char* order;                      /* NULL: the default. */
  const char* grammar;                    /* GBNF; NULL: none. At most one of grammar and json_schema. */
  const char* grammar_root;               /* NULL: "root". */
  const char* json_schema;
} greta_sampling_options;

/* What is asked for. Everything is copied. Give either tokens or messages. */
typedef struct greta_request_options {
  uint32_t struct_size;
  uint32_t max_tokens;       /* The most tokens to generate. 0: until the context is full. */
  const int32_t* tokens;     /* [token_count] the prompt */
  size_t token_count;
  const greta_message* messages; /* [message_count] a conversation, whose last message is answered. The answer
                                  * comes in parts, as that of greta_chat_answer does. */
  size_t message_count;
  const greta_chat_options* chat; /* How the messages are written and the answer is read; NULL: the
                                   * defaults. */
  const greta_sampling_options* sampling; /* NULL: the most likely token. */
  const char* const* stop_strings; /* [stop_count], as in greta_generate_options. */
  size_t stop_count;
  int32_t priority;          /* -2 to 2; the larger goes first. */
  uint32_t ignore_end;       /* 1: tokens that end an answer are tokens like others. */
  uint64_t salt;             /* Requests share pages of the prefix cache only with those of the same salt. */
  uint32_t no_cache;         /* 1: takes nothing from the prefix cache and leaves nothing there. */
  uint32_t no_answer;        /* 1: the request ends when the prompt was read. */
  uint32_t logprobs;         /* 1: events have the logarithm of the probability of their token. */
  uint32_t prompt_logprobs;  /* 1: there is also an event for each token of the prompt but the first. The
                              * prompt is then read output_rows tokens at a time, and not from the cache. */
  uint32_t top_logprobs;     /* How many of the likeliest tokens are listed beside it, at most 1000. */
  uint32_t reserved;         /* 0. */
  const greta_embed_options* embed; /* Asks for a vector of the prompt in place of an answer; NULL: none. */
  const greta_source* state; /* A saved session or request, read during the call. The prompt must begin with
                              * its tokens, and is these tokens if there is neither a token nor a message.
                              * Their keys and values are not computed again, but for the last token of the
                              * prompt, and nobody else gets them from the prefix cache, unless share_state is
                              * set. They lie in the host's memory until the request is closed. The errors are
                              * those of greta_session_restore. NULL: none. At most one of state, embed and
                              * prompt_logprobs may be set. */
  uint32_t keep_state;       /* 1: greta_request_save can write the request's state when it has ended. */
  uint32_t reserved2;        /* 0. */
  uint32_t draft_tokens;     /* The most tokens that are guessed and verified in a step, at most 7, as with
                              * greta_session_draft_tokens. While more than seven requests run, none is. */
  uint32_t shift;            /* 1: a full context does not end the answer. Of the tokens behind the first
                              * keep_tokens the older half is forgotten, and the others are read again. */
  uint32_t keep_tokens;      /* The first tokens that `shift` never forgets. */
  uint32_t limit_reasoning;  /* 1: reasoning is closed after reasoning_tokens, and the answer goes on. Only
                              * for messages. */
  uint32_t reasoning_tokens;
  uint32_t reserved3;        /* 0. */
  void* user;                /* Passed to greta_service_options.on_ready. */
  uint32_t prompt_events;    /* 1: there is a GRETA_EVENT_START when the prompt was read. 2: before it there
                              * is also a GRETA_EVENT_PROGRESS after each step that has read a piece. */
  uint32_t reserved4;        /* 0. */
  uint32_t share_state;      /* 1: `state` is trusted, and other requests get its pages from the prefix cache.
                              * A saved state of a model whose layers keep states stands behind its last token
                              * alone. So the tokens of such a state must fill whole pages of 64; for others
                              * it is GRETA_ERROR_UNSUPPORTED. If they are the whole prompt of a request with
                              * no_answer, nothing is computed. */
  uint32_t call_pieces;      /* 1: calls of tools come while they are written, where a model writes their
                              * arguments as JSON: GRETA_EVENT_CALL_START, then GRETA_EVENT_CALL_PIECE, then
                              * GRETA_EVENT_TOOL_CALL. */
  const greta_adapter* const* adapters; /* [adapter_count] as with greta_session_set_adapters. Requests share
                                         * pages of the prefix cache only with those of the same adapters
                                         * and scales. */
  const float* adapter_scales; /* [adapter_count]; NULL: 1 for all. */
  size_t adapter_count;
  const greta_draft_options* draft; /* Who guesses tokens, in place of draft_tokens, of which one must be 0 or
                              * NULL. It is copied. */
  uint32_t sampled_logprobs; /* 1: the probabilities of logprobs and top_logprobs are those by which the token
                              * was drawn: of the candidates that the sampler's steps and the grammar have
                              * left, which are listed alone. Tokens of the prompt keep the model's own. */
  uint32_t reserved5;        /* 0. */
} greta_request_options;

/* Adds a request. What is wrong with the options is said here; what goes wrong later ends the request.
 *
 * Errors:
 *   GRETA_ERROR_BUSY  max_requests or salt_requests wait or run. This is found before the options are read.
 *   GRETA_ERROR_FULL  The prompt is longer than the context, or than the cache of all requests. It will never
 *                     fit. Where a chat template has reached a limit, greta_error_numbers gives 0.
 * greta_error_numbers tells how many there are and how many may be.
 *
 * options      required
 * out_request  the new request, to be closed with greta_request_close */
GRETA_API greta_status greta_service_add(greta_service* service, const greta_request_options* options,
                                         greta_request** out_request);

/* What a request would feed. The pointers are valid during the callback. */
typedef struct greta_prompt {
  uint32_t struct_size;
  uint32_t cached_tokens;    /* How many tokens the prefix cache, or the state, has now. Pages in a folder are
                              * not counted. */
  const char* text;          /* [bytes] the conversation as the template writes it, "" for a prompt of tokens,
                              * with a NUL behind it. */
  size_t bytes;
  const int32_t* tokens;     /* [token_count] */
  size_t token_count;
} greta_prompt;

/* Forgets what the prefix cache has of a text: its pages on the device, in the host's memory and in the
 * folder. Pages that a request uses now, or with which another text goes on, stay, and so do those before
 * them. It waits for the step under way.
 *
 * tokens      [token_count] the text from its beginning
 * salt        that of the requests that have left it
 * out_tokens  for how many tokens something was forgotten; may be NULL */
GRETA_API greta_status greta_service_forget(greta_service* service, const int32_t* tokens, size_t token_count,
                                            uint64_t salt, size_t* out_tokens);

/* Makes the prompt of a request and gives it out, without adding the request: what is counted is what would
 * be fed. A prompt may be longer than the context. The errors are those of greta_service_add, but for
 * GRETA_ERROR_BUSY and for a prompt that is too long. It waits for the step under way.
 *
 * on_prompt  is called once; a non-zero return value gives GRETA_ERROR_CANCELLED
 * user       passed to on_prompt */
GRETA_API greta_status greta_service_prompt(greta_service* service, const greta_request_options* options,
                                            int (*on_prompt)(void* user, const greta_prompt* prompt),
                                            void* user);

typedef enum greta_event_kind {
  GRETA_EVENT_NONE = 0,      /* Nothing came within the time. */
  GRETA_EVENT_TEXT = 1,      /* text and bytes hold a piece of the answer. */
  GRETA_EVENT_REASONING = 2, /* text and bytes hold a piece of what the model thinks. */
  GRETA_EVENT_TOOL_CALL = 3, /* id, name and arguments hold a whole call of a tool. */
  GRETA_EVENT_PROMPT = 4,    /* token and logprob are those of a token of the prompt. */
  GRETA_EVENT_END = 5,       /* The request has ended: greta_request_finish says how. */
  GRETA_EVENT_EMBEDDING = 6, /* embedding is the vector of the prompt. */
  GRETA_EVENT_START = 7,     /* The prompt was read, and nothing of an answer has come. prompt_tokens and
                              * cached_tokens are known. */
  GRETA_EVENT_PROGRESS = 8,  /* A piece of the prompt was read: read_tokens of prompt_tokens. One that nobody
                              * has taken makes way for the next one. */
  GRETA_EVENT_CALL_START = 9, /* id and name are those of a call whose arguments come next in pieces. If the
                              * answer ends within the call, or its text is no call after all, there is no
                              * GRETA_EVENT_TOOL_CALL for it. */
  GRETA_EVENT_CALL_PIECE = 10, /* text and bytes hold a piece of the call's arguments. The pieces together are
                              * those of the GRETA_EVENT_TOOL_CALL behind them. */
  GRETA_EVENT_KIND_MAX = 0x7fffffff
} greta_event_kind;

typedef struct greta_top_logprob {
  int32_t token;
  float logprob;
} greta_top_logprob;

/* Pointers are valid until the next call of greta_request_next on the request, or until it is closed. */
typedef struct greta_request_event {
  uint32_t struct_size;
  greta_event_kind kind;
  int32_t token;             /* Each token of the answer comes with one event, which may have no text, as in
                              * greta_generate_options. -1: a further part of the same token's text, or text
                              * that was held back. */
  float logprob;             /* Natural logarithm, of the model's own probability unless sampled_logprobs is
                              * set; 0 if not asked for. */
  const char* text;          /* [bytes] valid UTF-8, with a NUL behind it. */
  size_t bytes;
  const char *id, *name, *arguments; /* arguments is a JSON object. */
  const greta_top_logprob* top;      /* [top_count], the likeliest first */
  size_t top_count;
  const float* embedding;            /* [embedding_count] as from greta_session_embed, else NULL. */
  size_t embedding_count;
  uint32_t prompt_tokens;            /* Of GRETA_EVENT_START and GRETA_EVENT_PROGRESS, like the next two. */
  uint32_t read_tokens;              /* Tokens of the prompt that were read or came from the cache. */
  uint32_t cached_tokens;            /* How many of them came from the prefix cache, or from the state. */
  uint32_t unread;                   /* Events that can be read now behind this one, the end included. */
} greta_request_event;

/* Gives the next event. Only one thread at a time may wait for a request's events.
 *
 * timeout_ns  how long to wait for it; 0: not at all; UINT64_MAX: for ever. Other times end, however long.
 * out_event   set struct_size before the call */
GRETA_API greta_status greta_request_next(greta_request* request, uint64_t timeout_ns,
                                          greta_request_event* out_event);

typedef enum greta_request_state {
  GRETA_REQUEST_WAITING = 0, /* In the line, for a sequence and for pages. */
  GRETA_REQUEST_READING = 1, /* It reads its prompt, or its text anew after it was set back. */
  GRETA_REQUEST_WRITING = 2,
  GRETA_REQUEST_PAUSED = 3,  /* It goes on when its events are read. */
  GRETA_REQUEST_ENDED = 4,   /* There may be events that were not read. */
  GRETA_REQUEST_STATE_MAX = 0x7fffffff
} greta_request_state;

typedef struct greta_request_info {
  uint32_t struct_size;
  greta_request_state state;
  uint32_t before;           /* How many requests are before it in the line while it waits. */
  uint32_t unread_events;
  uint32_t prompt_tokens;
  uint32_t read_tokens;      /* Tokens of its text, prompt and answer, that were read. */
  uint32_t cached_tokens;    /* As in greta_request_result, so far, like the next three. */
  uint32_t generated_tokens;
  uint32_t reasoning_tokens;
  uint32_t set_back;
} greta_request_info;

/* Says how far a request is, as of the last step, from any thread. Set struct_size of out_info before the
 * call. */
GRETA_API greta_status greta_request_describe(greta_request* request, greta_request_info* out_info);

/* Ends the request at the next step, from any thread. Nobody else's answer changes. */
GRETA_API void greta_request_cancel(greta_request* request);

typedef struct greta_request_result {
  uint32_t struct_size;
  greta_stop_reason reason;
  int32_t stop_string;       /* The index of the stop string that was generated, else -1. */
  uint32_t prompt_tokens;
  uint32_t cached_tokens;    /* How many tokens came from the prefix cache, each time that pages were read, or
                              * from the state that it began with. */
  uint32_t generated_tokens; /* A token that ends the answer is not counted. */
  uint32_t set_back;         /* How often the request lost its pages and read its text anew. */
  uint32_t tool_calls;       /* Calls in the answer. */
  uint32_t open_reasoning;   /* 1: the answer ended within its reasoning. */
  uint32_t reserved;
  uint64_t queued_ns;        /* From greta_service_add to the first step. */
  uint64_t prompt_ns;        /* From there to the first token. */
  uint64_t generate_ns;      /* From there to the end. */
  uint32_t forgotten_tokens; /* How many tokens were forgotten by shifts. */
  uint32_t drafted_tokens;   /* Guesses that were verified. */
  uint32_t accepted_tokens;  /* Those that were right. */
  uint32_t reasoning_tokens; /* How many of the generated tokens are reasoning. */
  uint32_t draw_steps;       /* The steps that made the generated tokens. */
  uint32_t draft_stopped;    /* 1: memory lacked for guesses, so that the answer went on without. */
  uint32_t reread_tokens;    /* Tokens that were computed again, after pages were lost, or where a step failed
                              * that may have changed states. */
  uint32_t reserved2;
} greta_request_result;

/* Says how a request has ended, after GRETA_EVENT_END. A request that failed gives the status and the error
 * text of its failure; the result is written then, too. Before the end it gives GRETA_ERROR_ARGUMENT.
 *
 * out_result  set struct_size before the call; may be NULL */
GRETA_API greta_status greta_request_finish(greta_request* request, greta_request_result* out_result);

/* Gives the number of bytes that greta_request_save would write, 0 where it would fail. */
GRETA_API uint64_t greta_request_state_bytes(const greta_request* request);

/* Writes the state of a request that has kept it, after GRETA_EVENT_END: the tokens that were read, with
 * their keys and values, in the form of greta_session_save. greta_session_restore takes it, and so does a
 * further request, of a later service too. To save a request that runs, cancel it. The state lies in the
 * host's memory until the request is closed; if there was no room for it, the call gives GRETA_ERROR_MEMORY.
 * A request that failed, or did not keep its state, gives GRETA_ERROR_ARGUMENT.
 *
 * write  receives the bytes
 * user   passed to write */
GRETA_API greta_status greta_request_save(greta_request* request, greta_write_callback write, void* user);

/* Gives the tokens of a request after GRETA_EVENT_END: its prompt, and those of its answer behind it. What a
 * full context has forgotten is not among them. Before the end it gives GRETA_ERROR_ARGUMENT.
 *
 * out_tokens  [*out_count] valid until the request is closed
 * out_count   how many there are */
GRETA_API greta_status greta_request_tokens(const greta_request* request, const int32_t** out_tokens,
                                            size_t* out_count);

/* Closes a request. If it has not ended, it is cancelled. */
GRETA_API void greta_request_close(greta_request* request);

/* ---- experimental: may change in any version ----------------------------------------------------- */

typedef struct greta_selftest_result {
  uint32_t struct_size;
  uint32_t passed;           /* 1: every kernel of the op computes right. */
  const char* op;            /* "matmul". Valid during the callback, like `failure`. */
  uint32_t kernels;          /* Kernels of this device for the op that were checked. */
  uint32_t reserved;
  uint64_t launches;         /* How often they ran. */
  const char* failure;       /* "", or what was wrong, with the name of the kernel and the error. */
} greta_selftest_result;

typedef struct greta_selftest_progress {
  uint32_t struct_size;
  uint32_t kernels_run, kernels; /* How many kernels of the op have run, and how many there are to run. */
  uint32_t reserved;
  const char* op;                /* Valid during the callback, like `kernel`. */
  const char* kernel;            /* The kernel that was launched last, "" before the first. */
  uint64_t launches;             /* Launches of the op so far. */
} greta_selftest_progress;

typedef struct greta_selftest_options {
  uint32_t struct_size;
  uint32_t reserved;         /* 0. */
  const char* op;            /* What to check: one op by the name that its result has ("attention"), or
                              * kernels by theirs ("matmul_rows_q4_k", "matmul_rows_*"). NULL or "":
                              * everything. */

  /* Called after each op, and some 20 times a second. A non-zero return value stops. Both may be NULL. */
  int (*on_result)(void* user, const greta_selftest_result* result);
  int (*on_progress)(void* user, const greta_selftest_progress* progress);
  void* user;                /* Passed to both callbacks. */
  uint32_t quick;            /* 1: run every kernel, but only in the first shape that reaches it, with each
                              * type of cache, and without the repeats that tell whether equal input gives
                              * equal bits. */
  uint32_t reserved2;        /* 0. */
} greta_selftest_options;

/* Runs every kernel of the device in many odd shapes and with all tensor types, and compares the results with
 * float64 arithmetic on the host. This takes some seconds, or minutes where a driver compiles slowly, and
 * some 200 MB of device memory. A kernel that is wrong is a result, not an error. The callbacks run on the
 * calling thread; a non-zero return value stops the test with GRETA_ERROR_CANCELLED, once the launches and
 * compilations that are under way have ended. An op that was stopped has a result only if something was
 * wrong.
 *
 * options     may be NULL to check everything
 * out_failed  how many ops did not pass */
GRETA_API greta_status greta_runtime_selftest(greta_runtime* runtime, const greta_selftest_options* options,
                                              uint32_t* out_failed);

/* A kernel of a higher rank that a launch does not use. */
typedef struct greta_plan_passed {
  const char* kernel;
  const char* reason;        /* "it asks for multiples of 64 x 256, the weight is 4096 x 288" */
  uint32_t rank;
  uint32_t reserved;
} greta_plan_passed;

/* One launch of a step's plan, or a copy. What it points to is valid during the callback. */
typedef struct greta_plan_launch {
  uint32_t struct_size;
  uint32_t device;           /* The device, from 0 in the order of the runtime. */
  uint32_t barrier_stage;    /* Launches of one number may overlap. Before the next number all have ended. */
  uint32_t rank;             /* Of the kernel: the highest that fits is taken. 0: the plain kernel. */
  const char* stage;         /* As in greta_profile_stage. */
  const char* kernel;        /* "matmul_rows_q4_k"; "copy" for a copy. */
  const char* ops;           /* What it computes: "norm+matmul+rope"; "" for a copy. */
  const char* weight;        /* "[4096][1024] q4_k planes": rows, columns, type and layout; "" without one. */
  uint32_t groups[3];        /* The grid. */
  uint32_t splits;           /* Groups that share a tile of the result, each over some of the columns. */
  uint64_t bytes, flops;     /* What must be moved, and the operations that must be computed. */
  const greta_plan_passed* passed; /* [passed_count] kernels for the same ops and type of weight that have a
                              * higher rank, with the reasons why they do not fit; highest ranks first. */
  uint32_t passed_count;
  uint32_t reserved;
  const char* machine_code;  /* With greta_plan_options.machine_code: what the driver tells, in its own names:
                              * "Register Count 64, Stack Size 0"; "" where it tells nothing. */
} greta_plan_launch;

typedef struct greta_plan_options {
  uint32_t struct_size;
  uint32_t tokens;           /* Tokens of the step, all of one sequence, the last of which gives the next
                              * token; 0: 1, a step of generation. At most greta_memory_plan.step_tokens. */
  uint32_t depth;            /* Tokens of the sequence that were read before. */
  uint32_t machine_code;     /* 1: also ask the driver of a GPU for the registers of each kernel, for which it
                              * compiles them. */
  const greta_executor_options* executor;  /* NULL: the defaults. */
  const greta_placement* placement;        /* Of several devices; NULL: by memory. */

  /* Called for each launch, in order; required. A non-zero value stops with GRETA_ERROR_CANCELLED. */
  int (*on_launch)(void* user, const greta_plan_launch* launch);
  void* user;                /* Passed to on_launch. */
} greta_plan_options;

/* Tells the launches of a step before anything is computed. No weights are loaded, and nothing is allocated
 * on the devices. Sessions of a model on this runtime run the same launches.
 *
 * file  its source is read again, so it must still be there */
GRETA_API greta_status greta_plan_explain(greta_runtime* runtime, const greta_file* file,
                                          const greta_plan_options* options);

/* ---- tuning: which kernels are the fastest on this very device ------------------------------------- */

typedef struct greta_tune_progress {
  uint32_t struct_size;
  uint32_t done, entries;    /* Entries that are behind us, and all of them. */
  uint32_t reserved;
  const char* entry;         /* "norm+matmul q4_k planes 4096x4096 rows 1": ops, type and layout of the
                              * weight, its rows x columns, and the rows of the step. */
  const char* kernel;        /* That is at work. */
} greta_tune_progress;

typedef struct greta_tune_options {
  uint32_t struct_size;
  uint32_t again;            /* 1: also entries that the table has already. */
  const greta_file* const* files; /* [file_count] models whose launches are tuned. Their sources are read
                              * again, but no weights are loaded: operands are made up. */
  uint32_t file_count;
  uint32_t token_count;
  const uint32_t* tokens;    /* [token_count] of the steps that are tuned; NULL: 1, 512, 8, 4, 2, 16, 32 and
                              * 64. */
  const char* shapes;        /* Products beside those of the files, one a line: "q4_k 14336x4096", rows x
                              * columns, and "gate" behind it for two of them with their gate; NULL: none. */
  const greta_executor_options* executor; /* NULL: the defaults. */
  uint64_t budget_ns;        /* No entry is begun after this time; 0: all are. */

  /* Called before each launch that is timed; NULL: nobody is told. A non-zero value stops. */
  int (*on_progress)(void* user, const greta_tune_progress* now);
  void* user;                /* Passed to on_progress. */
} greta_tune_options;

typedef struct greta_tune_result {
  uint32_t struct_size;
  uint32_t entries;          /* That the table has now. */
  uint32_t made;             /* Of these: that this call has made. */
  uint32_t there;            /* Of those that were asked for: that were in the table before. */
  uint32_t changed;          /* Of `entries`: for which another kernel is chosen than without the table. */
  uint32_t left;             /* That were not tuned: no time was left, or they cannot be run alone. */
  uint32_t right, wrong, refused, slow, hung; /* Candidates of those that were made, by what came of them. */
} greta_tune_result;

/* Times each way to run the products of a model on the first device of the runtime, and notes the fastest in
 * the device's table in greta_runtime_options.tuning_folder. Runtimes that are opened later use it. Each
 * candidate has to give the result of the plain kernels first. Candidates run in turns, on weights that no
 * cache holds. One replaces the default only if the 95 % interval of the ratio of their times lies 1 % or
 * more below 1. The table is written after each entry, so that a later call goes on. A kernel that ended the
 * program or never ended is not tried again (the file beside the table whose name ends with ".trying").
 *
 * out_result  may be NULL; it is set after GRETA_ERROR_CANCELLED, too
 * returns     GRETA_ERROR_CANCELLED if on_progress stopped it; GRETA_ERROR_FILE if another tune of the
 *             device is at work, or the table cannot be written. Then the old one stays. */
GRETA_API greta_status greta_runtime_tune(greta_runtime* runtime, const greta_tune_options* options,
                                          greta_tune_result* out_result);

/* Gives the path of that table, which need not be there.
 *
 * out_bytes  the length of the text. If it is above capacity, only the first bytes were written. */
GRETA_API greta_status greta_runtime_tuning_path(const greta_runtime* runtime, char* text, size_t capacity,
                                                 size_t* out_bytes);

/* Puts a table in that place, for instance one that came from another machine with the same device. It is
 * refused if it is damaged, or not of this device, driver and version of the kernels. */
GRETA_API greta_status greta_runtime_tuning_import(greta_runtime* runtime, const char* text, size_t bytes);

typedef struct greta_tuning_candidate {
  uint32_t struct_size;
  uint32_t index;            /* Of the candidate; 0: what is chosen without a table. */
  uint32_t chosen;           /* 1: what is chosen with it. */
  uint32_t tile, tile_tokens, splits;
  const char* entry;         /* As in greta_tune_progress. */
  const char* kernel;
  const char* target;        /* What the kernel's code is for; "" for any device. */
  const char* verdict;       /* "right", "wrong", "refused", "slow" or "hung". */
  const char* error;         /* NMSE against the plain kernels: "1.2e-08"; "" if it is not known. */
  const uint64_t* ns;        /* [sample_count] nanoseconds of a launch, one for each round. */
  uint32_t sample_count;
  uint32_t rounds;           /* That count for the ratio: 0 if there are too few. */
  double ratio, low, high;   /* Of its time to the default's: median and 95 % interval; 0 without rounds. */
  uint64_t bytes, flops;     /* What a launch must move and compute. */
} greta_tuning_candidate;

/* Tells what is in a table, candidate by candidate, in the table's order.
 *
 * on_candidate  what it is given is valid during the call; a non-zero value stops with
 *               GRETA_ERROR_CANCELLED */
GRETA_API greta_status greta_tuning_read(const char* text, size_t bytes,
                                         int (*on_candidate)(void* user, const greta_tuning_candidate* from),
                                         void* user);

/* Chooses again from the samples of a table, and writes the table with these choices. From the same samples
 * come the same bytes, on every machine. */
GRETA_API greta_status greta_tuning_replay(const char* text, size_t bytes, greta_write_callback write,
                                           void* user);

typedef struct greta_kernel_options {
  uint32_t struct_size;
  uint32_t n, depth, tokens; /* Rows and columns of the weight and rows of the step of the product that is
                              * timed; n 0: nothing is timed. */
  const char* name;          /* Of a kernel of the device: "matmul_rows_q4_k_planes". */
  const void* code;          /* [code_bytes] that run in place of its own: SPIR-V on Vulkan, a code object on
                              * HIP; NULL: its own. */
  size_t code_bytes;
} greta_kernel_options;

typedef struct greta_kernel_result {
  uint32_t struct_size;
  uint32_t passed;           /* 1: it computes right. 0: `failure` says what is wrong, and nothing was
                              * timed. */
  uint32_t kernels;          /* Rows of the kernel table that have this name and were checked. */
  uint32_t rounds;           /* In which it was timed; 0: it was not, and `failure` says why. */
  uint64_t launches;         /* Of the check. */
  char failure[512];
  double ns, given_ns;       /* Medians of a launch of the built-in code, and of `code`. */
  double ratio, low, high;   /* Of given_ns to ns: median and 95 % interval; 0 without `code`. */
  double error;              /* NMSE of the timed launch against the plain kernels. */
  uint64_t bytes, flops;     /* That a launch must move and compute. */
  char machine_code[256];    /* Of the timed kernel, of `code` if that is set: "Register Count 64, Stack Size
                              * 0", in the driver's names; "" where it tells nothing. */
} greta_kernel_result;

/* Checks one kernel of the runtime's first device against float64 arithmetic, as greta_runtime_selftest does
 * in one shape, and times it on weights that no cache holds, beside the built-in code. With `code` this is
 * how a kernel is worked on without building GRETA again.
 *
 * returns  GRETA_ERROR_ARGUMENT if the device has no such kernel; GRETA_ERROR_UNSUPPORTED if kernels of the
 *          device are functions and `code` is set */
GRETA_API greta_status greta_runtime_try_kernel(greta_runtime* runtime, const greta_kernel_options* options,
                                                greta_kernel_result* out_result);

/* All launches of one kernel in one stage of a step. */
typedef struct greta_profile_stage {
  uint32_t struct_size;
  uint32_t launches;
  const char* kernel;        /* Valid during the callback. */
  uint64_t ns;               /* Time on the device, each launch alone, after what comes before it is done. */
  uint64_t bytes, flops;     /* What must be moved, and the operations that must be computed. */
  const char* stage;         /* "embed", "q k v", "attention", "o", "gate up", "down", "router",
                              * "experts gate up", "experts down", "shared gate up", "shared down", "head" or
                              * "sample". A stage counts all layers, with the norm before it and the sum
                              * after it. */
} greta_profile_stage;

/* Feeds tokens as one step and times each of its kernels. Launches that overlap in a normal step do not
 * overlap here, and each is charged a barrier, so that the sum is more than a step takes.
 *
 * tokens    [count] 1 for generation, at most as many as one step takes (greta_memory_plan.step_tokens)
 * on_stage  called after the step for each kernel of each stage, in the order of first launches; required
 * user      passed to on_stage */
GRETA_API greta_status greta_session_profile(greta_session* session, const int32_t* tokens, size_t count,
                                             void (*on_stage)(void* user, const greta_profile_stage* stage),
                                             void* user);

#ifdef __cplusplus
}
#endif
#endif
