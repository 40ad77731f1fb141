// Behind a kernel's source that is compiled as a body of decode_stages.
#define STAGE_NAMED(name) stage_##name
#define STAGE_OF(name) STAGE_NAMED(name)
extern "C" __attribute__((device, always_inline)) void STAGE_OF(KERNEL_NAME)() {
  KERNEL_NAME(*(const BLOCK*)argument_block());
}
