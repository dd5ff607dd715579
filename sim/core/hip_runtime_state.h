// What the HIP functions share: devices, streams, captures, handles, and the rules about errors.
//
// Families live in hip_device, hip_memory, hip_module, hip_launch, hip_stream, hip_capture and, for
// graphs, hip_graph (as a whole), hip_graph_nodes (what they are made of), hip_graph_params (what a
// node does) and hip_graph_query (what there is) .cc.
// Work runs synchronously: a call returns when its work is done. All work passes submit(), so an
// asynchronous executor would change that function and nothing else.
//
// Locks: Runtime::mutex guards handles and captures and is never held while work runs;
// Device::work is held by the one operation that runs on the device. Order: work before mutex.
#pragma once

#include <chrono>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <variant>
#include <vector>

#include "code_object.h"
#include "hip_abi.h"
#include "machine.h"
#include "memory.h"

namespace netra::hip {

struct Function {
  std::weak_ptr<Module> module;   // expired once unloaded: a graph may outlive its module
  const Kernel* kernel = nullptr; // valid while the module lives
  std::string name;
  uint64_t kernarg = 0;           // its kernarg segment's region, made by the first launch
};

struct Module {
  std::shared_ptr<CodeObject> object;
  int device = 0;
  std::map<std::string, std::shared_ptr<Function>> functions;
  ~Module();
};

// Operations: what a stream executes and a graph records.
struct KernelOp {
  std::shared_ptr<Function> function;
  uint32_t grid[3] = {1, 1, 1};    // workgroups
  uint32_t block[3] = {1, 1, 1};   // work-items
  uint32_t dynamic_lds = 0;
  std::vector<uint8_t> kernarg;    // the whole segment, hidden arguments included
  bool by_extra = false;           // how the caller passed the arguments
};
struct CopyOp {
  void* dst = nullptr;
  const void* src = nullptr;
  uint64_t bytes = 0;
  hipMemcpyKind kind = hipMemcpyDefault;
};
struct FillOp {
  void* dst = nullptr;
  uint32_t value = 0;
  uint32_t element = 1;   // bytes: 1, 2 or 4
  uint64_t count = 0;     // elements of a row
  uint64_t rows = 1;
  uint64_t pitch = 0;     // bytes from one row to the next, when there are several
};
struct HostOp {
  hipHostFn_t function = nullptr;
  void* data = nullptr;
};
struct EmptyOp {};   // a node that only orders others
struct ChildOp {
  std::shared_ptr<Graph> graph;   // the node's own copy
};
struct EventWaitOp {
  std::shared_ptr<Event> event;
};
struct EventRecordOp {
  std::shared_ptr<Event> event;
};
// Memory that a captured hipMallocAsync gave out. It has its address from the capture on and lives
// as long as a graph, template or executable, that allocates it.
struct Allocation {
  void* base = nullptr;
  std::string name;   // the region's
  ~Allocation();
};
struct AllocOp {
  std::shared_ptr<Allocation> memory;
};
struct FreeOp {
  std::shared_ptr<Allocation> memory;   // of the same graph; null: a hipMalloc at `pointer`
  void* pointer = nullptr;
};
// In the order of kNodeTypes (hip_graph_query.cc).
using Operation = std::variant<KernelOp, CopyOp, FillOp, HostOp, EmptyOp, ChildOp, EventWaitOp,
                               EventRecordOp, AllocOp, FreeOp>;

struct Node {
  Operation operation;
  std::vector<Node*> after;   // dependencies
  const Node* original = nullptr;   // in a clone; only compared, never followed
  // What hipGraphKernelNodeGetParams points into.
  std::vector<void*> view_params;
  size_t view_size = 0;
  void* view_extra[5] = {};
};

struct Graph {
  std::vector<std::unique_ptr<Node>> nodes;   // in the order of their making
  const Graph* original = nullptr;            // of a clone; only compared
};

struct Exec {
  struct Step {
    const Node* origin = nullptr;   // only compared, never followed: the graph may be gone
    Operation operation;
    size_t made = 0;                // the node's place in the order of making
    std::vector<size_t> after;      // the same of its dependencies
    bool enabled = true;
    std::shared_ptr<Exec> child;    // of a child graph
  };
  std::vector<Step> steps;          // each after those that it depends on
};

// A capture from begin to end. Streams that wait for one of its events join it.
struct Capture {
  uint64_t id = 0;
  hipStreamCaptureMode mode = hipStreamCaptureModeGlobal;
  std::thread::id thread;
  bool invalid = false;
  bool open = true;
  std::unique_ptr<Graph> graph;
  std::vector<std::shared_ptr<Stream>> streams;   // origin first, then those that joined
};

struct Stream {
  int device = 0;
  unsigned flags = 0;
  int priority = 0;
  bool is_null = false;
  std::shared_ptr<Capture> capture;
  std::vector<Node*> tail;   // nodes that the next captured operation comes after
};

struct Event {
  unsigned flags = 0;
  int device = 0;
  bool recorded = false;
  std::chrono::steady_clock::time_point time;
  std::shared_ptr<Capture> capture;   // the capture that it was last recorded in
  std::vector<Node*> nodes;           // the stream's tail then
};

struct Device {
  int index = 0;
  const Target* target = nullptr;
  uint64_t used = 0;              // bytes of hipMalloc
  // Recursive, since a host function runs while its stream's operation does. HIP forbids it to call
  // HIP; one that does gets its work done at once instead of a deadlock.
  std::recursive_mutex work;
  int fault = 0;                  // sticky: 700 or 719
  bool fault_reported = false;    // a synchronising call has returned it
  std::shared_ptr<Stream> null_stream;
};

class Runtime {
 public:
  // The process's runtime; never destroyed, because threads may outlive static destructors.
  static Runtime& get();

  std::recursive_mutex mutex;
  Memory memory;
  std::vector<std::unique_ptr<Device>> devices;
  std::string device_error;   // why there are none
  std::map<Stream*, std::shared_ptr<Stream>> streams;
  std::map<Event*, std::shared_ptr<Event>> events;
  std::map<Module*, std::shared_ptr<Module>> modules;
  std::map<Function*, std::shared_ptr<Function>> functions;
  std::map<Graph*, std::unique_ptr<Graph>> graphs;
  std::map<Exec*, std::shared_ptr<Exec>> execs;
  std::vector<std::shared_ptr<Capture>> captures;   // open ones
  uint64_t next_capture = 1;

  RunOptions options;
  std::string last_fault;
  std::map<std::string, uint64_t> last_counters;
  std::string last_trace;
  std::vector<Finding> findings;       // since the last reset, one for each pair of instructions

 private:
  Runtime();
};

// --- errors -------------------------------------------------------------------------------------

// Records the sentence that explains `code` (netraSimLastError; stderr with NETRA_SIM_LOG=1).
hipError_t fail(int code, const std::string& text);
// Ends an API call: keeps the thread's last error, prints when logging is on.
hipError_t finish(const char* function, hipError_t code);
// The text of the thread's last fail(); "" when the last failing call gave none.
const std::string& last_error_text();
void clear_error_text();
const char* error_name(int code);

// Runs the body of an API function: no C++ exception leaves the library.
template <typename Body>
hipError_t api(const char* function, Body body) noexcept {
  clear_error_text();
  hipError_t code = hipErrorUnknown;
  try {
    code = body();
  } catch (const std::bad_alloc&) {
    code = fail(hipErrorOutOfMemory, "the host has no memory left");
  } catch (const std::exception& error) {
    code = fail(hipErrorUnknown, error.what());
  }
  return finish(function, code);
}

// --- devices and streams ------------------------------------------------------------------------

int current_device();                        // of this thread
hipError_t need_device(Device** device);     // the current one; hipErrorNoDevice when none exists
bool valid_device(int index);

// Turns a handle (0, the two special values, or a stream) into a stream.
hipError_t find_stream(hipStream_t handle, std::shared_ptr<Stream>* stream);
std::shared_ptr<Event> find_event(hipEvent_t handle);

// The one door for work: records the operation when the stream captures, else runs it now.
hipError_t submit(const std::shared_ptr<Stream>& stream, Operation operation);
// Runs a prepared graph's steps; the stream must not be capturing.
hipError_t submit_all(const std::shared_ptr<Stream>& stream, const Exec& exec);
// Waits for the device and reports its sticky error.
hipError_t synchronize(Device& device);

// --- capture rules ------------------------------------------------------------------------------

// For calls that no open capture in the process survives (synchronous copies, device sync): 900.
hipError_t forbid_during_any_capture(const char* what);
// For calls that global and thread-local captures forbid, and relaxed ones allow (hipMalloc): 900.
hipError_t forbid_during_strict_capture(const char* what);
// For work on the null stream, which global captures forbid: 906.
hipError_t forbid_on_null_stream(const Stream& stream);

// --- checks that families share -----------------------------------------------------------------

// Copies and fills: every device range inside one region, or hipErrorInvalidValue with a reason.
hipError_t check_copy(const CopyOp& op);
hipError_t check_fill(const FillOp& op);
// Validates a launch and lays out its kernarg segment.
hipError_t prepare_kernel(hipFunction_t function, const uint32_t grid[3], const uint32_t block[3],
                          uint64_t dynamic_lds, void** params, void** extra, KernelOp* op);
// The graph of a handle, those of open captures included; null when there is none. Under the mutex.
Graph* find_graph(hipGraph_t handle);
Graph* graph_with(const Node* node);   // the one that it is a node of, likewise
Node* find_node(hipGraphNode_t handle);
std::shared_ptr<Exec> find_exec(hipGraphExec_t handle);
hipError_t no_such_graph();
hipError_t no_such_node();
hipError_t no_such_exec();
bool has(const Graph& graph, const Node* node);
// Each node after those that it depends on, else in the order of their making.
std::vector<const Node*> in_order(const Graph& graph);
std::unique_ptr<Graph> clone(const Graph& graph);
// An executable graph's steps as a graph: what capturing its launch records.
std::unique_ptr<Graph> graph_of(const Exec& exec);
std::shared_ptr<Exec> exec_of(const Graph& graph);
// Puts the operations of `graph` into `fresh`, a copy of an executable graph, if both have the same
// shape: as many nodes, of the same kinds, each with the same dependencies.
struct GraphChange {
  hipGraphExecUpdateResult result = hipGraphExecUpdateSuccess;
  Node* node = nullptr;   // of the new graph, where it begins to differ
  std::string text;
};
GraphChange update(const Graph& graph, Exec& fresh);
// Operations from the structures that nodes are made of and changed with, checked.
hipError_t from_params(const hipKernelNodeParams* params, KernelOp* op);
hipError_t from_params(const hipMemsetParams* params, FillOp* op);
hipError_t from_params(const hipHostNodeParams* params, HostOp* op);
hipError_t from_copy(void* dst, const void* src, size_t bytes, hipMemcpyKind kind, CopyOp* op);
// Runs one operation on the device, whose work lock the caller holds.
void run_kernel(Device& device, const KernelOp& op);
void run_copy(const CopyOp& op);
void run_fill(const FillOp& op);
// Frees a hipMalloc now, after what runs on its device.
hipError_t free_now(void* pointer);

}  // namespace netra::hip
