/* greta_compute.h - devices, memory, streams and compute operations of GRETA, for programs of your own.
 *
 * greta.h runs language models. This header reaches what lies below: the memory of a device and the order of
 * work on it, and the operations that models are made of. It belongs to the same library and keeps the rules
 * of greta.h: statuses and their texts, struct_size, arrays, units, fork. What is not declared here is not
 * part of it. It stays one file, as greta.h does, so that there is one to copy and one to read.
 * docs/compute.md explains it with examples.
 *
 * OBJECTS
 *   compute    One device of a greta_runtime, opened for such work.
 *   buffer     Memory: of the device, or of the host where the device reaches it.
 *   stream     A list of work for the device, which runs in the order in which it was given.
 *   timeline   A number that grows when a stream reaches a place. The host and other streams wait for it.
 *   graph      A list of calls that was planned as a whole and can be run again and again.
 *   step       Which tokens of which sequences live: what changes while the calls of a graph stay.
 *   tensor     Values in a buffer, by shape and strides. It is a struct of yours and not an object; so are
 *   weights    a matrix of any type of GGUF, in the layout that the device's kernels read.
 *
 * THE SHORT WAY
 *   This is a complete program. It copies on the device, waits, and reads the result.
 *
 *     #include <greta_compute.h>
 *     #include <stdio.h>
 *     int main(void) {
 *       greta_buffer_options of = {.struct_size = sizeof of, .bytes = 4 * sizeof(float)};
 *       greta_runtime* runtime = NULL; greta_compute* compute = NULL;
 *       greta_buffer a, b; greta_stream stream;
 *       float values[4] = {1, 2, 3, 4}, copied[4] = {0};
 *       if (greta_runtime_open(NULL, &runtime) || greta_compute_open(runtime, NULL, &compute) ||
 *           greta_buffer_open(compute, &of, &a) || greta_buffer_open(compute, &of, &b) ||
 *           greta_stream_open(compute, &stream) ||
 *           greta_buffer_write(compute, a, 0, values, sizeof values) ||
 *           greta_stream_copy(compute, stream, b, 0, a, 0, sizeof values) ||
 *           greta_stream_wait(compute, stream) ||
 *           greta_buffer_read(compute, b, 0, copied, sizeof copied)) puts(greta_error_text());
 *       printf("%g %g %g %g\n", copied[0], copied[1], copied[2], copied[3]);
 *       greta_compute_close(compute), greta_runtime_close(runtime);
 *     }
 *
 * RULES THAT HOLD FOR EVERY FUNCTION, beside those of greta.h
 *   handles      Buffers, streams, timelines and graphs are handles: small structs that are passed by value
 *                together with their compute. {0} is a handle of nothing. A handle that was closed, or that
 *                belongs to another compute, gives GRETA_ERROR_ARGUMENT, as long as the compute lives; a
 *                number is never given out again. Closing {0} does nothing.
 *   ownership    greta_compute_close closes all that was opened on it, and waits for submitted work. Close it
 *                before its runtime.
 *   in use       A buffer or timeline may be closed while recorded or submitted work uses it. Its memory is
 *                given back when the streams with that work have been waited for (greta_stream_wait) or are
 *                closed.
 *   order        Work on one stream has the effects that it would have if each call began when the one before
 *                had ended; calls that touch different memory may overlap. Between streams, and between the
 *                host and a stream, only timelines and waits make an order.
 *   threads      Threads may share a compute, its buffers and its timelines. A stream belongs to one thread
 *                at a time; a call while another thread is in a call with the same stream gives
 *                GRETA_ERROR_ARGUMENT and does nothing.
 *   failures     All sizes, offsets and handles are checked before anything is recorded. If memory or the
 *                device fails in the midst of recording, what the stream recorded since its last submit is
 *                forgotten, and the text says so.
 *   waiting      The host waits in functions with "wait" in their names, in greta_buffer_write and
 *                greta_buffer_read, and where streams or the compute are closed.
 */
#ifndef GRETA_COMPUTE_H
#define GRETA_COMPUTE_H

#include "greta.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- compute: a device that is open for work ------------------------------------------------------- */

typedef struct greta_compute greta_compute;

typedef struct greta_buffer {
  uint64_t owner, number;
} greta_buffer;

typedef struct greta_stream {
  uint64_t owner, number;
} greta_stream;

typedef struct greta_timeline {
  uint64_t owner, number;
} greta_timeline;

typedef struct greta_graph {
  uint64_t owner, number;
} greta_graph;

typedef struct greta_step {
  uint64_t owner, number;
} greta_step;

typedef struct greta_kernel {
  uint64_t owner, number;
} greta_kernel;

/* A Vulkan device that the program has opened, of version 1.3. It has enabled of these features all that the
 * physical device has: shaderInt64, shaderInt16; storageBuffer16BitAccess;
 * storageBuffer8BitAccess, shaderInt8, shaderFloat16, scalarBlockLayout, bufferDeviceAddress,
 * timelineSemaphore, vulkanMemoryModel, vulkanMemoryModelDeviceScope, shaderSubgroupExtendedTypes;
 * synchronization2, maintenance4, subgroupSizeControl, computeFullSubgroups, shaderIntegerDotProduct,
 * shaderZeroInitializeWorkgroupMemory. It and its instance stay the program's, and outlive the compute. */
typedef struct greta_host_device {
  uint32_t struct_size;
  uint32_t queue_family;       /* Of the queue; it computes. */
  void (*get_instance_proc_addr)(void); /* vkGetInstanceProcAddr. */
  void* instance;              /* VkInstance */
  void* physical_device;       /* VkPhysicalDevice */
  void* device;                /* VkDevice */
  void* queue;                 /* VkQueue */
  const char* const* extensions; /* [extension_count] of the device, that are enabled, with their features.
                                  * Used are VK_KHR_cooperative_matrix, VK_EXT_memory_budget,
                                  * VK_EXT_external_memory_host, VK_KHR_external_memory_fd and
                                  * VK_KHR_external_semaphore_fd. */
  size_t extension_count;
  void (*lock)(void* user);    /* The library calls these around each use of the queue, from any of its */
  void (*unlock)(void* user);  /* threads; they do not call the library. NULL: no one else uses the queue. */
  void* lock_user;             /* Passed to both. */
} greta_host_device;

typedef struct greta_compute_options {
  uint32_t struct_size;
  uint32_t device;             /* Index of greta_runtime_device. */
  uint64_t memory_limit_bytes; /* The most that buffers of this compute may allocate, of all kinds of memory
                                * together; 0: what the runtime allows. The limit of the runtime holds too,
                                * for memory of the device. */
  const greta_host_device* host; /* A device of the program's to work on, in place of `device`; NULL: none.
                                  * Read during the call. */
} greta_compute_options;

/* Opens a device of the runtime. A runtime may have several computes, beside its models.
 *
 * options      may be NULL for the defaults: device 0
 * out_compute  to be closed with greta_compute_close */
GRETA_API greta_status greta_compute_open(greta_runtime* runtime, const greta_compute_options* options,
                                          greta_compute** out_compute);

/* Closes the compute and all that was opened on it. Work that was submitted ends first; what was recorded
 * and not submitted is forgotten. No other call with this compute may be under way. */
GRETA_API void greta_compute_close(greta_compute* compute);

typedef struct greta_compute_info {
  uint32_t struct_size;
  uint32_t buffers, streams, timelines; /* That are open; slots and temporaries of graphs are buffers. */
  uint64_t buffer_bytes;       /* The sizes of all buffers together that greta_buffer_open gave and that are
                                * open. */
  uint64_t allocated_bytes;    /* Of the device and the host, for buffers: whole chunks, and buffers that were
                                * closed and are still in use. */
  uint64_t peak_bytes;         /* The most that allocated_bytes has been. */
  uint64_t free_bytes;         /* What buffers of the device may still allocate, by the limits and by what the
                                * driver says now. */
  uint64_t max_buffer_bytes;   /* Of one buffer. */
} greta_compute_info;

/* Describes the memory of a compute.
 *
 * out_info  set struct_size before the call */
GRETA_API greta_status greta_compute_describe(const greta_compute* compute, greta_compute_info* out_info);

/* ---- buffers ---------------------------------------------------------------------------------------- */

typedef enum greta_memory {
  GRETA_MEMORY_DEVICE = 0,     /* What the device computes on. */
  GRETA_MEMORY_UPLOAD = 1,     /* Of the host: the program writes it, the device reads it. */
  GRETA_MEMORY_READBACK = 2,   /* Of the host: the device writes it, the program reads it. */
  GRETA_MEMORY_MAX = 0x7fffffff
} greta_memory;

typedef struct greta_buffer_options {
  uint32_t struct_size;
  greta_memory memory;
  uint64_t bytes;              /* From 1 to greta_compute_info.max_buffer_bytes. */
  uint32_t shared;             /* 1: greta_buffer_export is wanted. Only memory of the device is shared. */
  uint32_t reserved;           /* 0. */
} greta_buffer_options;

/* Opens a buffer. What it holds is not known. Its first byte is aligned to 256 bytes.
 *
 * It fails with GRETA_ERROR_MEMORY above a limit, or where the driver has no memory. */
GRETA_API greta_status greta_buffer_open(greta_compute* compute, const greta_buffer_options* options,
                                         greta_buffer* out_buffer);
GRETA_API greta_status greta_buffer_close(greta_compute* compute, greta_buffer buffer);

typedef struct greta_buffer_info {
  uint32_t struct_size;
  greta_memory memory;
  uint64_t bytes;
  void* mapped;                /* Where the program sees memory for upload and readback, until the buffer is
                                * closed; NULL for memory of the device. */
  uint64_t address;            /* By which kernels know its first byte, until it is closed; 0 for slots and
                                * temporaries of graphs. */
} greta_buffer_info;

/* Describes a buffer.
 *
 * out_info  set struct_size before the call */
GRETA_API greta_status greta_buffer_describe(const greta_compute* compute, greta_buffer buffer,
                                             greta_buffer_info* out_info);

/* Copies bytes of the program to a buffer of any kind, or back, and returns when that is done. No work that
 * touches these bytes may be under way. Both fail with GRETA_ERROR_ARGUMENT outside of the buffer.
 *
 * data  [bytes] */
GRETA_API greta_status greta_buffer_write(greta_compute* compute, greta_buffer buffer, uint64_t offset,
                                          const void* data, uint64_t bytes);
GRETA_API greta_status greta_buffer_read(greta_compute* compute, greta_buffer buffer, uint64_t offset,
                                         void* data, uint64_t bytes);

/* ---- streams ---------------------------------------------------------------------------------------- */

GRETA_API greta_status greta_stream_open(greta_compute* compute, greta_stream* out_stream);

/* Closes a stream. Work that was submitted ends first; what was recorded and not submitted is forgotten. */
GRETA_API greta_status greta_stream_close(greta_compute* compute, greta_stream stream);

/* Records a copy of `bytes`. The two ranges must lie in their buffers and may not overlap. 0 bytes are
 * nothing. */
GRETA_API greta_status greta_stream_copy(greta_compute* compute, greta_stream stream, greta_buffer to,
                                         uint64_t to_offset, greta_buffer from, uint64_t from_offset,
                                         uint64_t bytes);

/* Records that `bytes` of a buffer become this word, repeated. Offset and bytes are multiples of 4. */
GRETA_API greta_status greta_stream_fill(greta_compute* compute, greta_stream stream, greta_buffer buffer,
                                         uint64_t offset, uint64_t bytes, uint32_t word);

/* Gives what was recorded to the device. It does not wait. A stream with much work may submit some of it by
 * itself, since a GPU that is busy for seconds is reset. The CPU device works only while a host waits. */
GRETA_API greta_status greta_stream_submit(greta_compute* compute, greta_stream stream);

/* Submits, and waits until the stream has done all that it was given. */
GRETA_API greta_status greta_stream_wait(greta_compute* compute, greta_stream stream);

/* ---- timelines: what waits for what ----------------------------------------------------------------- */

#define GRETA_TIMELINE_SIGNALS 256 /* The last signals of a timeline that are kept. */

typedef struct greta_timeline_options {
  uint32_t struct_size;
  uint32_t timed;              /* 1: greta_timeline_elapsed is wanted. */
  uint32_t shared;             /* 1: greta_timeline_export is wanted; such a one is not timed. */
  uint32_t reserved;           /* 0. */
} greta_timeline_options;

/* Opens a timeline. Its value is 0.
 *
 * options  may be NULL for the defaults */
GRETA_API greta_status greta_timeline_open(greta_compute* compute, const greta_timeline_options* options,
                                           greta_timeline* out_timeline);
GRETA_API greta_status greta_timeline_close(greta_compute* compute, greta_timeline timeline);

/* Submits what the stream has recorded, and lets the timeline have this value when all of that is done. One
 * stream signals a timeline, the first that does so; others get GRETA_ERROR_ARGUMENT. With
 * GRETA_TIMELINE_SIGNALS signals behind the last one that the host has waited for it fails with
 * GRETA_ERROR_FULL.
 *
 * value  larger than all before */
GRETA_API greta_status greta_stream_signal(greta_compute* compute, greta_stream stream,
                                           greta_timeline timeline, uint64_t value);

/* What is recorded on this stream from here on begins when the timeline has this value. The host does not
 * wait. A value that no signal was recorded for gives GRETA_ERROR_ARGUMENT, so that nothing waits for ever.
 */
GRETA_API greta_status greta_stream_wait_for(greta_compute* compute, greta_stream stream,
                                             greta_timeline timeline, uint64_t value);

/* The host waits until the timeline has this value. Any thread may do so. Values without a signal are refused
 * as above. */
GRETA_API greta_status greta_timeline_wait(greta_compute* compute, greta_timeline timeline, uint64_t value);

/* Gives the nanoseconds on the device between two signals of a timed timeline. Both must be values that were
 * signalled, are among the last GRETA_TIMELINE_SIGNALS, and were waited for by the host. */
GRETA_API greta_status greta_timeline_elapsed(greta_compute* compute, greta_timeline timeline, uint64_t from,
                                              uint64_t to, uint64_t* out_ns);

/* ---- sharing: what others have, and what others get --------------------------------------------------
 *
 * Memory and timelines may belong to the program, to its renderer, or to another process. The order between
 * their work and ours is the caller's, by timelines. Descriptors are opaque ones of Vulkan, and only devices
 * of the same GPU and driver can import them. */

typedef enum greta_origin {
  GRETA_ORIGIN_HOST = 0,       /* Pages of the process, for the CPU device and most of Vulkan's. */
  GRETA_ORIGIN_DESCRIPTOR = 1, /* A file descriptor that was exported. */
  GRETA_ORIGIN_HANDLE = 2,     /* Vulkan's, of the device of greta_compute_options.host. */
  GRETA_ORIGIN_MAX = 0x7fffffff
} greta_origin;

typedef struct greta_adoption {
  uint32_t struct_size;
  greta_origin origin;
  uint64_t bytes;              /* Of a buffer; of a timeline 0. */
  void* pages;                 /* HOST: [bytes], whole pages of memory. They stay until the buffer's memory
                                * would be given back (see "in use"). */
  uint64_t handle;             /* HANDLE: a VkBuffer for storage and transfers, with an address, or a
                                * VkSemaphore that is a timeline. It stays as long. */
  int32_t descriptor;          /* DESCRIPTOR: the library takes it if the call succeeds. */
  uint32_t memory_type;        /* Of the descriptor of a buffer, as greta_exported has it. */
  uint64_t allocation_bytes;   /* Likewise. */
} greta_adoption;

/* Opens a buffer over memory of others, of the kind GRETA_MEMORY_DEVICE, or for pages GRETA_MEMORY_READBACK.
 * It counts as open and not as allocated. */
GRETA_API greta_status greta_buffer_adopt(greta_compute* compute, const greta_adoption* adoption,
                                          greta_buffer* out_buffer);

/* Opens a timeline that others signal too. Waits for values that nobody has signalled yet are allowed; where
 * one queue serves both, the signal must be submitted before. Values grow, whoever signals them. */
GRETA_API greta_status greta_timeline_adopt(greta_compute* compute, const greta_adoption* adoption,
                                            greta_timeline* out_timeline);

typedef struct greta_exported {
  uint32_t struct_size;
  int32_t descriptor;          /* Yours, to be closed or imported. */
  uint32_t memory_type;        /* Of a buffer: the index of its type of memory in Vulkan. */
  uint32_t reserved;
  uint64_t allocation_bytes;   /* Of a buffer: of the memory that it begins. */
} greta_exported;

/* Export what was opened with `shared`. Each call gives a descriptor of its own. Both fail with
 * GRETA_ERROR_ARGUMENT for others.
 *
 * out_exported  set struct_size before the call */
GRETA_API greta_status greta_buffer_export(greta_compute* compute, greta_buffer buffer,
                                           greta_exported* out_exported);
GRETA_API greta_status greta_timeline_export(greta_compute* compute, greta_timeline timeline,
                                             greta_exported* out_exported);

/* ---- tensors ----------------------------------------------------------------------------------------- */

/* Types of values, by their numbers in GGUF files. Weights may have every type of GGUF that the device reads
 * (greta_type_find); all other tensors are float32, but those that are said to be GRETA_TYPE_I32 or that may
 * be GRETA_TYPE_F16 or GRETA_TYPE_BF16. */
#define GRETA_TYPE_F32 0
#define GRETA_TYPE_F16 1
#define GRETA_TYPE_I32 26 /* Of tokens and of the numbers of experts. */
#define GRETA_TYPE_BF16 30

/* Gives the number of a type by its name: "f32", "f16", "bf16", "q8_0", "q4_k" and so on. */
GRETA_API greta_status greta_type_find(const char* name, uint32_t* out_type);

/* Where values lie. This struct and greta_weights have no struct_size and stay as they are. A tensor of rank
 * 0 is an operand that is absent. */
typedef struct greta_tensor {
  uint32_t type;               /* GRETA_TYPE_*: F32, and F16, BF16 or I32 where that is said. */
  uint32_t rank;               /* 1 to 4, or 0. */
  uint64_t shape[4];           /* The outermost dimension first, as in C arrays; none is 0. */
  uint64_t strides[4];         /* Values from one index of a dimension to the next; all 0: no gaps. The last
                                * one is 1, and each steps over all that lies behind it. */
  greta_buffer buffer;
  uint64_t offset;             /* Bytes; a multiple of 16. */
} greta_tensor;

/* ---- steps: the rows that live -----------------------------------------------------------------------
 *
 * A model that writes runs the same calls again and again, over a few tokens of several sequences each time.
 * Which tokens, at which positions, and in which pages their keys and values lie: that is memory of the
 * device, which a greta_step stands for. Operations that were told of it read that memory, also in a graph.
 * So a graph is recorded once and serves all steps.
 *
 * Caches lie in pages of 64 positions. Each sequence has a page table, whose entry i is the page with its
 * positions 64 i .. 64 i + 63. All caches that are used with a step have the same tables. Sequences may share
 * pages that are only read. */

#define GRETA_PAGE_POSITIONS 64
#define GRETA_TOKEN_DRAWN 0xffffffffu /* A row's token is the last one that was drawn of its sequence. */

typedef struct greta_step_options {
  uint32_t struct_size;
  uint32_t rows;               /* The most that live at once: 1 to 512. */
  uint32_t sequences;          /* 1 to 256. */
  uint32_t positions;          /* The most of a sequence: 1 to 2^24. */
  uint32_t pages;              /* Of each cache. 0: as many as all sequences together may fill. */
  uint32_t lone_rows;          /* 1: at most one row of each sequence lives at once. */
} greta_step_options;

/* Opens a step in which no row lives. Entry i of sequence s is page s n + i, where n is how many pages a
 * sequence may fill, or page 0 where there is no such page. So a cache that has all pages needs no
 * greta_step_pages. */
GRETA_API greta_status greta_step_open(greta_compute* compute, const greta_step_options* options,
                                       greta_step* out_step);
GRETA_API greta_status greta_step_close(greta_compute* compute, greta_step rows);

typedef struct greta_row {
  uint32_t token;              /* For greta_embed, or GRETA_TOKEN_DRAWN. */
  uint32_t position;           /* In its sequence, from 0. */
  uint32_t sequence;
  uint32_t output;             /* 1: what the model says behind this token is wanted. */
} greta_row;

/* The first stream that a step is used on is its stream, until that is closed; others give
 * GRETA_ERROR_ARGUMENT.
 *
 * Records which rows live from here on. No two of them may have the same position of the same sequence, and a
 * step with lone_rows refuses two rows of one sequence. The list is copied before the call returns. With 64
 * changes of a step behind the last greta_stream_wait this, greta_step_pages and greta_step_draw fail with
 * GRETA_ERROR_FULL.
 *
 * list  [count], at most greta_step_options.rows; those of a sequence stand together, in order of position */
GRETA_API greta_status greta_step_set(greta_compute* compute, greta_stream stream, greta_step step,
                                      const greta_row* list, uint32_t count);

/* Records that entries first .. first + count - 1 of a sequence's page table become these.
 *
 * pages  [count] each less than greta_step_options.pages */
GRETA_API greta_status greta_step_pages(greta_compute* compute, greta_stream stream, greta_step step,
                                        uint32_t sequence, uint32_t first, const uint32_t* pages,
                                        uint32_t count);

/* How greta_sample draws the tokens of a sequence. 0 switches a filter off. */
typedef struct greta_draw {
  uint32_t struct_size;
  float temperature;           /* 0: the likeliest token; of several the one with the lowest number. */
  float top_p;                 /* From 0 to 1: of the likeliest tokens as many as have this probability. */
  float min_p;                 /* From 0 to 1: tokens at least this likely, compared with the likeliest. */
  uint32_t top_k;              /* So many of the likeliest. */
  uint32_t reserved;           /* 0. */
  uint64_t seed;               /* Equal seeds draw equal tokens from equal logits at equal positions. */
} greta_draw;

/* Records how a sequence is drawn from here on. At first all are drawn with zeros in all fields. */
GRETA_API greta_status greta_step_draw(greta_compute* compute, greta_stream stream, greta_step step,
                                       uint32_t sequence, const greta_draw* draw);

/* Tells operations on this stream to run over the live rows of a step, from here on. Their tensors have
 * greta_step_options.rows rows, of which the first ones live; what becomes of the others is not known. With
 * {0} operations run over all rows of their tensors again. A stream begins like that. */
GRETA_API greta_status greta_stream_step(greta_compute* compute, greta_stream stream, greta_step step);

/* ---- operations --------------------------------------------------------------------------------------
 *
 * Each operation has three functions. greta_X_check says whether this device does it: GRETA_ERROR_ARGUMENT
 * where shapes, strides or handles do not fit each other, GRETA_ERROR_UNSUPPORTED where no kernel does it.
 * greta_X_scratch gives the bytes of working memory that it wants, often 0. greta_X checks the same, and
 * records it on a stream. `scratch` is a buffer with so many bytes from `scratch_offset` on, a multiple of
 * 256; it may be {0} where none are wanted, and may be used by other work before and after.
 *
 * "Rows" are all dimensions before the last one. Operations take any number of them, up to 2^24. Outputs may
 * not overlap inputs, except where "in place" is said: there y may be the same tensor as the input, and not a
 * part of it. The first call of a kind compiles kernels, which may take a driver seconds; greta_X_check does
 * that beforehand. Sums are made in float32, in an order that does not depend on what else runs, so the same
 * call on the same device gives the same bits. docs/numerics.md says how exact results are. */

/* A matrix [n][depth] that is multiplied by, in the layout that the kernels of a device read. */
typedef struct greta_weights {
  uint32_t type;               /* Of GGUF. */
  uint32_t layout;             /* As greta_weights_size gave it for this device. */
  uint64_t n, depth;           /* Rows, and values of a row: a multiple of the type's block. */
  greta_buffer buffer;
  uint64_t offset;             /* Bytes; a multiple of 256. */
} greta_weights;

/* Says in which layout this device keeps such weights, and how much they take. Packed bytes may be read from
 * their buffer, saved, and written back for a device that gives the same layout for the type.
 *
 * out_weights       without a buffer, for you to fill in
 * out_bytes         of the layout
 * out_source_bytes  of the same weights in the order of GGUF files; may be NULL */
GRETA_API greta_status greta_weights_size(greta_compute* compute, uint32_t type, uint64_t n, uint64_t depth,
                                          greta_weights* out_weights, uint64_t* out_bytes,
                                          uint64_t* out_source_bytes);

/* Records the packing of weights from the order of GGUF files, which is that of a dense array for types
 * without blocks.
 *
 * weights      where they go
 * from         holds out_source_bytes from `from_offset` on, a multiple of 256 */
GRETA_API greta_status greta_weights_pack(greta_compute* compute, greta_stream stream,
                                          const greta_weights* weights, greta_buffer from,
                                          uint64_t from_offset);

/* Records that y becomes the values of the weights: the same bits on every device and in every layout.
 *
 * y  [n][depth], without gaps */
GRETA_API greta_status greta_weights_unpack(greta_compute* compute, greta_stream stream,
                                            const greta_weights* weights, const greta_tensor* y);

/* How files of others keep weights of 4 bits in groups. A word has 32 bits and 8 numbers, the first one in
 * its lowest bits. */
typedef enum greta_group_order {
  GRETA_GROUP_ORDER_GPTQ = 0,  /* quants [depth / 8][n], words along depth; scales [groups][n]; zeros
                                * [groups][n / 8], words along n, and each less 1. */
  GRETA_GROUP_ORDER_GPTQ_V2 = 1, /* The same with zeros as they are. */
  GRETA_GROUP_ORDER_AWQ = 2,   /* quants [depth][n / 8], scales [groups][n], zeros [groups][n / 8]. Words are
                                * along n, in the order of columns 0 2 4 6 1 3 5 7. */
  GRETA_GROUP_ORDER_COMPRESSED = 3, /* compressed-tensors' "pack-quantized": quants [n][depth / 8], scales
                                     * [n][groups], zeros [n / 8, rounded up][groups], words along n. */
  GRETA_GROUP_ORDER_MAX = 0x7fffffff
} greta_group_order;

/* Such a matrix [n][depth] in the program's memory, at any address: scale * (quant - zero), with one scale
 * and one zero for each `group` values of a row, which follow each other. */
typedef struct greta_groups {
  uint32_t struct_size;
  greta_group_order order;
  uint64_t n, depth;           /* Where words are along n it is a multiple of 8. */
  uint32_t group;              /* A multiple of 32 that divides depth, such as 32, 64, 128, or depth. */
  uint32_t scale_type;         /* GRETA_TYPE_F16 or GRETA_TYPE_BF16. */
  const void* quants;          /* [quant_bytes] */
  const void* scales;          /* [scale_bytes] */
  const void* zeros;           /* [zero_bytes], or NULL where all are 8. */
  uint64_t quant_bytes, scale_bytes, zero_bytes;
  uint32_t round_scales;       /* 1: scales that float16 does not hold become the nearest one, at most 2^-25
                                * beside them. 0: they are refused. No bfloat16 from 2^-17 to 65280 is such a
                                * one. */
  uint32_t reserved;           /* 0. */
} greta_groups;

/* Says which type of GGUF holds these weights exactly: one of 4.5 bits a weight where all zeros are 8, else
 * one of 5.5 bits. All sizes and scales are checked. */
GRETA_API greta_status greta_groups_type(const greta_groups* groups, uint32_t* out_type);

/* Writes rows first .. first + count - 1 in the order of GGUF files, for greta_weights_pack. Unpacked, they
 * are the same bits as scale * (quant - zero) in float32. Threads may write different rows at once.
 *
 * type  as greta_groups_type gave it; the larger one always fits
 * out   [out_bytes] as many as these rows take, such as memory for upload */
GRETA_API greta_status greta_groups_write(const greta_groups* groups, uint32_t type, uint64_t first,
                                          uint64_t count, void* out, uint64_t out_bytes);

/* y = x . transposed weights + bias. Kernels round x to a form of theirs, such as 8 bits in blocks of 32 or
 * float16, unless the runtime was opened with `exact`. */
typedef struct greta_linear_call {
  uint32_t struct_size;
  uint32_t outputs;            /* 1: row i of y is made of the i-th row that has an output. It wants
                                * greta_stream_step. */
  greta_weights weights;       /* [n][depth] */
  greta_tensor x;              /* [rows][depth], without gaps; also float16 or bfloat16. */
  greta_tensor y;              /* [rows][n], without gaps; likewise, whatever x is. */
  greta_tensor bias;           /* [n], or absent. */
} greta_linear_call;

GRETA_API greta_status greta_linear_check(greta_compute* compute, const greta_linear_call* call);
GRETA_API greta_status greta_linear_scratch(greta_compute* compute, const greta_linear_call* call,
                                            uint64_t* out_bytes);
GRETA_API greta_status greta_linear(greta_compute* compute, greta_stream stream,
                                    const greta_linear_call* call, greta_buffer scratch,
                                    uint64_t scratch_offset);

/* y = alpha * a . b + beta * y, for each matrix of a batch. a and b are both of GRETA_TYPE_F32,
 * GRETA_TYPE_F16 or GRETA_TYPE_BF16, and y is of the same type or of GRETA_TYPE_F32. Only y is rounded: sums
 * are float32. Where beta is 0 y is not read. It runs over whole tensors, whether the stream has a step or
 * not. It is fastest where rows begin at multiples of 16 bytes. */
typedef struct greta_gemm_call {
  uint32_t struct_size;
  uint32_t a_transposed;       /* 1: a is [k][m] in memory. */
  uint32_t b_transposed;       /* 1: b is [n][k]. */
  float alpha, beta;           /* As they stand: an alpha of 0 makes no product. */
  uint32_t reserved;           /* 0. */
  greta_tensor a;              /* [m][k], or [batch][m][k]; rows and matrices may have gaps behind them. */
  greta_tensor b;              /* [k][n], or [batch][k][n]. One a or b may serve all matrices of y. */
  greta_tensor y;              /* [m][n], or [batch][m][n]. */
} greta_gemm_call;

GRETA_API greta_status greta_gemm_check(greta_compute* compute, const greta_gemm_call* call);
GRETA_API greta_status greta_gemm_scratch(greta_compute* compute, const greta_gemm_call* call,
                                          uint64_t* out_bytes);
GRETA_API greta_status greta_gemm(greta_compute* compute, greta_stream stream, const greta_gemm_call* call,
                                  greta_buffer scratch, uint64_t scratch_offset);

/* y = x / sqrt(mean of the row's squares + epsilon) * gain. Rows may have gaps; so heads of queries are
 * normalised with a shape of [rows][heads][width]. In place. */
typedef struct greta_rms_norm_call {
  uint32_t struct_size;
  float epsilon;               /* Not negative. */
  greta_tensor x, y;           /* [rows][width] */
  greta_tensor gain;           /* [width] */
} greta_rms_norm_call;

GRETA_API greta_status greta_rms_norm_check(greta_compute* compute, const greta_rms_norm_call* call);
GRETA_API greta_status greta_rms_norm_scratch(greta_compute* compute, const greta_rms_norm_call* call,
                                              uint64_t* out_bytes);
GRETA_API greta_status greta_rms_norm(greta_compute* compute, greta_stream stream,
                                      const greta_rms_norm_call* call, greta_buffer scratch,
                                      uint64_t scratch_offset);

/* y = (x - mean) / sqrt(variance + epsilon) * gain + bias, by mean and variance of each row. In place. */
typedef struct greta_layer_norm_call {
  uint32_t struct_size;
  float epsilon;               /* Not negative. */
  greta_tensor x, y;           /* [rows][width], without gaps. */
  greta_tensor gain, bias;     /* [width], or absent. */
} greta_layer_norm_call;

GRETA_API greta_status greta_layer_norm_check(greta_compute* compute, const greta_layer_norm_call* call);
GRETA_API greta_status greta_layer_norm_scratch(greta_compute* compute, const greta_layer_norm_call* call,
                                                uint64_t* out_bytes);
GRETA_API greta_status greta_layer_norm(greta_compute* compute, greta_stream stream,
                                        const greta_layer_norm_call* call, greta_buffer scratch,
                                        uint64_t scratch_offset);

/* Rotates the first values of each head by the position of its row: row t has position first_position + t, or
 * with greta_stream_step its own one. The other values of y are not written. In place. */
typedef struct greta_rope_call {
  uint32_t struct_size;
  uint32_t halves;             /* 1: pairs are (i, i + rotated / 2). 0: (2i, 2i + 1). */
  greta_tensor x, y;           /* [rows][heads][width]; heads may have gaps between them. */
  greta_tensor table;          /* [positions][rotated / 2][2], without gaps: the cosine and sine of each
                                * pair. */
  uint64_t first_position;     /* 0 with greta_stream_step. */
  uint32_t reserved, reserved2; /* 0. */
} greta_rope_call;

GRETA_API greta_status greta_rope_check(greta_compute* compute, const greta_rope_call* call);
GRETA_API greta_status greta_rope_scratch(greta_compute* compute, const greta_rope_call* call,
                                          uint64_t* out_bytes);
GRETA_API greta_status greta_rope(greta_compute* compute, greta_stream stream, const greta_rope_call* call,
                                  greta_buffer scratch, uint64_t scratch_offset);

/* Keys or values of all sequences: [pages][heads][64][width]. This struct has no struct_size and stays as it
 * is. */
typedef struct greta_cache {
  uint32_t type;               /* GRETA_TYPE_F32, GRETA_TYPE_F16, or q8_0 (greta_type_find). */
  uint32_t heads, width;       /* A head of q8_0 is a multiple of 32 values. */
  uint32_t pages;              /* At least greta_step_options.pages. */
  greta_buffer buffer;
  uint64_t offset;             /* Bytes; a multiple of 256. */
} greta_cache;

/* Gives the bytes of a cache. Its buffer is not looked at. */
GRETA_API greta_status greta_cache_size(const greta_compute* compute, const greta_cache* cache,
                                        uint64_t* out_bytes);

/* y = scale * the row of the table that belongs to each row's token. Tokens behind the table's end have its
 * first row. It wants greta_stream_step. */
typedef struct greta_embed_call {
  uint32_t struct_size;
  float scale;                 /* 0: 1. */
  greta_weights table;         /* [tokens][width] */
  greta_tensor y;              /* [rows][width], without gaps. */
} greta_embed_call;

GRETA_API greta_status greta_embed_check(greta_compute* compute, const greta_embed_call* call);
GRETA_API greta_status greta_embed_scratch(greta_compute* compute, const greta_embed_call* call,
                                           uint64_t* out_bytes);
GRETA_API greta_status greta_embed(greta_compute* compute, greta_stream stream, const greta_embed_call* call,
                                   greta_buffer scratch, uint64_t scratch_offset);

/* Stores the keys or values of each row at its position. It wants greta_stream_step. */
typedef struct greta_kv_write_call {
  uint32_t struct_size;
  uint32_t reserved;           /* 0. */
  greta_tensor x;              /* [rows][heads][width], without gaps. */
  greta_cache cache;
} greta_kv_write_call;

GRETA_API greta_status greta_kv_write_check(greta_compute* compute, const greta_kv_write_call* call);
GRETA_API greta_status greta_kv_write_scratch(greta_compute* compute, const greta_kv_write_call* call,
                                              uint64_t* out_bytes);
GRETA_API greta_status greta_kv_write(greta_compute* compute, greta_stream stream,
                                      const greta_kv_write_call* call, greta_buffer scratch,
                                      uint64_t scratch_offset);

/* y = the values of the row's sequence, weighted by softmax of scale * q . key over the positions up to the
 * row's own. Head h reads head h / (heads / heads of the cache) of the caches. A cap makes cap * tanh(score /
 * cap) of a score. A sink is one more score, whose value is 0. The rows' own keys and values are to be in the
 * caches. It wants greta_stream_step. For a step that was opened with lone_rows say so here too: many long
 * sequences are read much faster then. */
typedef struct greta_attention_call {
  uint32_t struct_size;
  float scale;                 /* 0: 1 / sqrt(width of the keys). */
  float cap;                   /* 0: none. */
  uint32_t window;             /* The positions that a row sees, its own among them; 0: all. */
  greta_tensor q;              /* [rows][heads][width of the keys], without gaps. */
  greta_tensor y;              /* [rows][heads][width of the values], without gaps. */
  greta_cache keys, values;    /* With equally many heads, of which `heads` is a multiple. */
  greta_tensor sinks;          /* [heads], or absent. */
  uint32_t lone_rows;          /* 1: the stream's step was opened with lone_rows; others are refused. */
  uint32_t reserved;           /* 0. */
} greta_attention_call;

GRETA_API greta_status greta_attention_check(greta_compute* compute, const greta_attention_call* call);
GRETA_API greta_status greta_attention_scratch(greta_compute* compute, const greta_attention_call* call,
                                               uint64_t* out_bytes);
GRETA_API greta_status greta_attention(greta_compute* compute, greta_stream stream,
                                       const greta_attention_call* call, greta_buffer scratch,
                                       uint64_t scratch_offset);

typedef enum greta_gating {
  GRETA_GATING_SOFTMAX = 0,    /* Probabilities are the softmax of all logits. */
  GRETA_GATING_SIGMOID = 1,    /* Each is the logistic function of its logit. */
  GRETA_GATING_MAX = 0x7fffffff
} greta_gating;

/* Chooses the `used` experts of each row with the largest probability + bias, the best first, and of equal
 * ones that with the lower number. With groups, which are neighbours, only the best groups are chosen from; a
 * group is as good as its best expert, or with a bias as its two best together. */
typedef struct greta_route_call {
  uint32_t struct_size;
  greta_gating gating;
  uint32_t normalise;          /* 1: weights are divided by their sum. */
  uint32_t groups, groups_used; /* 0: 1. At most 64 groups. */
  float scale;                 /* Of the weights; 0: 1. */
  greta_tensor logits;         /* [rows][experts], at most 1024 experts. */
  greta_tensor ids;            /* [rows][used] of GRETA_TYPE_I32: the experts. */
  greta_tensor weights;        /* [rows][used] their probabilities. */
  greta_tensor bias;           /* [experts] or absent. */
} greta_route_call;

GRETA_API greta_status greta_route_check(greta_compute* compute, const greta_route_call* call);
GRETA_API greta_status greta_route_scratch(greta_compute* compute, const greta_route_call* call,
                                           uint64_t* out_bytes);
GRETA_API greta_status greta_route(greta_compute* compute, greta_stream stream, const greta_route_call* call,
                                   greta_buffer scratch, uint64_t scratch_offset);

/* y[t][j] = x[t][j] . transposed weights of expert ids[t][j] + its bias. The matrices lie behind each other:
 * they are packed as one of [experts * n][depth], for which n is a multiple of 16. What becomes of y where an
 * id is no expert is not known. */
typedef struct greta_expert_linear_call {
  uint32_t struct_size;
  uint32_t experts;
  greta_weights weights;       /* [n][depth] of each expert. */
  greta_tensor x;              /* [rows][depth], the same for all experts of a row, or [rows][used][depth]. */
  greta_tensor ids;            /* [rows][used] of GRETA_TYPE_I32. */
  greta_tensor y;              /* [rows][used][n] */
  greta_tensor bias;           /* [experts][n] or absent. */
} greta_expert_linear_call;

GRETA_API greta_status greta_expert_linear_check(greta_compute* compute,
                                                 const greta_expert_linear_call* call);
GRETA_API greta_status greta_expert_linear_scratch(greta_compute* compute,
                                                   const greta_expert_linear_call* call,
                                                   uint64_t* out_bytes);
GRETA_API greta_status greta_expert_linear(greta_compute* compute, greta_stream stream,
                                           const greta_expert_linear_call* call, greta_buffer scratch,
                                           uint64_t scratch_offset);

/* y[t] = sum over j of weights[t][j] * x[t][j], in order of j. All without gaps. */
typedef struct greta_combine_call {
  uint32_t struct_size;
  uint32_t reserved;           /* 0. */
  greta_tensor x;              /* [rows][used][width] */
  greta_tensor weights;        /* [rows][used] */
  greta_tensor y;              /* [rows][width] */
} greta_combine_call;

GRETA_API greta_status greta_combine_check(greta_compute* compute, const greta_combine_call* call);
GRETA_API greta_status greta_combine_scratch(greta_compute* compute, const greta_combine_call* call,
                                             uint64_t* out_bytes);
GRETA_API greta_status greta_combine(greta_compute* compute, greta_stream stream,
                                     const greta_combine_call* call, greta_buffer scratch,
                                     uint64_t scratch_offset);

/* Draws a token for each row that has an output (greta_step_draw), from the logits that greta_linear with
 * `outputs` gives. The row of the token drawn then stands in the place of the row: its token is
 * GRETA_TOKEN_DRAWN, and its position is one further. So a graph that ends in a draw can be run again at
 * once. It wants greta_stream_step, and fails where a row would leave greta_step_options.positions. */
typedef struct greta_sample_call {
  uint32_t struct_size;
  uint32_t reserved;           /* 0. */
  greta_tensor logits;         /* [rows][tokens], without gaps. */
  greta_tensor drawn;          /* [sequences][16] of GRETA_TYPE_I32: what was drawn behind position p of
                                * sequence s is at [s][p % 16]; -1 where no logit is a number. */
} greta_sample_call;

GRETA_API greta_status greta_sample_check(greta_compute* compute, const greta_sample_call* call);
GRETA_API greta_status greta_sample_scratch(greta_compute* compute, const greta_sample_call* call,
                                            uint64_t* out_bytes);
GRETA_API greta_status greta_sample(greta_compute* compute, greta_stream stream,
                                    const greta_sample_call* call, greta_buffer scratch,
                                    uint64_t scratch_offset);

/* y = a + scale * b, of equal shapes without gaps. In place for a and for b. Each may be float16 or bfloat16,
 * as those of gate and multiply. */
typedef struct greta_add_call {
  uint32_t struct_size;
  float scale;                 /* 0: 1. */
  greta_tensor a, b, y;
} greta_add_call;

GRETA_API greta_status greta_add_check(greta_compute* compute, const greta_add_call* call);
GRETA_API greta_status greta_add_scratch(greta_compute* compute, const greta_add_call* call,
                                         uint64_t* out_bytes);
GRETA_API greta_status greta_add(greta_compute* compute, greta_stream stream, const greta_add_call* call,
                                 greta_buffer scratch, uint64_t scratch_offset);

typedef enum greta_activation {
  GRETA_ACTIVATION_SILU = 0,   /* g / (1 + exp(-g)) */
  GRETA_ACTIVATION_GELU = 1,   /* Its approximation by tanh. */
  GRETA_ACTIVATION_CLAMPED = 2, /* g / (1 + exp(-1.702 g)) with g at most 7, times up + 1 with up from -7 to
                                 * 7: as gpt-oss has it. */
  GRETA_ACTIVATION_MAX = 0x7fffffff
} greta_activation;

/* y = activation(gate) * up, of equal shapes without gaps. In place for gate and for up. */
typedef struct greta_gate_call {
  uint32_t struct_size;
  greta_activation activation;
  greta_tensor gate, up, y;
} greta_gate_call;

GRETA_API greta_status greta_gate_check(greta_compute* compute, const greta_gate_call* call);
GRETA_API greta_status greta_gate_scratch(greta_compute* compute, const greta_gate_call* call,
                                          uint64_t* out_bytes);
GRETA_API greta_status greta_gate(greta_compute* compute, greta_stream stream, const greta_gate_call* call,
                                  greta_buffer scratch, uint64_t scratch_offset);

typedef enum greta_factor {
  GRETA_FACTOR_ITSELF = 0,     /* x. */
  GRETA_FACTOR_LOGISTIC = 1,   /* 1 / (1 + exp(-x)). Times x it is SiLU. */
  GRETA_FACTOR_POSITIVE = 2,   /* x, or 0 where x is negative. Times x it is the squared ReLU. */
  GRETA_FACTOR_GELU = 3,       /* Times x it is GELU by tanh. */
  GRETA_FACTOR_GELU_ERF = 4,   /* Times x it is GELU by erf. */
  GRETA_FACTOR_SOFTPLUS = 6,   /* ln(1 + exp(x)). */
  GRETA_FACTOR_MAX = 0x7fffffff
} greta_factor;

/* y = factor(x) * by, of equal shapes without gaps. With x as `by` it is an activation. In place for `by`. */
typedef struct greta_multiply_call {
  uint32_t struct_size;
  greta_factor factor;
  greta_tensor x, by, y;
} greta_multiply_call;

GRETA_API greta_status greta_multiply_check(greta_compute* compute, const greta_multiply_call* call);
GRETA_API greta_status greta_multiply_scratch(greta_compute* compute, const greta_multiply_call* call,
                                              uint64_t* out_bytes);
GRETA_API greta_status greta_multiply(greta_compute* compute, greta_stream stream,
                                      const greta_multiply_call* call, greta_buffer scratch,
                                      uint64_t scratch_offset);

/* y = x in another type, or the same: float32, float16 or bfloat16, rounded to nearest even. What is too
 * large becomes infinity. Rows may have gaps. */
typedef struct greta_cast_call {
  uint32_t struct_size;
  uint32_t reserved;           /* 0. */
  greta_tensor x, y;
} greta_cast_call;

GRETA_API greta_status greta_cast_check(greta_compute* compute, const greta_cast_call* call);
GRETA_API greta_status greta_cast_scratch(greta_compute* compute, const greta_cast_call* call,
                                          uint64_t* out_bytes);
GRETA_API greta_status greta_cast(greta_compute* compute, greta_stream stream, const greta_cast_call* call,
                                  greta_buffer scratch, uint64_t scratch_offset);

/* y = cap * tanh(scale * x / cap); with a cap of 0 y = scale * x. Rows of y may have gaps. In place. */
typedef struct greta_softcap_call {
  uint32_t struct_size;
  float cap, scale;            /* scale 0: 1. */
  uint32_t reserved;           /* 0. */
  greta_tensor x, y;
} greta_softcap_call;

GRETA_API greta_status greta_softcap_check(greta_compute* compute, const greta_softcap_call* call);
GRETA_API greta_status greta_softcap_scratch(greta_compute* compute, const greta_softcap_call* call,
                                             uint64_t* out_bytes);
GRETA_API greta_status greta_softcap(greta_compute* compute, greta_stream stream,
                                     const greta_softcap_call* call, greta_buffer scratch,
                                     uint64_t scratch_offset);

/* y = exp(z) / (sum of exp(z) over the row + exp(sink)), or with `logarithm` the natural logarithm of that,
 * of scores z = scale * x + mask, or with a cap z = cap * tanh(scale * x / cap) + mask. So a mask of
 * -INFINITY takes a value away, and a row that has none left and no sink becomes 0 (its logarithm -INFINITY).
 * In place. */
typedef struct greta_softmax_call {
  uint32_t struct_size;
  uint32_t logarithm;          /* 1: logarithms. */
  float scale, cap;            /* scale 0: 1. cap 0: none. */
  greta_tensor x, y;           /* [rows][width]; rows may have gaps. */
  greta_tensor mask;           /* Absent, or of x's dimensions. Those before the last one may be 1, where rows
                                * share it; those that are not 1 stand together. Without gaps. */
  greta_tensor sinks;          /* Absent, or likewise of x's dimensions before the last. */
} greta_softmax_call;

GRETA_API greta_status greta_softmax_check(greta_compute* compute, const greta_softmax_call* call);
GRETA_API greta_status greta_softmax_scratch(greta_compute* compute, const greta_softmax_call* call,
                                             uint64_t* out_bytes);
GRETA_API greta_status greta_softmax(greta_compute* compute, greta_stream stream,
                                     const greta_softmax_call* call, greta_buffer scratch,
                                     uint64_t scratch_offset);

/* ---- kernels of yours --------------------------------------------------------------------------------
 *
 * A kernel gets a block of at most 128 bytes: addresses of buffers (greta_buffer_info.address) and numbers.
 * Each launch says what it touches, so it takes its place in the order of the stream like any operation. What
 * a kernel does to other memory is not found out. */

#define GRETA_BLOCK_BYTES 128

/* A kernel of the CPU device. It does groups first_group .. first_group + group_count - 1, counted along x,
 * then y, then z. Several threads call it at once. `scratch` is not for it. */
typedef void (*greta_host_kernel)(const void* block, uint32_t first_group, uint32_t group_count,
                                  void* scratch);

typedef struct greta_kernel_code {
  uint32_t struct_size;
  uint32_t threads;            /* Of a group, from 1 to 1024, along x. In SPIR-V it is the specialization
                                * constant 0, which local_size_x_id may take. */
  const char* name;            /* Of the function in a code object; in SPIR-V that is "main", and this is for
                                * errors. */
  const void* code;            /* [code_bytes] SPIR-V for Vulkan, whose block is its push constants; a code
                                * object for HIP, whose block is its argument by value; else NULL. */
  uint64_t code_bytes;
  greta_host_kernel function;  /* For the CPU device; else NULL. */
} greta_kernel_code;

/* Compiles a kernel. Code that is none gives GRETA_ERROR_ARGUMENT, and code that the driver refuses
 * GRETA_ERROR_UNSUPPORTED; a driver may fail otherwise where code is not valid. Code and name are copied. */
GRETA_API greta_status greta_kernel_open(greta_compute* compute, const greta_kernel_code* code,
                                         greta_kernel* out_kernel);
GRETA_API greta_status greta_kernel_close(greta_compute* compute, greta_kernel kernel);

#define GRETA_ACCESS_READ 1u
#define GRETA_ACCESS_WRITE 2u

typedef struct greta_access {
  greta_buffer buffer;
  uint64_t offset, bytes;
  uint32_t mode;               /* GRETA_ACCESS_READ, GRETA_ACCESS_WRITE, or both. */
  uint32_t reserved;           /* 0. */
} greta_access;

typedef struct greta_kernel_launch_options {
  uint32_t struct_size;
  uint32_t groups[3];          /* Their product is from 1 to 2^32 - 1. */
  const void* block;           /* [block_bytes] */
  size_t block_bytes;          /* At most GRETA_BLOCK_BYTES, and a multiple of 4. */
  const greta_access* accesses; /* [access_count] all that the kernel may touch. */
  size_t access_count;         /* At most 64. */
} greta_kernel_launch_options;

/* Records a launch. It cannot be part of a graph. */
GRETA_API greta_status greta_kernel_launch(greta_compute* compute, greta_stream stream, greta_kernel kernel,
                                           const greta_kernel_launch_options* options);

/* ---- graphs: plans that are replayed ----------------------------------------------------------------- */

/* Begins a graph on this stream. Until greta_graph_end, operations and copies on the stream are recorded into
 * the graph and do not run. Others give GRETA_ERROR_ARGUMENT there: fills, packing, submits, waits, signals.
 * Scratch is part of the graph, and the scratch of a call is not looked at. What a call refuses leaves the
 * graph as it was. Calls that follow each other directly may become one launch, where only temporaries lie
 * between them; results are then those of single calls within the limits of docs/numerics.md. */
GRETA_API greta_status greta_graph_begin(greta_compute* compute, greta_stream stream);

/* Gives the graph that is being recorded a buffer of its own, for what one call makes and another one reads.
 * Such buffers share memory where they are not needed at the same time. It can be used until greta_graph_end,
 * and not for weights, gains and what the host reads. */
GRETA_API greta_status greta_graph_temporary(greta_compute* compute, greta_stream stream, uint64_t bytes,
                                             greta_buffer* out_buffer);

/* Gives the graph that is being recorded a slot: a buffer that is named only when the graph runs. It can be
 * used in calls until greta_graph_end, and is closed with the graph. Graphs with slots are given to the
 * device launch by launch. */
GRETA_API greta_status greta_graph_slot(greta_compute* compute, greta_stream stream, uint64_t bytes,
                                        greta_buffer* out_slot);

/* Ends the recording. The library finds which calls must wait for which, places the temporaries, and, without
 * slots, captures the whole. If it fails, the recording is dropped. */
GRETA_API greta_status greta_graph_end(greta_compute* compute, greta_stream stream, greta_graph* out_graph);

/* Ends the recording and drops it. */
GRETA_API greta_status greta_graph_drop(greta_compute* compute, greta_stream stream);

/* Closes a graph and its slots. The buffers that it uses stay until then, whether they are closed or not. */
GRETA_API greta_status greta_graph_close(greta_compute* compute, greta_graph graph);

typedef struct greta_graph_info {
  uint32_t struct_size;
  uint32_t launches, copies;
  uint32_t barriers;           /* Launches between two of them may overlap. */
  uint32_t slots;
  uint32_t captured;           /* 1: a run is one command of the driver, or few. */
  uint64_t temporary_bytes;    /* Memory of the graph, for temporaries and scratch. */
} greta_graph_info;

GRETA_API greta_status greta_graph_describe(const greta_compute* compute, greta_graph graph,
                                            greta_graph_info* out_info);

/* Writes the graph as text, a line for each launch, copy and barrier. The text is for reading and changes
 * with the library.
 *
 * text       [capacity]; may be NULL with a capacity of 0. It ends with a NUL where there is room for one.
 * out_bytes  the length of the whole text, without the NUL */
GRETA_API greta_status greta_graph_print(const greta_compute* compute, greta_graph graph, char* text,
                                         size_t capacity, size_t* out_bytes);

typedef struct greta_graph_binding {
  greta_buffer slot, buffer;
  uint64_t offset;             /* Bytes; a multiple of 256. As many as the slot has must follow. */
} greta_graph_binding;

/* Records a run of the graph. It runs on the stream on which it was recorded, or on another one when that is
 * closed. It has the effects of its calls in their order.
 *
 * bindings  [count] one for each slot. What is written may not overlap what else is bound or used. */
GRETA_API greta_status greta_graph_run(greta_compute* compute, greta_stream stream, greta_graph graph,
                                       const greta_graph_binding* bindings, size_t count);

#ifdef __cplusplus
}
#endif

#endif
