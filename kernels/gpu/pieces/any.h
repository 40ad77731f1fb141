// Types without a header of their own here: a piece is a whole unit, decoded as it is loaded.
uint row_of(uint piece) { return piece / 64 * 32 + piece % 32; }
uint side_of(uint piece) { return piece / 32 % 2; }
uint chunk_unit(uint side, uint chunk) { return side; }
uint chunk_word(uint side, uint chunk) { return chunk; }

struct Piece {
  uvec4 chunk[4];
};

void load_piece(INOUT(Piece) piece, uint64_t row, uint depth, uint column, uint side) {
#ifdef GL_core_profile
  piece = Piece(uvec4[4](uvec4(0), uvec4(0), uvec4(0), uvec4(0)));
#else
  piece = {};
#endif
  const uint unit = column / 32 + side;
  if (unit * 32 >= depth) return;
  float w[kUnit];
  quant_decode(row, depth, unit, w);
  [[unroll]] for (int i = 0; i < 16; ++i)
    piece.chunk[i / 4][i % 4] =
        half_pair(clamp(vec2(w[i * 2], w[i * 2 + 1]), vec2(-kMaxHalf), vec2(kMaxHalf)));
}

bool may_overflow(Piece piece) { return false; }

uvec4 chunk_of(Piece piece, uint column, uint side, uint chunk, bool clip) { return piece.chunk[chunk]; }
