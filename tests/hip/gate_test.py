"""Each rule of the gate fails on a kernel that was planted to break it, and what has grown is seen.

    gate_test.py CLANG LLVM

Planted kernels are compiled by CLANG, for targets that every clang from 19 on knows, and for gfx950, which 20 knows.
"""
import concurrent.futures
import os
import subprocess
import sys
import tempfile
import unittest

import code_paths
import gate
import machine_code

CLANG, LLVM = sys.argv[1:3]
FLAGS = ("-x hip --offload-device-only --no-gpu-bundle-output -nogpuinc -nogpulib -O3 -std=c++20 -fuse-cuid=none "
         "-mcode-object-version=5").split()
HEAD = """
#define GROUP(n) __attribute__((global, amdgpu_flat_work_group_size(1, n)))
#define SHARED __attribute__((shared))
#define DEVICE __attribute__((device))
using uint = unsigned;
using uint4 = uint __attribute__((ext_vector_type(4)));
template <class T, int count>
using Vector = T __attribute__((ext_vector_type(count)));
#define UNROLL _Pragma("unroll")
DEVICE inline uint lane() { return __builtin_amdgcn_workitem_id_x(); }
"""
KEPT = "UNROLL for (int i = 0; i < %d; ++i) asm volatile(\"v_mov_b32 %%0, %%1\" : \"=v\"(a[i]) : \"v\"(y[i]));"
HELD = "{ float a[%d]; " + KEPT + " UNROLL for (int i = 0; i < %d; ++i) y[lane() + i] = a[%d - i]; }"


def held(count):
    """A body that has `count` values in registers at once."""
    return HELD % (count, count, count, count - 1)


LOAD = "uint4 w = x[lane()]; "
DOT = "__builtin_amdgcn_sdot4(int(w.x), int(w.y), 0, false)"
DOT_11 = "__builtin_amdgcn_sudot4(true, int(w.x), true, int(w.y), 0, false)"
# A loop with `%s` as its product, and many more instructions.
SLOW = """(const uint4* x, uint* y, uint n) {
  uint sum = 0;
  for (uint i = 0; i < n; ++i) {
    uint4 w = x[i * 64 + lane()];
    sum += %s;
    UNROLL for (int j = 0; j < 24; ++j) sum = (sum ^ sum >> 5) * 77777u + w.z;
  }
  y[lane()] = sum;
}"""
# A loop with a matrix instruction, and many more.
TILE = """(const Vector<_Float16, %(values)d>* x, Vector<float, %(sums)d>* y, uint* z, uint n) {
  Vector<float, %(sums)d> sums = {};
  const auto a = x[lane()], b = x[lane() + 64];
  uint last = 0;
  for (uint i = 0; i < n; ++i) {
    sums = __builtin_amdgcn_%(product)s;
    UNROLL for (int j = 0; j < 8; ++j) last = (last ^ last >> 5) * 77777u + i;
  }
  y[lane()] = sums;
  z[lane()] = last;
}"""
TILE_9 = TILE % {"values": 4, "sums": 4, "product": "mfma_f32_16x16x16f16(a, b, sums, 0, 0, 0)"}
TILE_950 = TILE % {"values": 8, "sums": 4, "product": "mfma_f32_16x16x32_f16(a, b, sums, 0, 0, 0)"}
TILE_11 = TILE % {"values": 16, "sums": 8, "product": "wmma_f32_16x16x16_f16_w32(a, b, sums)"}
# A loop whose loads are waited for before its matrix instruction, and a register that is indexed.
LATE_9 = """(const Vector<_Float16, 4>* x, Vector<float, 4>* y, uint n) {
  Vector<float, 4> sums = {};
  for (uint i = 0; i < n; ++i) {
    const auto a = x[i * 64 + lane()];
    sums = __builtin_amdgcn_mfma_f32_16x16x16f16(a, a, sums, 0, 0, 0);
  }
  y[lane()] = sums;
}"""
INDEXED_9 = """(const Vector<float, 16>* x, Vector<float, 16>* y, uint n) {
  Vector<float, 16> a = x[lane()];
  const Vector<_Float16, 4> b = {};
  a[n] = 7;
  Vector<float, 4> sums = __builtin_amdgcn_mfma_f32_16x16x16f16(b, b, a.xyzw, 0, 0, 0);
  a.xyzw = sums;
  y[lane()] = a;
}"""
TICKET = """(uint* count, uint* y) {
  y[lane()] = lane();
  %s
  uint last = __hip_atomic_fetch_add(count, 1u, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_AGENT);
  %s
  if (last == 7) y[64] = y[lane() ^ 1] + 1;
}"""
RELEASE, ACQUIRE = ('__builtin_amdgcn_fence(__ATOMIC_%s, "agent");' % word for word in ("RELEASE", "ACQUIRE"))

FEW_SCALARS = "__attribute__((amdgpu_num_sgpr(24)))"
SCALARS = """(uint* y, uint n) {
  uint a[%d];
  UNROLL for (int i = 0; i < %d; ++i) asm volatile("s_mov_b32 %%0, %%1" : "=s"(a[i]) : "s"(n));
  UNROLL for (int i = 0; i <= %d; ++i) asm volatile("s_mov_b32 s0, %%0" :: "s"(a[i]) : "s0");
}"""

# Name, target, the rules that it breaks, what stands in front of the name, parameters and body; flags.
PLANTED = [
    ("right", "gfx942", "", "", "(float* y) { y[lane()] = 1; }"),
    ("right_ticket", "gfx942", "", "", TICKET % (RELEASE, ACQUIRE)),
    ("right_ticket", "gfx90a", "", "", TICKET % (RELEASE, ACQUIRE)),
    ("right_ticket", "gfx1030", "", "", TICKET % (RELEASE, ACQUIRE)),
    ("right_ticket", "gfx1100", "", "", TICKET % (RELEASE, ACQUIRE)),
    ("right_ticket", "gfx1201", "", "", TICKET % (RELEASE, ACQUIRE)),
    ("unreleased", "gfx942", "ticket", "", TICKET % ("", ACQUIRE)),
    ("decode_stages", "gfx942", "meetings", "", TICKET % (RELEASE, ACQUIRE)),
    ("unacquired", "gfx942", "ticket", "", TICKET % (RELEASE, "")),
    ("unacquired", "gfx90a", "ticket", "", TICKET % (RELEASE, "")),
    ("unacquired", "gfx1030", "ticket", "", TICKET % (RELEASE, "")),
    ("unacquired", "gfx1100", "ticket", "", TICKET % (RELEASE, "")),
    ("unreleased", "gfx1201", "ticket", "", TICKET % ("", ACQUIRE)),
    ("unacquired", "gfx1201", "ticket", "", TICKET % (RELEASE, "")),
    ("flat", "gfx942", "flat", "", "(float** y) { *y[lane()] = 1; }"),
    ("scratch", "gfx1100", "scratch", "",
     "(uint* y) { uint a[40]; for (uint i = 0; i < 40; ++i) a[i] = y[i * 7]; y[0] = a[y[lane()] % 40]; }"),
    ("vector_spill", "gfx942", "spilled vector registers,scratch", "__attribute__((amdgpu_num_vgpr(24)))",
     "(float* y) " + held(60)),
    ("scalar_spill", "gfx942", "spilled scalar registers", FEW_SCALARS, SCALARS % (60, 60, 59)),
    ("attention_behind", "gfx942", "spilled scalar registers", FEW_SCALARS, SCALARS % (60, 60, 59)),
    ("calls", "gfx942", "calls", "", "(float* y) { y[lane()] = far(y[lane() + 1]); }"),
    ("group", "gfx1201", "group", "", "(float* y) { y[lane()] = 1; }"),
    ("matmul_rows_f32_group", "gfx1201", "group,16-byte loads,products of bytes", "", "(float* y) { y[lane()] = 1; }"),
    ("wave", "gfx1100", "wave", "", "(float* y) { y[lane()] = 1; }", "-mwavefrontsize64"),
    ("hidden", "gfx942", "hidden arguments", "",
     "(uint* y) { y[lane()] = ((const __attribute__((address_space(4))) uint*)__builtin_amdgcn_implicitarg_ptr())[0]; }"),
    ("many", "gfx942", "vector registers", "", "(float* y) " + held(140)),
    ("many", "gfx1100", "vector registers", "", "(float* y) " + held(210)),
    ("scan_chunks", "gfx942", "scan registers", "", "(float* y) " + held(270)),
    ("shared", "gfx942", "shared memory", "",
     "(float* y) { SHARED float a[12000]; a[lane() * 99] = y[0]; __builtin_amdgcn_s_barrier(); y[1] = a[lane() * 98]; }"),
    ("matmul_tiles_mfma_q8_0", "gfx942", "", "", TILE_9),
    ("matmul_tiles_mfma_q4_k", "gfx942", "tile loop,prefetch", "", TILE_9),
    ("matmul_tiles_wmma_q4_k", "gfx1100", "tile loop,prefetch", "", TILE_11),
    ("matmul_wide_mfma_q8_0", "gfx942", "turns,prefetch", "", TILE_9),
    ("matmul_wide_mfma_q4_k", "gfx942", "turns,tile loop,prefetch", "", TILE_9),
    ("matmul_tiles_mfma_f16", "gfx942", "matrix instructions,tile registers,prefetch", "", "(float* y) " + held(270)),
    ("matmul_tiles_wmma_q4_k_planes", "gfx1100", "matrix instructions,tile registers,tile loop,prefetch", "", "(float* y) " + held(248)),
    ("matmul_tiles_mfma_f32", "gfx942", "tile memory,matrix instructions", "",
     "(float* y) { SHARED float a[12000]; a[lane() * 99] = y[0]; __builtin_amdgcn_s_barrier(); y[1] = a[lane() * 98]; }"),
    ("attention_tiles_mfma", "gfx942", "attention loop,prefetch", "", TILE_9),
    ("attention_wide_mfma", "gfx942", "attention loop", "", TILE_9),
    ("attention_tiles_wmma", "gfx1100", "attention loop,prefetch", "", TILE_11),
    ("attention_wide_wmma", "gfx1100", "attention loop", "", TILE_11),
    ("attention_tiles_mfma", "gfx90a", "matrix instructions,attention registers,attention loop,prefetch", "", "(float* y) " + held(180)),
    ("attention_wide_mfma", "gfx90a", "matrix instructions,attention registers,attention loop", "", "(float* y) " + held(140)),
    ("products_mfma", "gfx942", "products loop", "", TILE_9),
    ("attention_prefix_mfma", "gfx942", "prefetch", "", LATE_9),
    ("attention_prefix_wmma", "gfx1100", "attention loop,prefetch", "", TILE_11),
    ("attention_prefix_wmma", "gfx1201", "matrix instructions,attention loop,prefetch", "", "(float* y) { y[lane()] = 1; }"),
    ("matmul_tiles_mfma_f16", "gfx90a", "prefetch", "", LATE_9),
    ("matmul_expert_tiles_mfma_mxfp4", "gfx942", "indexed registers", "", INDEXED_9),
    ("matmul_rows_q8_0", "gfx942", "16-byte loads", "",
     "(const uint* x, uint* y) { y[lane()] = __builtin_amdgcn_sdot4(x[lane() * 3], x[lane() * 5], 0, false); }"),
    ("matmul_rows_q8_0", "gfx1201", "products of bytes", "", "(const uint4* x, uint* y) { " + LOAD + "y[lane()] = w.x * w.y; }"),
    ("matmul_rows_q4_k", "gfx942", "row loop,row group", "", SLOW % DOT),
    ("matmul_rows_q4_k", "gfx1100", "row loop", "", SLOW % DOT_11),
    ("matmul_rows_q4_k", "gfx1201", "row loop", "", SLOW % DOT_11),
    ("matmul_rows_q4_k_planes", "gfx942", "row registers,row loop,row group", "",
     "(const uint4* x, float* y) { " + LOAD + "y[lane()] = " + DOT + "; " + held(100)[1:]),
    ("matmul_rows_q4_k_planes", "gfx1201", "row registers,row loop", "",
     "(const uint4* x, float* y) { " + LOAD + "y[lane()] = " + DOT_11 + "; " + held(110)[1:]),
]
PLANTED_GFX950 = [
    ("matmul_tiles_mfma_q4_k", "gfx950", "tile loop,prefetch", "", TILE_950),
    ("matmul_wide_mfma_q4_k", "gfx950", "turns,tile loop,prefetch", "", TILE_950),
    ("attention_tiles_mfma", "gfx950", "attention loop,prefetch", "", TILE_950),
    ("attention_wide_mfma", "gfx950", "attention loop", "", TILE_950),
    ("products_mfma", "gfx950", "products loop", "", TILE_950),
]
KNOWS_GFX950 = int(gate.clang_version(CLANG)) >= 20
if KNOWS_GFX950:
    PLANTED += PLANTED_GFX950


def compiled(folder, plant):
    """Compiles a planted kernel; a line for the gate."""
    name, target, _, before, rest, *flags = plant
    source = os.path.join(folder, f"{name}.{target}.hip")
    group = "" if "group" in name else "amdgpu_flat_work_group_size(1, 64)"
    with open(source, "w", encoding="utf-8") as file:
        file.write(HEAD + "DEVICE __attribute__((noinline)) float far(float x) { return __builtin_sqrtf(x) * x; }\n"
                   f'extern "C" __attribute__((global, {group})) {before} void {name}{rest}\n')
    subprocess.run([CLANG, *FLAGS, f"--offload-arch={target}", *flags, source, "-o", source + ".co"], check=True)
    return "\t".join([name, target, "64", source, source + ".co"])


def planted_kernels(folder):
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        lines = list(pool.map(lambda plant: compiled(folder, plant), PLANTED))
    path = os.path.join(folder, "kernels.tsv")
    with open(path, "w", encoding="utf-8") as file:
        file.write("\n".join(lines))
    return gate.read_kernels(path, [], LLVM)


class Gate(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(cls.folder.cleanup)
        cls.kernels = planted_kernels(cls.folder.name)

    def test_each_planted_kernel_breaks_its_rules_alone(self):
        for kernel, plant in zip(self.kernels, PLANTED):
            said = [wrong for _, wrong in gate.failures_of([kernel], {})]
            with self.subTest(kernel=kernel.name, target=kernel.target, said=said):
                self.assertEqual(set(filter(None, plant[2].split(","))), {text.split(":")[0] for text in said})

    def test_no_rule_is_without_a_planted_kernel(self):
        for rule in gate.RULES:
            if rule.targets == "gfx950" and not KNOWS_GFX950:
                continue
            with self.subTest(rule=rule.name, targets=rule.targets):
                self.assertTrue(any(rule.covers(kernel) and rule.broken(kernel) for kernel in self.kernels))

    def test_what_has_grown_is_seen_in_every_column(self):
        kernel = next(kernel for kernel in self.kernels if kernel.name == "many")
        path = os.path.join(self.folder.name, "baseline.tsv")
        gate.write_baseline(path, [kernel])
        before = gate.read_baseline(path)[kernel.name]
        self.assertEqual([], list(gate.grown(kernel, before)))
        now = gate.figures(kernel)
        for column, value in {"vgprs": 5, "sgprs": 17, "bytes": 700}.items():
            less = {**before, column: now[column] - value}
            self.assertEqual([f"{now[column]} {column}, the baseline has {less[column]:g}"], list(gate.grown(kernel, less)))
        row = next(kernel for kernel in self.kernels if kernel.name == "matmul_rows_q4_k")
        before = gate.figures(row)
        self.assertTrue(list(gate.grown(row, {**before, "loop": before["loop"] * 0.9})))

    def test_a_loop_is_counted_to_the_instruction(self):
        row = next(kernel for kernel in self.kernels if kernel.name == "matmul_rows_q4_k")
        loop = row.row_loop()
        self.assertEqual(1, len(machine_code.dots(loop)))
        self.assertRegex(loop[-1], "^s_cbranch")
        self.assertAlmostEqual(len(loop) / 4, machine_code.instructions_a_weight(row))

    def test_others_are_counted_beside_matrix_instructions(self):
        tile = next(kernel for kernel in self.kernels if kernel.name == "matmul_tiles_mfma_q8_0")
        loop = tile.tile_loop()
        self.assertEqual(1, len(machine_code.matrix_products(loop)))
        self.assertEqual(len(loop) - 1, machine_code.others_a_product(tile))
        self.assertEqual(len(loop) - 1, gate.figures(tile)["loop"])

    def test_a_load_is_under_way_over_the_shortest_way_to_its_wait(self):
        product, load = "v_mfma_f32_16x16x16_f16 a0, v0, v1, a0", "global_load_dword v1, v2, s[0:1]"
        loop = [load, product, "s_cbranch_vccz 20", product, "s_waitcnt vmcnt(%d)", "s_cbranch_scc1 0", "s_endpgm"]
        later = [load, load, *loop[1:]]
        cases = [(loop, 0, 1), (loop, 1, 2), (loop, 64, None), (later, 1, 1), (later, 2, 2)]
        for texts, left, least in cases:
            to = {"s_cbranch_vccz 20": texts.index("s_waitcnt vmcnt(%d)"), "s_cbranch_scc1 0": 0}
            lines = [(0, 4, "s_nop 1", None)]
            lines += [(4 * i + 4, 4, text.replace("%d", str(left)), to[text] * 4 + 4 if text in to else None)
                      for i, text in enumerate(texts)]
            kernel = machine_code.Kernel("tile", "gfx942", 64, {}, [], lines)
            paths = code_paths.Paths(kernel)
            with self.subTest(left=left, loads=texts.count(load)):
                self.assertEqual(least, paths.products_to_wait(1))

    def test_a_whole_group_is_its_loop_and_the_shortest_way_around_it(self):
        texts = ["s_cbranch_execz 7", "s_cbranch_scc1 3", "s_nop 0", "v_dot4_i32_i8 v0, v1, v2, v0", "s_cbranch_scc0 3",
                 "s_nop 1", "s_endpgm", "s_endpgm"]
        lines = [(4 * i, 4, text, int(text.split()[1]) * 4 if "branch" in text else None) for i, text in enumerate(texts)]
        kernel = machine_code.Kernel("row", "gfx942", 64, {}, [], lines)
        self.assertEqual((2 + 3 * 2 + 1) / (3 * 4), code_paths.whole_group_a_weight(kernel, 3))

    def test_blocks_behind_the_end_of_a_loop_are_of_it(self):
        texts = ["s_branch 3", "v_mfma_f32_16x16x16_f16 a0, v0, v1, a0", "s_cbranch_scc0 6", "s_waitcnt vmcnt(0)",
                 "s_branch 1", "s_endpgm", "global_load_dword v1, v2, s[0:1]", "s_branch 3"]
        to = {0: 12, 2: 24, 4: 4, 7: 12}
        lines = [(4 * i, 4, text, to.get(i)) for i, text in enumerate(texts)]
        kernel = machine_code.Kernel("tile", "gfx942", 64, {}, [], lines)
        self.assertEqual([{1, 2, 3, 4, 6, 7}], code_paths.Paths(kernel).loops())
        self.assertEqual([0], code_paths.products_under_way(kernel))

    def test_a_loop_ends_at_the_last_of_its_branches(self):
        texts = ["s_nop 1", "v_dot4_i32_i8 v0, v1, v2, v0", "s_cbranch_scc1 4", "global_load_dword v1, v2, s[0:1]", "s_branch 4",
                 "s_endpgm"]
        lines = [(4 * i, 4, text, 4 if "branch" in text else None) for i, text in enumerate(texts)]
        self.assertEqual([texts[1:5]], machine_code.Kernel("row", "gfx942", 64, {}, [], lines).loops())


if not gate.tools_are_there(LLVM):
    sys.exit(77)
unittest.main(argv=sys.argv[:1], verbosity=2)
