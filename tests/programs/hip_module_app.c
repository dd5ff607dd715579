/* An ordinary HIP module program: hip_module_app KERNEL.co
 *
 * It knows nothing of the simulator.  It runs add_step(data, step) on 192 words, once with
 * kernelParams, once with the argument buffer and twice from a captured graph, and checks the
 * words.  Declarations are its own: no HIP header is needed to build it.
 */
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { hipMemcpyHostToDevice = 1, hipMemcpyDeviceToHost = 2, hipStreamNonBlocking = 1 };
enum { PROPERTIES = 1472, WARP_SIZE = 308, ARCH_NAME = 1160 };

int hipInit(unsigned);
int hipGetDeviceCount(int*);
int hipGetDevicePropertiesR0600(void*, int);
const char* hipGetErrorString(int);
int hipMalloc(void**, size_t);
int hipFree(void*);
int hipMemcpy(void*, const void*, size_t, int);
int hipPointerGetAttribute(void*, int, void*);
int hipModuleLoad(void**, const char*);
int hipModuleUnload(void*);
int hipModuleGetFunction(void**, void*, const char*);
int hipModuleLaunchKernel(void*, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,
                          unsigned, void*, void**, void**);
int hipStreamCreateWithFlags(void**, unsigned);
int hipStreamSynchronize(void*);
int hipStreamDestroy(void*);
int hipStreamBeginCapture(void*, int);
int hipStreamEndCapture(void*, void**);
int hipGraphInstantiate(void**, void*, void**, char*, size_t);
int hipGraphGetNodes(void*, void**, size_t*);
int hipGraphNodeGetType(void*, int*);
int hipGraphUpload(void*, void*);
int hipGraphLaunch(void*, void*);
int hipGraphExecDestroy(void*);
int hipGraphDestroy(void*);

#define CHECK(call)                                                                   \
  do {                                                                                \
    const int code_ = (call);                                                         \
    if (code_ != 0) {                                                                 \
      fprintf(stderr, "%s:%d: %s: %d %s\n", __FILE__, __LINE__, #call, code_,         \
              hipGetErrorString(code_));                                              \
      return 1;                                                                       \
    }                                                                                 \
  } while (0)

enum { GROUPS = 3, BLOCK = 64, WORDS = GROUPS * BLOCK };

int main(int argc, char** argv) {
  if (argc != 2) {
    fprintf(stderr, "usage: hip_module_app KERNEL.co\n");
    return 2;
  }
  int devices = 0, warp = 0;
  char properties[PROPERTIES];
  CHECK(hipInit(0));
  CHECK(hipGetDeviceCount(&devices));
  CHECK(hipGetDevicePropertiesR0600(properties, 0));
  memcpy(&warp, properties + WARP_SIZE, sizeof warp);

  uint32_t words[WORDS];
  for (int i = 0; i < WORDS; ++i) words[i] = i;
  void* data = NULL;
  CHECK(hipMalloc(&data, sizeof words));
  CHECK(hipMemcpy(data, words, sizeof words, hipMemcpyHostToDevice));
  size_t size = 0;
  CHECK(hipPointerGetAttribute(&size, 12, data)); /* RANGE_SIZE */
  if (size != sizeof words) return 1;

  void *module = NULL, *function = NULL, *stream = NULL;
  CHECK(hipModuleLoad(&module, argv[1]));
  CHECK(hipModuleGetFunction(&function, module, "add_step"));
  CHECK(hipStreamCreateWithFlags(&stream, hipStreamNonBlocking));

  uint32_t step = 1000;
  void* params[] = {&data, &step};
  CHECK(hipModuleLaunchKernel(function, GROUPS, 1, 1, BLOCK, 1, 1, 0, stream, params, NULL));

  struct {
    void* data;
    uint32_t step, padding;
  } arguments = {data, 20000, 0};
  size_t arguments_size = sizeof arguments;
  void* extra[] = {(void*)1, &arguments, (void*)2, &arguments_size, (void*)3};
  CHECK(hipModuleLaunchKernel(function, GROUPS, 1, 1, BLOCK, 1, 1, 0, stream, NULL, extra));

  void *graph = NULL, *run = NULL, *node = NULL;
  size_t nodes = 1;
  int type = -1;
  arguments.step = 300000;
  CHECK(hipStreamBeginCapture(stream, 1));
  CHECK(hipModuleLaunchKernel(function, GROUPS, 1, 1, BLOCK, 1, 1, 0, stream, NULL, extra));
  CHECK(hipStreamEndCapture(stream, &graph));
  CHECK(hipGraphGetNodes(graph, &node, &nodes));
  CHECK(hipGraphNodeGetType(node, &type));
  if (nodes != 1 || type != 0) return 1;
  CHECK(hipGraphInstantiate(&run, graph, NULL, NULL, 0));
  CHECK(hipGraphUpload(run, stream));
  CHECK(hipGraphLaunch(run, stream));
  CHECK(hipGraphLaunch(run, stream));
  CHECK(hipStreamSynchronize(stream));

  CHECK(hipMemcpy(words, data, sizeof words, hipMemcpyDeviceToHost));
  for (uint32_t i = 0; i < WORDS; ++i) {
    if (words[i] != i + 1000 + 20000 + 2 * 300000) {
      fprintf(stderr, "words[%u] is %u\n", i, words[i]);
      return 1;
    }
  }
  CHECK(hipGraphExecDestroy(run));
  CHECK(hipGraphDestroy(graph));
  CHECK(hipStreamDestroy(stream));
  CHECK(hipModuleUnload(module));
  CHECK(hipFree(data));
  printf("%d device(s), %s, warp size %d: good\n", devices, properties + ARCH_NAME, warp);
  return 0;
}
