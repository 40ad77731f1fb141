/* A library that uses one that embeds GRETA, and has not heard of GRETA itself. */
int inner_run(int argc, char** argv);
int outer_run(int argc, char** argv);
int outer_run(int argc, char** argv) { return inner_run(argc, argv); }
