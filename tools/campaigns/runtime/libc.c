/* The C library of a campaign's programs, and the kernel that calls their main().
 *
 * Self-checking test programs need little: to end, to compare and copy memory, to allocate once.
 * Everything is plain C that the compiler turns into ordinary code for the target; nothing here is
 * fast, and nothing is thread-safe: a program runs as one work-item.
 *
 * Compiled with -fno-builtin, so that the loop in memcpy does not become a call of memcpy.
 */
#include "result.h"

typedef __SIZE_TYPE__ size_t;

int main(); /* K&R: programs define it with and without arguments */
#ifndef MAIN
#define MAIN() main(1, arguments, arguments + 1)
static char *arguments[] = {"program", 0};
#endif

static struct result *result;

static void __attribute__((noreturn)) end(enum state state, int code) {
  result->exit_code = (unsigned)code;
  result->state = state;
  __builtin_amdgcn_endpgm();
}

void __attribute__((noreturn)) abort(void) { end(STATE_ABORTED, 0); }
void __attribute__((noreturn)) exit(int code) { end(STATE_EXITED, code); }

__attribute__((device_kernel)) void entry(struct result *out) {
  result = out;
  result->state = STATE_STARTED;
  exit(MAIN());
}

/* Memory is handed out from one block and never taken back. */

#define HEAP_BYTES (1u << 20)
#define HEAP_ALIGN 16u

static char heap[HEAP_BYTES] __attribute__((aligned(HEAP_ALIGN)));
static size_t heap_used;

void *malloc(size_t bytes) {
  const size_t rounded = (bytes + HEAP_ALIGN - 1) & ~(size_t)(HEAP_ALIGN - 1);
  char *block = heap + heap_used;
  if (rounded < bytes || rounded > HEAP_BYTES - heap_used) return 0;
  heap_used += rounded;
  return block;
}

void free(void *block) { (void)block; }

void *memset(void *to, int byte, size_t bytes) {
  unsigned char *t = to;
  size_t i;
  for (i = 0; i < bytes; ++i) t[i] = (unsigned char)byte;
  return to;
}

void *calloc(size_t count, size_t bytes) {
  size_t total;
  void *block;
  if (__builtin_mul_overflow(count, bytes, &total)) return 0;
  block = malloc(total);
  return block ? memset(block, 0, total) : 0;
}

void *memcpy(void *to, const void *from, size_t bytes) {
  unsigned char *t = to;
  const unsigned char *f = from;
  size_t i;
  for (i = 0; i < bytes; ++i) t[i] = f[i];
  return to;
}

void *memmove(void *to, const void *from, size_t bytes) {
  unsigned char *t = to;
  const unsigned char *f = from;
  if (t <= f) return memcpy(to, from, bytes);
  while (bytes) {
    --bytes;
    t[bytes] = f[bytes];
  }
  return to;
}

int memcmp(const void *left, const void *right, size_t bytes) {
  const unsigned char *l = left, *r = right;
  size_t i;
  for (i = 0; i < bytes; ++i)
    if (l[i] != r[i]) return l[i] < r[i] ? -1 : 1;
  return 0;
}

size_t strlen(const char *text) {
  const char *end_of_text = text;
  while (*end_of_text) ++end_of_text;
  return (size_t)(end_of_text - text);
}

int strncmp(const char *left, const char *right, size_t limit) {
  const unsigned char *l = (const unsigned char *)left, *r = (const unsigned char *)right;
  size_t i;
  for (i = 0; i < limit; ++i) {
    if (l[i] != r[i]) return l[i] < r[i] ? -1 : 1;
    if (!l[i]) break;
  }
  return 0;
}

int strcmp(const char *left, const char *right) { return strncmp(left, right, ~(size_t)0); }

char *strcpy(char *to, const char *from) {
  memcpy(to, from, strlen(from) + 1);
  return to;
}

char *strchr(const char *text, int wanted) {
  for (;; ++text) {
    if (*text == (char)wanted) return (char *)text;
    if (!*text) return 0;
  }
}

int abs(int value) { return value < 0 ? -value : value; }
