// Pieces that hold a whole unit.
uint row_of(uint piece) { return piece / 64 * 32 + piece % 32; }
uint side_of(uint piece) { return piece / 32 % 2; }
uint chunk_unit(uint side, uint chunk) { return side; }
uint chunk_word(uint side, uint chunk) { return chunk; }
