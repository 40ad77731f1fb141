// Pieces of the K types in planes: a whole unit where both units are stored at a time, else 16 columns of
// each. Two threads side by side bring the 32 bytes of a row, and eight store to different banks.
uint row_of(uint piece) {
  return kSteps == 1 ? piece / 2 : piece / 16 * 8 + (piece >> 1 & 1 | piece & 4 | piece >> 2 & 2);
}
const uint kUnits = kSteps == 1 ? 1 : 2;  // of a piece
uint side_of(uint piece) { return piece % 2; }
uint chunk_unit(uint side, uint chunk) { return kSteps == 1 ? side : chunk / 2; }
uint chunk_word(uint side, uint chunk) { return kSteps == 1 ? chunk : side * 2 + chunk % 2; }
