/* Csmith asserts nothing that a program without undefined behaviour could break. */
#define assert(condition) ((void)0)
