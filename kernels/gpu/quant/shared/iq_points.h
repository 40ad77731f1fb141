// A grid's points (kernels/tables) as constants, eight of 16 bits in each: an array of so many constants
// takes drivers long to compile, and threads to read.
#define POINTS(a, b, c, d, e, f, g, h) uvec4(a | b << 16, c | d << 16, e | f << 16, g | h << 16)
