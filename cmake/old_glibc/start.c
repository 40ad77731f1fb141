/* The start of a program as with glibc 2.28 (GretaOldGlibc.cmake).
 *
 * Until 2.34 a program gave __libc_start_main the function that runs its constructors. Newer start-up code
 * (crt1.o) gives none, and expects libc to run them. The linker's --wrap leads its call here. */
typedef int Main(int count, char** words, char** environment);
typedef void Start(int count, char** words, char** environment);
extern Start* __init_array_start[];
extern Start* __init_array_end[];

extern int older_start_main(Main*, int, char**, Start*, void (*)(void), void (*)(void), void*);
__asm__(".symver older_start_main, __libc_start_main@GLIBC_2.2.5");

static void construct(int count, char** words, char** environment) {
  for (Start** each = __init_array_start; each != __init_array_end; ++each)
    (*each)(count, words, environment);
}

int __wrap___libc_start_main(Main* main, int count, char** words, Start* start, void (*end)(void),
                             void (*end_of_loader)(void), void* stack) {
  (void)start;
  return older_start_main(main, count, words, construct, end, end_of_loader, stack);
}
