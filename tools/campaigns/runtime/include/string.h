#ifndef NETRA_STRING_H
#define NETRA_STRING_H
typedef __SIZE_TYPE__ size_t;
void *memcpy(void *to, const void *from, size_t bytes);
void *memmove(void *to, const void *from, size_t bytes);
void *memset(void *to, int byte, size_t bytes);
int memcmp(const void *left, const void *right, size_t bytes);
int strcmp(const char *left, const char *right);
#endif
