// The header of a compressed bundle (clang's OffloadBundler): magic, version, method, sizes, a hash
// of the contents, then one zlib or zstd stream. The two libraries are opened when one is needed:
// the simulator starts on a machine that has neither.
#include "compressed.h"

#include <dlfcn.h>

#include <cstring>

namespace netra::compressed {
namespace {

constexpr uint64_t kMostBytes = uint64_t{1} << 30;   // of an unpacked bundle
constexpr uint16_t kZlib = 0, kZstd = 1;

// Version 1 has no file size; version 3 widens both sizes to 64 bits.
struct Header {
  uint16_t version = 0, method = 0;
  uint64_t file = 0, unpacked = 0;
  size_t bytes = 0;
};

bool read_header(const uint8_t* data, size_t size, Header* h, std::string* error) {
  size_t at = 4;
  bool whole = true;
  const auto number = [&](size_t bytes) {
    uint64_t value = 0;
    if (size < at + bytes) return whole = false, value;
    std::memcpy(&value, data + at, bytes);
    at += bytes;
    return value;
  };
  h->version = static_cast<uint16_t>(number(2));
  h->method = static_cast<uint16_t>(number(2));
  if (whole && (h->version < 1 || h->version > 3)) {
    *error = "the compressed offload bundle has version " + std::to_string(h->version) +
             "; known are 1, 2 and 3";
    return false;
  }
  const size_t wide = h->version == 3 ? 8 : 4;
  if (h->version > 1) h->file = number(wide);
  h->unpacked = number(wide);
  number(8);   // a hash of the contents; the stream's own check is what is relied on
  h->bytes = at;
  if (whole && (h->version == 1 || h->file >= at)) return true;
  *error = "the compressed offload bundle is truncated or damaged: its header is not whole";
  return false;
}

void* open_library(const char* name, std::string* error) {
  void* library = dlopen(name, RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    *error = std::string("the offload bundle is compressed and ") + name +
             " cannot be opened; install it, or build with --no-offload-compress";
  }
  return library;
}

template <typename Function>
Function find(void* library, const char* name) {
  return reinterpret_cast<Function>(dlsym(library, name));
}

bool unpack_zlib(const uint8_t* data, size_t size, std::vector<uint8_t>* out, std::string* error) {
  void* library = open_library("libz.so.1", error);
  if (library == nullptr) return false;
  const auto run = find<int (*)(uint8_t*, unsigned long*, const uint8_t*, unsigned long)>(
      library, "uncompress");
  unsigned long length = out->size();
  const int code = run != nullptr ? run(out->data(), &length, data, size) : -6;
  if (code == 0 && length == out->size()) return true;
  *error = "the zlib stream of the compressed offload bundle is damaged (zlib says " +
           std::to_string(code) + ")";
  return false;
}

bool unpack_zstd(const uint8_t* data, size_t size, std::vector<uint8_t>* out, std::string* error) {
  void* library = open_library("libzstd.so.1", error);
  if (library == nullptr) return false;
  const auto run = find<size_t (*)(void*, size_t, const void*, size_t)>(library, "ZSTD_decompress");
  const auto name = find<const char* (*)(size_t)>(library, "ZSTD_getErrorName");
  if (run == nullptr || name == nullptr) {
    *error = "libzstd.so.1 has no ZSTD_decompress";
    return false;
  }
  const size_t length = run(out->data(), out->size(), data, size);
  if (length == out->size()) return true;
  *error = std::string("the zstd stream of the compressed offload bundle is damaged (") +
           (length > out->size() ? name(length) : "it is shorter than its header says") + ")";
  return false;
}

}  // namespace

bool is_compressed(const uint8_t* data, size_t size) {
  return size >= 4 && std::memcmp(data, "CCOB", 4) == 0;
}

uint64_t promised_size(const uint8_t* data, size_t size) {
  Header header;
  std::string unused;
  return is_compressed(data, size) && read_header(data, size, &header, &unused) ? header.file : 0;
}

bool unpack(const uint8_t* data, size_t size, std::vector<uint8_t>* out, std::string* error) {
  Header header;
  if (!read_header(data, size, &header, error)) return false;
  if (header.version > 1 && header.file > size) {
    *error = "the compressed offload bundle is truncated: " + std::to_string(header.file) +
             " bytes are promised, " + std::to_string(size) + " are there";
    return false;
  }
  if (header.unpacked > kMostBytes) {
    *error = "the compressed offload bundle says that it holds " +
             std::to_string(header.unpacked) + " bytes; the simulator unpacks at most " +
             std::to_string(kMostBytes);
    return false;
  }
  if (header.method != kZlib && header.method != kZstd) {
    *error = "the compressed offload bundle uses method " + std::to_string(header.method) +
             "; known are 0 (zlib) and 1 (zstd)";
    return false;
  }
  const size_t end = header.version > 1 ? header.file : size;
  out->resize(header.unpacked);
  return (header.method == kZlib ? unpack_zlib : unpack_zstd)(
      data + header.bytes, end - header.bytes, out, error);
}

}  // namespace netra::compressed
