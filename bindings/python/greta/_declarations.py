"""What greta.h declares, for ctypes. make_declarations.py has written this file; do not edit it.

It is one file since greta.h is one, in whose order it stands; nobody reads or writes it by hand.
"""
# fmt: off
from __future__ import annotations

import enum
from ctypes import (CFUNCTYPE, POINTER, Structure, c_char, c_char_p, c_double, c_float, c_int, c_int32, c_int64,
                    c_size_t, c_uint32, c_uint64, c_void_p)
from typing import Any

Text = bytes  # Some structs have a member of that name.

GRETA_VERSION = 100
GRETA_MAX_DEVICES = 16


class greta_status(enum.IntEnum):
    GRETA_OK = 0
    GRETA_ERROR_ARGUMENT = 1
    GRETA_ERROR_FILE = 2
    GRETA_ERROR_UNSUPPORTED = 3
    GRETA_ERROR_MEMORY = 4
    GRETA_ERROR_DEVICE = 5
    GRETA_ERROR_FULL = 6
    GRETA_ERROR_CANCELLED = 7
    GRETA_ERROR_BUSY = 8
    GRETA_STATUS_MAX = 2147483647


class greta_log_level(enum.IntEnum):
    GRETA_LOG_DEBUG = 0
    GRETA_LOG_INFO = 1
    GRETA_LOG_WARNING = 2
    GRETA_LOG_ERROR = 3
    GRETA_LOG_LEVEL_MAX = 2147483647

greta_log_callback = CFUNCTYPE(None, c_void_p, c_uint32, c_char_p)


class greta_graphs(enum.IntEnum):
    GRETA_GRAPHS_DEFAULT = 0
    GRETA_GRAPHS_OFF = 1
    GRETA_GRAPHS_ON = 2
    GRETA_GRAPHS_MAX = 2147483647


class greta_span_kind(enum.IntEnum):
    GRETA_SPAN_LOAD = 1
    GRETA_SPAN_PLAN = 2
    GRETA_SPAN_COMPILE = 3
    GRETA_SPAN_RECORD = 4
    GRETA_SPAN_SUBMIT = 5
    GRETA_SPAN_WAIT = 6
    GRETA_SPAN_STEP = 7
    GRETA_SPAN_LAUNCH = 8
    GRETA_SPAN_COPY = 9
    GRETA_SPAN_SAMPLE = 10
    GRETA_SPAN_GRAMMAR = 11
    GRETA_SPAN_CALLBACK = 12
    GRETA_SPAN_REQUEST = 13
    GRETA_SPAN_MAX = 2147483647


class greta_span(Structure):
    struct_size: int
    kind: int
    name: Text | None
    stage: Text | None
    begin_ns: int
    end_ns: int
    number: int
    device: int
    tokens: int
    launches: int
    reserved: int
    bytes: int
    flops: int
    error_ns: int
    _fields_ = [
        ("struct_size", c_uint32),
        ("kind", c_uint32),
        ("name", c_char_p),
        ("stage", c_char_p),
        ("begin_ns", c_uint64),
        ("end_ns", c_uint64),
        ("number", c_uint64),
        ("device", c_uint32),
        ("tokens", c_uint32),
        ("launches", c_uint32),
        ("reserved", c_uint32),
        ("bytes", c_uint64),
        ("flops", c_uint64),
        ("error_ns", c_uint64),
    ]


class greta_runtime_options(Structure):
    struct_size: int
    threads: int
    device: Text | None
    memory_limit_bytes: int
    log: Any
    log_user: int | None
    allocate: Any
    release: Any
    allocator_user: int | None
    exact: int
    persistent: int
    cache_folder: Text | None
    graphs: int
    import_files: int
    rocm_folders: Text | None
    virtual_environment: Text | None
    without: Text | None
    hiding: Text | None
    device_limits: Any
    device_limit_count: int
    reserved: int
    on_span: Any
    span_user: int | None
    span_launches: int
    reserved2: int
    tuning_folder: Text | None
    _fields_ = [
        ("struct_size", c_uint32),
        ("threads", c_uint32),
        ("device", c_char_p),
        ("memory_limit_bytes", c_uint64),
        ("log", greta_log_callback),
        ("log_user", c_void_p),
        ("allocate", CFUNCTYPE(c_void_p, c_void_p, c_uint64, c_uint64)),
        ("release", CFUNCTYPE(None, c_void_p, c_void_p, c_uint64)),
        ("allocator_user", c_void_p),
        ("exact", c_uint32),
        ("persistent", c_uint32),
        ("cache_folder", c_char_p),
        ("graphs", c_uint32),
        ("import_files", c_uint32),
        ("rocm_folders", c_char_p),
        ("virtual_environment", c_char_p),
        ("without", c_char_p),
        ("hiding", c_char_p),
        ("device_limits", POINTER(c_uint64)),
        ("device_limit_count", c_uint32),
        ("reserved", c_uint32),
        ("on_span", CFUNCTYPE(None, c_void_p, POINTER(greta_span))),
        ("span_user", c_void_p),
        ("span_launches", c_uint32),
        ("reserved2", c_uint32),
        ("tuning_folder", c_char_p),
    ]


class greta_device_info(Structure):
    struct_size: int
    usable: int
    id: Text
    name: Text
    driver: Text
    arch: Text
    reason: Text
    memory_bytes: int
    memory_free_bytes: int
    unit_count: int
    unified_memory: int
    cpu_type: int
    reserved: int
    pci: Text
    _fields_ = [
        ("struct_size", c_uint32),
        ("usable", c_uint32),
        ("id", c_char * 16),
        ("name", c_char * 128),
        ("driver", c_char * 128),
        ("arch", c_char * 32),
        ("reason", c_char * 256),
        ("memory_bytes", c_uint64),
        ("memory_free_bytes", c_uint64),
        ("unit_count", c_uint32),
        ("unified_memory", c_uint32),
        ("cpu_type", c_uint32),
        ("reserved", c_uint32),
        ("pci", c_char * 16),
    ]


class greta_finding(Structure):
    struct_size: int
    reserved: int
    subject: Text | None
    key: Text | None
    value: Text | None
    advice: Text | None
    _fields_ = [
        ("struct_size", c_uint32),
        ("reserved", c_uint32),
        ("subject", c_char_p),
        ("key", c_char_p),
        ("value", c_char_p),
        ("advice", c_char_p),
    ]


class greta_source(Structure):
    struct_size: int
    reserved: int
    path: Text | None
    memory: int | None
    memory_bytes: int
    read_at: Any
    user: int | None
    size_bytes: int
    map: int
    reserved2: int
    _fields_ = [
        ("struct_size", c_uint32),
        ("reserved", c_uint32),
        ("path", c_char_p),
        ("memory", c_void_p),
        ("memory_bytes", c_uint64),
        ("read_at", CFUNCTYPE(c_int, c_void_p, c_uint64, c_void_p, c_uint64)),
        ("user", c_void_p),
        ("size_bytes", c_uint64),
        ("map", c_uint32),
        ("reserved2", c_uint32),
    ]


class greta_tensor_info(Structure):
    struct_size: int
    dimensions: int
    name: Text | None
    type: Text | None
    shape: Any
    offset_bytes: int
    size_bytes: int
    part: int
    reserved: int
    _fields_ = [
        ("struct_size", c_uint32),
        ("dimensions", c_uint32),
        ("name", c_char_p),
        ("type", c_char_p),
        ("shape", c_uint64 * 4),
        ("offset_bytes", c_uint64),
        ("size_bytes", c_uint64),
        ("part", c_uint32),
        ("reserved", c_uint32),
    ]


class greta_unused_verdict(enum.IntEnum):
    GRETA_UNUSED_NEEDLESS = 0
    GRETA_UNUSED_UNKNOWN = 1
    GRETA_UNUSED_REFUSED = 2
    GRETA_UNUSED_VERDICT_MAX = 2147483647


class greta_unused(Structure):
    struct_size: int
    verdict: int
    is_tensor: int
    reserved: int
    name: Text | None
    reason: Text | None
    _fields_ = [
        ("struct_size", c_uint32),
        ("verdict", c_uint32),
        ("is_tensor", c_uint32),
        ("reserved", c_uint32),
        ("name", c_char_p),
        ("reason", c_char_p),
    ]


class greta_weights_check(Structure):
    struct_size: int
    block_weights: int
    blocks: int
    bad_blocks: int
    first_bad_block: int
    zero_blocks: int
    zero_run_blocks: int
    largest: float
    _fields_ = [
        ("struct_size", c_uint32),
        ("block_weights", c_uint32),
        ("blocks", c_uint64),
        ("bad_blocks", c_uint64),
        ("first_bad_block", c_uint64),
        ("zero_blocks", c_uint64),
        ("zero_run_blocks", c_uint64),
        ("largest", c_double),
    ]


class greta_cache_type(enum.IntEnum):
    GRETA_CACHE_DEFAULT = 0
    GRETA_CACHE_F32 = 1
    GRETA_CACHE_F16 = 2
    GRETA_CACHE_Q8_0 = 3
    GRETA_CACHE_TYPE_MAX = 2147483647


class greta_executor_options(Structure):
    struct_size: int
    context: int
    sequences: int
    key_type: int
    value_type: int
    cache_tokens: int
    output_rows: int
    step_tokens: int
    progress: Any
    progress_user: int | None
    checkpoint_bytes: int
    compile_ahead: int
    draft_head: int
    _fields_ = [
        ("struct_size", c_uint32),
        ("context", c_uint32),
        ("sequences", c_uint32),
        ("key_type", c_uint32),
        ("value_type", c_uint32),
        ("cache_tokens", c_uint32),
        ("output_rows", c_uint32),
        ("step_tokens", c_uint32),
        ("progress", CFUNCTYPE(c_int, c_void_p, c_uint64, c_uint64)),
        ("progress_user", c_void_p),
        ("checkpoint_bytes", c_uint64),
        ("compile_ahead", c_uint32),
        ("draft_head", c_uint32),
    ]


class greta_placement_kind(enum.IntEnum):
    GRETA_PLACEMENT_AUTO = 0
    GRETA_PLACEMENT_OFFLOAD = 1
    GRETA_PLACEMENT_LIST = 2
    GRETA_PLACEMENT_KIND_MAX = 2147483647


class greta_placement(Structure):
    struct_size: int
    kind: int
    offloaded: int
    share_count: int
    shares: Any
    devices: Any
    device_count: int
    reserved: int
    host_experts: int
    bring_experts_from: int
    device_of: Any
    device_of_user: int | None
    _fields_ = [
        ("struct_size", c_uint32),
        ("kind", c_uint32),
        ("offloaded", c_uint32),
        ("share_count", c_uint32),
        ("shares", POINTER(c_double)),
        ("devices", POINTER(c_uint32)),
        ("device_count", c_uint32),
        ("reserved", c_uint32),
        ("host_experts", c_uint32),
        ("bring_experts_from", c_uint32),
        ("device_of", CFUNCTYPE(c_int, c_void_p, c_char_p)),
        ("device_of_user", c_void_p),
    ]


class greta_model_options(Structure):
    struct_size: int
    reserved: int
    source: Any
    progress: Any
    progress_user: int | None
    placement: Any
    executor: Any
    draft_head: int
    reserved2: int
    _fields_ = [
        ("struct_size", c_uint32),
        ("reserved", c_uint32),
        ("source", POINTER(greta_source)),
        ("progress", CFUNCTYPE(c_int, c_void_p, c_uint64, c_uint64)),
        ("progress_user", c_void_p),
        ("placement", POINTER(greta_placement)),
        ("executor", POINTER(greta_executor_options)),
        ("draft_head", c_uint32),
        ("reserved2", c_uint32),
    ]


class greta_memory_plan(Structure):
    struct_size: int
    fits: int
    context: int
    step_tokens: int
    weights_bytes: int
    mapped_bytes: int
    cache_bytes: int
    arena_bytes: int
    tables_bytes: int
    host_bytes: int
    total_bytes: int
    free_bytes: int
    device: Text
    states_bytes: int
    checkpoints_bytes: int
    draft_head_bytes: int
    _fields_ = [
        ("struct_size", c_uint32),
        ("fits", c_uint32),
        ("context", c_uint32),
        ("step_tokens", c_uint32),
        ("weights_bytes", c_uint64),
        ("mapped_bytes", c_uint64),
        ("cache_bytes", c_uint64),
        ("arena_bytes", c_uint64),
        ("tables_bytes", c_uint64),
        ("host_bytes", c_uint64),
        ("total_bytes", c_uint64),
        ("free_bytes", c_uint64),
        ("device", c_char * 16),
        ("states_bytes", c_uint64),
        ("checkpoints_bytes", c_uint64),
        ("draft_head_bytes", c_uint64),
    ]


class greta_device_plan(Structure):
    struct_size: int
    device: int
    id: Text
    pieces: Text
    fits: int
    context: int
    weights_bytes: int
    mapped_bytes: int
    cache_bytes: int
    arena_bytes: int
    tables_bytes: int
    total_bytes: int
    free_bytes: int
    piece_bytes: Any
    expert_bytes: Any
    layers: int
    reserved: int
    _fields_ = [
        ("struct_size", c_uint32),
        ("device", c_uint32),
        ("id", c_char * 16),
        ("pieces", c_char * 128),
        ("fits", c_uint32),
        ("context", c_uint32),
        ("weights_bytes", c_uint64),
        ("mapped_bytes", c_uint64),
        ("cache_bytes", c_uint64),
        ("arena_bytes", c_uint64),
        ("tables_bytes", c_uint64),
        ("total_bytes", c_uint64),
        ("free_bytes", c_uint64),
        ("piece_bytes", POINTER(c_uint64)),
        ("expert_bytes", POINTER(c_uint64)),
        ("layers", c_uint32),
        ("reserved", c_uint32),
    ]


class greta_model_info(Structure):
    struct_size: int
    vocab_size: int
    architecture: Text | None
    name: Text | None
    type: Text
    context: int
    layers: int
    width: int
    heads: int
    kv_heads: int
    parameters: int
    weights_bytes: int
    token_bytes: int
    identity: int
    recurrent_layers: int
    reserved: int
    _fields_ = [
        ("struct_size", c_uint32),
        ("vocab_size", c_uint32),
        ("architecture", c_char_p),
        ("name", c_char_p),
        ("type", c_char * 32),
        ("context", c_uint32),
        ("layers", c_uint32),
        ("width", c_uint32),
        ("heads", c_uint32),
        ("kv_heads", c_uint32),
        ("parameters", c_uint64),
        ("weights_bytes", c_uint64),
        ("token_bytes", c_uint64),
        ("identity", c_uint64),
        ("recurrent_layers", c_uint32),
        ("reserved", c_uint32),
    ]


class greta_adapter_kind(enum.IntEnum):
    GRETA_ADAPTER_LORA = 1
    GRETA_ADAPTER_CONTROL = 2
    GRETA_ADAPTER_KIND_MAX = 2147483647


class greta_adapter_options(Structure):
    struct_size: int
    first_layer: int
    last_layer: int
    reserved: int
    _fields_ = [
        ("struct_size", c_uint32),
        ("first_layer", c_uint32),
        ("last_layer", c_uint32),
        ("reserved", c_uint32),
    ]


class greta_adapter_info(Structure):
    struct_size: int
    kind: int
    name: Text
    architecture: Text
    matrices: int
    directions: int
    least_rank: int
    most_rank: int
    alpha: float
    users: int
    tensor_bytes: int
    device_bytes: int
    identity: int
    _fields_ = [
        ("struct_size", c_uint32),
        ("kind", c_uint32),
        ("name", c_char * 128),
        ("architecture", c_char * 64),
        ("matrices", c_uint32),
        ("directions", c_uint32),
        ("least_rank", c_uint32),
        ("most_rank", c_uint32),
        ("alpha", c_float),
        ("users", c_uint32),
        ("tensor_bytes", c_uint64),
        ("device_bytes", c_uint64),
        ("identity", c_uint64),
    ]


class greta_encode_flags(enum.IntEnum):
    GRETA_ENCODE_BOS = 1
    GRETA_ENCODE_SPECIAL = 2
    GRETA_ENCODE_FLAGS_MAX = 2147483647


class greta_token_kind(enum.IntEnum):
    GRETA_TOKEN_UNDEFINED = 0
    GRETA_TOKEN_NORMAL = 1
    GRETA_TOKEN_UNKNOWN = 2
    GRETA_TOKEN_CONTROL = 3
    GRETA_TOKEN_USER_DEFINED = 4
    GRETA_TOKEN_UNUSED = 5
    GRETA_TOKEN_BYTE = 6
    GRETA_TOKEN_KIND_MAX = 2147483647


class greta_fill_token(enum.IntEnum):
    GRETA_FILL_PREFIX = 0
    GRETA_FILL_SUFFIX = 1
    GRETA_FILL_MIDDLE = 2
    GRETA_FILL_PAD = 3
    GRETA_FILL_REPOSITORY = 4
    GRETA_FILL_FILE = 5
    GRETA_FILL_TOKEN_MAX = 2147483647


class greta_message(Structure):
    role: Text | None
    content: Text | None
    json: Text | None
    _fields_ = [
        ("role", c_char_p),
        ("content", c_char_p),
        ("json", c_char_p),
    ]


class greta_session_options(Structure):
    struct_size: int
    reserved: int
    executor: int | None
    private_executor: Any
    _fields_ = [
        ("struct_size", c_uint32),
        ("reserved", c_uint32),
        ("executor", c_void_p),
        ("private_executor", POINTER(greta_executor_options)),
    ]


class greta_rows(enum.IntEnum):
    GRETA_ROWS_NONE = 0
    GRETA_ROWS_LAST = 1
    GRETA_ROWS_ALL = 2
    GRETA_ROWS_MAX = 2147483647


class greta_batch_item(Structure):
    session: int | None
    tokens: Any
    count: int
    logits: Any
    _fields_ = [
        ("session", c_void_p),
        ("tokens", POINTER(c_int32)),
        ("count", c_size_t),
        ("logits", POINTER(c_float)),
    ]


class greta_pooling(enum.IntEnum):
    GRETA_POOLING_DEFAULT = 0
    GRETA_POOLING_MEAN = 1
    GRETA_POOLING_FIRST = 2
    GRETA_POOLING_LAST = 3
    GRETA_POOLING_NONE = 4
    GRETA_POOLING_MAX = 2147483647


class greta_embed_options(Structure):
    struct_size: int
    pooling: int
    raw: int
    reserved: int
    _fields_ = [
        ("struct_size", c_uint32),
        ("pooling", c_uint32),
        ("raw", c_uint32),
        ("reserved", c_uint32),
    ]

greta_write_callback = CFUNCTYPE(c_int, c_void_p, c_void_p, c_size_t)


class greta_dry_options(Structure):
    struct_size: int
    allowed_length: int
    multiplier: float
    base: float
    last_n: int
    breaker_count: int
    breakers: Any
    _fields_ = [
        ("struct_size", c_uint32),
        ("allowed_length", c_uint32),
        ("multiplier", c_float),
        ("base", c_float),
        ("last_n", c_uint32),
        ("breaker_count", c_uint32),
        ("breakers", POINTER(c_char_p)),
    ]

greta_logit_filter = CFUNCTYPE(c_int, c_void_p, POINTER(c_float), c_size_t, POINTER(c_int32), c_size_t)


class greta_draft_kind(enum.IntEnum):
    GRETA_DRAFT_NONE = 0
    GRETA_DRAFT_TEXT = 1
    GRETA_DRAFT_HEAD = 2
    GRETA_DRAFT_MODEL = 3
    GRETA_DRAFT_CALLBACK = 4
    GRETA_DRAFT_KIND_MAX = 2147483647


class greta_draft_options(Structure):
    struct_size: int
    kind: int
    depth: int
    guess: Any
    user: int | None
    executor: int | None
    _fields_ = [
        ("struct_size", c_uint32),
        ("kind", c_uint32),
        ("depth", c_uint32),
        ("guess", CFUNCTYPE(c_size_t, c_void_p, POINTER(c_int32), c_size_t, POINTER(c_int32), c_size_t)),
        ("user", c_void_p),
        ("executor", c_void_p),
    ]


class greta_sampling_field(enum.IntEnum):
    GRETA_SAMPLING_TEMPERATURE = 1
    GRETA_SAMPLING_TOP_K = 2
    GRETA_SAMPLING_TOP_P = 4
    GRETA_SAMPLING_MIN_P = 8
    GRETA_SAMPLING_REPEAT_PENALTY = 16
    GRETA_SAMPLING_REPEAT_LAST_N = 32
    GRETA_SAMPLING_XTC_PROBABILITY = 64
    GRETA_SAMPLING_XTC_THRESHOLD = 128
    GRETA_SAMPLING_MIROSTAT = 256
    GRETA_SAMPLING_MIROSTAT_TAU = 512
    GRETA_SAMPLING_MIROSTAT_ETA = 1024
    GRETA_SAMPLING_ORDER = 2048
    GRETA_SAMPLING_FIELD_MAX = 2147483647


class greta_sampling_defaults(Structure):
    struct_size: int
    fields: int
    temperature: float
    top_p: float
    min_p: float
    repeat_penalty: float
    top_k: int
    repeat_last_n: int
    xtc_probability: float
    xtc_threshold: float
    mirostat: int
    mirostat_tau: float
    mirostat_eta: float
    order: Text | None
    _fields_ = [
        ("struct_size", c_uint32),
        ("fields", c_uint32),
        ("temperature", c_float),
        ("top_p", c_float),
        ("min_p", c_float),
        ("repeat_penalty", c_float),
        ("top_k", c_uint32),
        ("repeat_last_n", c_int32),
        ("xtc_probability", c_float),
        ("xtc_threshold", c_float),
        ("mirostat", c_uint32),
        ("mirostat_tau", c_float),
        ("mirostat_eta", c_float),
        ("order", c_char_p),
    ]


class greta_stop_reason(enum.IntEnum):
    GRETA_STOP_LENGTH = 0
    GRETA_STOP_END = 1
    GRETA_STOP_CONTEXT = 2
    GRETA_STOP_CANCELLED = 3
    GRETA_STOP_STRING = 4
    GRETA_STOP_UNREAD = 5
    GRETA_STOP_REASON_MAX = 2147483647


class greta_generate_options(Structure):
    struct_size: int
    max_tokens: int
    ignore_end: int
    shift: int
    on_token: Any
    user: int | None
    on_prompt: Any
    stop_strings: Any
    stop_count: int
    keep_tokens: int
    reserved: int
    _fields_ = [
        ("struct_size", c_uint32),
        ("max_tokens", c_uint32),
        ("ignore_end", c_uint32),
        ("shift", c_uint32),
        ("on_token", CFUNCTYPE(c_int, c_void_p, c_int32, c_void_p, c_size_t)),
        ("user", c_void_p),
        ("on_prompt", CFUNCTYPE(c_int, c_void_p, c_uint32, c_uint32)),
        ("stop_strings", POINTER(c_char_p)),
        ("stop_count", c_size_t),
        ("keep_tokens", c_uint32),
        ("reserved", c_uint32),
    ]


class greta_generate_result(Structure):
    struct_size: int
    reason: int
    prompt_tokens: int
    generated_tokens: int
    prompt_ns: int
    generate_ns: int
    stop_string: int
    forgotten_tokens: int
    drafted_tokens: int
    accepted_tokens: int
    reread_tokens: int
    draw_steps: int
    draft_stopped: int
    _fields_ = [
        ("struct_size", c_uint32),
        ("reason", c_uint32),
        ("prompt_tokens", c_uint32),
        ("generated_tokens", c_uint32),
        ("prompt_ns", c_uint64),
        ("generate_ns", c_uint64),
        ("stop_string", c_int32),
        ("forgotten_tokens", c_uint32),
        ("drafted_tokens", c_uint32),
        ("accepted_tokens", c_uint32),
        ("reread_tokens", c_uint32),
        ("draw_steps", c_uint32),
        ("draft_stopped", c_uint32),
    ]


class greta_generate_item(Structure):
    session: int | None
    tokens: Any
    count: int
    options: Any
    result: Any
    status: int
    error: Text
    _fields_ = [
        ("session", c_void_p),
        ("tokens", POINTER(c_int32)),
        ("count", c_size_t),
        ("options", POINTER(greta_generate_options)),
        ("result", POINTER(greta_generate_result)),
        ("status", c_uint32),
        ("error", c_char * 256),
    ]


class greta_chat_options(Structure):
    struct_size: int
    raw: int
    chat_template: Text | None
    tools: Text | None
    arguments: Text | None
    now_s: int
    forget_oldest: int
    parse_content: int
    join_system: int
    continue_answer: int
    tool_choice: Text | None
    one_call: int
    strict_tools: int
    _fields_ = [
        ("struct_size", c_uint32),
        ("raw", c_uint32),
        ("chat_template", c_char_p),
        ("tools", c_char_p),
        ("arguments", c_char_p),
        ("now_s", c_int64),
        ("forget_oldest", c_uint32),
        ("parse_content", c_uint32),
        ("join_system", c_uint32),
        ("continue_answer", c_uint32),
        ("tool_choice", c_char_p),
        ("one_call", c_uint32),
        ("strict_tools", c_uint32),
    ]


class greta_chat_part(enum.IntEnum):
    GRETA_CHAT_TEXT = 0
    GRETA_CHAT_REASONING = 1
    GRETA_CHAT_TOOL_CALL = 2
    GRETA_CHAT_PROMPT = 3
    GRETA_CHAT_PART_MAX = 2147483647


class greta_chat_event(Structure):
    struct_size: int
    part: int
    text: int | None
    bytes: int
    id: Text | None
    name: Text | None
    arguments: Text | None
    done: int
    total: int
    _fields_ = [
        ("struct_size", c_uint32),
        ("part", c_uint32),
        ("text", c_void_p),
        ("bytes", c_size_t),
        ("id", c_char_p),
        ("name", c_char_p),
        ("arguments", c_char_p),
        ("done", c_uint32),
        ("total", c_uint32),
    ]


class greta_chat_end(enum.IntEnum):
    GRETA_CHAT_END_STOP = 0
    GRETA_CHAT_END_LENGTH = 1
    GRETA_CHAT_END_TOOL_CALLS = 2
    GRETA_CHAT_END_CONTEXT = 3
    GRETA_CHAT_END_CANCELLED = 4
    GRETA_CHAT_END_MAX = 2147483647


class greta_chat_answer_options(Structure):
    struct_size: int
    max_tokens: int
    ignore_end: int
    limit_reasoning: int
    reasoning_tokens: int
    stop_count: int
    stop_strings: Any
    on_event: Any
    user: int | None
    _fields_ = [
        ("struct_size", c_uint32),
        ("max_tokens", c_uint32),
        ("ignore_end", c_uint32),
        ("limit_reasoning", c_uint32),
        ("reasoning_tokens", c_uint32),
        ("stop_count", c_uint32),
        ("stop_strings", POINTER(c_char_p)),
        ("on_event", CFUNCTYPE(c_int, c_void_p, POINTER(greta_chat_event))),
        ("user", c_void_p),
    ]


class greta_chat_result(Structure):
    struct_size: int
    end: int
    prompt_tokens: int
    reused_tokens: int
    generated_tokens: int
    reasoning_tokens: int
    open_reasoning: int
    forgotten_messages: int
    prompt_ns: int
    generate_ns: int
    _fields_ = [
        ("struct_size", c_uint32),
        ("end", c_uint32),
        ("prompt_tokens", c_uint32),
        ("reused_tokens", c_uint32),
        ("generated_tokens", c_uint32),
        ("reasoning_tokens", c_uint32),
        ("open_reasoning", c_uint32),
        ("forgotten_messages", c_uint32),
        ("prompt_ns", c_uint64),
        ("generate_ns", c_uint64),
    ]


class greta_service_options(Structure):
    struct_size: int
    own_thread: int
    executor: Any
    max_requests: int
    event_capacity: int
    step_ms: int
    chunk_tokens: int
    no_prefix_cache: int
    reserved: int
    host_cache_bytes: int
    page_folder: Text | None
    page_folder_bytes: int
    unread_ms: int
    salt_requests: int
    on_ready: Any
    on_ready_user: int | None
    _fields_ = [
        ("struct_size", c_uint32),
        ("own_thread", c_uint32),
        ("executor", POINTER(greta_executor_options)),
        ("max_requests", c_uint32),
        ("event_capacity", c_uint32),
        ("step_ms", c_uint32),
        ("chunk_tokens", c_uint32),
        ("no_prefix_cache", c_uint32),
        ("reserved", c_uint32),
        ("host_cache_bytes", c_uint64),
        ("page_folder", c_char_p),
        ("page_folder_bytes", c_uint64),
        ("unread_ms", c_uint32),
        ("salt_requests", c_uint32),
        ("on_ready", CFUNCTYPE(None, c_void_p, c_void_p)),
        ("on_ready_user", c_void_p),
    ]


class greta_service_info(Structure):
    struct_size: int
    waiting: int
    running: int
    pages: int
    free_pages: int
    cached_pages: int
    steps: int
    rows: int
    cached_tokens: int
    set_back: int
    brought_back: int
    host_pages: int
    reserved: int
    step_ns: int
    prompt_tokens: int
    generated_tokens: int
    failed: int
    ended: Any
    host_ns: int
    reread_tokens: int
    _fields_ = [
        ("struct_size", c_uint32),
        ("waiting", c_uint32),
        ("running", c_uint32),
        ("pages", c_uint32),
        ("free_pages", c_uint32),
        ("cached_pages", c_uint32),
        ("steps", c_uint64),
        ("rows", c_uint64),
        ("cached_tokens", c_uint64),
        ("set_back", c_uint64),
        ("brought_back", c_uint64),
        ("host_pages", c_uint32),
        ("reserved", c_uint32),
        ("step_ns", c_uint64),
        ("prompt_tokens", c_uint64),
        ("generated_tokens", c_uint64),
        ("failed", c_uint64),
        ("ended", c_uint64 * 8),
        ("host_ns", c_uint64),
        ("reread_tokens", c_uint64),
    ]


class greta_sampling_options(Structure):
    struct_size: int
    temperature: float
    dynamic_range: float
    dynamic_exponent: float
    top_k: int
    top_p: float
    min_p: float
    typical_p: float
    top_n_sigma: float
    xtc_probability: float
    xtc_threshold: float
    repeat_penalty: float
    frequency_penalty: float
    presence_penalty: float
    penalty_last_n: int
    mirostat_tau: float
    mirostat_eta: float
    strict_schema: int
    seed: int
    dry: Any
    bias_tokens: Any
    biases: Any
    bias_count: int
    order: Text | None
    grammar: Text | None
    grammar_root: Text | None
    json_schema: Text | None
    _fields_ = [
        ("struct_size", c_uint32),
        ("temperature", c_float),
        ("dynamic_range", c_float),
        ("dynamic_exponent", c_float),
        ("top_k", c_uint32),
        ("top_p", c_float),
        ("min_p", c_float),
        ("typical_p", c_float),
        ("top_n_sigma", c_float),
        ("xtc_probability", c_float),
        ("xtc_threshold", c_float),
        ("repeat_penalty", c_float),
        ("frequency_penalty", c_float),
        ("presence_penalty", c_float),
        ("penalty_last_n", c_uint32),
        ("mirostat_tau", c_float),
        ("mirostat_eta", c_float),
        ("strict_schema", c_uint32),
        ("seed", c_uint64),
        ("dry", POINTER(greta_dry_options)),
        ("bias_tokens", POINTER(c_int32)),
        ("biases", POINTER(c_float)),
        ("bias_count", c_size_t),
        ("order", c_char_p),
        ("grammar", c_char_p),
        ("grammar_root", c_char_p),
        ("json_schema", c_char_p),
    ]


class greta_request_options(Structure):
    struct_size: int
    max_tokens: int
    tokens: Any
    token_count: int
    messages: Any
    message_count: int
    chat: Any
    sampling: Any
    stop_strings: Any
    stop_count: int
    priority: int
    ignore_end: int
    salt: int
    no_cache: int
    no_answer: int
    logprobs: int
    prompt_logprobs: int
    top_logprobs: int
    reserved: int
    embed: Any
    state: Any
    keep_state: int
    reserved2: int
    draft_tokens: int
    shift: int
    keep_tokens: int
    limit_reasoning: int
    reasoning_tokens: int
    reserved3: int
    user: int | None
    prompt_events: int
    reserved4: int
    share_state: int
    call_pieces: int
    adapters: Any
    adapter_scales: Any
    adapter_count: int
    draft: Any
    sampled_logprobs: int
    reserved5: int
    _fields_ = [
        ("struct_size", c_uint32),
        ("max_tokens", c_uint32),
        ("tokens", POINTER(c_int32)),
        ("token_count", c_size_t),
        ("messages", POINTER(greta_message)),
        ("message_count", c_size_t),
        ("chat", POINTER(greta_chat_options)),
        ("sampling", POINTER(greta_sampling_options)),
        ("stop_strings", POINTER(c_char_p)),
        ("stop_count", c_size_t),
        ("priority", c_int32),
        ("ignore_end", c_uint32),
        ("salt", c_uint64),
        ("no_cache", c_uint32),
        ("no_answer", c_uint32),
        ("logprobs", c_uint32),
        ("prompt_logprobs", c_uint32),
        ("top_logprobs", c_uint32),
        ("reserved", c_uint32),
        ("embed", POINTER(greta_embed_options)),
        ("state", POINTER(greta_source)),
        ("keep_state", c_uint32),
        ("reserved2", c_uint32),
        ("draft_tokens", c_uint32),
        ("shift", c_uint32),
        ("keep_tokens", c_uint32),
        ("limit_reasoning", c_uint32),
        ("reasoning_tokens", c_uint32),
        ("reserved3", c_uint32),
        ("user", c_void_p),
        ("prompt_events", c_uint32),
        ("reserved4", c_uint32),
        ("share_state", c_uint32),
        ("call_pieces", c_uint32),
        ("adapters", POINTER(c_void_p)),
        ("adapter_scales", POINTER(c_float)),
        ("adapter_count", c_size_t),
        ("draft", POINTER(greta_draft_options)),
        ("sampled_logprobs", c_uint32),
        ("reserved5", c_uint32),
    ]


class greta_prompt(Structure):
    struct_size: int
    cached_tokens: int
    text: int | None
    bytes: int
    tokens: Any
    token_count: int
    _fields_ = [
        ("struct_size", c_uint32),
        ("cached_tokens", c_uint32),
        ("text", c_void_p),
        ("bytes", c_size_t),
        ("tokens", POINTER(c_int32)),
        ("token_count", c_size_t),
    ]


class greta_event_kind(enum.IntEnum):
    GRETA_EVENT_NONE = 0
    GRETA_EVENT_TEXT = 1
    GRETA_EVENT_REASONING = 2
    GRETA_EVENT_TOOL_CALL = 3
    GRETA_EVENT_PROMPT = 4
    GRETA_EVENT_END = 5
    GRETA_EVENT_EMBEDDING = 6
    GRETA_EVENT_START = 7
    GRETA_EVENT_PROGRESS = 8
    GRETA_EVENT_CALL_START = 9
    GRETA_EVENT_CALL_PIECE = 10
    GRETA_EVENT_KIND_MAX = 2147483647


class greta_top_logprob(Structure):
    token: int
    logprob: float
    _fields_ = [
        ("token", c_int32),
        ("logprob", c_float),
    ]


class greta_request_event(Structure):
    struct_size: int
    kind: int
    token: int
    logprob: float
    text: int | None
    bytes: int
    id: Text | None
    name: Text | None
    arguments: Text | None
    top: Any
    top_count: int
    embedding: Any
    embedding_count: int
    prompt_tokens: int
    read_tokens: int
    cached_tokens: int
    unread: int
    _fields_ = [
        ("struct_size", c_uint32),
        ("kind", c_uint32),
        ("token", c_int32),
        ("logprob", c_float),
        ("text", c_void_p),
        ("bytes", c_size_t),
        ("id", c_char_p),
        ("name", c_char_p),
        ("arguments", c_char_p),
        ("top", POINTER(greta_top_logprob)),
        ("top_count", c_size_t),
        ("embedding", POINTER(c_float)),
        ("embedding_count", c_size_t),
        ("prompt_tokens", c_uint32),
        ("read_tokens", c_uint32),
        ("cached_tokens", c_uint32),
        ("unread", c_uint32),
    ]


class greta_request_state(enum.IntEnum):
    GRETA_REQUEST_WAITING = 0
    GRETA_REQUEST_READING = 1
    GRETA_REQUEST_WRITING = 2
    GRETA_REQUEST_PAUSED = 3
    GRETA_REQUEST_ENDED = 4
    GRETA_REQUEST_STATE_MAX = 2147483647


class greta_request_info(Structure):
    struct_size: int
    state: int
    before: int
    unread_events: int
    prompt_tokens: int
    read_tokens: int
    cached_tokens: int
    generated_tokens: int
    reasoning_tokens: int
    set_back: int
    _fields_ = [
        ("struct_size", c_uint32),
        ("state", c_uint32),
        ("before", c_uint32),
        ("unread_events", c_uint32),
        ("prompt_tokens", c_uint32),
        ("read_tokens", c_uint32),
        ("cached_tokens", c_uint32),
        ("generated_tokens", c_uint32),
        ("reasoning_tokens", c_uint32),
        ("set_back", c_uint32),
    ]


class greta_request_result(Structure):
    struct_size: int
    reason: int
    stop_string: int
    prompt_tokens: int
    cached_tokens: int
    generated_tokens: int
    set_back: int
    tool_calls: int
    open_reasoning: int
    reserved: int
    queued_ns: int
    prompt_ns: int
    generate_ns: int
    forgotten_tokens: int
    drafted_tokens: int
    accepted_tokens: int
    reasoning_tokens: int
    draw_steps: int
    draft_stopped: int
    reread_tokens: int
    reserved2: int
    _fields_ = [
        ("struct_size", c_uint32),
        ("reason", c_uint32),
        ("stop_string", c_int32),
        ("prompt_tokens", c_uint32),
        ("cached_tokens", c_uint32),
        ("generated_tokens", c_uint32),
        ("set_back", c_uint32),
        ("tool_calls", c_uint32),
        ("open_reasoning", c_uint32),
        ("reserved", c_uint32),
        ("queued_ns", c_uint64),
        ("prompt_ns", c_uint64),
        ("generate_ns", c_uint64),
        ("forgotten_tokens", c_uint32),
        ("drafted_tokens", c_uint32),
        ("accepted_tokens", c_uint32),
        ("reasoning_tokens", c_uint32),
        ("draw_steps", c_uint32),
        ("draft_stopped", c_uint32),
        ("reread_tokens", c_uint32),
        ("reserved2", c_uint32),
    ]


class greta_selftest_result(Structure):
    struct_size: int
    passed: int
    op: Text | None
    kernels: int
    reserved: int
    launches: int
    failure: Text | None
    _fields_ = [
        ("struct_size", c_uint32),
        ("passed", c_uint32),
        ("op", c_char_p),
        ("kernels", c_uint32),
        ("reserved", c_uint32),
        ("launches", c_uint64),
        ("failure", c_char_p),
    ]


class greta_selftest_progress(Structure):
    struct_size: int
    kernels_run: int
    kernels: int
    reserved: int
    op: Text | None
    kernel: Text | None
    launches: int
    _fields_ = [
        ("struct_size", c_uint32),
        ("kernels_run", c_uint32),
        ("kernels", c_uint32),
        ("reserved", c_uint32),
        ("op", c_char_p),
        ("kernel", c_char_p),
        ("launches", c_uint64),
    ]


class greta_selftest_options(Structure):
    struct_size: int
    reserved: int
    op: Text | None
    on_result: Any
    on_progress: Any
    user: int | None
    quick: int
    reserved2: int
    _fields_ = [
        ("struct_size", c_uint32),
        ("reserved", c_uint32),
        ("op", c_char_p),
        ("on_result", CFUNCTYPE(c_int, c_void_p, POINTER(greta_selftest_result))),
        ("on_progress", CFUNCTYPE(c_int, c_void_p, POINTER(greta_selftest_progress))),
        ("user", c_void_p),
        ("quick", c_uint32),
        ("reserved2", c_uint32),
    ]


class greta_plan_passed(Structure):
    kernel: Text | None
    reason: Text | None
    rank: int
    reserved: int
    _fields_ = [
        ("kernel", c_char_p),
        ("reason", c_char_p),
        ("rank", c_uint32),
        ("reserved", c_uint32),
    ]


class greta_plan_launch(Structure):
    struct_size: int
    device: int
    barrier_stage: int
    rank: int
    stage: Text | None
    kernel: Text | None
    ops: Text | None
    weight: Text | None
    groups: Any
    splits: int
    bytes: int
    flops: int
    passed: Any
    passed_count: int
    reserved: int
    machine_code: Text | None
    _fields_ = [
        ("struct_size", c_uint32),
        ("device", c_uint32),
        ("barrier_stage", c_uint32),
        ("rank", c_uint32),
        ("stage", c_char_p),
        ("kernel", c_char_p),
        ("ops", c_char_p),
        ("weight", c_char_p),
        ("groups", c_uint32 * 3),
        ("splits", c_uint32),
        ("bytes", c_uint64),
        ("flops", c_uint64),
        ("passed", POINTER(greta_plan_passed)),
        ("passed_count", c_uint32),
        ("reserved", c_uint32),
        ("machine_code", c_char_p),
    ]


class greta_plan_options(Structure):
    struct_size: int
    tokens: int
    depth: int
    machine_code: int
    executor: Any
    placement: Any
    on_launch: Any
    user: int | None
    _fields_ = [
        ("struct_size", c_uint32),
        ("tokens", c_uint32),
        ("depth", c_uint32),
        ("machine_code", c_uint32),
        ("executor", POINTER(greta_executor_options)),
        ("placement", POINTER(greta_placement)),
        ("on_launch", CFUNCTYPE(c_int, c_void_p, POINTER(greta_plan_launch))),
        ("user", c_void_p),
    ]


class greta_tune_progress(Structure):
    struct_size: int
    done: int
    entries: int
    reserved: int
    entry: Text | None
    kernel: Text | None
    _fields_ = [
        ("struct_size", c_uint32),
        ("done", c_uint32),
        ("entries", c_uint32),
        ("reserved", c_uint32),
        ("entry", c_char_p),
        ("kernel", c_char_p),
    ]


class greta_tune_options(Structure):
    struct_size: int
    again: int
    files: Any
    file_count: int
    token_count: int
    tokens: Any
    shapes: Text | None
    executor: Any
    budget_ns: int
    on_progress: Any
    user: int | None
    _fields_ = [
        ("struct_size", c_uint32),
        ("again", c_uint32),
        ("files", POINTER(c_void_p)),
        ("file_count", c_uint32),
        ("token_count", c_uint32),
        ("tokens", POINTER(c_uint32)),
        ("shapes", c_char_p),
        ("executor", POINTER(greta_executor_options)),
        ("budget_ns", c_uint64),
        ("on_progress", CFUNCTYPE(c_int, c_void_p, POINTER(greta_tune_progress))),
        ("user", c_void_p),
    ]


class greta_tune_result(Structure):
    struct_size: int
    entries: int
    made: int
    there: int
    changed: int
    left: int
    right: int
    wrong: int
    refused: int
    slow: int
    hung: int
    _fields_ = [
        ("struct_size", c_uint32),
        ("entries", c_uint32),
        ("made", c_uint32),
        ("there", c_uint32),
        ("changed", c_uint32),
        ("left", c_uint32),
        ("right", c_uint32),
        ("wrong", c_uint32),
        ("refused", c_uint32),
        ("slow", c_uint32),
        ("hung", c_uint32),
    ]


class greta_tuning_candidate(Structure):
    struct_size: int
    index: int
    chosen: int
    tile: int
    tile_tokens: int
    splits: int
    entry: Text | None
    kernel: Text | None
    target: Text | None
    verdict: Text | None
    error: Text | None
    ns: Any
    sample_count: int
    rounds: int
    ratio: float
    low: float
    high: float
    bytes: int
    flops: int
    _fields_ = [
        ("struct_size", c_uint32),
        ("index", c_uint32),
        ("chosen", c_uint32),
        ("tile", c_uint32),
        ("tile_tokens", c_uint32),
        ("splits", c_uint32),
        ("entry", c_char_p),
        ("kernel", c_char_p),
        ("target", c_char_p),
        ("verdict", c_char_p),
        ("error", c_char_p),
        ("ns", POINTER(c_uint64)),
        ("sample_count", c_uint32),
        ("rounds", c_uint32),
        ("ratio", c_double),
        ("low", c_double),
        ("high", c_double),
        ("bytes", c_uint64),
        ("flops", c_uint64),
    ]


class greta_kernel_options(Structure):
    struct_size: int
    n: int
    depth: int
    tokens: int
    name: Text | None
    code: int | None
    code_bytes: int
    _fields_ = [
        ("struct_size", c_uint32),
        ("n", c_uint32),
        ("depth", c_uint32),
        ("tokens", c_uint32),
        ("name", c_char_p),
        ("code", c_void_p),
        ("code_bytes", c_size_t),
    ]


class greta_kernel_result(Structure):
    struct_size: int
    passed: int
    kernels: int
    rounds: int
    launches: int
    failure: Text
    ns: float
    given_ns: float
    ratio: float
    low: float
    high: float
    error: float
    bytes: int
    flops: int
    machine_code: Text
    _fields_ = [
        ("struct_size", c_uint32),
        ("passed", c_uint32),
        ("kernels", c_uint32),
        ("rounds", c_uint32),
        ("launches", c_uint64),
        ("failure", c_char * 512),
        ("ns", c_double),
        ("given_ns", c_double),
        ("ratio", c_double),
        ("low", c_double),
        ("high", c_double),
        ("error", c_double),
        ("bytes", c_uint64),
        ("flops", c_uint64),
        ("machine_code", c_char * 256),
    ]


class greta_profile_stage(Structure):
    struct_size: int
    launches: int
    kernel: Text | None
    ns: int
    bytes: int
    flops: int
    stage: Text | None
    _fields_ = [
        ("struct_size", c_uint32),
        ("launches", c_uint32),
        ("kernel", c_char_p),
        ("ns", c_uint64),
        ("bytes", c_uint64),
        ("flops", c_uint64),
        ("stage", c_char_p),
    ]


# The type of the result, and those of the parameters.
FUNCTIONS: dict[str, tuple[Any, tuple[Any, ...]]] = {
    "greta_version": (c_uint32, ()),
    "greta_error_text": (c_char_p, ()),
    "greta_error_numbers": (None, (POINTER(c_uint64), POINTER(c_uint64),)),
    "greta_runtime_open": (c_uint32, (POINTER(greta_runtime_options), POINTER(c_void_p),)),
    "greta_runtime_close": (None, (c_void_p,)),
    "greta_device_count": (c_uint32, (POINTER(c_uint32),)),
    "greta_device_describe": (c_uint32, (c_uint32, POINTER(greta_device_info),)),
    "greta_device_kind": (c_char_p, (c_uint32, POINTER(c_uint32),)),
    "greta_device_list": (c_uint32, (POINTER(greta_runtime_options), CFUNCTYPE(c_int, c_void_p, POINTER(greta_device_info)), c_void_p,)),
    "greta_machine_examine": (c_uint32, (CFUNCTYPE(c_int, c_void_p, POINTER(greta_finding)), c_void_p,)),
    "greta_machine_examine_with": (c_uint32, (POINTER(greta_runtime_options), CFUNCTYPE(c_int, c_void_p, POINTER(greta_finding)), c_void_p,)),
    "greta_runtime_describe": (c_uint32, (c_void_p, POINTER(greta_device_info),)),
    "greta_runtime_device_count": (c_uint32, (c_void_p,)),
    "greta_runtime_device": (c_uint32, (c_void_p, c_uint32, POINTER(greta_device_info),)),
    "greta_runtime_measure_bandwidth": (c_uint32, (c_void_p, POINTER(c_uint64),)),
    "greta_runtime_measure_arithmetic": (c_uint32, (c_void_p, POINTER(c_uint64),)),
    "greta_file_open": (c_uint32, (POINTER(greta_source), POINTER(c_void_p),)),
    "greta_file_close": (None, (c_void_p,)),
    "greta_file_version": (c_uint32, (c_void_p,)),
    "greta_file_size_bytes": (c_uint64, (c_void_p,)),
    "greta_file_tensor_count": (c_uint64, (c_void_p,)),
    "greta_file_tensor": (c_uint32, (c_void_p, c_uint64, POINTER(greta_tensor_info),)),
    "greta_file_metadata_count": (c_uint64, (c_void_p,)),
    "greta_file_metadata": (c_uint32, (c_void_p, c_uint64, POINTER(c_char_p), POINTER(c_char_p), c_void_p, c_size_t,)),
    "greta_file_audit": (c_uint32, (c_void_p, CFUNCTYPE(c_int, c_void_p, POINTER(greta_unused)), c_void_p,)),
    "greta_file_check_weights": (c_uint32, (c_void_p, c_uint64, POINTER(greta_weights_check),)),
    "greta_file_check_weights_until": (c_uint32, (c_void_p, c_uint64, POINTER(greta_weights_check), CFUNCTYPE(c_int, c_void_p), c_void_p,)),
    "greta_memory_plan_make": (c_uint32, (c_void_p, c_void_p, POINTER(greta_executor_options), POINTER(greta_memory_plan),)),
    "greta_placement_plan": (c_uint32, (c_void_p, c_void_p, POINTER(greta_executor_options), POINTER(greta_placement), CFUNCTYPE(c_int, c_void_p, POINTER(greta_device_plan)), c_void_p,)),
    "greta_model_open": (c_uint32, (c_void_p, POINTER(greta_model_options), POINTER(c_void_p),)),
    "greta_model_close": (None, (c_void_p,)),
    "greta_model_describe": (c_uint32, (c_void_p, POINTER(greta_model_info),)),
    "greta_file_adapter": (c_uint32, (c_void_p, POINTER(greta_adapter_info),)),
    "greta_adapter_open": (c_uint32, (c_void_p, POINTER(greta_source), POINTER(greta_adapter_options), POINTER(c_void_p),)),
    "greta_adapter_close": (c_uint32, (c_void_p,)),
    "greta_adapter_describe": (c_uint32, (c_void_p, POINTER(greta_adapter_info),)),
    "greta_tokenizer_open": (c_uint32, (c_void_p, greta_log_callback, c_void_p, POINTER(c_void_p),)),
    "greta_tokenizer_close": (None, (c_void_p,)),
    "greta_model_tokenizer": (c_void_p, (c_void_p,)),
    "greta_tokenizer_encode": (c_uint32, (c_void_p, c_void_p, c_size_t, c_uint32, POINTER(c_int32), c_size_t, POINTER(c_size_t),)),
    "greta_tokenizer_encode_until": (c_uint32, (c_void_p, c_void_p, c_size_t, c_uint32, POINTER(c_int32), c_size_t, POINTER(c_size_t), CFUNCTYPE(c_int, c_void_p), c_void_p,)),
    "greta_tokenizer_decode": (c_uint32, (c_void_p, POINTER(c_int32), c_size_t, c_void_p, c_size_t, POINTER(c_size_t),)),
    "greta_tokenizer_size": (c_uint32, (c_void_p,)),
    "greta_tokenizer_bos": (c_int32, (c_void_p,)),
    "greta_tokenizer_eos": (c_int32, (c_void_p,)),
    "greta_tokenizer_token": (c_uint32, (c_void_p, c_int32, c_void_p, c_size_t, POINTER(c_size_t), POINTER(c_uint32),)),
    "greta_tokenizer_fill_token": (c_int32, (c_void_p, c_uint32,)),
    "greta_tokenizer_is_end": (c_int, (c_void_p, c_int32,)),
    "greta_tokenizer_chat": (c_uint32, (c_void_p, POINTER(greta_message), c_size_t, c_int, c_void_p, c_size_t, POINTER(c_size_t),)),
    "greta_tokenizer_template": (c_char_p, (c_void_p,)),
    "greta_tokenizer_render": (c_uint32, (c_void_p, c_void_p, c_size_t, c_int64, c_void_p, c_size_t, POINTER(c_size_t),)),
    "greta_template_render": (c_uint32, (c_void_p, c_size_t, c_void_p, c_size_t, c_int64, c_void_p, c_size_t, POINTER(c_size_t),)),
    "greta_executor_open": (c_uint32, (c_void_p, POINTER(greta_executor_options), POINTER(c_void_p),)),
    "greta_executor_close": (None, (c_void_p,)),
    "greta_session_open": (c_uint32, (c_void_p, POINTER(greta_session_options), POINTER(c_void_p),)),
    "greta_session_close": (None, (c_void_p,)),
    "greta_session_fork": (c_uint32, (c_void_p, POINTER(c_void_p),)),
    "greta_session_set_adapters": (c_uint32, (c_void_p, POINTER(c_void_p), POINTER(c_float), c_size_t,)),
    "greta_session_position": (c_uint32, (c_void_p,)),
    "greta_session_context": (c_uint32, (c_void_p,)),
    "greta_session_truncate": (c_uint32, (c_void_p, c_uint32,)),
    "greta_session_eval": (c_uint32, (c_void_p, POINTER(c_int32), c_size_t, c_uint32, POINTER(POINTER(c_float)),)),
    "greta_batch_eval": (c_uint32, (POINTER(greta_batch_item), c_size_t,)),
    "greta_session_embed": (c_uint32, (c_void_p, POINTER(c_int32), c_size_t, POINTER(greta_embed_options), POINTER(POINTER(c_float)),)),
    "greta_session_tokens": (POINTER(c_int32), (c_void_p,)),
    "greta_session_state_bytes": (c_uint64, (c_void_p,)),
    "greta_session_save": (c_uint32, (c_void_p, greta_write_callback, c_void_p,)),
    "greta_session_restore": (c_uint32, (c_void_p, POINTER(greta_source),)),
    "greta_session_sampling_clear": (c_uint32, (c_void_p,)),
    "greta_session_temperature": (c_uint32, (c_void_p, c_float,)),
    "greta_session_dynamic_temperature": (c_uint32, (c_void_p, c_float, c_float,)),
    "greta_session_top_k": (c_uint32, (c_void_p, c_uint32,)),
    "greta_session_top_p": (c_uint32, (c_void_p, c_float,)),
    "greta_session_min_p": (c_uint32, (c_void_p, c_float,)),
    "greta_session_typical_p": (c_uint32, (c_void_p, c_float,)),
    "greta_session_top_n_sigma": (c_uint32, (c_void_p, c_float,)),
    "greta_session_xtc": (c_uint32, (c_void_p, c_float, c_float,)),
    "greta_session_penalties": (c_uint32, (c_void_p, c_float, c_float, c_float, c_uint32,)),
    "greta_session_logit_bias": (c_uint32, (c_void_p, POINTER(c_int32), POINTER(c_float), c_size_t,)),
    "greta_session_dry": (c_uint32, (c_void_p, POINTER(greta_dry_options),)),
    "greta_session_mirostat": (c_uint32, (c_void_p, c_float, c_float,)),
    "greta_session_sampler_order": (c_uint32, (c_void_p, c_char_p,)),
    "greta_session_seed": (c_uint32, (c_void_p, c_uint64,)),
    "greta_session_sample": (c_uint32, (c_void_p, POINTER(c_float), POINTER(c_int32),)),
    "greta_session_logit_filter": (c_uint32, (c_void_p, greta_logit_filter, c_void_p,)),
    "greta_session_grammar": (c_uint32, (c_void_p, c_char_p, c_char_p,)),
    "greta_session_json_schema": (c_uint32, (c_void_p, c_char_p,)),
    "greta_session_strict_schema": (c_uint32, (c_void_p, c_char_p,)),
    "greta_session_draft_tokens": (c_uint32, (c_void_p, c_uint32,)),
    "greta_session_draft": (c_uint32, (c_void_p, POINTER(greta_draft_options),)),
    "greta_model_sampling": (c_uint32, (c_void_p, POINTER(greta_sampling_defaults),)),
    "greta_session_generate": (c_uint32, (c_void_p, POINTER(c_int32), c_size_t, POINTER(greta_generate_options), POINTER(greta_generate_result),)),
    "greta_batch_generate": (c_uint32, (POINTER(greta_generate_item), c_size_t,)),
    "greta_session_cancel": (None, (c_void_p,)),
    "greta_chat_open": (c_uint32, (c_void_p, POINTER(greta_chat_options), POINTER(c_void_p),)),
    "greta_chat_close": (None, (c_void_p,)),
    "greta_chat_add": (c_uint32, (c_void_p, POINTER(greta_message),)),
    "greta_chat_count": (c_uint32, (c_void_p,)),
    "greta_chat_get": (c_uint32, (c_void_p, c_uint32, POINTER(greta_message),)),
    "greta_chat_truncate": (c_uint32, (c_void_p, c_uint32,)),
    "greta_chat_render": (c_uint32, (c_void_p, c_int, c_void_p, c_size_t, POINTER(c_size_t),)),
    "greta_chat_answer": (c_uint32, (c_void_p, POINTER(greta_chat_answer_options), POINTER(greta_chat_result),)),
    "greta_service_open": (c_uint32, (c_void_p, POINTER(greta_service_options), POINTER(c_void_p),)),
    "greta_service_close": (None, (c_void_p,)),
    "greta_service_run": (c_uint32, (c_void_p,)),
    "greta_service_stop": (None, (c_void_p,)),
    "greta_service_describe": (c_uint32, (c_void_p, POINTER(greta_service_info),)),
    "greta_service_add": (c_uint32, (c_void_p, POINTER(greta_request_options), POINTER(c_void_p),)),
    "greta_service_forget": (c_uint32, (c_void_p, POINTER(c_int32), c_size_t, c_uint64, POINTER(c_size_t),)),
    "greta_service_prompt": (c_uint32, (c_void_p, POINTER(greta_request_options), CFUNCTYPE(c_int, c_void_p, POINTER(greta_prompt)), c_void_p,)),
    "greta_request_next": (c_uint32, (c_void_p, c_uint64, POINTER(greta_request_event),)),
    "greta_request_describe": (c_uint32, (c_void_p, POINTER(greta_request_info),)),
    "greta_request_cancel": (None, (c_void_p,)),
    "greta_request_finish": (c_uint32, (c_void_p, POINTER(greta_request_result),)),
    "greta_request_state_bytes": (c_uint64, (c_void_p,)),
    "greta_request_save": (c_uint32, (c_void_p, greta_write_callback, c_void_p,)),
    "greta_request_tokens": (c_uint32, (c_void_p, POINTER(POINTER(c_int32)), POINTER(c_size_t),)),
    "greta_request_close": (None, (c_void_p,)),
    "greta_runtime_selftest": (c_uint32, (c_void_p, POINTER(greta_selftest_options), POINTER(c_uint32),)),
    "greta_plan_explain": (c_uint32, (c_void_p, c_void_p, POINTER(greta_plan_options),)),
    "greta_runtime_tune": (c_uint32, (c_void_p, POINTER(greta_tune_options), POINTER(greta_tune_result),)),
    "greta_runtime_tuning_path": (c_uint32, (c_void_p, c_void_p, c_size_t, POINTER(c_size_t),)),
    "greta_runtime_tuning_import": (c_uint32, (c_void_p, c_void_p, c_size_t,)),
    "greta_tuning_read": (c_uint32, (c_void_p, c_size_t, CFUNCTYPE(c_int, c_void_p, POINTER(greta_tuning_candidate)), c_void_p,)),
    "greta_tuning_replay": (c_uint32, (c_void_p, c_size_t, greta_write_callback, c_void_p,)),
    "greta_runtime_try_kernel": (c_uint32, (c_void_p, POINTER(greta_kernel_options), POINTER(greta_kernel_result),)),
    "greta_session_profile": (c_uint32, (c_void_p, POINTER(c_int32), c_size_t, CFUNCTYPE(None, c_void_p, POINTER(greta_profile_stage)), c_void_p,)),
}
ENUMS: tuple[Any, ...] = (
    greta_status,
    greta_log_level,
    greta_graphs,
    greta_span_kind,
    greta_unused_verdict,
    greta_cache_type,
    greta_placement_kind,
    greta_adapter_kind,
    greta_encode_flags,
    greta_token_kind,
    greta_fill_token,
    greta_rows,
    greta_pooling,
    greta_draft_kind,
    greta_sampling_field,
    greta_stop_reason,
    greta_chat_part,
    greta_chat_end,
    greta_event_kind,
    greta_request_state,
)
STRUCTS: tuple[Any, ...] = (
    greta_span,
    greta_runtime_options,
    greta_device_info,
    greta_finding,
    greta_source,
    greta_tensor_info,
    greta_unused,
    greta_weights_check,
    greta_executor_options,
    greta_placement,
    greta_model_options,
    greta_memory_plan,
    greta_device_plan,
    greta_model_info,
    greta_adapter_options,
    greta_adapter_info,
    greta_message,
    greta_session_options,
    greta_batch_item,
    greta_embed_options,
    greta_dry_options,
    greta_draft_options,
    greta_sampling_defaults,
    greta_generate_options,
    greta_generate_result,
    greta_generate_item,
    greta_chat_options,
    greta_chat_event,
    greta_chat_answer_options,
    greta_chat_result,
    greta_service_options,
    greta_service_info,
    greta_sampling_options,
    greta_request_options,
    greta_prompt,
    greta_top_logprob,
    greta_request_event,
    greta_request_info,
    greta_request_result,
    greta_selftest_result,
    greta_selftest_progress,
    greta_selftest_options,
    greta_plan_passed,
    greta_plan_launch,
    greta_plan_options,
    greta_tune_progress,
    greta_tune_options,
    greta_tune_result,
    greta_tuning_candidate,
    greta_kernel_options,
    greta_kernel_result,
    greta_profile_stage,
)
