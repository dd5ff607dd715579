// Clang's offload bundle: several code objects in one file, one per target.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace netra::bundle {

bool is_bundle(const uint8_t* data, size_t size);

// The length that a bundle's table promises, from its first `size` bytes; 0 when they are no
// bundle or do not hold the whole table yet.
uint64_t promised_size(const uint8_t* data, size_t size);

// Finds the entry for `arch` ("gfx950"); with an empty arch, the only device entry. An image that
// is no bundle is its own entry. A compressed bundle is unpacked to `unpacked`, which then holds
// what `data` points to. False: one sentence in `error` and the HIP code in `hip_error`.
bool select(const uint8_t** data, size_t* size, const std::string& arch,
            std::vector<uint8_t>* unpacked, std::string* error, int* hip_error);

}  // namespace netra::bundle
