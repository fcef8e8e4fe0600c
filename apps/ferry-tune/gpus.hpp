// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <memory>
#include <string>

namespace ferry::tune {

// The GPUs of AMD that this process sees, by HIP, which is looked up at run time: ferry-tune is
// built, and installed, where there is none.
class Gpus {
 public:
  // Throws std::runtime_error with what to do when there are none.
  Gpus();
  [[nodiscard]] int count() const noexcept { return count_; }
  // "8 x AMD Instinct MI300X, HIP 60342134"
  [[nodiscard]] std::string describe() const;
  void use(int gpu) const;

  struct Free {
    int (*release)(void*) = nullptr;
    void operator()(void* memory) const { release(memory); }
  };
  using Memory = std::unique_ptr<void, Free>;
  [[nodiscard]] Memory allocate(std::size_t bytes) const;

 private:
  int (*set_device_)(int) = nullptr;
  int (*malloc_)(void**, std::size_t) = nullptr;
  int (*free_)(void*) = nullptr;
  int (*get_name_)(char*, int, int) = nullptr;
  int (*get_version_)(int*) = nullptr;
  int count_ = 0;
};

} // namespace ferry::tune
