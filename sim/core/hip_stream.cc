// Streams and events, and submit(): the one place where work begins.

#include "hip_runtime_state.h"

namespace netra::hip {
namespace {

bool faulted(Device& device, hipError_t* code);

// A copy or fill that a graph replays is checked again, since its memory may have been freed.
void run_checked(Device& device, hipError_t check, const char* what) {
  if (check == hipSuccess) return;
  Runtime& rt = Runtime::get();
  std::lock_guard lock(rt.mutex);
  device.fault = hipErrorIllegalAddress;
  device.fault_reported = false;
  rt.last_fault = std::string(what) + " touches memory that is gone: " + last_error_text();
}

void run(Device& device, const CopyOp& op) {
  const hipError_t code = check_copy(op);
  if (code == hipSuccess) run_copy(op);
  run_checked(device, code, "a copy");
}

void run(Device& device, const FillOp& op) {
  const hipError_t code = check_fill(op);
  if (code == hipSuccess) run_fill(op);
  run_checked(device, code, "a fill");
}

void run(Device& device, const KernelOp& op) { run_kernel(device, op); }
void run(Device&, const HostOp& op) { op.function(op.data); }
void run(Device&, const EmptyOp&) {}
void run(Device&, const EventWaitOp&) {}   // what was recorded is done
void run(Device&, const AllocOp&) {}       // has its memory already

void run(Device&, const EventRecordOp& op) {
  std::lock_guard lock(Runtime::get().mutex);
  op.event->capture = nullptr;
  op.event->recorded = true;
  op.event->time = std::chrono::steady_clock::now();
}

void run(Device& device, const FreeOp& op) {
  if (op.memory != nullptr) return;   // lives as long as its graph
  if (free_now(op.pointer) != hipSuccess) {
    run_checked(device, hipErrorInvalidValue, "hipFreeAsync");
  }
}

// Only a capture submits one, so it is never run by itself: its steps are.
void run(Device&, const ChildOp&) {}

void run_steps(Device& device, const Exec& exec, hipError_t* code) {
  for (const Exec::Step& step : exec.steps) {
    if (faulted(device, code)) return;
    if (!step.enabled) continue;
    if (step.child != nullptr) {
      run_steps(device, *step.child, code);
    } else {
      std::visit([&](const auto& op) { run(device, op); }, step.operation);
    }
  }
}

// After a fault the device does nothing more. Until a synchronising call has reported it, calls
// succeed all the same: on a GPU the host would not know yet.
bool faulted(Device& device, hipError_t* code) {
  Runtime& rt = Runtime::get();
  std::lock_guard lock(rt.mutex);
  if (device.fault == 0) return false;
  *code = device.fault_reported ? fail(device.fault, rt.last_fault) : hipSuccess;
  return true;
}

// The capture side of submit(); true when `code` is the answer and nothing runs now.
bool captured(Stream& stream, Operation* operation, hipError_t* code) {
  Runtime& rt = Runtime::get();
  std::lock_guard lock(rt.mutex);
  if (stream.capture != nullptr) {
    Capture& capture = *stream.capture;
    if (capture.invalid) {
      *code = fail(hipErrorStreamCaptureInvalidated, "an earlier call has spoilt this capture");
      return true;
    }
    auto node = std::make_unique<Node>();
    node->operation = std::move(*operation);
    node->after = std::move(stream.tail);
    stream.tail = {node.get()};
    capture.graph->nodes.push_back(std::move(node));
    *code = hipSuccess;
    return true;
  }
  *code = forbid_on_null_stream(stream);
  return *code != hipSuccess;
}

hipError_t create_stream(hipStream_t* out, unsigned flags, int priority) {
  if (out == nullptr) return fail(hipErrorInvalidValue, "the result pointer is null");
  if (flags != hipStreamDefault && flags != hipStreamNonBlocking) {
    return fail(hipErrorInvalidValue, "unknown stream flags " + std::to_string(flags));
  }
  Device* device = nullptr;
  const hipError_t code = need_device(&device);
  if (code != hipSuccess) return code;
  auto stream = std::make_shared<Stream>();
  stream->device = device->index;
  stream->flags = flags;
  stream->priority = priority;
  Runtime& rt = Runtime::get();
  std::lock_guard lock(rt.mutex);
  *out = stream.get();
  rt.streams[stream.get()] = std::move(stream);
  return hipSuccess;
}

hipError_t create_event(hipEvent_t* out, unsigned flags) {
  if (out == nullptr) return fail(hipErrorInvalidValue, "the result pointer is null");
  if ((flags & hipEventInterprocess) != 0) {
    return fail(hipErrorNotSupported, "the simulator has no events between processes");
  }
  Device* device = nullptr;
  const hipError_t code = need_device(&device);
  if (code != hipSuccess) return code;
  auto event = std::make_shared<Event>();
  event->flags = flags;
  event->device = device->index;
  Runtime& rt = Runtime::get();
  std::lock_guard lock(rt.mutex);
  *out = event.get();
  rt.events[event.get()] = std::move(event);
  return hipSuccess;
}

hipError_t no_such_event() { return fail(hipErrorInvalidHandle, "the event does not exist"); }

// hipStreamSynchronize and hipStreamQuery: never on a capturing stream, and on no other stream
// but the null one while a global capture is open.
hipError_t forbid_wait(const Stream& stream, const char* what) {
  Runtime& rt = Runtime::get();
  std::lock_guard lock(rt.mutex);
  if (stream.capture != nullptr) {
    stream.capture->invalid = true;
    return fail(hipErrorStreamCaptureUnsupported, std::string(what) + " on a capturing stream");
  }
  return stream.is_null ? hipSuccess : forbid_during_strict_capture(what);
}

// hipEventSynchronize and hipEventQuery.
hipError_t forbid_captured(Event& event, const char* what) {
  std::lock_guard lock(Runtime::get().mutex);
  if (event.capture == nullptr || !event.capture->open) return hipSuccess;
  event.capture->invalid = true;
  return fail(hipErrorCapturedEvent, std::string(what) + " on an event of an open capture");
}

}  // namespace

hipError_t submit(const std::shared_ptr<Stream>& stream, Operation operation) {
  hipError_t code = hipSuccess;
  if (captured(*stream, &operation, &code)) return code;
  Device& device = *Runtime::get().devices[stream->device];
  std::lock_guard work(device.work);
  if (!faulted(device, &code)) std::visit([&](const auto& op) { run(device, op); }, operation);
  return code;
}

hipError_t submit_all(const std::shared_ptr<Stream>& stream, const Exec& exec) {
  Device& device = *Runtime::get().devices[stream->device];
  std::lock_guard work(device.work);
  hipError_t code = hipSuccess;
  run_steps(device, exec, &code);
  return code;
}

hipError_t synchronize(Device& device) {
  std::lock_guard work(device.work);
  Runtime& rt = Runtime::get();
  std::lock_guard lock(rt.mutex);
  if (device.fault == 0) return hipSuccess;
  device.fault_reported = true;
  return fail(device.fault, rt.last_fault);
}

hipError_t find_stream(hipStream_t handle, std::shared_ptr<Stream>* stream) {
  Runtime& rt = Runtime::get();
  const auto value = reinterpret_cast<uintptr_t>(handle);
  if (value == 0 || value == hipStreamLegacyHandle) {
    Device* device = nullptr;
    const hipError_t code = need_device(&device);
    if (code == hipSuccess) *stream = device->null_stream;
    return code;
  }
  if (value == hipStreamPerThreadHandle) {
    static thread_local std::map<int, std::shared_ptr<Stream>> streams;
    Device* device = nullptr;
    const hipError_t code = need_device(&device);
    if (code != hipSuccess) return code;
    auto& mine = streams[device->index];
    if (mine == nullptr) {
      mine = std::make_shared<Stream>();
      mine->device = device->index;
    }
    *stream = mine;
    return hipSuccess;
  }
  std::lock_guard lock(rt.mutex);
  const auto it = rt.streams.find(handle);
  if (it == rt.streams.end()) {   // ROCm's code for it
    return fail(hipErrorContextIsDestroyed,
                "the handle is no stream of this library: it was destroyed, or made by another "
                "libamdhip64");
  }
  *stream = it->second;
  return hipSuccess;
}

std::shared_ptr<Event> find_event(hipEvent_t handle) {
  Runtime& rt = Runtime::get();
  std::lock_guard lock(rt.mutex);
  const auto it = rt.events.find(handle);
  return it == rt.events.end() ? nullptr : it->second;
}

}  // namespace netra::hip

using namespace netra::hip;

extern "C" {

hipError_t hipStreamCreate(hipStream_t* stream) {
  return api("hipStreamCreate", [&] { return create_stream(stream, hipStreamDefault, 0); });
}

hipError_t hipStreamCreateWithFlags(hipStream_t* stream, unsigned flags) {
  return api("hipStreamCreateWithFlags", [&] { return create_stream(stream, flags, 0); });
}

hipError_t hipStreamCreateWithPriority(hipStream_t* stream, unsigned flags, int priority) {
  return api("hipStreamCreateWithPriority",
             [&] { return create_stream(stream, flags, priority); });
}

hipError_t hipStreamDestroy(hipStream_t handle) {
  return api("hipStreamDestroy", [&] {
    Runtime& rt = Runtime::get();
    std::lock_guard lock(rt.mutex);
    const auto it = rt.streams.find(handle);
    if (it == rt.streams.end()) return fail(hipErrorInvalidHandle, "the stream does not exist");
    if (it->second->capture != nullptr) {
      it->second->capture->invalid = true;
      return fail(hipErrorStreamCaptureUnsupported, "hipStreamDestroy on a capturing stream");
    }
    rt.streams.erase(it);
    return hipSuccess;
  });
}

hipError_t hipStreamSynchronize(hipStream_t handle) {
  return api("hipStreamSynchronize", [&] {
    std::shared_ptr<Stream> stream;
    hipError_t code = find_stream(handle, &stream);
    if (code == hipSuccess) code = forbid_wait(*stream, "hipStreamSynchronize");
    return code == hipSuccess ? synchronize(*Runtime::get().devices[stream->device]) : code;
  });
}

// Work is done when its call returns, so the answer is never hipErrorNotReady.
hipError_t hipStreamQuery(hipStream_t handle) {
  return api("hipStreamQuery", [&] {
    std::shared_ptr<Stream> stream;
    hipError_t code = find_stream(handle, &stream);
    if (code == hipSuccess) code = forbid_wait(*stream, "hipStreamQuery");
    return code == hipSuccess ? synchronize(*Runtime::get().devices[stream->device]) : code;
  });
}

hipError_t hipStreamGetDevice(hipStream_t handle, hipDevice_t* device) {
  return api("hipStreamGetDevice", [&] {
    if (device == nullptr) return hipErrorInvalidValue;
    std::shared_ptr<Stream> stream;
    const hipError_t code = find_stream(handle, &stream);
    if (code == hipSuccess) *device = stream->device;
    return code;
  });
}

hipError_t hipStreamGetFlags(hipStream_t handle, unsigned* flags) {
  return api("hipStreamGetFlags", [&] {
    if (flags == nullptr) return hipErrorInvalidValue;
    std::shared_ptr<Stream> stream;
    const hipError_t code = find_stream(handle, &stream);
    if (code == hipSuccess) *flags = stream->flags;
    return code;
  });
}

hipError_t hipStreamGetPriority(hipStream_t handle, int* priority) {
  return api("hipStreamGetPriority", [&] {
    if (priority == nullptr) return hipErrorInvalidValue;
    std::shared_ptr<Stream> stream;
    const hipError_t code = find_stream(handle, &stream);
    if (code == hipSuccess) *priority = stream->priority;
    return code;
  });
}

// Outside a capture there is nothing to wait for. Within one, this is how streams fork and join.
hipError_t hipStreamWaitEvent(hipStream_t handle, hipEvent_t event_handle, unsigned flags) {
  return api("hipStreamWaitEvent", [&] {
    std::shared_ptr<Stream> stream;
    const hipError_t code = find_stream(handle, &stream);
    if (code != hipSuccess) return code;
    const auto event = find_event(event_handle);
    if (event == nullptr) return no_such_event();
    if (flags > 1) return fail(hipErrorInvalidValue, "unknown flags");
    std::lock_guard lock(Runtime::get().mutex);
    const bool of_capture = event->capture != nullptr && event->capture->open;
    if (!of_capture) {
      if (stream->capture == nullptr || !event->recorded) return hipSuccess;
      stream->capture->invalid = true;
      return fail(hipErrorStreamCaptureIsolation,
                  "a capturing stream waits for work outside its capture");
    }
    if (event->capture->invalid) {
      return fail(hipErrorStreamCaptureInvalidated, "an earlier call has spoilt this capture");
    }
    if (stream->is_null) {
      event->capture->invalid = true;
      return fail(hipErrorStreamCaptureImplicit, "the null stream waits for a captured event");
    }
    if (stream->capture == nullptr) {
      stream->capture = event->capture;
      stream->tail = event->nodes;
      event->capture->streams.push_back(stream);
    } else if (stream->capture == event->capture) {
      stream->tail.insert(stream->tail.end(), event->nodes.begin(), event->nodes.end());
    } else {
      stream->capture->invalid = event->capture->invalid = true;
      return fail(hipErrorStreamCaptureMerge, "the stream belongs to another capture");
    }
    return hipSuccess;
  });
}

// Runs the function when the stream's earlier work is done: now, or when a captured graph runs.
hipError_t hipLaunchHostFunc(hipStream_t handle, hipHostFn_t function, void* data) {
  return api("hipLaunchHostFunc", [&] {
    if (function == nullptr) return fail(hipErrorInvalidValue, "the function is null");
    std::shared_ptr<Stream> stream;
    const hipError_t code = find_stream(handle, &stream);
    return code == hipSuccess ? submit(stream, HostOp{function, data}) : code;
  });
}

hipError_t hipEventCreate(hipEvent_t* event) {
  return api("hipEventCreate", [&] { return create_event(event, 0); });
}

hipError_t hipEventCreateWithFlags(hipEvent_t* event, unsigned flags) {
  return api("hipEventCreateWithFlags", [&] { return create_event(event, flags); });
}

hipError_t hipEventDestroy(hipEvent_t handle) {
  return api("hipEventDestroy", [&] {
    Runtime& rt = Runtime::get();
    std::lock_guard lock(rt.mutex);
    return rt.events.erase(handle) != 0 ? hipSuccess : no_such_event();
  });
}

hipError_t hipEventRecord(hipEvent_t handle, hipStream_t stream_handle) {
  return api("hipEventRecord", [&] {
    const auto event = find_event(handle);
    if (event == nullptr) return no_such_event();
    std::shared_ptr<Stream> stream;
    const hipError_t code = find_stream(stream_handle, &stream);
    if (code != hipSuccess) return code;
    if (stream->device != event->device) {
      return fail(hipErrorInvalidHandle, "the event and the stream are on different devices");
    }
    std::lock_guard lock(Runtime::get().mutex);
    if (stream->capture != nullptr) {
      if (stream->capture->invalid) {
        return fail(hipErrorStreamCaptureInvalidated, "an earlier call has spoilt this capture");
      }
      event->capture = stream->capture;
      event->nodes = stream->tail;
      event->recorded = false;
      return hipSuccess;
    }
    const hipError_t forbidden = forbid_on_null_stream(*stream);
    if (forbidden != hipSuccess) return forbidden;
    event->capture = nullptr;
    event->nodes.clear();
    event->recorded = true;
    event->time = std::chrono::steady_clock::now();
    return hipSuccess;
  });
}

hipError_t hipEventSynchronize(hipEvent_t handle) {
  return api("hipEventSynchronize", [&] {
    const auto event = find_event(handle);
    if (event == nullptr) return no_such_event();
    const hipError_t code = forbid_captured(*event, "hipEventSynchronize");
    if (code != hipSuccess || !event->recorded) return code;
    return synchronize(*Runtime::get().devices[event->device]);
  });
}

hipError_t hipEventQuery(hipEvent_t handle) {
  return api("hipEventQuery", [&] {
    const auto event = find_event(handle);
    if (event == nullptr) return no_such_event();
    const hipError_t code = forbid_captured(*event, "hipEventQuery");
    if (code != hipSuccess || !event->recorded) return code;
    return synchronize(*Runtime::get().devices[event->device]);
  });
}

// Host time between the two records: how long the simulation took, not what a GPU would need.
hipError_t hipEventElapsedTime(float* milliseconds, hipEvent_t start, hipEvent_t stop) {
  return api("hipEventElapsedTime", [&] {
    if (milliseconds == nullptr) return hipErrorInvalidValue;
    const auto first = find_event(start), last = find_event(stop);
    if (first == nullptr || last == nullptr) return no_such_event();
    if (((first->flags | last->flags) & hipEventDisableTiming) != 0) {
      return fail(hipErrorInvalidHandle, "an event was created without timing");
    }
    if (!first->recorded || !last->recorded) {
      return fail(hipErrorInvalidHandle, "an event was never recorded");
    }
    const std::chrono::duration<float, std::milli> gone = last->time - first->time;
    *milliseconds = gone.count();
    return hipSuccess;
  });
}

}  // extern "C"
