// Pieces that hold 16 columns of one unit and the same 16 of the next: K types keep both in the same bytes.
// Two threads side by side bring a row's 32 bytes. Eight of them store to rows 0, 1, 4, 5 or 2, 3, 6, 7:
// different banks.
uint row_of(uint piece) { return piece / 16 * 8 + (piece >> 1 & 1 | piece & 4 | piece >> 2 & 2); }
uint side_of(uint piece) { return piece % 2; }
uint chunk_unit(uint side, uint chunk) { return chunk / 2; }
uint chunk_word(uint side, uint chunk) { return side * 2 + chunk % 2; }
