/* netra_bridge.h - launch Netra's code objects through HIP, from C, C++ or anything with a C FFI.
 *
 * The bridge opens a device through the HIP library of the process, loads code objects whose bytes
 * are what the caller expects, and launches their kernels on the caller's stream. Which kernels take
 * a call, and with what grid and arguments, is read from the compiled catalog (catalog.bin).
 *
 * Results    Every int function returns NETRA_OK (0) or a negative netra_status. On failure
 *            netra_last_error() tells what happened, where, and what to do next. Outputs are
 *            written on success only.
 * Threads    Handles may be used from any thread. Opening, loading and closing take a lock of the
 *            context; queries and launches take none. Closing a handle while another thread uses it
 *            is the caller's error.
 * Devices    Functions that need the context's device current make it current and put the previous
 *            one back before they return.
 * Capture    "Capture: legal" means that the call may be made while the stream, or another one, is
 *            being captured into a graph, in every capture mode.
 * Memory     The bridge allocates nothing on the device, and owns none of the caller's buffers.
 * Growth     Structures begin with struct_size, set by the caller to sizeof the structure that it
 *            was compiled with. New fields are added at the end.
 */
#ifndef NETRA_BRIDGE_H
#define NETRA_BRIDGE_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#define NETRA_API __attribute__((visibility("default")))
#else
#define NETRA_API
#endif

/* Raised when a function or a structure changes in a way that a caller would notice. */
#define NETRA_BRIDGE_ABI 1

typedef enum netra_status {
  NETRA_OK = 0,
  NETRA_DECLINED = 1,        /* no tactic admits the call: an answer, not an error */
  NETRA_ERROR_ARGUMENT = -1, /* a null or malformed argument */
  NETRA_ERROR_LIBRARY = -2,  /* no HIP library, two of them, or one that lacks a function */
  NETRA_ERROR_DEVICE = -3,   /* no such device, or one that cannot be described */
  NETRA_ERROR_FILE = -4,     /* the file cannot be read */
  NETRA_ERROR_IMAGE = -5,    /* the file is not a whole AMDGPU code object */
  NETRA_ERROR_HASH = -6,     /* the bytes are not the ones expected */
  NETRA_ERROR_ARCH = -7,     /* made for another target than expected, or than the device */
  NETRA_ERROR_SYMBOL = -8,   /* the object has no such kernel */
  NETRA_ERROR_KERNARG = -9,  /* kernel arguments: size or map differ between the parts */
  NETRA_ERROR_LAUNCH = -10,  /* grid, block or LDS that this kernel or device cannot have */
  NETRA_ERROR_CAPTURE = -11, /* not legal while capturing, or a launch that voided the capture */
  NETRA_ERROR_HIP = -12,     /* a HIP call failed; the text has its name and code */
  NETRA_ERROR_MEMORY = -13,  /* the host has no memory */
  NETRA_ERROR_CATALOG = -14, /* the file is no whole catalog of this version, or contradicts itself */
  NETRA_ERROR_REQUIRED = -15 /* no tactic admits the call, and $NETRA_REQUIRE says that one must */
} netra_status;

typedef struct netra_context netra_context; /* one device, through one HIP library */
typedef struct netra_object netra_object;   /* one loaded code object */
typedef struct netra_kernel netra_kernel;   /* one kernel of a loaded object */

/* ---- about the bridge --------------------------------------------------------------------- */

/* NETRA_BRIDGE_ABI of the library that runs. Threads: any. Capture: legal. */
NETRA_API int netra_abi(void);

/* Text for people, for example "0.1.0". Static storage. Threads: any. Capture: legal. */
NETRA_API const char* netra_version(void);

/* What the latest failing call of this thread said; "" when none has failed. A call that succeeds
 * leaves it alone. The text belongs to the thread and lasts until its next failing call.
 * Capture: legal. */
NETRA_API const char* netra_last_error(void);

/* The HIP error code behind the latest failing call of this thread, 0 when HIP was not the cause.
 * Capture: legal. */
NETRA_API int netra_last_hip_error(void);

/* The name of a netra_status, for example "NETRA_ERROR_HASH". Static storage. Capture: legal. */
NETRA_API const char* netra_status_name(int status);

/* ---- device ------------------------------------------------------------------------------- */

/* Opens a device, counted as HIP counts it.
 *
 * The HIP library is, in this order: the libamdhip64 that the process has mapped already (torch's,
 * for example; streams of one copy are unknown to another); `hip_library`, when given;
 * $NETRA_HIP_LIBRARY, when set; ROCm's. Two different copies mapped, or one mapped and another
 * asked for by `hip_library`, is NETRA_ERROR_LIBRARY, and the text names both. The simulator is
 * used when its path is given. The library is never unloaded.
 *
 * Owner: the caller, until netra_close. Capture: not legal. Errors: LIBRARY, DEVICE, HIP. */
NETRA_API int netra_open(const char* hip_library, int device, netra_context** context);

/* Unloads every object of the context and releases it; its objects and kernels are void. A graph
 * that holds one of their kernels must have been destroyed, and the device must be idle.
 * NULL is allowed. Capture: not legal. Errors: HIP (the context is released all the same). */
NETRA_API int netra_close(netra_context* context);

typedef struct netra_device_info {
  size_t struct_size;
  int32_t device;
  int32_t simulated;         /* 1: the library is Netra's simulator */
  int32_t cu_count;          /* HIP's multiProcessorCount: work-group processors on some targets */
  int32_t warp_size;         /* what the runtime compiles for; a kernel has its own wave size */
  int32_t max_threads;       /* per workgroup */
  int32_t runtime_version;   /* hipRuntimeGetVersion */
  uint64_t memory_bytes;
  uint64_t lds_bytes;        /* per workgroup */
  char arch[64];             /* "gfx950" */
  char features[256];        /* as reported: "gfx950:sramecc+:xnack-" */
  char hip_library[1024];    /* the path that was bound */
} netra_device_info;

/* Describes the device; read from it when it was opened. Threads: any. Capture: legal. */
NETRA_API int netra_device(const netra_context* context, netra_device_info* info);

/* ---- code objects ------------------------------------------------------------------------- */

typedef struct netra_load_request {
  size_t struct_size;
  const char* path;   /* file; read once and whole */
  const char* sha256; /* 64 hexadecimal digits of the file expected; NULL: any, see below */
  const char* arch;   /* target expected, "gfx950"; NULL: the device's */
  void* stream;       /* hipStream_t that must not be capturing; NULL: not asked */
} netra_load_request;

/* Reads a code object, checks it, loads it and resolves and touches every kernel in it, so that
 * nothing is left to be done at the first launch.
 *
 * Refused, each with its own status and text: a file that cannot be read (FILE); one that is empty,
 * truncated, a web page or no AMDGPU code object (IMAGE); other bytes than `sha256` (HASH);
 * another target than `arch` or than the device, feature flags included (ARCH); a kernel whose
 * descriptor and metadata disagree, or that asks for hidden arguments (KERNARG, IMAGE).
 * `sha256` NULL loads whatever the file holds; netra_object_sha256 then tells what it was.
 *
 * Owner: the context; netra_unload or netra_close release it. Capture: not legal; the bridge
 * refuses (CAPTURE) when `stream` is capturing, before it does anything. */
NETRA_API int netra_load(netra_context* context, const netra_load_request* request,
                         netra_object** object);

/* Unloads the object; its kernels are void. Conditions as for netra_close. NULL is allowed. */
NETRA_API int netra_unload(netra_object* object);

/* 64 hexadecimal digits of the file as loaded. Lives as long as the object. Capture: legal. */
NETRA_API const char* netra_object_sha256(const netra_object* object);

typedef struct netra_argument {
  uint32_t offset;
  uint32_t size;
} netra_argument;

/* Finds a kernel by its symbol and compares its arguments with those that the caller will pass:
 * `kernarg_size` bytes (the object's segment size, a multiple of 8) and, when `arguments` is not
 * NULL, the map itself, in rising order of offset. Errors: SYMBOL (the text lists the kernels that
 * there are), KERNARG (both sizes, or the first argument that differs).
 *
 * Owner: the object. Threads: any. Capture: legal. */
NETRA_API int netra_find_kernel(const netra_object* object, const char* name, size_t kernarg_size,
                                const netra_argument* arguments, size_t argument_count,
                                const netra_kernel** kernel);

typedef struct netra_kernel_info {
  size_t struct_size;
  uint32_t kernarg_bytes;
  uint32_t lds_bytes;     /* static */
  uint32_t scratch_bytes; /* per lane */
  uint32_t max_threads;   /* per workgroup, as the kernel states it */
  uint32_t wave_size;
  uint32_t argument_count;
} netra_kernel_info;

NETRA_API int netra_kernel_describe(const netra_kernel* kernel, netra_kernel_info* info);

/* ---- launch ------------------------------------------------------------------------------- */

/* Launches a kernel.
 *
 * `grid` is in workgroups and `block` in work-items, three numbers each; `dynamic_lds` is added to
 * what the kernel has. `kernarg_size` must be the kernel's own; the bytes are copied before the
 * call returns. They go through HIP's `extra` buffer with that exact size, so that an eager and a
 * captured launch copy the same bytes. `stream` NULL is the null stream of the device.
 *
 * The path from here to HIP allocates nothing, takes no lock, opens no file and looks up no symbol.
 * Threads: any, on one stream or several. Capture: legal.
 * Errors: ARGUMENT, KERNARG and LAUNCH before HIP is called; HIP when HIP refuses; CAPTURE when it
 * refuses while `stream` is capturing: that capture is void. */
NETRA_API int netra_launch(const netra_kernel* kernel, const uint32_t grid[3],
                           const uint32_t block[3], uint32_t dynamic_lds, const void* kernarg,
                           size_t kernarg_size, void* stream);

/* ---- questions that a caller has before it launches --------------------------------------- */

typedef enum netra_capture {
  NETRA_CAPTURE_NONE = 0,
  NETRA_CAPTURE_ACTIVE = 1,
  NETRA_CAPTURE_INVALID = 2 /* was capturing; something voided the capture */
} netra_capture;

/* Whether the stream is being captured; writes a netra_capture. Threads: any. Capture: legal.
 * Asked of the null stream while another one captures in global mode, HIP refuses: the answer is
 * then NETRA_CAPTURE_NONE, since the null stream cannot capture. */
NETRA_API int netra_capture_status(const netra_context* context, void* stream, int* status);

typedef enum netra_memory {
  NETRA_MEMORY_UNKNOWN = 0, /* HIP does not know the address: ordinary host memory, or nothing */
  NETRA_MEMORY_HOST = 1,    /* pinned host memory */
  NETRA_MEMORY_DEVICE = 2,
  NETRA_MEMORY_MANAGED = 3
} netra_memory;

typedef struct netra_pointer_info {
  size_t struct_size;
  int32_t memory; /* netra_memory */
  int32_t device; /* where it lives; -1 when unknown */
  uint64_t base;  /* of the allocation; 0 when the library does not tell */
  uint64_t size;  /* of the allocation, in bytes; 0 when the library does not tell */
} netra_pointer_info;

/* What HIP knows of an address. An address that HIP does not know is no error, and leaves no error
 * behind in hipGetLastError. Threads: any. Capture: legal. */
NETRA_API int netra_pointer(const netra_context* context, const void* address,
                            netra_pointer_info* info);

/* ---- the compiled catalog ------------------------------------------------------------------
 *
 * catalog.bin says which tactic takes a call of an op, and what it launches. These functions need
 * no device and call nothing of HIP. Ops, slots, tactics and kernels are numbered from 0; look the
 * numbers up once, they hold until the catalog is closed. What takes a const netra_catalog may be
 * called from any thread and under capture, allocates nothing, and takes no lock. */

typedef struct netra_catalog netra_catalog;

/* Reads a catalog.bin whole and checks all of it: version, checksum, every index, every program.
 * `simulated` says which tactics are admitted, for as long as it is open: all that are not rejected
 * or quarantined when it is 1, else those that are accepted or named by $NETRA_ADMIT; one on hold
 * only when $NETRA_ENABLE names it. Both variables hold globs, `<arch>/<stem>` or `<stem>`.
 * Owner: the caller, until netra_catalog_close. Threads: any. Capture: legal.
 * Errors: FILE, CATALOG, MEMORY. */
NETRA_API int netra_catalog_open(const char* path, int simulated, netra_catalog** catalog);

/* Releases it; numbers and texts of it are void. NULL is allowed. */
NETRA_API void netra_catalog_close(netra_catalog* catalog);

/* The number of an op, of an argument of an op (its slot), of a tactic ("gfx950/NAME").
 * Errors: ARGUMENT when there is none of that name. */
NETRA_API int netra_catalog_op(const netra_catalog* catalog, const char* name);
NETRA_API int netra_catalog_slot(const netra_catalog* catalog, int op, const char* name);
NETRA_API int netra_catalog_tactic(const netra_catalog* catalog, const char* id);

/* The number that stands for a name in a call: an arch, a phase, a graph mode, a layout. A name
 * that the catalog does not know has one too, and it equals none that the catalog knows. 0: "". */
NETRA_API uint64_t netra_catalog_name(const netra_catalog* catalog, const char* name);

typedef struct netra_tactic_info {
  size_t struct_size;
  const char* id;
  const char* arch;
  int32_t op;
  int32_t rank;         /* lower wins */
  int32_t admitted;     /* 0: never, whatever the call */
  uint32_t launches;
  const char* maturity; /* "experiment", "simulated", ... */
  const char* hold;     /* why it is held back; "" when it is not */
  const char* zeroed_by; /* who zeroes the workspace; "" when nobody needs to */
} netra_tactic_info;

/* Describes a tactic. The texts belong to the catalog. Errors: ARGUMENT. */
NETRA_API int netra_catalog_describe(const netra_catalog* catalog, int tactic,
                                     netra_tactic_info* info);

typedef struct netra_catalog_kernel_info {
  size_t struct_size;
  const char* name; /* also the stem of its code object */
  const char* arch;
  uint32_t kernarg_size; /* as the code object has it */
  uint32_t wave_size;
  uint32_t max_workgroup;
  uint8_t co_sha256[32]; /* of the code object's file */
} netra_catalog_kernel_info;

/* Describes a kernel. The texts belong to the catalog. Errors: ARGUMENT. */
NETRA_API int netra_catalog_kernel(const netra_catalog* catalog, int kernel,
                                   netra_catalog_kernel_info* info);

/* The name of an op; "" when there is none of that number. It belongs to the catalog. */
NETRA_API const char* netra_catalog_op_name(const netra_catalog* catalog, int op);

/* How many ops, tactics and kernels the catalog has. Errors: ARGUMENT. */
NETRA_API int netra_catalog_op_count(const netra_catalog* catalog);
NETRA_API int netra_catalog_tactic_count(const netra_catalog* catalog);
NETRA_API int netra_catalog_kernel_count(const netra_catalog* catalog);

/* Which kernel launch number `launch` of a tactic runs. Errors: ARGUMENT. */
NETRA_API int netra_catalog_launch_kernel(const netra_catalog* catalog, int tactic, int launch);

typedef enum netra_dtype {
  NETRA_F64 = 1,
  NETRA_F32,
  NETRA_F16,
  NETRA_BF16,
  NETRA_F8E4M3FN,
  NETRA_F8E4M3FNUZ,
  NETRA_F8E5M2,
  NETRA_I64,
  NETRA_I32,
  NETRA_I16,
  NETRA_I8,
  NETRA_U64,
  NETRA_U32,
  NETRA_U16,
  NETRA_U8,
  NETRA_E8M0,
  NETRA_BOOL
} netra_dtype;

typedef enum netra_slot_kind {
  NETRA_ABSENT = 0, /* a scalar that has a default may be absent */
  NETRA_TENSOR,
  NETRA_SIGNED,   /* value.i */
  NETRA_UNSIGNED, /* value.u */
  NETRA_REAL      /* value.f */
} netra_slot_kind;

typedef struct netra_tensor {
  uint64_t data;          /* device address */
  uint64_t extent;        /* bytes from `data` to the end of the storage */
  const int64_t* shape;   /* `ndim` of them, not negative */
  const int64_t* strides; /* in elements */
  uint64_t layout;        /* netra_catalog_name; 0 when it is not known */
  int32_t ndim;
  int32_t dtype; /* netra_dtype */
} netra_tensor;

/* One argument of a call. An integer may be given for a float, never a float for an integer. */
typedef struct netra_slot {
  int32_t kind; /* netra_slot_kind */
  int32_t reserved;
  union {
    netra_tensor tensor;
    int64_t i;
    uint64_t u;
    double f;
  } value;
} netra_slot;

/* A call of an op. Everything in it stays the caller's, and is read during the function only. */
typedef struct netra_call {
  size_t struct_size;
  int32_t op;
  uint32_t slot_count; /* the number of arguments that the op has */
  const netra_slot* slots;
  uint64_t arch; /* netra_catalog_name of "gfx950", "decode", "eager" and the like */
  uint64_t phase;
  uint64_t graph;
  int64_t cu_count;
} netra_call;

typedef struct netra_decision {
  size_t struct_size;
  int32_t tactic; /* that takes the call; else that came furthest; -1: none is admitted */
  int32_t passed; /* predicates that were true before the first false one; -1: not even the args */
  const char* reason; /* id of the first false predicate, "args", "arch", "op" or "overflow"; ""
                       * when the call is taken. It lasts as long as the catalog */
} netra_decision;

/* Decides which tactic takes a call: all predicates of one, or none. The admitted tactic of lowest
 * rank wins. Returns NETRA_OK, or NETRA_DECLINED; `decision` is written for both.
 * Errors: ARGUMENT; CATALOG when two tactics of equal rank take the call. */
NETRA_API int netra_catalog_decide(const netra_catalog* catalog, const netra_call* call,
                                   netra_decision* decision);

/* Bytes of workspace that a tactic needs for a call that it takes.
 * Errors: ARGUMENT, also when it does not take the call; LAUNCH when it is no size. */
NETRA_API int netra_catalog_workspace(const netra_catalog* catalog, int tactic,
                                      const netra_call* call, uint64_t* bytes);

/* Switches tactics off and on again: those that the glob names, `<arch>/<stem>` or `<stem>`. One that
 * is off declines with the reason "disabled"; $NETRA_DISABLE does the same from the start. A tactic
 * that was never admitted stays so. Returns how many it named.
 * Threads: any, while others decide. Capture: legal. Errors: ARGUMENT when it names none. */
NETRA_API int netra_catalog_disable(netra_catalog* catalog, const char* pattern, int disabled);

typedef struct netra_plan {
  size_t struct_size;
  int32_t kernel;
  uint32_t kernarg_size;
  uint32_t grid[3];  /* workgroups */
  uint32_t block[3]; /* work-items */
  uint32_t dynamic_lds;
} netra_plan;

/* What launch number `launch` of a tactic is for a call that it takes, with a workspace at that
 * device address. `kernarg` has `capacity` bytes, at least the size that the launch has; its
 * kernarg block is written there, with zeros where no argument lies.
 * Errors: ARGUMENT, also when the tactic does not take the call, or needs a workspace and has none;
 * LAUNCH when grid, block or LDS leave their range; KERNARG when a value does not fit. */
NETRA_API int netra_catalog_plan(const netra_catalog* catalog, int tactic, int launch,
                                 const netra_call* call, uint64_t workspace, netra_plan* plan,
                                 void* kernarg, size_t capacity);

/* ---- a catalog on a device: what a serving engine holds --------------------------------------
 *
 * Open once, prepare outside a capture, then dispatch as often as there are calls. */

typedef struct netra_bridge netra_bridge;

typedef struct netra_bridge_options {
  size_t struct_size;
  const char* catalog;     /* catalog.bin */
  const char* objects;     /* folder of <arch>/<kernel>.co; NULL: the catalog's own folder */
  const char* hip_library; /* as for netra_open; NULL: the process's */
  int32_t device;
  int32_t reserved;
} netra_bridge_options;

/* Opens a device and a catalog. Which tactics are admitted follows from the device: a GPU or the
 * simulator (netra_catalog_open). $HSA_OVERRIDE_GFX_VERSION makes a device claim to be another, so
 * while it is set this is refused unless $NETRA_ALLOW_GFX_OVERRIDE names the arch that is claimed.
 * Owner: the caller, until netra_bridge_close. Threads: any. Capture: not legal.
 * Errors: as netra_open and netra_catalog_open; DEVICE for an override. */
NETRA_API int netra_bridge_open(const netra_bridge_options* options, netra_bridge** bridge);

/* Unloads and releases everything; conditions as for netra_close. NULL is allowed. */
NETRA_API int netra_bridge_close(netra_bridge* bridge);

/* The catalog, for looking up numbers and names; and the context. They belong to the bridge. */
NETRA_API netra_catalog* netra_bridge_catalog(const netra_bridge* bridge);
NETRA_API netra_context* netra_bridge_context(const netra_bridge* bridge);

/* Loads the code objects of the admitted tactics for this device that the pattern names: a glob for
 * `<arch>/<stem>` or `<stem>`, or the name of an op; NULL for all. What is loaded already stays.
 *
 * Another hash, arch or argument map than the catalog has is an error, and what was loaded before
 * it stays. When HIP or the host fails, that tactic is out for the rest of the process: it says so
 * once on stderr, declines with the reason "failed", and the others are prepared all the same.
 * Returns NETRA_OK; NETRA_DECLINED when a tactic is out; or ARGUMENT when nothing is named, CAPTURE
 * when `stream` is capturing, FILE, IMAGE, HASH, ARCH, SYMBOL, KERNARG.
 * Threads: any, one at a time; others may dispatch meanwhile. Capture: not legal. Allocates. */
NETRA_API int netra_bridge_prepare(netra_bridge* bridge, const char* pattern, void* stream);

/* Device memory of the caller's that tactics with counters or partial results work in. One belongs to
 * one stream; a graph pins the one that it was captured with. */
typedef struct netra_workspace {
  size_t struct_size;
  uint64_t data;  /* device address */
  uint64_t bytes;
  void* stream;   /* written by the first dispatch; another stream is then refused */
  int32_t bound;  /* set to 0 by the caller, to 1 by the first dispatch */
  int32_t reserved;
} netra_workspace;

/* Bytes of workspace that the tactic that takes this call needs, 0 for none. netra_tactic_info's
 * zeroed_by says who zeroes it. With `graph` 0 the call may be eager or captured; so too for
 * netra_bridge_why. Returns NETRA_OK, NETRA_DECLINED or an error as for dispatch. */
NETRA_API int netra_bridge_workspace_bytes(netra_bridge* bridge, const netra_call* call,
                                           uint64_t* bytes);

/* Launches what the call asks for, or nothing.
 *
 * `arch` and `cu_count` of the call may be 0: they are the device's. `graph` may be 0: the stream is
 * asked whether it captures. `workspace` NULL: there is none. `decision` may be NULL; else it tells
 * the tactic and, for a decline, the id of the first false predicate, or "disabled" (switched off),
 * "failed" (see prepare), "not_prepared".
 *
 * Returns NETRA_OK: launched. NETRA_DECLINED: nothing was; take your own path. Negative: an error,
 * among them NETRA_ERROR_REQUIRED for a decline of an op that $NETRA_REQUIRE names, and
 * NETRA_ERROR_CAPTURE when a launch failed in a capture, which is then void.
 *
 * From here to HIP nothing is allocated, locked, opened or looked up. Threads: any; a workspace is
 * used by one thread at a time. Capture: legal. */
NETRA_API int netra_bridge_dispatch(netra_bridge* bridge, const netra_call* call,
                                    netra_workspace* workspace, void* stream,
                                    netra_decision* decision);

/* Writes one sentence about what dispatch would answer, cut to `capacity` bytes with the final zero.
 * Returns what dispatch would return (an error for one, NETRA_OK or NETRA_DECLINED).
 * Threads: any. Capture: legal. */
NETRA_API int netra_bridge_why(netra_bridge* bridge, const netra_call* call, char* text,
                               size_t capacity);

typedef struct netra_stats {
  size_t struct_size;
  uint64_t hits;
  uint64_t misses;
  uint64_t errors;
} netra_stats;

/* How often the op was dispatched so far, by outcome. Threads: any. Capture: legal. */
NETRA_API int netra_bridge_stats(const netra_bridge* bridge, int op, netra_stats* stats);

typedef struct netra_miss {
  size_t struct_size;
  int32_t tactic;     /* that came furthest; -1: none is admitted */
  int32_t reserved;
  const char* reason; /* as in netra_decision */
  uint64_t count;
} netra_miss;

/* The misses of an op by tactic and first false predicate: entry `index` of those that happened.
 * NETRA_DECLINED when there is no such entry. Threads: any. Capture: legal. */
NETRA_API int netra_bridge_miss(const netra_bridge* bridge, int op, int index, netra_miss* miss);

#ifdef __cplusplus
}
#endif

#endif /* NETRA_BRIDGE_H */
